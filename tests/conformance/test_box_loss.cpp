// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "operations.hpp"

/// What only the loss is tested for.
namespace boxloss::conformance {
namespace {

TEST_CASE("a normalizer beyond float32 divides a sum beyond it") {
  LossCase c = case_named(BoxLoss::table(), "mean by f64");
  c.weight = DType::kF32;
  Random random(Catch::getSeed());
  HostLoss host = BoxLoss::make(c, random);
  // 340 losses, of which a GPU adds up to eight in float32.
  for (std::int64_t i = 0; i < host.weight.count(); ++i) {
    host.weight.set(i, 4e36 * host.weight.get(i));
  }
  host.normalizer.set(0, 1e39);
  require_ok(check(subject(), BoxLoss::calls(c, host, random)));
}

TEST_CASE("rows of many pairs have the same bits on the CPU") {
  const Implementation& implementation = subject();
  if (subject_name().rfind("cpu/", 0) != 0) SKIP("a GPU adds to them in any order");
  LossCase c = case_named(BoxLoss::table(), "int32 meets int64");
  c.reduction = Reduction::kMean;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    c.pred.dtype = c.target.dtype = dtype;
    c.weight = dtype;
    // Several tasks of rows, of pairs, and of each set, with so many pairs for each row that the
    // rows where tasks meet have some; and few rows.
    for (const Shape& shape : {Shape{1, 70001, 33001, 3, 40009}, Shape{2, 7, 3, 3, 9001}}) {
      c.shape = shape;
      require_ok(check_case<BoxLoss>(check_bits, implementation, c));
    }
  }
}

Array loss_of(const HostLoss& host) {
  return *run_forward(subject(), boxloss::parallel_for, host).outputs[0].values;
}

TEST_CASE("a sum of millions is within 1e-6 of the fp64 sum of the same losses") {
  require_giou(Pairing::Kind::kDense);
  constexpr std::int64_t kBoxes = 3000017;
  LossCase c = case_named(BoxLoss::table(), "f32 f32");
  c.shape = {1, kBoxes, 0};
  Random random(Catch::getSeed());
  HostLoss host = BoxLoss::make(c, random);
  const Array losses = loss_of(host);
  double expected = 0;
  for (std::int64_t i = 0; i < kBoxes; ++i) expected += losses.get(i);

  host.problem.reduction = Reduction::kSum;
  const double sum = loss_of(host).get(0);
  REQUIRE(std::fabs(sum - expected) <= 1e-6 * expected);

  host.problem.reduction = Reduction::kMean;
  const double mean = loss_of(host).get(0);
  REQUIRE(std::fabs(mean - expected / kBoxes) <= 1e-6 * expected / kBoxes);
}

}  // namespace
}  // namespace boxloss::conformance
