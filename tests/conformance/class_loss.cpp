// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "class_loss.hpp"

namespace boxloss::conformance {
namespace {

std::int64_t index_at(const ArrayView& array, std::int64_t i) {
  return Elements<Any>{array.data, array.dtype}.get<std::int64_t>(i);
}

double random_logit(Values values, Random& random) {
  if (values == Values::kPlain) return random.uniform(-8, 8);
  if (values == Values::kSpecial && random.chance(0.04)) {
    return random.pick(std::vector<double>{kNan, kInfinity, -kInfinity});
  }
  // Among them what a sigmoid takes for 0 or 1, up to what 16 bits can hold.
  return random.pick(std::vector<double>{0, -0.0, 0.5, 1, -1, 2, -2, 4, -4, 20, -20, 90, -90, 300,
                                         -300, 6e4, -6e4});
}

double random_weight(Values values, Random& random) {
  if (values == Values::kPlain) return random.uniform(0.25, 2);
  return random.pick(std::vector<double>{0, 0.5, 1, 2});
}

void set_once(Array& array, std::int64_t i, double value) {
  if (std::isnan(array.get(i))) array.set(i, value);
}

/// What is read, of rows that count.
void fill_read(const ClassCase& c, std::int64_t start, Random& random, HostClasses& host) {
  const ClassLossProblem& p = host.problem;
  const auto fill_weight = [&](std::int64_t of_class) {
    if (is_given(p.weight)) set_once(host.weight, of_class, random_weight(c.values, random));
  };
  for (std::int64_t row = 0; row < query_rows(p); ++row) {
    const std::int64_t own = class_of(p, row);
    if (own == kIgnored) continue;
    for (std::int64_t k = 0; k < p.classes; ++k) {
      host.logits.set(start + first_logit(p, p.logits, row) + k * p.logits.class_stride,
                      random_logit(c.values, random));
      if (p.mode != ClassLoss::kSoftmax) fill_weight(k);
    }
    if (p.mode == ClassLoss::kSoftmax) fill_weight(own == kNoBox ? p.classes - 1 : own);
    if (own == kNoBox) continue;
    if (is_given(p.query_quality)) {
      host.query_quality.set(row, random_quality(c.values, random));
    } else if (is_given(p.quality)) {
      host.quality.set(index_at(p.target_index, row), random_quality(c.values, random));
    }
  }
}

/// Moves a problem's arrays to the device of a run.
void move_arrays(ClassLossProblem& p, const Implementation& implementation, const HostClasses& host,
                 Run& run) {
  p.device = implementation.device;
  run.move(p.logits.data, host.logits);
  run.move(p.target_index.data, host.target_index);
  run.move(p.labels.data, host.labels);
  run.move(p.quality.data, host.quality);
  run.move(p.query_quality.data, host.query_quality);
  run.move(p.weight.data, host.weight);
  run.move(p.normalizer.data, host.normalizer);
}

}  // namespace

std::int64_t class_of(const ClassLossProblem& p, std::int64_t row) {
  const std::int64_t target = index_at(p.target_index, row);
  if (target == kIgnored) return kIgnored;
  if (target < 0 || target >= p.targets) return kNoBox;
  const std::int64_t label = index_at(p.labels, target);
  return 0 <= label && label < p.classes ? label : kNoBox;
}

HostClasses ClassLosses::make(const ClassCase& c, Random& random) {
  HostClasses host;
  ClassLossProblem& p = host.problem;
  const auto& [sets, images, queries, classes, targets] = c.shape;
  const std::int64_t blocks = c.logits.is_one_set ? std::min<std::int64_t>(sets, 1) : sets;
  const Strides strides = strides_of(c.logits.layout, blocks * images, queries, classes);
  p.mode = c.mode;
  p.sets = sets;
  p.images = images;
  p.queries = queries;
  p.classes = classes;
  p.targets = targets;
  p.logits = {lay_out(strides, blocks * images, queries, classes, c.logits.dtype, host.logits),
              c.logits.dtype,
              c.logits.is_one_set ? 0 : images * strides.image,
              strides.image,
              strides.slot,
              strides.value};
  const std::int64_t rows = query_rows(p);
  host.target_index = c.indices.empty() ? random_targets(c.index, rows, targets, random)
                                        : repeated(c.indices, rows, c.index);
  host.labels = c.indices.empty()
                    ? exactly(random_rows(c.labels, targets, classes, random), c.labels)
                    : repeated(c.indices, targets, c.labels);
  p.target_index = {host.target_index.data(), c.index};
  p.labels = {host.labels.data(), c.labels};
  p.alpha = c.alpha;
  p.gamma = c.gamma;
  p.no_object_weight = c.no_object_weight;
  p.reduction = c.reduction;
  if (c.quality) {
    const bool is_of_queries = c.quality->is_of_queries;
    Array& array = is_of_queries ? host.query_quality : host.quality;
    array = nans(c.quality->dtype, is_of_queries ? rows : targets);
    (is_of_queries ? p.query_quality : p.quality) = ArrayView{array.data(), array.dtype()};
  }
  if (c.weight) {
    host.weight = nans(*c.weight, classes);
    p.weight = {host.weight.data(), *c.weight};
  }
  fill_read(c, strides.start, random, host);
  add_normalizer(c.normalizer, p, host.normalizer);
  return host;
}

std::vector<Call> ClassLosses::calls(const Case& c, const Host& host, Random& random) {
  const RunAs forward = [&host](const Implementation& implementation,
                                const ParallelFor& parallel_for, const Ask& ask) {
    ClassLossProblem p = host.problem;
    const DType dtype = compute_dtype(p);
    const std::int64_t losses = p.reduction == Reduction::kNone ? query_rows(p) : p.sets;
    Run run(implementation, parallel_for,
            ask.of({{"loss", dtype, losses}, {"scale", dtype, p.sets}}));
    move_arrays(p, implementation, host, run);
    class_loss(implementation, p, {run.output(0), run.output(1)},
               run.execution(class_loss_workspace_bytes(implementation, p)));
    return run.results();
  };
  const Array scale = *forward(oracle(), boxloss::parallel_for, Ask()).outputs[1].values;
  const auto counts = [&p = host.problem](std::int64_t row) {
    return class_of(p, row) != kIgnored;
  };
  const Array grad = random_upstream(host.problem, c.values, counts, random);
  const auto backward = [&host, grad, scale](bool is_transposed) {
    return [=, &host](const Implementation& implementation, const ParallelFor& parallel_for,
                      const Ask& ask) {
      ClassLossGradProblem p;
      static_cast<ClassLossProblem&>(p) = host.problem;
      p.grad = grad.data();
      p.scale = scale.data();
      p.is_transposed = is_transposed;
      Run run(implementation, parallel_for,
              ask.of({{"logits' gradient", p.logits.dtype, query_rows(p) * p.classes}}));
      move_arrays(p, implementation, host, run);
      run.move(p.grad, grad);
      run.move(p.scale, scale);
      class_loss_backward(implementation, p, {run.output(0)},
                          run.execution(class_loss_backward_workspace_bytes(implementation, p)));
      return run.results();
    };
  };
  std::vector<Call> calls = {call_of(
      kName, forward, is_served,
      [&host](const Results& right) { return within_bounds(right, class_loss_bounds(host)); },
      {kOnElements})};
  for (const bool is_transposed : {false, true}) {
    const auto judge = [&host, grad, scale, is_transposed](const Results& right) {
      return within_bounds(right, {class_slope_bounds(host, grad, scale, is_transposed)});
    };
    calls.push_back(
        call_of("class_loss_backward", backward(is_transposed), is_served, judge, {kOnElements}));
  }
  return calls;
}

}  // namespace boxloss::conformance
