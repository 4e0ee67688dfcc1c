// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/matching_cost.hpp>

#include "arguments.hpp"

namespace boxloss::binding {

/// A cost of boxes along the axes, (..., 4), or of rotated ones, (..., 5).
struct AnyCostProblem : CostProblem {
  RotatedLoss rotated_loss{};  ///< in place of the loss, of rotated boxes
  AngleUnit angle_unit{};
  double angle_weight = 0;

  bool is_rotated() const { return rotated_loss != RotatedLoss::kUnset; }

  /// Calls `use` with core's problem.
  template <class Use>
  auto visit(const Use& use) const {
    if (!is_rotated()) return use(static_cast<const CostProblem&>(*this));
    RotatedCostProblem p;
    static_cast<PairwiseProblem&>(p) = *this;
    p.loss = rotated_loss;
    p.angle_unit = angle_unit;
    p.angle_weight = angle_weight;
    return use(p);
  }
};

inline void check_options(const AnyCostProblem& p) {
  p.visit([](const auto& problem) { check_options(problem); });
}

/// The matcher's cost as frameworks call it. Where it runs, class_cost is broadcast to the result
/// or one matrix for all, and logits are log-probabilities for softmax.
struct MatchingCost {
  static constexpr char kFunction[] = "matching_cost", kOperator[] = "boxloss::matching_cost";
  static constexpr std::array kOutputs = {"cost"};
  BOXLOSS_ARGUMENTS(BOXLOSS_MATCHING_COST_PARAMETERS);

  template <class Size>
  static AnyCostProblem describe(const Arguments<Described<Size>>& a) {
    AnyCostProblem p;
    p.pred.format = parse_format("pred_format", a.pred_format);
    p.target.format = parse_format("target_format", a.target_format);
    p.angle_unit = angle_unit_of(a.angle_unit, a.pred).value_or(AngleUnit::kRadians);
    check_is_rotated(a.angle_weight != 0, "angle_weight", a.angle_weight, a.pred);
    if (numbers_of(a.pred) == 5) {
      p.rotated_loss = rotated_loss_named(a.loss);
      p.parameters = parameters_of(p.rotated_loss, a.parameters);
      p.angle_weight = a.angle_weight;
    } else {
      p.loss = loss_named(a.loss);
      p.parameters = parameters_of(p.loss, a.parameters);
    }
    p.eps_mode = parse_eps_mode(a.eps_mode);
    p.class_term = class_term_of(a);
    p.focal_alpha = a.focal_alpha;
    p.focal_gamma = a.focal_gamma;
    p.iou_weight = a.iou_weight;
    p.l1_weight = a.l1_weight;
    p.class_weight = a.class_weight;
    p.eps = a.eps;
    p.nonfinite = a.nonfinite;
    p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
    p.target.dtype = dtype_of(a.target);
    p.offsets = view_of(a.offsets, kIndexDTypes);
    p.labels = view_of(a.labels, kIndexDTypes);
    const Array<Size>& scores = a.logits ? static_cast<const Array<Size>&>(a.logits) : a.class_cost;
    if (scores) {
      p.scores.data = scores.data;
      p.scores.dtype = floating_dtype_of(scores);
    }
    check_shapes(a);
    if constexpr (kHasNumbers<Size>) {
      p.layers = leading(a.pred, 3);
      set_boxes(p.pred, a.pred);
      set_boxes(p.target, a.target);
      if (scores) {
        p.scores.query_stride = stride_of(scores, 2);
        const bool is_shared = a.class_cost && leading(scores, 2) == 1;
        p.scores.block_stride = is_shared ? 0 : leading_stride(scores, 2);
      }
      if (a.logits) p.classes = a.logits.size(-1);
    }
    return p;
  }

  template <class Size>
  static ClassTerm class_term_of(const Arguments<Described<Size>>& a) {
    const auto mode = parse("class_mode", a.class_mode,
                            {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal});
    check(!a.logits || !a.class_cost, "give logits or class_cost, not both");
    check(a.logits.is_given == a.labels.is_given, a.logits ? "logits" : "labels",
          " is given without ", a.logits ? "labels" : "logits");
    return a.class_cost ? ClassTerm::kGiven : a.logits ? mode : ClassTerm::kNone;
  }

  template <class Size>
  static void check_shapes(const Arguments<Described<Size>>& a) {
    check_boxes_shapes(a.pred, a.target);
    const int numbers = numbers_of(a.pred);
    check(a.pred.rank >= 3, "pred has shape ", ShapeOf(a.pred),
          "; it must be (..., images, queries, ", numbers, ")");
    check(a.target.rank == 2, "target has shape ", ShapeOf(a.target),
          "; it must be (boxes of all images, ", numbers, ")");
    check_shape(a.offsets, {a.pred.size(-3) + 1}, "one more than pred has images");
    if (a.logits) {
      check(a.logits.rank == a.pred.rank, "logits has shape ", ShapeOf(a.logits),
            "; it must be (..., classes), with pred's shape ", ShapeOf(a.pred), " in front");
      check_shape(a.logits, like_pred(a, 1, {a.logits.size(-1)}),
                  "pred's with classes in place of the boxes' numbers");
      check_shape(a.labels, {a.target.size(0)}, "one for each target");
    }
    if (a.class_cost) check_class_cost(a);
  }

