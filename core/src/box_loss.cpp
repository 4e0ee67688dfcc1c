// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/box_loss.hpp>
#include <boxloss/error.hpp>
#include <boxloss/registry.hpp>
#include <limits>

#include "src/message.hpp"

namespace boxloss {
namespace {

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) throw InvalidArgument(message(parts...));
}

template <class... Parts>
void check_dtype(bool ok, const Parts&... parts) {
  if (!ok) throw Unsupported(message(parts...));
}

void check_aligned(const char* name, const void* data, DType dtype) {
  check(reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) == 0, name,
        " does not lie on a multiple of the ", size_of(dtype), " bytes of a ", name_of(dtype));
}

void check_boxes(const char* name, const BoxView& boxes) {
  check_dtype(size_of(boxes.dtype) != 0, name, ".dtype is not one of DType");
  check(boxes.images >= 0 && boxes.slots >= 0, name, " has a negative shape: ", boxes.images,
        " images, ", boxes.slots, " slots");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;
  check(boxes.slots == 0 || boxes.images <= kMost / boxes.slots, name, " has ", boxes.images,
        " images of ", boxes.slots, " slots, which is more than 64 bits can count");
  check(boxes.image_stride >= 0 && boxes.slot_stride >= 0, name,
        " has a negative stride: ", boxes.image_stride, " by image, ", boxes.slot_stride,
        " by slot");
  check(boxes.data != nullptr || boxes.images * boxes.slots == 0, name, ".data is null");
  check_aligned(name, boxes.data, boxes.dtype);
}

void check_floating(const char* name, DType dtype) {
  check_dtype(is_floating(dtype), name, " is ", name_of(dtype),
              "; it must be float64, float32, float16 or bfloat16");
}

void check_indices(const char* name, const LossProblem& p) {
  const DType dtype = p.pairing.data.dtype;
  check_dtype(dtype == DType::kI32 || dtype == DType::kI64, name, " is ", name_of(dtype),
              "; it must be int32 or int64");
  check_aligned(name, p.pairing.data.data, dtype);
}

void check_pairing(const LossProblem& p) {
  const bool has_data = p.pairing.data.data != nullptr;
  const bool empty = p.pred.images * p.pred.slots == 0;
  switch (p.pairing.kind) {
    case Pairing::Kind::kDense:
    case Pairing::Kind::kZeroPadded:
      check(!has_data, "pairing.data must be null for a dense or zero-padded pairing");
      break;
    case Pairing::Kind::kLengths:
      check(has_data || empty, "pairing.data is null; lengths must point to (images) integers");
      check_indices("lengths", p);
      break;
    case Pairing::Kind::kMask:
      check(has_data || empty, "pairing.data is null; mask must point to (images, slots) bytes");
      check_dtype(p.pairing.data.dtype == DType::kU8, "mask is ", name_of(p.pairing.data.dtype),
                  "; it must be uint8");
      break;
    case Pairing::Kind::kOffsets:
      check(has_data || empty, "pairing.data is null; offsets must point to (images + 1) integers");
      check_indices("offsets", p);
      check(p.target.images == 1, "target must be one image of T slots with offsets, but has ",
            p.target.images, " images");
      return;
  }
  check(p.target.images == p.pred.images && p.target.slots == p.pred.slots, "target has shape (",
        p.target.images, ", ", p.target.slots, ", 4), pred has (", p.pred.images, ", ",
        p.pred.slots, ", 4); they must be equal");
}

void check_served(const Implementation& implementation, const LossProblem& p) {
  if (p.loss == Loss::kUnset) {
    throw InvalidArgument("loss is not set; it must be one of " + names_of(kLosses));
  }
  if (!implementation.losses.contains(p.loss)) {
    throw Unsupported(message(implementation.name, " does not serve the loss '", name_of(p.loss),
                              "', only ", names_of(implementation.losses)));
  }
  check_dtype(implementation.pairings.contains(p.pairing.kind), implementation.name,
              " does not serve the pairing ", name_of(p.pairing.kind));
}

void check_problem(const Implementation& implementation, const LossProblem& p) {
  check(implementation.device == p.device, "the problem is on ", name_of(p.device), ", but ",
        implementation.name, " was asked to run it");
  check_served(implementation, p);
  check_boxes("pred", p.pred);
  check_boxes("target", p.target);
  check_floating("pred", p.pred.dtype);
  check_pairing(p);
  if (p.weight.data != nullptr) {
    check_floating("weight", p.weight.dtype);
    check_aligned("weight", p.weight.data, p.weight.dtype);
  }
  const double most = compute_dtype(p) == DType::kF64 ? std::numeric_limits<double>::max()
                                                      : std::numeric_limits<float>::max();
  check(p.eps >= 0 && p.eps <= most, "eps is ", p.eps, "; it must be finite and >= 0, as a ",
        name_of(compute_dtype(p)));
  if (p.normalizer.data != nullptr) {
    check(p.reduction == Reduction::kMean, "normalizer needs reduction mean");
    const DType d = p.normalizer.dtype;
    check_dtype(d == DType::kF64 || d == DType::kF32 || d == DType::kI64 || d == DType::kI32,
                "normalizer is ", name_of(d), "; it must be float64, float32, int64 or int32");
    check_aligned("normalizer", p.normalizer.data, d);
  }
}

