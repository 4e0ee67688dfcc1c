// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <thread>

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

TEST_CASE("the same input gives the same bits") {
  const Implementation& implementation = subject();
  // Schedules only matter on the CPU; elsewhere this repeats the run.
  const std::vector<ParallelFor> schedules = {boxloss::parallel_for, in_order, in_reverse,
                                              on_threads<2>, on_threads<7>};
  for (const Reduction reduction : {Reduction::kNone, Reduction::kSum, Reduction::kMean}) {
    Random random(Catch::getSeed());
    const HostProblem host = make_problem(dense_case(100003, reduction), random);
    const Upstream upstream =
        make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random);
    const Wanted all = all_gradients(host.problem);
    const ForwardResult first = run_forward(implementation, host);
    const BackwardResult first_back =
        run_backward(implementation, host, {upstream, {}}, first.scale, all);
    for (const ParallelFor& schedule : schedules) {
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
