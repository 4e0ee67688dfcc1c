// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "loss_args.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>

#include "adapter.hpp"
#include "checks.hpp"

namespace boxloss::torch_binding {
namespace {

Pairing::Kind parse_pairing(const LossArgs& a) {
  const bool has_index = a.index() != nullptr;
  const int given = a.zero_padded + a.lengths.has_value() + a.mask.has_value() +
                    a.offsets.has_value() + has_index;
  TORCH_CHECK_VALUE(given <= 1, a.function,
                    ": give at most one of zero_padded, lengths, mask, offsets and indices; got",
                    a.zero_padded ? " zero_padded" : "", a.lengths ? " lengths" : "",
                    a.mask ? " mask" : "", a.offsets ? " offsets" : "",
                    a.pred_index ? " pred_index" : "", a.target_index ? " target_index" : "");
  if (has_index) return Pairing::Kind::kIndexed;
  if (a.zero_padded) return Pairing::Kind::kZeroPadded;
  if (a.lengths) return Pairing::Kind::kLengths;
  if (a.mask) return Pairing::Kind::kMask;
  if (a.offsets) return Pairing::Kind::kOffsets;
  return Pairing::Kind::kDense;
}

void check_index(const LossArgs& a, const char* argument, const OptionalTensor& index) {
  if (!index) return;
  check_indices_dtype(a.function, argument, *index);
  const auto shape = index->sym_sizes();
  TORCH_CHECK_VALUE(shape.size() == 1 || shape.size() == 2, a.function, ": ", argument,
                    " has shape ", shape, "; it must be (pairs) or (sets, pairs)");
}

void check_indexed(const LossArgs& a) {
  check_index(a, "pred_index", a.pred_index);
  check_index(a, "target_index", a.target_index);
  const auto check_boxes = [&](const char* argument, const at::Tensor& boxes) {
    std::vector<c10::SymInt> shape = loss_shape(a);
    shape.emplace_back(4);
    check_shape(a.function, argument, boxes, shape,
                "the shape of the other index, with a 4 behind it");
  };
  if (!a.pred_index) check_boxes("pred", a.pred);
  if (!a.target_index) check_boxes("target", a.target);
  if (a.pred_index && a.target_index) {
    check_shape(a.function, "target_index", *a.target_index, loss_shape(a), "pred_index's shape");
  }
}

void check_pairing(const LossArgs& a, Pairing::Kind pairing) {
  if (pairing == Pairing::Kind::kIndexed) return check_indexed(a);
  const auto pred = a.pred.sym_sizes();
  const auto target = a.target.sym_sizes();
  const bool by_image = pairing != Pairing::Kind::kDense && pairing != Pairing::Kind::kMask;
  TORCH_CHECK_VALUE(!by_image || pred.size() == 3, a.function, ": pred has shape ", pred,
                    "; with zero_padded, lengths or offsets it must be (images, slots, 4)");
  if (pairing == Pairing::Kind::kOffsets) {
    TORCH_CHECK_VALUE(target.size() == 2, a.function, ": target has shape ", target,
                      "; with offsets it must be (boxes of all images, 4)");
    check_indices_dtype(a.function, "offsets", *a.offsets);
    check_shape(a.function, "offsets", *a.offsets, {pred[0] + 1}, "one more than pred has images");
    return;
  }
  TORCH_CHECK_VALUE(pred == target, a.function, ": pred has shape ", pred, ", target has shape ",
                    target, "; they must be equal");
  if (pairing == Pairing::Kind::kLengths) {
    check_indices_dtype(a.function, "lengths", *a.lengths);
    check_shape(a.function, "lengths", *a.lengths, {pred[0]}, "one for each image of pred");
  }
  if (pairing == Pairing::Kind::kMask) {
    TORCH_CHECK_TYPE(a.mask->scalar_type() == at::kBool, a.function, ": mask is ",
                     a.mask->scalar_type(), "; it must be bool");
    check_shape(a.function, "mask", *a.mask, loss_shape(a), "pred's without the 4");
  }
}

void check_normalizer(const LossArgs& a, Reduction reduction) {
  const at::Tensor& normalizer = *a.normalizer;
  TORCH_CHECK_VALUE(reduction == Reduction::kMean, a.function,
                    ": normalizer needs reduction 'mean', which it redefines");
  const bool by_set = normalizer.dim() == 1 && a.index() != nullptr && a.index()->dim() == 2;
  TORCH_CHECK_VALUE(
      normalizer.dim() == 0 || (by_set && normalizer.sym_size(0) == a.index()->sym_size(0)),
      a.function, ": normalizer has shape ", normalizer.sym_sizes(),
      "; it must have no dimension or, with indices (sets, pairs), be (sets)");
  TORCH_CHECK_TYPE(is_in(normalizer.scalar_type(), {at::kFloat, at::kDouble, at::kLong, at::kInt}),
                   a.function, ": normalizer is ", normalizer.scalar_type(),
                   "; it must be float64, float32, int64 or int32");
}

}  // namespace

LossOptions check_args(const LossArgs& a) {
  const LossOptions options{parse_loss(a.function, a.loss),
                            parse_format(a.function, "pred_format", a.pred_format),
                            parse_format(a.function, "target_format", a.target_format),
                            parse_pairing(a),
                            parse<Reduction>(a.function, "reduction", a.reduction,
                                             {Reduction::kNone, Reduction::kSum, Reduction::kMean}),
                            parse_eps_mode(a.function, a.eps_mode)};
  check_eps(a.function, a.eps, compute_type(a));
  check_dense(a.function, "pred", a.pred);
  check_device(a.function, a.pred, "target", a.target);
  check_device(a.function, a.pred, "weight", a.weight);
  check_device(a.function, a.pred, "normalizer", a.normalizer);
  check_device(a.function, a.pred, "lengths", a.lengths);
  check_device(a.function, a.pred, "mask", a.mask);
  check_device(a.function, a.pred, "offsets", a.offsets);
  check_device(a.function, a.pred, "pred_index", a.pred_index);
  check_device(a.function, a.pred, "target_index", a.target_index);
  check_floating(a.function, "pred", a.pred);
  check_target_dtype(a.function, a.target);
  check_boxes_shape(a.function, "pred", a.pred);
  check_boxes_shape(a.function, "target", a.target);
  check_pairing(a, options.pairing);
  if (a.weight) {
    check_floating(a.function, "weight", *a.weight);
    check_shape(a.function, "weight", *a.weight, loss_shape(a), "the shape of the unreduced loss");
  }
  if (a.normalizer) check_normalizer(a, options.reduction);
  return options;
}

void check_l1(const LossArgs& a, const LossOptions& options) {
  TORCH_CHECK_VALUE(options.pred_format == options.target_format, a.function,
                    ": l1 is of values in one format, but pred_format is '", a.pred_format,
                    "' and target_format is '", a.target_format, "'");
}

void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale, const LossArgs& a,
                         const LossOptions& options, const Wanted& wanted) {
  const bool reduced = options.reduction != Reduction::kNone;
  const auto check = [&](const char* argument, const at::Tensor& given,
                         const std::vector<c10::SymInt>& shape, const char* why) {
    check_shape(a.function, argument, given, shape, why);
    TORCH_CHECK_TYPE(given.scalar_type() == compute_type(a), a.function, ": ", argument, " is ",
                     given.scalar_type(), "; it must be ", compute_type(a), ", as the loss is");
    check_device(a.function, a.pred, argument, given);
  };
  TORCH_CHECK_VALUE(grads.loss || grads.l1, a.function, ": grad_loss and grad_l1 are both None");
  const auto shape = reduced ? reduced_shape(a) : loss_shape(a);
  if (grads.loss) check("grad_loss", *grads.loss, shape, "the shape of the loss");
  if (grads.l1) check("grad_l1", *grads.l1, shape, "the shape of the loss");
  if (grads.l1) check_l1(a, options);
  check("scale", scale, reduced_shape(a), "as forward returned it");
  TORCH_CHECK_VALUE(!wanted[2] || a.weight, a.function,
                    ": wanted[2] asks for the gradient of weight, "
                    "which is not given");
}