  /// From the last dimension backwards, each must be the result's, 1, or missing.
  template <class Size>
  static void check_class_cost(const Arguments<Described<Size>>& a) {
    const std::vector<Size> wanted = shape_of_cost(a);
    const Array<Size>& given = a.class_cost;
    bool fits = given.rank >= 2 && given.rank <= wanted.size();
    for (std::size_t i = 1; fits && i <= given.rank; ++i) {
      const Size& size = given.shape[given.rank - i];
      fits = (i > 2 && Compare<Size>::is(size, 1)) ||
             Compare<Size>::equal(size, wanted[wanted.size() - i]);
    }
    check(fits, "class_cost has shape ", ShapeOf(given), "; it must be ",
          ShapeText<std::vector<Size>>{wanted},
          ", the result's; but leading dimensions may be 1 or missing");
  }

  /// pred's shape with `last` in place of its last `dropped` dimensions.
  template <class Size>
  static std::vector<Size> like_pred(const Arguments<Described<Size>>& a, std::size_t dropped,
                                     std::initializer_list<Size> last) {
    std::vector<Size> shape(a.pred.shape, a.pred.shape + a.pred.rank - dropped);
    shape.insert(shape.end(), last);
    return shape;
  }

  /// (..., queries, T)
  template <class Size>
  static std::vector<Size> shape_of_cost(const Arguments<Described<Size>>& a) {
    return like_pred(a, 3, {a.pred.size(-2), a.target.size(0)});
  }

  template <class Size>
  static std::array<Output<Size>, 1> outputs(const Arguments<Described<Size>>& a,
                                             const AnyCostProblem&) {
    return {{{DType::kF32, shape_of_cost(a)}}};
  }

  /// Leading dimensions must be one by their strides, and of scores the last neighbours.
  template <class Args, class Pack>
  static void lay_out(Args& a, const Pack& pack) {
    if (!leads_as_one(a.pred, 2)) pack(a.pred);
    for (auto* each : {&a.logits, &a.class_cost}) {
      if (*each && !(leads_as_one(*each, 2) && has_neighbours(*each))) pack(*each);
    }
  }

  /// Core does not know a cost without layers. Without images there are columns, which are 0.
  static bool has_entries(const AnyCostProblem& p) {
    return p.layers > 0 && p.pred.slots > 0 && p.target.slots > 0;
  }

  static std::size_t workspace_bytes(const Implementation& implementation,
                                     const AnyCostProblem& p) {
    if (!has_entries(p)) {
      check_options(p);
      return 0;
    }
    return p.visit([&](const auto& problem) {
      return matching_cost_workspace_bytes(implementation, problem);
    });
  }
  static void run(const Implementation& implementation, const AnyCostProblem& p,
                  const std::array<void*, 1>& outputs, const Execution& execution) {
    if (!has_entries(p)) return;
    p.visit([&](const auto& problem) {
      matching_cost(implementation, problem, static_cast<float*>(outputs[0]), execution);
    });
  }
};

/// IoUs of boxes with those of their image: a cost of the loss alone.
struct PairwiseIou {
  static constexpr char kFunction[] = "pairwise_iou", kOperator[] = "boxloss::pairwise_iou";
  static constexpr std::array kOutputs = {"iou"};
  BOXLOSS_ARGUMENTS(BOXLOSS_PAIRWISE_IOU_PARAMETERS);

  template <class Kinds>
  static MatchingCost::Arguments<Kinds> as_cost(const Arguments<Kinds>& a) {
    MatchingCost::Arguments<Kinds> cost = {};
    cost.pred = a.pred;
    cost.target = a.target;
    cost.offsets = a.offsets;
    cost.loss = a.loss;
    cost.iou_weight = -1;  // 1 - loss
    cost.class_mode = name_of(ClassTerm::kSoftmax);
    cost.pred_format = a.pred_format;
    cost.target_format = a.target_format;
    cost.eps = a.eps;
    cost.eps_mode = a.eps_mode;
    cost.parameters = a.parameters;
    cost.angle_unit = a.angle_unit;
    return cost;
  }

  template <class Size>
  static AnyCostProblem describe(const Arguments<Described<Size>>& a) {
    return MatchingCost::describe(as_cost(a));
  }
  template <class Size>
  static std::array<Output<Size>, 1> outputs(const Arguments<Described<Size>>& a,
                                             const AnyCostProblem& p) {
    return MatchingCost::outputs(as_cost(a), p);
  }
  template <class Args, class Pack>
  static void lay_out(Args& a, const Pack& pack) {
    if (!leads_as_one(a.pred, 2)) pack(a.pred);
  }
  static constexpr auto workspace_bytes = MatchingCost::workspace_bytes;
  static constexpr auto run = MatchingCost::run;
};

}  // namespace boxloss::binding
