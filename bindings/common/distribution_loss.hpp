// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/distribution_loss.hpp>

#include "logits.hpp"

namespace boxloss::binding {

/// The loss of distributions as frameworks call it.
struct DistributionLoss {
  static constexpr char kFunction[] = "distribution_loss",
                        kOperator[] = "boxloss::_distribution_loss";
  static constexpr std::array kOutputs = {"loss", "scale"};
  static constexpr std::array kDifferentiable = {"logits"};
  BOXLOSS_ARGUMENTS(BOXLOSS_DISTRIBUTION_LOSS_PARAMETERS);

  template <class Problem = DistributionLossProblem, class Size>
  static Problem describe(const Arguments<Described<Size>>& a) {
    Problem p;
    using Mode = boxloss::DistributionLoss;
    p.mode = parse("mode", a.mode, {Mode::kFgl, Mode::kDdf});
    p.reduction =
        parse("reduction", a.reduction, {Reduction::kNone, Reduction::kSum, Reduction::kMean});
    p.reg_scale = a.reg_scale;
    p.temperature = a.temperature;
    p.logits.dtype = floating_dtype_of(a.logits);
    p.target_index = view_of(a.target_index, kIndexDTypes);
    p.quality = view_of(a.quality, kFloatingDTypes);
    p.reference = view_of(a.reference, kFloatingDTypes);
    p.target = view_of(a.target, kFloatingDTypes);
    p.edges = view_of(a.edges, kFloatingDTypes);
    if (a.teacher) p.teacher.dtype = floating_dtype_of(a.teacher);
    p.confidence = view_of(a.confidence, kFloatingDTypes);
    p.normalizer = view_of(a.normalizer, kNormalizerDTypes);
    check_shapes(a);
    if constexpr (kHasNumbers<Size>) {
      set_rows(p, a);
      p.bins = a.logits.size(-1) / 4;
      set_corners(p.logits, a.logits);
      if (a.teacher) set_corners(p.teacher, a.teacher);
      if (a.target) p.targets = a.target.size(0);
    }
    return p;
  }

  template <class Size>
  static std::array<Output<Size>, 2> outputs(const Arguments<Described<Size>>& a,
                                             const DistributionLossProblem& p) {
    const DType compute = compute_dtype(p);
    return {{{compute, shape_of_loss<Size>(a, p.reduction)},
             {compute, extended(shape_of_sets<Size>(a), Size(2))}}};
  }

  /// A query's logits must be neighbours.
  template <class Args, class Pack>
  static void lay_out(Args& a, const Pack& pack) {
    if (!has_neighbours(a.logits)) pack(a.logits);
    if (a.teacher && !has_neighbours(a.teacher)) pack(a.teacher);
  }

  static constexpr auto workspace_bytes = distribution_loss_workspace_bytes;
  static void run(const Implementation& implementation, const DistributionLossProblem& p,
                  const std::array<void*, 2>& outputs, const Execution& execution) {
    distribution_loss(implementation, p, {outputs[0], outputs[1]}, execution);
  }

 private:
  template <class Size>
  static std::vector<Size> extended(std::vector<Size> shape, const Size& last) {
    shape.push_back(last);
    return shape;
  }

  template <class Size>
  static void check_shapes(const Arguments<Described<Size>>& a) {
    using Sizes = std::vector<Size>;
    const char* const wanted =
        "(queries, 4 * bins), (images, queries, 4 * bins) or (layers, images, queries, 4 * bins), "
        "with at least 1 bin";
    check_shape_is(a.logits, a.logits.rank >= 2 && a.logits.rank <= 4, wanted);
    const Size& last = a.logits.size(-1);
    check_shape_is(a.logits, Compare<Size>::at_least(last, Size(4)), wanted);
    check_shape_is(a.logits, Compare<Size>::equal(last % Size(4), Size(0)), wanted);
    const Sizes rows = shape_of_rows<Size>(a);
    check_shape(a.target_index, rows, "logits' without its last dimension");
    if (a.quality) check_shape(a.quality, rows, "that of target_index");
    if (a.reference) {
      check_shape(a.reference, extended(rows, Size(4)), "a box for each query");
    }
    if (a.target) {
      check_shape_is(a.target, a.target.rank == 2 && Compare<Size>::equal(a.target.size(1), 4),
                     "(T, 4)");
    }
    if (a.edges) check_shape(a.edges, {last / Size(4)}, "one for each bin");
    // One for all layers.
    const Sizes layer(rows.begin() + (has_layers(a.logits) ? 1 : 0), rows.end());
    if (a.teacher && !has_shape(a.teacher, Sizes(a.logits.shape, a.logits.shape + a.logits.rank))) {
      check_shape(a.teacher, extended(layer, last), "one layer's logits, or all");
    }
    if (a.confidence) check_shape(a.confidence, layer, "one for each query of a layer");
    check_normalizer<Size>(a);
  }

  template <class Array>
  static void set_corners(CornerView& view, const Array& array) {
    check(stride_of(array, 1) == 1, array.name, " has stride ", stride_of(array, 1),
          " in its last dimension; it must be 1");
    view = {array.data, view.dtype, stride_of(array, 4), stride_of(array, 3), stride_of(array, 2)};
  }
};

/// Its gradient.
struct DistributionLossBackward : LogitsGradient<DistributionLoss, DistributionLossGradProblem> {
  static constexpr char kOperator[] = "boxloss::_distribution_loss_backward";
  BOXLOSS_GRADIENT_ARGUMENTS(BOXLOSS_LOGITS_GRADIENT_PARAMETERS, DistributionLoss);

  template <class Args, class Pack>
  static void lay_out(Args& a, const Pack& pack) {
    DistributionLoss::lay_out(a, pack);
  }

  static constexpr auto workspace_bytes = distribution_loss_backward_workspace_bytes;
  static void run(const Implementation& implementation, const DistributionLossGradProblem& p,
                  const std::array<void*, 1>& outputs, const Execution& execution) {
    distribution_loss_backward(implementation, p, {outputs[0]}, execution);
  }
};

}  // namespace boxloss::binding
