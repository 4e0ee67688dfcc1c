// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss_args.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/SymIntArrayRef.h>

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

void check_index_shape(const LossArgs& a, const char* argument, const OptionalTensor& index) {
  if (!index) return;
  const auto shape = index->sym_sizes();
  TORCH_CHECK_VALUE(shape.size() == 1 || shape.size() == 2, a.function, ": ", argument,
                    " has shape ", shape, "; it must be (pairs) or (sets, pairs)");
}

void check_indexed(const LossArgs& a) {
  check_index_shape(a, "pred_index", a.pred_index);
  check_index_shape(a, "target_index", a.target_index);
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
    check_shape(a.function, "offsets", *a.offsets, {pred[0] + 1}, "one more than pred has images");
    return;
  }
  TORCH_CHECK_VALUE(pred == target, a.function, ": pred has shape ", pred, ", target has shape ",
                    target, "; they must be equal");
  if (pairing == Pairing::Kind::kLengths) {
    check_shape(a.function, "lengths", *a.lengths, {pred[0]}, "one for each image of pred");
  }
  if (pairing == Pairing::Kind::kMask) {
    check_shape(a.function, "mask", *a.mask, loss_shape(a), "pred's without the 4");
  }
}

void check_normalizer_shape(const LossArgs& a) {
  const at::Tensor& normalizer = *a.normalizer;
  const bool by_set = normalizer.dim() == 1 && a.index() != nullptr && a.index()->dim() == 2;
  TORCH_CHECK_VALUE(
      normalizer.dim() == 0 || (by_set && normalizer.sym_size(0) == a.index()->sym_size(0)),
      a.function, ": normalizer has shape ", normalizer.sym_sizes(),
      "; it must have no dimension or, with indices (sets, pairs), be (sets)");
}

/// Lengths, mask or offsets; torch's bool is a uint8.
ArrayView pairing_data(const LossArgs& a) {
  if (!a.mask) {
    return a.lengths ? later(a.function, "lengths", a.lengths, kIndexDTypes)
                     : later(a.function, "offsets", a.offsets, kIndexDTypes);
  }
  TORCH_CHECK_TYPE(a.mask->scalar_type() == at::kBool, a.function, ": mask is ",
                   dtype_name(a.mask->scalar_type()), "; it must be bool");
  return {kLater, DType::kU8};
}

}  // namespace

LossProblem describe(const LossArgs& a) {
  LossProblem p;
  p.loss = parse_loss(a.function, a.loss);
  p.pred.format = parse_format(a.function, "pred_format", a.pred_format);
  p.target.format = parse_format(a.function, "target_format", a.target_format);
  p.pairing.kind = parse_pairing(a);
  p.reduction = parse<Reduction>(a.function, "reduction", a.reduction,
                                 {Reduction::kNone, Reduction::kSum, Reduction::kMean});
  p.eps = a.eps;
  p.eps_mode = parse_eps_mode(a.function, a.eps_mode);

  check_dense(a.function, "pred", a.pred);
  check_device(a.function, "pred", a.pred, "target", OptionalTensor(a.target));
  BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_CHECK_DEVICE)

  p.pred.dtype = dtype_of(a.function, "pred", a.pred, kFloatingDTypes);
  p.target.dtype = dtype_of(a.function, "target", a.target);
  p.pairing.data = pairing_data(a);
  p.pred.rows = later(a.function, "pred_index", a.pred_index, kIndexDTypes);
  p.target.rows = later(a.function, "target_index", a.target_index, kIndexDTypes);
  check_indices(a.function, "pred_index", a.pred_index);
  check_indices(a.function, "target_index", a.target_index);
  p.weight = later(a.function, "weight", a.weight, kFloatingDTypes);
  p.normalizer = later(a.function, "normalizer", a.normalizer, kNormalizerDTypes);
  p.normalizer_stride = a.normalizer ? a.normalizer->dim() : 0;

  check_boxes_shape(a.function, "pred", a.pred);
  check_boxes_shape(a.function, "target", a.target);
  check_pairing(a, p.pairing.kind);
  if (a.weight) {
    check_shape(a.function, "weight", *a.weight, loss_shape(a), "the shape of the unreduced loss");
  }
  if (a.normalizer) check_normalizer_shape(a);
  return p;
}

LossProblem checked(const LossArgs& a, bool extras) {
  const LossProblem problem = describe(a);
  with_torch_errors(a.function, [&] { check_options(problem, extras ? kExtras : Set<Extra>{}); });
  return problem;
}

void check_backward_args(const IncomingTensors& grads, const at::Tensor& scale, const LossArgs& a,
                         const LossProblem& problem, const Wanted& wanted) {
  const bool reduced = problem.reduction != Reduction::kNone;
  const auto check = [&](const char* argument, const at::Tensor& given,
                         const std::vector<c10::SymInt>& shape, const char* why) {
    check_shape(a.function, argument, given, shape, why);
    TORCH_CHECK_TYPE(given.scalar_type() == compute_type(a), a.function, ": ", argument, " is ",
                     dtype_name(given.scalar_type()), "; it must be ", dtype_name(compute_type(a)),
                     ", as the loss is");
    check_device(a.function, "pred", a.pred, argument, given);
  };
  TORCH_CHECK_VALUE(grads.loss || grads.l1, a.function, ": grad_loss and grad_l1 are both None");
  const auto shape = reduced ? reduced_shape(a) : loss_shape(a);
  if (grads.loss) check("grad_loss", *grads.loss, shape, "the shape of the loss");
  if (grads.l1) check("grad_l1", *grads.l1, shape, "the shape of the loss");
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

at::Tensor call_box_loss(const LossArgs& args) {
  static const auto op =
      find_operator<Signature<at::Tensor, std::tuple<>, Fields>>("boxloss::box_loss");
  return call_with(op, args.fields());
}

LossesTensors call_box_losses(const LossArgs& args) {
  static const auto op =
      find_operator<Signature<LossesTensors, std::tuple<>, Fields>>("boxloss::box_losses");
  return call_with(op, args.fields());
}

ForwardTensors call_box_loss_forward(const LossArgs& args, bool extras) {
  static const auto op = find_operator<Signature<ForwardTensors, std::tuple<>, Fields, bool>>(
      "boxloss::_box_loss_forward");
  return call_with(op, args.fields(), extras);
}

LossGradientTensors call_box_loss_backward(const IncomingTensors& grads, const at::Tensor& scale,
                                           const LossArgs& args, const Wanted& wanted) {
  using Before = std::tuple<const OptionalTensor&, const OptionalTensor&, const at::Tensor&>;
  static const auto op = find_operator<Signature<LossGradientTensors, Before, Fields, Wanted>>(
      "boxloss::_box_loss_backward");
  return call_with(op, std::tuple_cat(std::tie(grads.loss, grads.l1, scale), args.fields()),
                   wanted);
}

}  // namespace boxloss::torch_binding
