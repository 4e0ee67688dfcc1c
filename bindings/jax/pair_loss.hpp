// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "operation.hpp"

/// The handlers of a loss of pairs, forward and backward, from its description in bindings/common.
namespace boxloss::jax_binding {

template <class Own>
struct PairLossOf {
  static std::size_t trace(const Arguments& given, const Implementation& implementation,
                           Results& results) {
    const auto arguments = described<Own>(given);
    const Problem problem = describe(given, arguments, implementation);
    if constexpr (kMayHaveExtras) {
      results.set(Own::kOutputs, Own::outputs(arguments, problem, has_extras(given)));
    } else {
      results.set(Own::kOutputs, Own::outputs(arguments, problem));
    }
    return if_served([&] { return loss_workspace_bytes(implementation, problem); });
  }

  static void forward(const Call& call) {
    const auto arguments = described<Own>(call.arguments);
    loss_forward(call.implementation, describe(call.arguments, arguments, call.implementation),
                 {call.result("loss"), call.result("scale"), call.result("l1"), call.result("iou")},
                 call.execution);
  }

  static void backward(const Call& call) {
    const auto arguments = described<Own>(call.arguments);
    const Problem p = describe(call.arguments, arguments, call.implementation);
    Array scale;
    call.arguments.read("scale", scale);
    loss_backward(
        call.implementation, p,
        {gradient(call.arguments, "grad_loss", p), gradient(call.arguments, "grad_l1", p)},
        scale.data, {call.result("pred"), call.result("target"), call.result("weight")},
        call.execution);
  }

 private:
  using Problem = typename Own::Problem;
  using LossArguments = typename Own::template Arguments<binding::Described<std::int64_t>>;

  static constexpr bool kMayHaveExtras = Own::kOutputs.size() > 2;

  /// Whether l1 and iou are wanted, too.
  static bool has_extras(const Arguments& given) {
    Flag extras = false;
    if constexpr (kMayHaveExtras) given.read("extras", extras);
    return extras;
  }

  static Problem describe(const Arguments& given, const LossArguments& a,
                          const Implementation& implementation) {
    Problem p = Own::describe(a, has_extras(given));
    p.device = implementation.device;
    const bool by_image = Own::is_by_image(p.pairing.kind);
    set_boxes(p.pred, a.pred, by_image);
    set_boxes(p.target, a.target, by_image && !a.offsets);
    if (const Array* const index = Own::index_of(a)) {
      p.pairing.sets = index->rank == 2 ? index->size(0) : 1;
      p.pairing.pairs = index->size(-1);
    }
    return p;
  }

  /// Boxes by image, or as one list.
  static void set_boxes(BoxView& view, const Array& boxes, bool by_image) {
    view.data = boxes.data;
    view.images = by_image ? boxes.size(0) : 1;
    view.slots = by_image ? boxes.size(1) : binding::leading(boxes, 1);
    view.image_stride = Own::kNumbers * view.slots;
  }

  /// A gradient that XLA hands in is contiguous.
  static GradView gradient(const Arguments& given, const char* name, const Problem& p) {
    binding::OptionalArray<Array> grad;
    given.read(name, grad);
    if (!grad) return {};
    if (p.reduction != Reduction::kNone) return {grad.data, 1, 0};
    const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
    return {grad.data, is_indexed ? p.pairing.pairs : p.pred.slots, 1};
  }
};

}  // namespace boxloss::jax_binding
