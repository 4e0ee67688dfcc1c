// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/class_loss.hpp>

#include "../kernels/class_loss.hpp"
#include "compute_type.hpp"

namespace boxloss {

/// alpha and gamma of the mode's source, where they are not given.
struct StandardNumbers {
  double alpha, gamma;
};

inline StandardNumbers standard_numbers(ClassLoss mode) {
  switch (mode) {
    case ClassLoss::kVarifocal: return {0.75, 2};
    case ClassLoss::kMal: return {1, 1.5};
    case ClassLoss::kBce:
    case ClassLoss::kSoftmax: return {1, 0};
    default: return {0.25, 2};
  }
}

template <class C>
ClassNumbers<C> class_numbers(const ClassLossProblem& p) {
  const auto [standard_alpha, standard_gamma] = standard_numbers(p.mode);
  const double alpha = p.alpha.value_or(standard_alpha), gamma = p.gamma.value_or(standard_gamma);
  const bool is_focal = p.mode == ClassLoss::kFocal, weighs = is_focal && alpha >= 0;
  ClassNumbers<C> n = {};
  n.mode = p.mode;
  n.focus = gamma == 0 ? Focus::kOne : gamma == 2 ? Focus::kSquare : Focus::kPower;
  n.derives_focus = (is_focal || p.mode == ClassLoss::kIaBce) && gamma != 0;
  n.reads_quality = alpha != 1;
  n.alpha = C(alpha);
  n.gamma = C(gamma);
  n.of_own = C(weighs ? alpha : 1);
  n.of_others = C(weighs ? 1 - alpha : 1);
  if (p.mode == ClassLoss::kVarifocal || p.mode == ClassLoss::kMal) n.of_others = n.alpha;
  n.no_object_weight = C(p.no_object_weight);
  return n;
}

template <class C>
ClassArgs<C> class_args(const ClassLossProblem& p) {
  ClassArgs<C> a = {};
  a.numbers = class_numbers<C>(p);
  a.logits = {p.logits.data, p.logits.dtype};
  a.set_stride = p.logits.set_stride;
  a.image_stride = p.logits.image_stride;
  a.query_stride = p.logits.query_stride;
  a.class_stride = p.logits.class_stride;
  a.target_index = indices(p.target_index);
  a.labels = indices(p.labels);
  a.targets = p.targets;
  a.quality = {p.quality.data, p.quality.dtype};
  a.query_quality = {p.query_quality.data, p.query_quality.dtype};
  a.weight = {p.weight.data, p.weight.dtype};
  a.sets = p.sets;
  a.images = p.images;
  a.queries = p.queries;
  a.classes = p.classes;
  return a;
}

template <class C>
ReducedClassLoss<C> reduced_class_loss(const ClassLossProblem& p, const ClassLossOutputs& outputs) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  return {is_reduced ? static_cast<C*>(outputs.loss) : nullptr,
          static_cast<C*>(outputs.scale),
          {p.normalizer.data, p.normalizer.dtype},
          p.normalizer_stride,
          p.reduction == Reduction::kMean,
          p.mode == ClassLoss::kSoftmax};
}

template <class C>
ClassGrad<C> class_grad(const ClassLossGradProblem& p) {
  return {static_cast<const C*>(p.grad), static_cast<const C*>(p.scale),
          p.reduction != Reduction::kNone, p.is_transposed};
}

}  // namespace boxloss