void check_workspace(const Execution& execution, std::size_t needed) {
  check(execution.workspace_bytes >= needed, "workspace has ", execution.workspace_bytes,
        " bytes; this problem needs ", needed);
  check(execution.workspace != nullptr || needed == 0, "workspace is null; this problem needs ",
        needed, " bytes");
}

/// Where images follow each other without a gap, they are one image: loops need no division.
/// Lengths and offsets speak of single images, so theirs stay.
LossProblem flattened(const LossProblem& problem, GradView& grad) {
  LossProblem p = problem;
  const Pairing::Kind kind = p.pairing.kind;
  if (kind == Pairing::Kind::kOffsets) p.target.image_stride = grad.image_stride = 0;  // one list
  if (kind == Pairing::Kind::kLengths || kind == Pairing::Kind::kOffsets) return p;
  if (p.pred.slots == 1) {
    p.pred.slot_stride = p.pred.image_stride;
    p.target.slot_stride = p.target.image_stride;
    grad.slot_stride = grad.image_stride;
  } else if (p.pred.image_stride != p.pred.slots * p.pred.slot_stride ||
             p.target.image_stride != p.target.slots * p.target.slot_stride ||
             grad.image_stride != p.pred.slots * grad.slot_stride) {
    return p;
  }
  p.pred.slots = p.target.slots = p.pred.images * p.pred.slots;
  p.pred.images = p.target.images = 1;
  return p;
}

}  // namespace

DType compute_dtype(const LossProblem& problem) {
  const bool is_f64 = problem.pred.dtype == DType::kF64 || problem.target.dtype == DType::kF64;
  return is_f64 ? DType::kF64 : DType::kF32;
}

std::int64_t loss_rows(const LossProblem& problem) {
  const bool ragged = problem.pairing.kind == Pairing::Kind::kOffsets;
  return ragged ? problem.target.slots : problem.pred.images * problem.pred.slots;
}

std::size_t loss_workspace_bytes(const Implementation& implementation, const LossProblem& problem) {
  check_problem(implementation, problem);
  GradView no_grad;
  return implementation.workspace_bytes(flattened(problem, no_grad));
}

void loss_forward(const Implementation& implementation, const LossProblem& problem,
                  const LossOutputs& outputs, const Execution& execution) {
  check_problem(implementation, problem);
  const bool no_loss = problem.reduction == Reduction::kNone && loss_rows(problem) == 0;
  check(outputs.loss != nullptr || no_loss, "outputs.loss is null");
  check(outputs.scale != nullptr, "outputs.scale is null");
  check_aligned("outputs.loss", outputs.loss, compute_dtype(problem));
  check_aligned("outputs.scale", outputs.scale, compute_dtype(problem));
  GradView no_grad;
  const LossProblem flat = flattened(problem, no_grad);
  check_workspace(execution, implementation.workspace_bytes(flat));
  implementation.forward(flat, outputs, execution);
}

void loss_backward(const Implementation& implementation, const LossProblem& problem,
                   const GradView& grad_loss, const void* scale, const LossGradients& gradients,
                   const Execution& execution) {
  check_problem(implementation, problem);
  const bool no_loss = problem.reduction == Reduction::kNone && loss_rows(problem) == 0;
  check(grad_loss.data != nullptr || no_loss, "grad_loss.data is null");
  check(scale != nullptr, "scale is null");
  check_aligned("grad_loss", grad_loss.data, compute_dtype(problem));
  check_aligned("scale", scale, compute_dtype(problem));
  check_dtype(gradients.target == nullptr || is_floating(problem.target.dtype), "target is ",
              name_of(problem.target.dtype), ", which has no gradient");
  check(gradients.weight == nullptr || problem.weight.data != nullptr,
        "gradients.weight is wanted, but the problem has no weight");
  check_aligned("gradients.pred", gradients.pred, problem.pred.dtype);
  check_aligned("gradients.target", gradients.target, problem.target.dtype);
  check_aligned("gradients.weight", gradients.weight, problem.weight.dtype);
  GradView grad = grad_loss;
  const LossProblem flat = flattened(problem, grad);
  implementation.backward(flat, grad, scale, gradients, execution);
}

}  // namespace boxloss
