// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/box_loss.hpp"

#include "operation.hpp"

/// The losses, forward and backward.
namespace boxloss::jax_binding {
namespace {

using binding::BoxLoss;
using LossArguments = BoxLoss::Arguments<binding::Described<std::int64_t>>;

/// Boxes by image, or as one list.
void set_boxes(BoxView& view, const Array& boxes, bool by_image) {
  view.data = boxes.data;
  view.images = by_image ? boxes.size(0) : 1;
  view.slots = by_image ? boxes.size(1) : binding::leading(boxes, 1);
  view.image_stride = 4 * view.slots;
}

/// Whether l1 and iou are wanted, too.
bool has_extras(const Arguments& given) {
  Flag extras;
  given.read("extras", extras);
  return extras;
}

LossProblem describe(const Arguments& given, const LossArguments& a,
                     const Implementation& implementation) {
  LossProblem p = BoxLoss::describe(a, has_extras(given));
  p.device = implementation.device;
  const bool by_image = BoxLoss::is_by_image(p.pairing.kind);
  set_boxes(p.pred, a.pred, by_image);
  set_boxes(p.target, a.target, by_image && !a.offsets);
  if (const Array* const index = BoxLoss::index_of(a)) {
    p.pairing.sets = index->rank == 2 ? index->size(0) : 1;
    p.pairing.pairs = index->size(-1);
  }
  return p;
}

std::size_t trace(const Arguments& given, const Implementation& implementation, Results& results) {
  const auto arguments = described<BoxLoss>(given);
  const LossProblem problem = describe(given, arguments, implementation);
  results.set(BoxLoss::kOutputs, BoxLoss::outputs(arguments, problem, has_extras(given)));
  return if_served([&] { return loss_workspace_bytes(implementation, problem); });
}

void forward(const Call& call) {
  const auto arguments = described<BoxLoss>(call.arguments);
  loss_forward(call.implementation, describe(call.arguments, arguments, call.implementation),
               {call.result("loss"), call.result("scale"), call.result("l1"), call.result("iou")},
               call.execution);
}

/// A gradient that XLA hands in is contiguous.
GradView gradient(const Arguments& given, const char* name, const LossProblem& p) {
  binding::OptionalArray<Array> grad;
  given.read(name, grad);
  if (!grad) return {};
  if (p.reduction != Reduction::kNone) return {grad.data, 1, 0};
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  return {grad.data, is_indexed ? p.pairing.pairs : p.pred.slots, 1};
}

void backward(const Call& call) {
  const auto arguments = described<BoxLoss>(call.arguments);
  const LossProblem p = describe(call.arguments, arguments, call.implementation);
  Array scale;
  call.arguments.read("scale", scale);
  loss_backward(call.implementation, p,
                {gradient(call.arguments, "grad_loss", p), gradient(call.arguments, "grad_l1", p)},
                scale.data, {call.result("pred"), call.result("target"), call.result("weight")},
                call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_TRACE(box_loss, boxloss::jax_binding::trace);
BOXLOSS_JAX_HANDLERS(box_loss, boxloss::jax_binding::forward);
BOXLOSS_JAX_HANDLERS(box_loss_backward, boxloss::jax_binding::backward);
