// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/class_loss.hpp>

#include "logits.hpp"

namespace boxloss::binding {

/// The class loss as frameworks call it.
struct ClassLoss {
  static constexpr char kFunction[] = "class_loss", kOperator[] = "boxloss::_class_loss";
  static constexpr std::array kOutputs = {"loss", "scale"};
  static constexpr std::array kDifferentiable = {"logits"};
  BOXLOSS_ARGUMENTS(BOXLOSS_CLASS_LOSS_PARAMETERS);

  static boxloss::ClassLoss mode_of(std::string_view word) {
    using Mode = boxloss::ClassLoss;
    return parse(
        "mode", word,
        {Mode::kFocal, Mode::kVarifocal, Mode::kMal, Mode::kIaBce, Mode::kBce, Mode::kSoftmax});
  }

  template <class Problem = ClassLossProblem, class Size>
  static Problem describe(const Arguments<Described<Size>>& a) {
    Problem p;
    p.mode = mode_of(a.mode);
    p.reduction =
        parse("reduction", a.reduction, {Reduction::kNone, Reduction::kSum, Reduction::kMean});
    p.alpha = a.alpha;
    p.gamma = a.gamma;
    p.no_object_weight = a.no_object_weight;
    p.logits.dtype = floating_dtype_of(a.logits);
    p.target_index = view_of(a.target_index, kIndexDTypes);
    p.labels = view_of(a.labels, kIndexDTypes);
    p.quality = view_of(a.quality, kFloatingDTypes);
    p.query_quality = view_of(a.query_quality, kFloatingDTypes);
    p.weight = view_of(a.weight, kFloatingDTypes);
    p.normalizer = view_of(a.normalizer, kNormalizerDTypes);
    check_shapes(a);
    if constexpr (kHasNumbers<Size>) {
      set_rows(p, a);
      p.classes = a.logits.size(-1);
      p.targets = a.labels.size(0);
      p.logits = {a.logits.data,          p.logits.dtype,         stride_of(a.logits, 4),
                  stride_of(a.logits, 3), stride_of(a.logits, 2), stride_of(a.logits, 1)};
    }
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 2> outputs(const Arguments<Described<Size>>& a,
                                             const ClassLossProblem& p) {
    const DType compute = compute_dtype(p);
    return {{{compute, shape_of_loss<Size>(a, p.reduction)}, {compute, shape_of_sets<Size>(a)}}};
  }

  static constexpr auto workspace_bytes = class_loss_workspace_bytes;
  static void run(const Implementation& implementation, const ClassLossProblem& p,
                  const std::array<void*, 2>& outputs, const Execution& execution) {
    class_loss(implementation, p, {outputs[0], outputs[1]}, execution);
  }

 private:
  template <class Size>
  static void check_shapes(const Arguments<Described<Size>>& a) {
    check_shape_is(a.logits, a.logits.rank >= 2 && a.logits.rank <= 4,
                   "(queries, classes), (images, queries, classes) or (layers, images, queries, "
                   "classes)");
    const std::vector<Size> rows = shape_of_rows<Size>(a);
    check_shape(a.target_index, rows, "logits' without classes");
    check_shape_is(a.labels, a.labels.rank == 1, "(T)");
    if (a.quality) check_shape(a.quality, {a.labels.size(0)}, "one for each label");
    if (a.query_quality) check_shape(a.query_quality, rows, "that of target_index");
    if (a.weight) check_shape(a.weight, {a.logits.size(-1)}, "one for each class");
    check_normalizer<Size>(a);
  }
};

/// Its gradient.
struct ClassLossBackward : LogitsGradient<ClassLoss, ClassLossGradProblem> {
  static constexpr char kOperator[] = "boxloss::_class_loss_backward";
  BOXLOSS_GRADIENT_ARGUMENTS(BOXLOSS_LOGITS_GRADIENT_PARAMETERS, ClassLoss);

  template <class Size>
  static ClassLossGradProblem describe(const Arguments<Described<Size>>& a) {
    auto p = LogitsGradient::describe(a);
    if constexpr (kHasNumbers<Size>) p.is_transposed = lies_transposed(a.logits);
    return p;
  }

  template <class Size>
  static auto outputs(const Arguments<Described<Size>>& a, const ClassLossGradProblem& p) {
    auto gradient = LogitsGradient::outputs(a, p);
    gradient[0].order_of = &a.logits;
    return gradient;
  }

  static constexpr auto workspace_bytes = class_loss_backward_workspace_bytes;
  static void run(const Implementation& implementation, const ClassLossGradProblem& p,
                  const std::array<void*, 1>& outputs, const Execution& execution) {
    class_loss_backward(implementation, p, {outputs[0]}, execution);
  }
};

}  // namespace boxloss::binding
