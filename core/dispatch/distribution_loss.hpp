// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/distribution_loss.hpp>
#include <limits>

#include "../kernels/distribution_loss.hpp"
#include "compute_type.hpp"

namespace boxloss {

inline Corners corners(const CornerView& view) {
  return {{view.data, view.dtype}, view.set_stride, view.image_stride, view.query_stride};
}

template <class C>
DistributionArgs<C> distribution_args(const DistributionLossProblem& p) {
  const bool is_fgl = p.mode == DistributionLoss::kFgl;
  const double temperature = is_fgl ? 1 : p.temperature;
  const auto elements_of = [](const ArrayView& view) {
    return Elements<Any>{view.data, view.dtype};
  };
  DistributionArgs<C> a = {};
  a.mode = p.mode;
  a.logits = corners(p.logits);
  a.teacher = corners(p.teacher);
  a.target_index = indices(p.target_index);
  a.last_target = is_fgl ? p.targets - 1 : std::numeric_limits<std::int64_t>::max();
  a.quality = elements_of(p.quality);
  a.reference = elements_of(p.reference);
  a.target = elements_of(p.target);
  a.edges = elements_of(p.edges);
  a.confidence = elements_of(p.confidence);
  a.reg_scale = static_cast<C>(p.reg_scale);
  a.per_temperature = static_cast<C>(1 / temperature);
  a.loss_factor = static_cast<C>(temperature * temperature);
  a.slope_factor = static_cast<C>(temperature);
  a.sets = p.sets;
  a.images = p.images;
  a.queries = p.queries;
  a.bins = p.bins;
  return a;
}

template <class C>
ReducedDistributionLoss<C> reduced_distribution_loss(const DistributionLossProblem& p,
                                                     const DistributionLossOutputs& outputs) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  return {is_reduced ? static_cast<C*>(outputs.loss) : nullptr,
          static_cast<C*>(outputs.scale),
          {p.normalizer.data, p.normalizer.dtype},
          p.normalizer_stride,
          p.reduction == Reduction::kMean,
          p.mode == DistributionLoss::kFgl};
}

template <class C>
DistributionGrad<C> distribution_grad(const DistributionLossGradProblem& p) {
  return {static_cast<const C*>(p.grad), static_cast<const C*>(p.scale),
          p.reduction != Reduction::kNone};
}

}  // namespace boxloss
