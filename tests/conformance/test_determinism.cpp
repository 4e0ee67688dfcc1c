// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <thread>

#include "cost_run.hpp"
#include "run.hpp"
#include "subject.hpp"

namespace boxloss::conformance {
namespace {

using Task = std::function<void(std::int64_t)>;

void in_order(std::int64_t tasks, const Task& task) {
  for (std::int64_t i = 0; i < tasks; ++i) task(i);
}

void in_reverse(std::int64_t tasks, const Task& task) {
  for (std::int64_t i = tasks; i > 0; --i) task(i - 1);
}

template <int kThreads>
void on_threads(std::int64_t tasks, const Task& task) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([=, &task] {
      for (std::int64_t i = t; i < tasks; i += kThreads) task(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Case dense_case(std::int64_t slots, Reduction reduction) {
  const Operand operand = {DType::kF32, BoxFormat::kXyxy, Layout::kPacked};
  return {"",
          {Pairing::Kind::kDense, DType::kU8},
          operand,
          operand,
          {1, slots, 0},
          reduction,
          {},
          {},
          {1e-7, EpsMode::kAdd},
          Values::kPlain,
          Loss::kGiou};
}

// Schedules only matter on the CPU; elsewhere they repeat the run.
const std::vector<ParallelFor> kSchedules = {boxloss::parallel_for, in_order, in_reverse,
                                             on_threads<2>, on_threads<7>};

TEST_CASE("the same input gives the same bits") {
  const Implementation& implementation = subject();
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum, Reduction::kMean}) {
    Random random(Catch::getSeed());
    const HostProblem host = make_problem(dense_case(100003, reduction), random);
    const Upstream upstream =
        make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random);
    const Wanted all = all_gradients(host.problem);
    const ForwardResult first = run_forward(implementation, host);
    const BackwardResult first_back =
        run_backward(implementation, host, {upstream, {}}, first.scale, all);
    for (const ParallelFor& schedule : kSchedules) {
      const ForwardResult again = run_forward(implementation, host, {}, schedule);
      REQUIRE(again.loss == first.loss);
      REQUIRE(again.scale == first.scale);
      const BackwardResult back =
          run_backward(implementation, host, {upstream, {}}, first.scale, all, schedule);
      REQUIRE(back.pred == first_back.pred);
      REQUIRE(back.target == first_back.target);
    }
  }
}

Case indexed_case(DType dtype, const CasePairing& pairing, const Shape& shape) {
  Case c = dense_case(0, Reduction::kMean);
  c.pairing = pairing;
  c.pred.dtype = c.target.dtype = dtype;
  c.shape = shape;
  c.weight = dtype;
  return c;
}

/// Of both outputs, from the first run to the last.
void require_same_bits(const Implementation& implementation, const HostProblem& host,
                       Random& random) {
  const auto upstream = [&] {
    return make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random);
  };
  const Upstreams upstreams = {upstream(), upstream()};
  const Wanted all = all_gradients(host.problem);
  const ForwardResult first = run_forward(implementation, host, kExtras);
  const BackwardResult first_back = run_backward(implementation, host, upstreams, first.scale, all);
  for (const ParallelFor& schedule : kSchedules) {
    const ForwardResult again = run_forward(implementation, host, kExtras, schedule);
    REQUIRE(again.loss == first.loss);
    REQUIRE(again.scale == first.scale);
    REQUIRE(again.l1 == first.l1);
    REQUIRE(again.iou == first.iou);
    const BackwardResult back =
        run_backward(implementation, host, upstreams, first.scale, all, schedule);
    REQUIRE(back.pred == first_back.pred);
    REQUIRE(back.target == first_back.target);
    REQUIRE(back.weight == first_back.weight);
  }
}

constexpr CasePairing kBothByIndex = {Pairing::Kind::kIndexed, DType::kU8, DType::kI32,
                                      DType::kI64};

TEST_CASE("rows of many pairs have the same bits on the CPU") {
  const Implementation& implementation = subject();
  if (subject_name().rfind("cpu/", 0) != 0) SKIP("a GPU adds to them in any order");
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    Random random(Catch::getSeed());
    // Several tasks of rows, of pairs, and of each set, with so many pairs for each row that the
    // rows where tasks meet have some; and few rows.
    for (const Shape& shape : {Shape{1, 70001, 33001, 3, 40009}, Shape{2, 7, 3, 3, 9001}}) {
      const HostProblem host = make_problem(indexed_case(dtype, kBothByIndex, shape), random);
      require_same_bits(implementation, host, random);
    }
  }
}

/// On a GPU, too: a + b is b + a, if both are rounded before they are added.
TEST_CASE("rows of two pairs have the same bits") {
  const Implementation& implementation = subject();
  constexpr std::int64_t kRows = 5003;
  std::vector<std::int64_t> rows(kRows);
  for (std::int64_t i = 0; i < kRows; ++i) rows[static_cast<std::size_t>(i)] = i * 1000 % kRows;
  constexpr CasePairing kTargets = {Pairing::Kind::kIndexed, DType::kU8, {}, DType::kI32};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    Random random(Catch::getSeed());
    const Case c = indexed_case(dtype, kTargets, {1, 0, kRows, 2, kRows});
    require_same_bits(implementation, make_problem(c, random, rows), random);
  }
}

TEST_CASE("costs have the same bits") {
  const Implementation& implementation = subject();
  if (!implementation.matching_cost.class_terms.contains(ClassTerm::kSoftmax)) {
    SKIP(subject_name() << " does not serve the matching cost");
  }
  const Operand boxes = {DType::kF32, BoxFormat::kCxcywh, Layout::kPacked};
  CostCase c{"",        {ClassTerm::kSoftmax}, boxes, boxes,         DType::kI64, {3, 5, 70, 211},
             {2, 5, 1}, {0, EpsMode::kAdd},    {},    Values::kPlain};
  for (const Loss loss : {Loss::kGiou, Loss::kCiou}) {
    c.loss = loss;
    Random random(Catch::getSeed());
    const HostCost host = make_cost(c, random);
    const CostResult first = run_cost(implementation, host);
    for (const ParallelFor& schedule : kSchedules) {
      REQUIRE(run_cost(implementation, host, schedule).cost == first.cost);
    }
  }
}

TEST_CASE("a sum of millions is within 1e-6 of the fp64 sum of the same losses") {
  const Implementation& implementation = subject();
  constexpr std::int64_t kBoxes = 3000017;
  Random random(Catch::getSeed());
  HostProblem host = make_problem(dense_case(kBoxes, Reduction::kNone), random);
  const ForwardResult unreduced = run_forward(implementation, host);
  double expected = 0;
  for (std::int64_t i = 0; i < kBoxes; ++i) expected += unreduced.loss.get(i);

  host.problem.reduction = Reduction::kSum;
  const double sum = run_forward(implementation, host).loss.get(0);
  REQUIRE(std::fabs(sum - expected) <= 1e-6 * expected);

  host.problem.reduction = Reduction::kMean;
  const double mean = run_forward(implementation, host).loss.get(0);
  REQUIRE(std::fabs(mean - expected / kBoxes) <= 1e-6 * expected / kBoxes);
}

}  // namespace
}  // namespace boxloss::conformance
