// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "distribution_loss.hpp"

#include <cmath>

namespace boxloss::conformance {
namespace {

double random_logit(Values values, Random& random) {
  if (values == Values::kPlain) return random.uniform(-8, 8);
  if (values == Values::kSpecial) {
    if (random.chance(0.01)) return random.pick(std::vector<double>{kNan, kInfinity, -kInfinity});
    return random.pick(std::vector<double>{0, -0.0, 0.5, 1, -1, 2, -2, 4, -4, 20, -20});
  }
  // Among them probabilities that are 0 in any compute type, up to what 16 bits can hold.
  return random.pick(
      std::vector<double>{0, -0.0, 0.5, 1, -1, 2, -2, 20, -20, 90, -90, 300, -300, 6e4, -6e4});
}

/// Kinks are multiples of 1/8, whose sides lie on edges or beyond them; sizes may be 0.
double random_coordinate(Values values, bool is_size, Random& random) {
  if (values == Values::kPlain) return random.uniform(is_size ? 0.1 : 0.2, is_size ? 0.6 : 0.8);
  if (values == Values::kSpecial && random.chance(0.02)) return kNan;
  return static_cast<double>(random.below(6)) / 8;
}

/// Narrow in the middle, as D-FINE's, where the dtype tells so many apart; else of one width.
double edge(Values values, std::int64_t bin, std::int64_t bins) {
  const double place = static_cast<double>(bin) - static_cast<double>(bins - 1) / 2;
  if (values != Values::kPlain || bins > 40) return 0.25 * place;
  return std::copysign(std::pow(1.2, std::fabs(place)) - 1, place);
}

/// Sets the view, and gives where its first element is in the array.
std::int64_t lay_out_corners(const CaseLogits& c, const DistributionShape& shape, CornerView& view,
                             Array& array) {
  const std::int64_t sets = c.is_one_set ? std::min<std::int64_t>(shape.sets, 1) : shape.sets;
  const std::int64_t images = sets * shape.images, values = 4 * shape.bins;
  const Strides strides = strides_of(c.layout, images, shape.queries, values);
  view = {lay_out(strides, images, shape.queries, values, c.dtype, array), c.dtype,
          c.is_one_set ? 0 : shape.images * strides.image, strides.image, strides.slot};
  return strides.start;
}

void fill_box(Array& boxes, std::int64_t row, Values values, Random& random) {
  for (std::int64_t i = 4 * row; i < 4 * row + 4; ++i) {
    boxes.set(i, random_coordinate(values, i % 4 >= 2, random));
  }
}

/// What rows that count read.
void fill_read(const DistributionCase& c, std::int64_t start, std::int64_t teacher_start,
               Random& random, HostDistributions& host) {
  const DistributionLossProblem& p = host.problem;
  const bool is_fgl = c.mode == DistributionLoss::kFgl;
  const auto fill = [&](const CornerView& view, Array& array, std::int64_t from, std::int64_t row) {
    for (std::int64_t k = 0; k < 4 * p.bins; ++k) {
      array.set(from + first_logit(p, view, row) + k, random_logit(c.values, random));
    }
  };
  for (std::int64_t row = 0; row < query_rows(p); ++row) {
    const std::int64_t target = target_of(p, row);
    if (!counts(p, row)) continue;
    fill(p.logits, host.logits, start, row);
    if (is_fgl) {
      fill_box(host.reference, row, c.values, random);
      fill_box(host.target, target, c.values, random);
    } else {
      fill(p.teacher, host.teacher, teacher_start, row);
    }
    if (target == kNoBox) {
      host.confidence.set(row % (p.images * p.queries), random_quality(c.values, random));
    } else if (c.quality) {
      host.quality.set(row, random_quality(c.values, random));
    }
  }
}

/// Moves a problem's arrays to the device of a run.
void move_arrays(DistributionLossProblem& p, const Implementation& implementation,
                 const HostDistributions& host, Run& run) {
  p.device = implementation.device;
  run.move(p.logits.data, host.logits);
  run.move(p.target_index.data, host.target_index);
  run.move(p.quality.data, host.quality);
  run.move(p.reference.data, host.reference);
  run.move(p.target.data, host.target);
  run.move(p.edges.data, host.edges);
  run.move(p.teacher.data, host.teacher);
  run.move(p.confidence.data, host.confidence);
  run.move(p.normalizer.data, host.normalizer);
}

}  // namespace

std::int64_t target_of(const DistributionLossProblem& p, std::int64_t row) {
  const auto target =
      Elements<Any>{p.target_index.data, p.target_index.dtype}.get<std::int64_t>(row);
  if (target == kIgnored) return kIgnored;
  const bool is_beyond = p.mode == DistributionLoss::kFgl && target >= p.targets;
  return target < 0 || is_beyond ? kNoBox : target;
}

bool counts(const DistributionLossProblem& p, std::int64_t row) {
  const std::int64_t target = target_of(p, row);
  return target >= 0 || (target == kNoBox && p.mode == DistributionLoss::kDdf);
}

HostDistributions DistributionLosses::make(const DistributionCase& c, Random& random) {
  HostDistributions host;
  DistributionLossProblem& p = host.problem;
  const auto& [sets, images, queries, bins, targets] = c.shape;
  const auto set_array = [](ArrayView& view, Array& array, DType dtype, std::int64_t count) {
    array = nans(dtype, count);
    view = {array.data(), dtype};
  };
  p.mode = c.mode;
  p.sets = sets;
  p.images = images;
  p.queries = queries;
  p.bins = bins;
  p.reduction = c.reduction;
  const std::int64_t start = lay_out_corners(c.logits, c.shape, p.logits, host.logits);
  const std::int64_t rows = query_rows(p);
  host.target_index = c.indices.empty() ? random_targets(c.index, rows, targets, random)
                                        : repeated(c.indices, rows, c.index);
  p.target_index = {host.target_index.data(), c.index};
  if (c.quality) set_array(p.quality, host.quality, *c.quality, rows);
  std::int64_t teacher_start = 0;
  if (c.mode == DistributionLoss::kFgl) {
    p.targets = targets;
    p.reg_scale = c.number;
    set_array(p.reference, host.reference, c.others.dtype, 4 * rows);
    set_array(p.target, host.target, c.others.dtype, 4 * targets);
    set_array(p.edges, host.edges, c.others.dtype, bins);
    for (std::int64_t i = 0; i < bins; ++i) host.edges.set(i, edge(c.values, i, bins));
  } else {
    p.temperature = c.number;
    teacher_start = lay_out_corners(c.others, c.shape, p.teacher, host.teacher);
    set_array(p.confidence, host.confidence, c.quality.value_or(DType::kF32), images * queries);
  }
  add_normalizer(c.normalizer, p, host.normalizer);
  fill_read(c, start, teacher_start, random, host);
  return host;
}

std::vector<Call> DistributionLosses::calls(const Case& c, const Host& host, Random& random) {
  const RunAs forward = [&host](const Implementation& implementation,
                                const ParallelFor& parallel_for, const Ask& ask) {
    DistributionLossProblem p = host.problem;
    const DType dtype = compute_dtype(p);
    const std::int64_t losses = p.reduction == Reduction::kNone ? query_rows(p) : p.sets;
    Run run(implementation, parallel_for,
            ask.of({{"loss", dtype, losses}, {"scale", dtype, 2 * p.sets}}));
    move_arrays(p, implementation, host, run);
    distribution_loss(implementation, p, {run.output(0), run.output(1)},
                      run.execution(distribution_loss_workspace_bytes(implementation, p)));
    return run.results();
  };
  const Array scale = *forward(oracle(), boxloss::parallel_for, Ask()).outputs[1].values;
  const auto counted = [&p = host.problem](std::int64_t row) { return counts(p, row); };
  const Array grad = random_upstream(host.problem, c.values, counted, random);
  const auto backward = [&host, grad, scale](const auto& implementation, const auto& parallel_for,
                                             const Ask& ask) {
    DistributionLossGradProblem p;
    static_cast<DistributionLossProblem&>(p) = host.problem;
    p.grad = grad.data();
    p.scale = scale.data();
    Run run(implementation, parallel_for,
            ask.of({{"logits' gradient", p.logits.dtype, query_rows(p) * 4 * p.bins}}));
    move_arrays(p, implementation, host, run);
    run.move(p.grad, grad);
    run.move(p.scale, scale);
    distribution_loss_backward(
        implementation, p, {run.output(0)},
        run.execution(distribution_loss_backward_workspace_bytes(implementation, p)));
    return run.results();
  };
  return {call_of(kName, forward, is_served,
                  [&host](const Results& right) {
                    return within_bounds(right, distribution_loss_bounds(host));
                  },
                  {kOnElements}),
          call_of("distribution_loss_backward", backward, is_served,
                  [&host, grad, scale](const Results& right) {
                    return within_bounds(right, {distribution_slope_bounds(host, grad, scale)});
                  },
                  {kOnElements})};
}

}  // namespace boxloss::conformance