namespace {

/// Decides by strides alone where possible: a masked tensor's number of boxes is unknown while
/// compiling.
bool has_contiguous_strides(const at::Tensor& tensor) {
  c10::SymInt expected = 1;
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.sym_stride(d) != expected && tensor.sym_size(d) != 1) return false;
    expected *= tensor.sym_size(d);
  }
  return true;
}

}  // namespace

bool keeps_strides(const LossArgs& a, const at::Tensor& boxes) {
  return a.index() == nullptr && !has_contiguous_strides(boxes) &&
         boxes.is_non_overlapping_and_dense();
}

LossGradientTensors empty_gradients(const LossArgs& a, const Wanted& wanted) {
  const auto contiguous = [](const at::Tensor& like) {
    return at::empty_symint(like.sym_sizes(), like.options());
  };
  const auto of_boxes = [&](bool is_wanted, const at::Tensor& boxes) {
    if (!is_wanted) return no_elements(boxes, boxes.scalar_type());
    if (!keeps_strides(a, boxes)) return contiguous(boxes);
    return at::empty_strided_symint(boxes.sym_sizes(), boxes.sym_strides(), boxes.options());
  };
  return {of_boxes(wanted[0], a.pred), of_boxes(wanted[1], a.target),
          wanted[2] ? contiguous(*a.weight) : no_elements(a.pred, a.pred.scalar_type())};
}

