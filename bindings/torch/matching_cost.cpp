// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "../common/matching_cost.hpp"
#include "losses/class_cost.hpp"
#include "losses/cost_entry.hpp"
#include "losses/l1.hpp"
#include "operator.hpp"
#include "tensor_number.hpp"

/// matching_cost, and pairwise_iou, which is a cost of the loss alone. Neither has a gradient. And
/// the cost as "aten" computes it: each column takes what its image has, so that no tensor is
/// larger than (..., queries, T, 4), and nothing is read by the host.
namespace boxloss::torch_binding {
namespace {

using binding::AnyCostProblem;
using CostTensors = binding::MatchingCost::Arguments<TensorKinds>;

/// The type that is computed in.
at::ScalarType compute_type(const PairwiseProblem& p) { return scalar_type(compute_dtype(p)); }

at::Tensor log_probabilities(const CostTensors& a, const PairwiseProblem& p) {
  return at::log_softmax(*a.logits, -1, compute_type(p));
}

/// The image of each column; of one that no image owns, the first.
struct Owners {
  at::Tensor image, exists;
};

Owners find_owners(const CostTensors& a) {
  const at::Tensor offsets = a.offsets.to(at::kLong).clamp(0, a.target.size(0));
  const at::Tensor column = at::arange(a.target.size(0), offsets.options());
  const at::Tensor begun = at::searchsorted(offsets, column, /*out_int32=*/false, /*right=*/true);
  const at::Tensor exists = at::logical_and(begun > 0, begun <= a.pred.size(-3));
  return {at::where(exists, begun - 1, 0), exists};
}

/// Of (..., images, queries, n) the images of all columns: (..., queries, T, n).
at::Tensor of_columns(const at::Tensor& tensor, const Owners& owners) {
  return tensor.transpose(-3, -2).index_select(-2, owners.image);
}

/// Of (..., images, queries, classes) each column's score: (..., queries, T).
at::Tensor of_labels(const at::Tensor& scores, const Owners& owners, const at::Tensor& label) {
  c10::List<std::optional<at::Tensor>> indices;
  for (std::int64_t i = 0; i < scores.dim() - 2; ++i) indices.push_back(std::nullopt);
  indices.push_back(owners.image);
  indices.push_back(label);
  return scores.transpose(-3, -2).index(indices);
}

TensorNumber cost_of_score(const PairwiseProblem& p, const TensorNumber& score) {
  if (p.class_term == ClassTerm::kSoftmax) return softmax_cost(score);
  if (p.class_term == ClassTerm::kSigmoid) return sigmoid_cost(score);
  const at::Tensor gamma = at::full({}, p.focal_gamma, score.tensor.options());
  return focal_cost(score, Focal<TensorNumber>{p.focal_alpha, gamma, p.focal_gamma == 2});
}

TensorNumber class_term_of(const CostTensors& a, const PairwiseProblem& p, const Owners& owners) {
  if (p.class_weight == 0 || p.class_term == ClassTerm::kNone) return 0.0;
  if (p.class_term == ClassTerm::kGiven) return a.class_cost->to(compute_type(p));
  const std::int64_t classes = a.logits->size(-1);
  if (classes == 0) return 0.0;
  const bool is_softmax = p.class_term == ClassTerm::kSoftmax;
  const at::Tensor scores = is_softmax ? log_probabilities(a, p) : *a.logits;
  const at::Tensor label = a.labels->to(at::kLong);
  const at::Tensor is_class = at::logical_and(label >= 0, label < classes);
  const at::Tensor score = of_labels(scores, owners, at::where(is_class, label, 0));
  return at::where(is_class, cost_of_score(p, score.to(compute_type(p))).tensor, 0);
}

/// The terms of boxes, as they are where they are left out.
struct BoxTerms {
  TensorNumber loss = 1.0, l1 = 0.0, angle = 0.0;
};

BoxTerms box_terms(const AnyCostProblem& p, const at::Tensor& queries, const at::Tensor& columns) {
  BoxTerms terms;
  const auto constants = converted<TensorNumber>(constants_of<double>(p));
  const auto set = [&](const auto& query, const auto& column, const auto& loss) {
    if (p.l1_weight != 0) terms.l1 = l1_value(query, column);
    if (p.iou_weight != 0) terms.loss = loss();
  };
  if (p.is_rotated()) {
    const auto query = values_of(queries, p.angle_unit), column = values_of(columns, p.angle_unit);
    set(query, column, [&] { return loss_of(p.rotated_loss, query, column, constants); });
    if (p.angle_weight != 0) terms.angle = angle_cost(query, column);
    return terms;
  }
  const TensorBox query = values_of(queries), column = values_of(columns);
  set(query, column, [&] {
    return loss_of(p.loss, to_corners(query, p.pred.format), to_corners(column, p.target.format),
                   constants);
  });
  return terms;
}

/// 0.0 where no term is asked for.
TensorNumber entry_of(const CostTensors& a, const AnyCostProblem& p, const Owners& owners) {
  BoxTerms terms;
  if (p.iou_weight != 0 || p.l1_weight != 0 || p.angle_weight != 0) {
    const at::Tensor queries = of_columns(a.pred, owners).to(compute_type(p));
    const at::Tensor columns = a.target.to(compute_type(p));
    terms = box_terms(p, queries, columns);
  }
  const CostWeights<TensorNumber> weights = {p.iou_weight, p.l1_weight, p.class_weight};
  const TensorNumber entry = cost_entry(weights, terms.loss, terms.l1, class_term_of(a, p, owners));
  return entry + TensorNumber(p.angle_weight) * terms.angle;
}

at::Tensor composite_cost(const CostTensors& a, const AnyCostProblem& p) {
  at::DimVector shape(a.pred.sizes().slice(0, a.pred.dim() - 3));
  shape.append({a.pred.size(-2), a.target.size(0)});
  const at::Tensor none = at::zeros(shape, a.pred.options().dtype(at::kFloat));
  if (none.numel() == 0 || a.pred.size(-3) == 0) return none;
  const Owners owners = find_owners(a);
  const TensorNumber entry = entry_of(a, p, owners);
  if (entry.is_constant()) return none;
  at::Tensor cost = entry.tensor.to(at::kFloat);
  if (p.nonfinite) cost = at::where(cost.isfinite(), cost, *p.nonfinite);
  return at::where(owners.exists, cost, none).contiguous();
}

/// Puts the result in the place of the arguments.
void replace(const Operator& op, Stack& stack, at::Tensor result) {
  torch::jit::drop(stack, op.count);
  stack.emplace_back(std::move(result));
}

/// What the kernels read in the place of scores: log-probabilities of softmax, and a given cost
/// that is broadcast, unless it is one matrix for all.
void prepare(CostTensors& a, const PairwiseProblem& p) {
  if (a.logits && p.class_term == ClassTerm::kSoftmax) {
    a.logits = log_probabilities(a, p);
  }
  if (a.class_cost) {
    const auto given = a.class_cost->sizes(), pred = a.pred.sizes();
    at::DimVector shape(pred.slice(0, pred.size() - 3));
    shape.append({pred.end()[-2], a.target.size(0)});
    const bool is_shared = c10::multiply_integers(given.slice(0, given.size() - 2)) == 1;
    if (!is_shared) a.class_cost = a.class_cost->expand(shape);
  }
}

void cost(const Operator& op, Stack& stack) {
  constexpr std::size_t kLogits = 3, kClassCost = 5;
  c10::IValue* const arguments = op.arguments(stack);
  const bool has_scores = !arguments[kLogits].isNone() || !arguments[kClassCost].isNone();
  if (!has_scores && !aten_is_chosen()) return op.run(op, stack, {});
  const auto p = problem_of<binding::MatchingCost>(op, stack);
  auto a = tensors_of<binding::MatchingCost>(arguments);
  if (aten_is_chosen()) return replace(op, stack, composite_cost(a, p));
  prepare(a, p);
  arguments[kLogits] = a.logits;
  arguments[kClassCost] = a.class_cost;
  op.run(op, stack, {});
}

void iou(const Operator& op, Stack& stack) {
  if (!aten_is_chosen()) return op.run(op, stack, {});
  const auto p = problem_of<binding::PairwiseIou>(op, stack);
  const auto a = tensors_of<binding::PairwiseIou>(op.arguments(stack));
  replace(op, stack, composite_cost(binding::PairwiseIou::as_cost(a), p));
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  using namespace boxloss::torch_binding;
  static Operator matching_cost = operator_of<binding::MatchingCost>();
  static Operator pairwise_iou = operator_of<binding::PairwiseIou>();
  matching_cost.kernel = cost;
  pairwise_iou.kernel = iou;
  define(m, matching_cost, {at::Tag::needs_exact_strides});
  define(m, pairwise_iou, {at::Tag::needs_exact_strides});
  be_constant(m, matching_cost);
  be_constant(m, pairwise_iou);
}
