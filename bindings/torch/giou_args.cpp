// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_args.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

namespace boxloss::torch_binding {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

template <class Enum>
Enum parse(const char* argument, std::string_view given,
           std::initializer_list<std::pair<std::string_view, Enum>> allowed) {
  for (const auto& [word, value] : allowed) {
    if (word == given) return value;
  }
  std::string words;
  for (const auto& [word, value] : allowed) {
    words += (words.empty() ? "'" : ", '") + std::string(word) + "'";
  }
  TORCH_CHECK_VALUE(false, "giou_loss: ", argument, " is '", given, "'; allowed: ", words);
}

BoxFormat parse_format(const char* argument, std::string_view given) {
  return parse<BoxFormat>(
      argument, given,
      {{"xyxy", BoxFormat::kXyxy}, {"xywh", BoxFormat::kXywh}, {"cxcywh", BoxFormat::kCxcywh}});
}

Pairing::Kind parse_pairing(const GiouLossArgs& a) {
  const int given =
      a.zero_padded + a.lengths.has_value() + a.mask.has_value() + a.offsets.has_value();
  TORCH_CHECK_VALUE(given <= 1,
                    "giou_loss: give at most one of zero_padded, lengths, mask and offsets; got",
                    a.zero_padded ? " zero_padded" : "", a.lengths ? " lengths" : "",
                    a.mask ? " mask" : "", a.offsets ? " offsets" : "");
  if (a.zero_padded) return Pairing::Kind::kZeroPadded;
  if (a.lengths) return Pairing::Kind::kLengths;
  if (a.mask) return Pairing::Kind::kMask;
  if (a.offsets) return Pairing::Kind::kOffsets;
  return Pairing::Kind::kDense;
}

bool is_in(at::ScalarType type, std::initializer_list<at::ScalarType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

void check_floating(const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(is_in(tensor.scalar_type(), {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}),
                   "giou_loss: ", argument, " is ", tensor.scalar_type(),
                   "; it must be float64, float32, float16 or bfloat16");
}

void check_target_dtype(const at::Tensor& target) {
  TORCH_CHECK_TYPE(
      is_in(target.scalar_type(), {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kByte,
                                   at::kShort, at::kInt, at::kLong}),
      "giou_loss: target is ", target.scalar_type(),
      "; it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64");
}

void check_boxes_shape(const char* argument, const at::Tensor& boxes) {
  const auto shape = boxes.sym_sizes();
  TORCH_CHECK_VALUE(!shape.empty() && shape.back() == 4, "giou_loss: ", argument, " has shape ",
                    shape, "; its last dimension must be 4");
}

void check_indices_dtype(const char* argument, const at::Tensor& indices) {
  TORCH_CHECK_TYPE(is_in(indices.scalar_type(), {at::kInt, at::kLong}), "giou_loss: ", argument,
                   " is ", indices.scalar_type(), "; it must be int32 or int64");
}

void check_shape(const char* argument, const at::Tensor& tensor,
                 const std::vector<c10::SymInt>& wanted, const char* why) {
  TORCH_CHECK_VALUE(tensor.sym_sizes() == c10::SymIntArrayRef(wanted), "giou_loss: ", argument,
                    " has shape ", tensor.sym_sizes(), "; it must be ", c10::SymIntArrayRef(wanted),
                    ", ", why);
}

void check_pairing(const GiouLossArgs& a, Pairing::Kind pairing) {
  const auto pred = a.pred.sym_sizes();
  const auto target = a.target.sym_sizes();
  const bool by_image = pairing != Pairing::Kind::kDense && pairing != Pairing::Kind::kMask;
  TORCH_CHECK_VALUE(!by_image || pred.size() == 3, "giou_loss: pred has shape ", pred,
                    "; with zero_padded, lengths or offsets it must be (images, slots, 4)");
  if (pairing == Pairing::Kind::kOffsets) {
    TORCH_CHECK_VALUE(target.size() == 2, "giou_loss: target has shape ", target,
                      "; with offsets it must be (boxes of all images, 4)");
    check_indices_dtype("offsets", *a.offsets);
    check_shape("offsets", *a.offsets, {pred[0] + 1}, "one more than pred has images");
    return;
  }
  TORCH_CHECK_VALUE(pred == target, "giou_loss: pred has shape ", pred, ", target has shape ",
                    target, "; they must be equal");
  if (pairing == Pairing::Kind::kLengths) {
    check_indices_dtype("lengths", *a.lengths);
    check_shape("lengths", *a.lengths, {pred[0]}, "one for each image of pred");
  }
  if (pairing == Pairing::Kind::kMask) {
    TORCH_CHECK_TYPE(a.mask->scalar_type() == at::kBool, "giou_loss: mask is ",
                     a.mask->scalar_type(), "; it must be bool");
    check_shape("mask", *a.mask, loss_shape(a), "pred's without the 4");
  }
}

void check_normalizer(const at::Tensor& normalizer, Reduction reduction) {
  TORCH_CHECK_VALUE(reduction == Reduction::kMean,
                    "giou_loss: normalizer needs reduction 'mean', which it redefines");
  TORCH_CHECK_VALUE(normalizer.dim() == 0, "giou_loss: normalizer has shape ",
                    normalizer.sym_sizes(), "; it must have no dimension");
  TORCH_CHECK_TYPE(is_in(normalizer.scalar_type(), {at::kFloat, at::kDouble, at::kLong, at::kInt}),
                   "giou_loss: normalizer is ", normalizer.scalar_type(),
                   "; it must be float64, float32, int64 or int32");
}

void check_device(const char* argument, const OptionalTensor& tensor, const at::Tensor& pred) {
  TORCH_CHECK(!tensor || tensor->device() == pred.device(), "giou_loss: ", argument, " is on ",
              tensor->device(), ", pred is on ", pred.device(), "; all must be on one device");
}

}  // namespace

GiouLossOptions check_args(const GiouLossArgs& a) {
  const GiouLossOptions options{
      parse_format("pred_format", a.pred_format), parse_format("target_format", a.target_format),
      parse_pairing(a),
      parse<Reduction>(
          "reduction", a.reduction,
          {{"none", Reduction::kNone}, {"sum", Reduction::kSum}, {"mean", Reduction::kMean}}),
      parse<EpsMode>("eps_mode", a.eps_mode, {{"add", EpsMode::kAdd}, {"clamp", EpsMode::kClamp}})};
  const double most = compute_type(a) == at::kDouble ? std::numeric_limits<double>::max()
                                                     : std::numeric_limits<float>::max();
  TORCH_CHECK_VALUE(a.eps >= 0 && a.eps <= most, "giou_loss: eps is ", a.eps,
                    "; it must be finite and not negative, as a ", compute_type(a));
  check_device("target", a.target, a.pred);
  check_device("weight", a.weight, a.pred);
  check_device("normalizer", a.normalizer, a.pred);
  check_device("lengths", a.lengths, a.pred);
  check_device("mask", a.mask, a.pred);
  check_device("offsets", a.offsets, a.pred);
  check_floating("pred", a.pred);
  check_target_dtype(a.target);
  check_boxes_shape("pred", a.pred);
  check_boxes_shape("target", a.target);
  check_pairing(a, options.pairing);
  if (a.weight) {
    check_floating("weight", *a.weight);
    check_shape("weight", *a.weight, loss_shape(a), "the shape of the unreduced loss");
  }
  if (a.normalizer) check_normalizer(*a.normalizer, options.reduction);
  return options;
}

void check_strides(const GiouLossArgs& a) {
  const auto check = [](const char* argument, const at::Tensor& boxes) {
    TORCH_CHECK_VALUE(boxes.sym_numel() == 0 || boxes.sym_stride(-1) == 1, "giou_loss: ", argument,
                      " has strides ", boxes.sym_strides(),
                      "; its last dimension must be contiguous (call .contiguous())");
  };
  check("pred", a.pred);
  check("target", a.target);
}

void check_backward_args(const at::Tensor& grad_loss, const at::Tensor& scale,
                         const GiouLossArgs& a, const GiouLossOptions& options,
                         const Wanted& wanted) {
  const bool reduced = options.reduction != Reduction::kNone;
  check_shape("grad_loss", grad_loss, reduced ? std::vector<c10::SymInt>() : loss_shape(a),
              "the shape of the loss");
  check_shape("scale", scale, {}, "as forward returned it");
  const at::ScalarType type = compute_type(a);
  TORCH_CHECK_TYPE(grad_loss.scalar_type() == type && scale.scalar_type() == type,
                   "giou_loss: grad_loss is ", grad_loss.scalar_type(), " and scale is ",
                   scale.scalar_type(), "; both must be ", type, ", as the loss is");
  check_device("grad_loss", grad_loss, a.pred);
  check_device("scale", scale, a.pred);
  TORCH_CHECK_VALUE(!wanted[2] || a.weight,
                    "giou_loss: wanted[2] asks for the gradient of weight, "
                    "which is not given");
}

at::ScalarType compute_type(const GiouLossArgs& a) {
  const bool is_f64 = a.pred.scalar_type() == at::kDouble || a.target.scalar_type() == at::kDouble;
  return is_f64 ? at::kDouble : at::kFloat;
}

std::vector<c10::SymInt> loss_shape(const GiouLossArgs& a) {
  const auto shape = (a.offsets ? a.target : a.pred).sym_sizes();
  return {shape.begin(), shape.end() - 1};
}

at::Tensor call_giou_loss(const GiouLossArgs& a) {
  using Signature =
      at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
                 const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, bool,
                 std::string_view, std::string_view, std::string_view, double, std::string_view);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("boxloss::giou_loss", "").typed<Signature>();
  return op.call(a.pred, a.target, a.weight, a.normalizer, a.lengths, a.mask, a.offsets,
                 a.zero_padded, a.pred_format, a.target_format, a.reduction, a.eps, a.eps_mode);
}