at::ScalarType compute_type(const LossArgs& a) {
  const bool is_f64 = a.pred.scalar_type() == at::kDouble || a.target.scalar_type() == at::kDouble;
  return is_f64 ? at::kDouble : at::kFloat;
}

std::vector<c10::SymInt> loss_shape(const LossArgs& a) {
  if (a.index() != nullptr) return a.index()->sym_sizes().vec();
  const auto shape = (a.offsets ? a.target : a.pred).sym_sizes();
  return {shape.begin(), shape.end() - 1};
}

std::vector<c10::SymInt> reduced_shape(const LossArgs& a) {
  if (a.index() == nullptr || a.index()->dim() == 1) return {};
  return {a.index()->sym_size(0)};
}

namespace {

/// An operator's function type, with the long parameter list in the middle.
template <class Result, class Before, class Fields, class... After>
struct SignatureOf;
template <class Result, class... Before, class... Fields, class... After>
struct SignatureOf<Result, std::tuple<Before...>, std::tuple<Fields...>, After...> {
  using Type = Result(Before..., Parameter<Fields>..., After...);
};
template <class Result, class Before, class... After>
using Signature = typename SignatureOf<Result, Before, Fields, After...>::Type;

template <class Type>
c10::TypedOperatorHandle<Type> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Type>();
}

}  // namespace

at::Tensor call_box_loss(const LossArgs& args) {
  static const auto op = find<Signature<at::Tensor, std::tuple<>>>("boxloss::box_loss");
  return std::apply([](const auto&... fields) { return op.call(fields...); }, args.fields());
}

LossesTensors call_box_losses(const LossArgs& args) {
  static const auto op = find<Signature<LossesTensors, std::tuple<>>>("boxloss::box_losses");
  return std::apply([](const auto&... fields) { return op.call(fields...); }, args.fields());
}

ForwardTensors call_box_loss_forward(const LossArgs& args, bool extras) {
  static const auto op =
      find<Signature<ForwardTensors, std::tuple<>, bool>>("boxloss::_box_loss_forward");
  return std::apply([&](const auto&... fields) { return op.call(fields..., extras); },
                    args.fields());
}

LossGradientTensors call_box_loss_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                           const LossArgs& args, const Wanted& wanted) {
  using Before = std::tuple<const OptionalTensor&, const OptionalTensor&, const at::Tensor&>;
  static const auto op =
      find<Signature<LossGradientTensors, Before, Wanted>>("boxloss::_box_loss_backward");
  return std::apply(
      [&](const auto&... fields) {
        return op.call(grads.loss, grads.l1, scale, fields..., wanted);
      },
      args.fields());
}

}  // namespace boxloss::torch_binding
