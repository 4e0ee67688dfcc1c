// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "matching_cost.hpp"

#include "example_parameters.hpp"
#include "index_arrays.hpp"
#include "matching_cost_entries.hpp"
#include "placed_boxes.hpp"

namespace boxloss::conformance {
namespace {

double random_score(const PairwiseProblem& p, Values values, Random& random) {
  if (values == Values::kPlain) return random.uniform(-6, 6);
  if (values == Values::kSpecial && random.chance(0.2)) {
    const bool is_f64 = compute_dtype(p) == DType::kF64 && p.scores.dtype == DType::kF64;
    // What is too large for the result must not be for the computation: nothing would be
    // determined.
    return random.pick(std::vector<double>{kNan, kInfinity, -kInfinity, is_f64 ? 1e300 : 1});
  }
  // Among them what a sigmoid takes for 0 or 1.
  return random.pick(std::vector<double>{0, -0.0, 0.5, 1, -1, 2, -2, 20, -20, 90, -90, 300, -300});
}

/// Those that nothing is computed from stay NaN.
template <class Case, class Host>
void add_scores(const Case& c, Random& random, Host& host) {
  PairwiseProblem& p = host.problem;
  const bool is_given = p.class_term == ClassTerm::kGiven;
  const std::int64_t blocks = is_given ? p.layers : p.pred.images;
  const std::int64_t n = is_given ? p.target.slots : p.classes;
  const Strides strides = strides_of(c.classes.layout, blocks, p.pred.slots, n);
  p.scores = {lay_out(strides, blocks, p.pred.slots, n, c.classes.scores, host.scores),
              c.classes.scores, strides.image, strides.slot};
  if (!reads_classes(p)) return;
  for_each_entry(p, [&](const CostEntry& entry) {
    const std::int64_t which = is_given ? entry.column : class_of(p, entry.column);
    if (which < 0) return;
    host.scores.set(strides.start + first_score(p, entry) + which,
                    random_score(p, c.values, random));
  });
}

template <class Case, class Host>
void add_labels(const Case& c, Random& random, Host& host) {
  PairwiseProblem& p = host.problem;
  host.labels =
      exactly(random_rows(c.classes.labels, p.target.slots, p.classes, random), c.classes.labels);
  p.labels = {host.labels.data(), host.labels.dtype()};
}

void spoil_unread_boxes(const PairwiseProblem& p, bool reads_boxes, const PlacedBoxes& preds,
                        const PlacedBoxes& targets) {
  spoil_unread(preds, [&](const auto& read) {
    if (reads_boxes) for_each_entry(p, [&](const CostEntry& e) { read(e.block, e.query); });
  });
  spoil_unread(targets, [&](const auto& read) {
    if (reads_boxes) for_each_entry(p, [&](const CostEntry& e) { read(0, e.column); });
  });
}

/// What of rotated boxes only terms would read that are left out.
void spoil_unread_numbers(const CaseWeights& weights, double angle_weight,
                          const PlacedBoxes& boxes) {
  if (weights.iou != 0) return;
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    if (weights.l1 == 0) boxes.set_all(b, j, kNan, 0, 4);
    if (angle_weight == 0) boxes.set_all(b, j, kNan, 4, 5);
  });
}

const CostFunctions& functions_of(const Implementation& i, const CostProblem&) {
  return i.matching_cost;
}
const RotatedCostFunctions& functions_of(const Implementation& i, const RotatedCostProblem&) {
  return i.rotated_matching_cost;
}

}  // namespace

std::int64_t cost_entries(const PairwiseProblem& p) {
  return p.layers * p.pred.slots * p.target.slots;
}

template <class P>
HostCostOf<P> CostOf<P>::make(const Case& c, Random& random) {
  Host host;
  P& p = host.problem;
  const CostShape& shape = c.shape;
  const PlacedBoxes preds =
      lay_out(c.pred, shape.layers * shape.images, shape.queries, p.pred, host.pred, P::kNumbers);
  const PlacedBoxes targets =
      lay_out(c.target, 1, shape.columns, p.target, host.target, P::kNumbers);
  // Negative coordinates, too, where the target can have them.
  const double origin = c.target.dtype == DType::kU8 ? 0 : -80;
  bool reads_boxes = c.weights.iou != 0 || c.weights.l1 != 0;
  if constexpr (P::kNumbers == 4) {
    fill(preds, c.values, origin, random);
    fill(targets, c.values, origin, random);
  } else {
    p.angle_unit = c.angle_unit;
    p.angle_weight = c.angle_weight;
    fill_rotated(preds, c.values, origin, p.angle_unit, false, random);
    fill_rotated(targets, c.values, origin, p.angle_unit, false, random);
    for (const auto* boxes : {&preds, &targets}) {
      spoil_unread_numbers(c.weights, c.angle_weight, *boxes);
    }
    reads_boxes |= p.angle_weight != 0;
  }

  host.offsets = c.indices.empty() ? random_offsets(c.offsets, shape.images, shape.columns, random)
                                   : exactly(c.indices, c.offsets);
  p.offsets = {host.offsets.data(), c.offsets};
  p.layers = shape.layers;
  p.loss = c.loss;
  p.iou_weight = c.weights.iou;
  p.l1_weight = c.weights.l1;
  p.class_weight = c.weights.class_term;
  p.eps = c.eps.value;
  p.eps_mode = c.eps.mode;
  p.parameters = example_parameters(c.loss);
  p.nonfinite = c.nonfinite;
  spoil_unread_boxes(p, reads_boxes, preds, targets);

  p.class_term = c.classes.term;
  if (p.class_term == ClassTerm::kNone) return host;
  p.focal_alpha = c.classes.alpha;
  p.focal_gamma = c.classes.gamma;
  if (p.class_term != ClassTerm::kGiven) {
    p.classes = shape.classes;
    add_labels(c, random, host);
  }
  add_scores(c, random, host);
  return host;
}

template <class P>
std::vector<Call> CostOf<P>::calls(const Case&, const Host& host, Random&) {
  const auto run_as = [&host](const auto& implementation, const auto& parallel_for,
                              const Ask& ask) {
    P p = host.problem;
    p.device = implementation.device;
    Run run(implementation, parallel_for, ask.of({{"cost", DType::kF32, cost_entries(p)}}));
    run.move(p.pred.data, host.pred);
    run.move(p.target.data, host.target);
    run.move(p.offsets.data, host.offsets);
    run.move(p.scores.data, host.scores);
    run.move(p.labels.data, host.labels);
    matching_cost(implementation, p, static_cast<float*>(run.output(0)), run.execution());
    return run.results();
  };
  const auto serves = [&p = host.problem](const Implementation& implementation) {
    const auto& served = functions_of(implementation, p);
    return served.losses.contains(p.loss) && served.class_terms.contains(p.class_term);
  };
  const auto judge = [&host](const Results& right) {
    return within_bounds(right, {cost_bounds(host.problem)});
  };
  return {call_of("matching_cost", run_as, serves, judge, {kOnElements})};
}

template struct CostOf<CostProblem>;
template struct CostOf<RotatedCostProblem>;

}  // namespace boxloss::conformance