std::tuple<at::Tensor, at::Tensor> call_giou_loss_forward(const GiouLossArgs& a) {
  using Signature = std::tuple<at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, const OptionalTensor&, const OptionalTensor&,
      const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, bool, std::string_view,
      std::string_view, std::string_view, double, std::string_view);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("boxloss::_giou_loss_forward", "")
                             .typed<Signature>();
  return op.call(a.pred, a.target, a.weight, a.normalizer, a.lengths, a.mask, a.offsets,
                 a.zero_padded, a.pred_format, a.target_format, a.reduction, a.eps, a.eps_mode);
}

std::vector<at::Tensor> call_giou_loss_backward(const at::Tensor& grad_loss,
                                                const at::Tensor& scale, const GiouLossArgs& a,
                                                const Wanted& wanted) {
  using Signature = std::vector<at::Tensor>(
      const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
      const OptionalTensor&, const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
      const OptionalTensor&, bool, std::string_view, std::string_view, std::string_view, double,
      std::string_view, Wanted);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("boxloss::_giou_loss_backward", "")
                             .typed<Signature>();
  return op.call(grad_loss, scale, a.pred, a.target, a.weight, a.normalizer, a.lengths, a.mask,
                 a.offsets, a.zero_padded, a.pred_format, a.target_format, a.reduction, a.eps,
                 a.eps_mode, wanted);
}

}  // namespace boxloss::torch_binding
