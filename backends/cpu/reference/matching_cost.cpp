// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "cpu/reference/rotated_pair.hpp"
#include "dtypes/elements.hpp"
#include "losses/formulas.hpp"

/// The reference of the matcher's cost: one entry after the other, in double, with its own reading
/// of offsets and labels, and the class terms as in their papers.
namespace boxloss {
namespace {

/// A box's four values, and its corners rounded to the compute dtype C, as every implementation
/// rounds them; both widened.
struct Widened {
  Box<double> values, corners;
};

template <class C>
Widened box_at(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> elements{view.data, view.dtype};
  const auto value = [&](std::int64_t coordinate) {
    return elements.get<C>(image * view.image_stride + slot * view.slot_stride +
                           coordinate * view.coordinate_stride);
  };
  const Box<C> values = {value(0), value(1), value(2), value(3)};
  const Box<C> corners = to_corners(values, view.format);
  return {{values.x1, values.y1, values.x2, values.y2},
          {corners.x1, corners.y1, corners.x2, corners.y2}};
}

double class_term(const PairwiseProblem& p, std::int64_t layer, std::int64_t image,
                  std::int64_t query, std::int64_t column) {
  const Elements<Any> scores{p.scores.data, p.scores.dtype};
  if (p.class_term == ClassTerm::kNone) return 0;
  if (p.class_term == ClassTerm::kGiven) {
    return scores.get<double>(layer * p.scores.block_stride + query * p.scores.query_stride +
                              column);
  }
  const std::int64_t label = reference::index_at(p.labels, column);
  if (label < 0 || label >= p.classes) return 0;
  const std::int64_t block = layer * cost_images(p) + image;
  const double x =
      scores.get<double>(block * p.scores.block_stride + query * p.scores.query_stride + label);
  if (p.class_term == ClassTerm::kSoftmax) {
    return -std::exp(std::min(x, 0.0));  // above 0 by rounding alone; NaN stays
  }
  const double is_class = 1 / (1 + std::exp(-x)), is_not = 1 / (1 + std::exp(x));
  if (p.class_term == ClassTerm::kSigmoid) return -is_class;
  // 1 - p is is_not, which has all its digits.
  const double gamma = p.focal_gamma;
  return p.focal_alpha * std::pow(is_not, gamma) * -std::log(is_class + 1e-8) -
         (1 - p.focal_alpha) * std::pow(is_class, gamma) * -std::log(is_not + 1e-8);
}

/// Of the two terms by boxes.
template <class C>
double box_terms(const CostProblem& p, std::int64_t layer, std::int64_t image, std::int64_t query,
                 std::int64_t column) {
  const Widened pred = box_at<C>(p.pred, layer * cost_images(p) + image, query);
  const Widened target = box_at<C>(p.target, 0, column);
  const auto constants = converted<double>(constants_of<C>(p));
  double sum = 0;
  if (p.iou_weight != 0) {
    const double loss = with_formula(p.loss, [&](auto formula) {
      return formula.loss(pred.corners, target.corners, constants);
    });
    sum += p.iou_weight * (loss - 1);
  }
  if (p.l1_weight != 0) {
    const Box<double>&a = pred.values, &b = target.values;
    sum += p.l1_weight * (std::fabs(a.x1 - b.x1) + std::fabs(a.y1 - b.y1) + std::fabs(a.x2 - b.x2) +
                          std::fabs(a.y2 - b.y2));
  }
  return sum;
}

template <class C>
double box_terms(const RotatedCostProblem& p, std::int64_t layer, std::int64_t image,
                 std::int64_t query, std::int64_t column) {
  const reference::RotatedPair boxes = {
      reference::box_in_radians<C>(p.pred, layer * cost_images(p) + image, query, p.angle_unit),
      reference::box_in_radians<C>(p.target, 0, column, p.angle_unit)};
  const RotatedBox<double>&a = boxes.pred, &b = boxes.target;
  double sum = 0;
  if (p.iou_weight != 0) {
    const auto constants = converted<double>(constants_of<C>(p));
    sum += p.iou_weight * (reference::rotated_loss(p.loss, boxes, constants) - 1);
  }
  if (p.l1_weight != 0) {
    sum += p.l1_weight * (std::fabs(a.cx - b.cx) + std::fabs(a.cy - b.cy) + std::fabs(a.w - b.w) +
                          std::fabs(a.h - b.h));
  }
  if (p.angle_weight != 0) sum += p.angle_weight * (1 - std::cos(2 * (a.angle - b.angle)));
  return sum;
}

template <class C, class Problem>
double entry(const Problem& p, std::int64_t layer, std::int64_t image, std::int64_t query,
             std::int64_t column) {
  const double sum = box_terms<C>(p, layer, image, query, column);
  return p.class_weight == 0 ? sum
                             : sum + p.class_weight * class_term(p, layer, image, query, column);
}

}  // namespace

template <class Problem>
void reference::Operations::matching_cost(const Problem& p, float* cost, const Execution&) {
  const std::int64_t queries = p.pred.slots, columns = p.target.slots;
  std::fill(cost, cost + p.layers * queries * columns, 0.0f);
  if (queries * columns == 0) return;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    for (std::int64_t image = 0; image < cost_images(p); ++image) {
      const OwnRows own = own_rows(p.offsets, image, columns);
      for (std::int64_t query = 0; query < queries; ++query) {
        for (std::int64_t column = own.begin; column < own.end; ++column) {
          const double value = compute_dtype(p) == DType::kF64
                                   ? entry<double>(p, layer, image, query, column)
                                   : entry<float>(p, layer, image, query, column);
          const auto rounded = static_cast<float>(value);
          const bool is_replaced = p.nonfinite && !std::isfinite(rounded);
          cost[(layer * queries + query) * columns + column] =
              is_replaced ? static_cast<float>(*p.nonfinite) : rounded;
        }
      }
    }
  }
}

template void reference::Operations::matching_cost(const CostProblem&, float*, const Execution&);
template void reference::Operations::matching_cost(const RotatedCostProblem&, float*,
                                                   const Execution&);

}  // namespace boxloss
