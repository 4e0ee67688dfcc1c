// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

/// Several threads call cpu/native at once, all of them for the first time in their process.
namespace boxloss {
namespace {

constexpr int kCallers = 4;
constexpr std::int64_t kImages = 2, kSlots = 20000;  // several tasks
constexpr std::int64_t kBoxes = kImages * kSlots;
constexpr std::int64_t kSets = 3, kPairs = 10000;

/// Numbers without order, from 0 to count - 1.
std::int64_t scattered(std::int64_t i, std::int64_t count) { return i * i % 65521 * 7919 % count; }

std::vector<float> boxes(std::int64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = seed; i < seed + kBoxes; ++i) {
    for (const std::int64_t value : {scattered(i, 101), i % 53, 1 + i % 31, 1 + scattered(i, 37)}) {
      values.push_back(static_cast<float>(value));
    }
  }
  return values;
}

/// What all callers read.
struct Shared {
  std::vector<float> pred = boxes(1), target = boxes(1000);
  std::vector<float> weight = std::vector<float>(kBoxes, 0.75f);
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> lengths = {kSlots - 1, kSlots / 2};
  std::vector<std::int64_t> pred_rows, target_rows;

  Shared() {
    for (std::int64_t i = 0; i < kBoxes; ++i) mask.push_back(i % 3 != 0);
    for (std::int64_t k = 0; k < kSets * kPairs; ++k) {
      pred_rows.push_back(scattered(k, 1000));
      target_rows.push_back(scattered(k + 1, kBoxes));
    }
  }

  LossProblem problem(Pairing::Kind kind) const {
    LossProblem p;
    p.loss = Loss::kGiou;
    p.pred = {pred.data(), DType::kF32, BoxFormat::kCxcywh, kImages, kSlots, 4 * kSlots, 4};
    p.target = p.pred;
    p.target.data = target.data();
    p.weight = {weight.data(), DType::kF32};
    p.pairing.kind = kind;
    if (kind == Pairing::Kind::kMask) p.pairing.data = {mask.data(), DType::kU8};
    if (kind == Pairing::Kind::kLengths) p.pairing.data = {lengths.data(), DType::kI32};
    if (kind == Pairing::Kind::kIndexed) {
      p.pairing.sets = kSets;
      p.pairing.pairs = kPairs;
      p.pred.rows = {pred_rows.data(), DType::kI64};
      p.target.rows = {target_rows.data(), DType::kI64};
    }
    return p;
  }
};

/// All outputs of forward and backward, one after the other.
std::vector<float> outputs_of(const LossProblem& p) {
  const Implementation& native = implementation("cpu/native");
  const std::int64_t sets = loss_sets(p), rows = loss_rows(p);
  std::vector<float> outputs(static_cast<std::size_t>(3 * sets + 2 * rows + 8 * kBoxes), -7);
  float* end = outputs.data();
  const auto next = [&](std::int64_t count) { return std::exchange(end, end + count); };
  std::vector<std::byte> workspace(loss_workspace_bytes(native, p));
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size();
  LossOutputs forward;
  forward.loss = next(sets);
  forward.scale = next(sets);
  forward.l1 = next(sets);
  forward.iou = next(rows);
  loss_forward(native, p, forward, execution);
  const float one = 1;
  GradOutputs grads;
  grads.loss = grads.l1 = {&one, 0, 0};
  loss_backward(native, p, grads, forward.scale, {next(4 * kBoxes), next(4 * kBoxes), next(rows)},
                execution);
  return outputs;
}

bool are_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0;
}

void require_that_callers_agree(Pairing::Kind kind) {
  const Shared shared;
  const LossProblem p = shared.problem(kind);
  std::vector<float> results[kCallers];
  std::atomic<int> awaited = kCallers;
  std::vector<std::thread> callers;
  for (std::vector<float>& result : results) {
    callers.emplace_back([&] {
      for (--awaited; awaited > 0;) std::this_thread::yield();
      result = outputs_of(p);
    });
  }
  for (std::thread& caller : callers) caller.join();
  const std::vector<float> alone = outputs_of(p);
  for (const std::vector<float>& result : results) REQUIRE(are_same_bits(result, alone));
}

TEST_CASE("dense") { require_that_callers_agree(Pairing::Kind::kDense); }
TEST_CASE("mask") { require_that_callers_agree(Pairing::Kind::kMask); }
TEST_CASE("lengths") { require_that_callers_agree(Pairing::Kind::kLengths); }
TEST_CASE("indexed") { require_that_callers_agree(Pairing::Kind::kIndexed); }

}  // namespace
}  // namespace boxloss
