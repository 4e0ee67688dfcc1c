// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "check.hpp"
#include "placed_boxes.hpp"
#include "subject.hpp"

/// Few numbers, so far apart in memory that 32 bits do not count the elements between them.
namespace boxloss::conformance {
namespace {

/// In 32 bits it is 64, and there is nothing but zeros.
constexpr std::int64_t kFar = (std::int64_t{1} << 32) + 64;
constexpr std::int64_t kImages = 2;

struct Unmap {
  std::size_t bytes;
  void operator()(float* data) const { munmap(data, bytes); }
};
using FarArray = std::unique_ptr<float[], Unmap>;

/// Zeros, of which the system keeps the pages that are written to.
FarArray far_array(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) SKIP("this system does not reserve addresses of " << bytes << " bytes");
  return {static_cast<float*>(data), Unmap{bytes}};
}

/// An array of shape (kImages, slots, values), filled by value_of(pair, value).
template <class ValueOf>
FarArray fill(std::int64_t slots, std::int64_t values, const Strides& strides,
              const ValueOf& value_of) {
  FarArray array = far_array((kImages - 1) * strides.image + (slots - 1) * strides.slot +
                             (values - 1) * strides.value + 1);
  for (std::int64_t k = 0; k < kImages * slots; ++k) {
    for (std::int64_t i = 0; i < values; ++i) {
      array[static_cast<std::size_t>(k / slots * strides.image + k % slots * strides.slot +
                                     i * strides.value)] = value_of(k, i);
    }
  }
  return array;
}

/// Pair k's boxes are {0, 0, 4, 4} and {0, 0, (k + 1) / 32, 4}: all that is computed of them is
/// exact, in any order.
struct Operand {
  FarArray values;
  BoxView view;

  Operand(std::int64_t slots, const Strides& strides, bool is_pred)
      : values(fill(slots, 4, strides,
                    [&](std::int64_t k, std::int64_t i) {
                      const float width = is_pred ? 4.0f : static_cast<float>(k + 1) / 32;
                      return i < 2 ? 0.0f : i == 2 ? width : 4.0f;
                    })),
        view{values.get(), DType::kF32,   BoxFormat::kXyxy, kImages,
             slots,        strides.image, strides.slot,     strides.value} {}
};

/// Incoming gradients, and logits of one class.
FarArray numbers(std::int64_t slots, const Strides& strides) {
  return fill(slots, 1, strides,
              [](std::int64_t k, std::int64_t) { return static_cast<float>(k + 1); });
}

using Floats = std::vector<float>;

Floats zeros(std::int64_t count) { return Floats(static_cast<std::size_t>(count)); }

LossProblem problem(const BoxView& pred, const BoxView& target) {
  LossProblem p;
  p.loss = Loss::kGiou;
  p.pred = pred;
  p.target = target;
  p.reduction = Reduction::kNone;
  p.eps = 0;
  return p;
}

/// The losses and the gradient of pred. Target's is as large as its list where that is indexed.
std::vector<Floats> losses(const LossProblem& p, const GradView& grad) {
  const bool is_listed = p.target.rows.data != nullptr;
  Floats loss = zeros(loss_rows(p)), pred = zeros(4 * loss_rows(p)), target = pred;
  float scale = 0;
  loss_forward(subject(), p, {loss.data(), &scale}, {});
  loss_backward(subject(), p, {grad, {}}, &scale,
                {pred.data(), is_listed ? nullptr : target.data()}, {});
  return {loss, pred, target};
}

/// Nothing where the subject does not serve them.
Floats costs(const BoxView& pred, BoxView target, const float* logits, const Strides& strides) {
  const CostFunctions& served = subject().matching_cost;
  if (!served.losses.contains(Loss::kGiou) || !served.class_terms.contains(ClassTerm::kSigmoid)) {
    return {};
  }
  const std::int64_t offsets[] = {0, target.slots};
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(target.slots));
  target.images = 1;
  CostProblem p;
  p.loss = Loss::kGiou;
  p.layers = pred.images;
  p.pred = pred;
  p.target = target;
  p.offsets = {offsets, DType::kI64};
  p.class_term = ClassTerm::kSigmoid;
  p.scores = {logits, DType::kF32, strides.image, strides.slot};
  p.classes = 1;
  p.labels = {labels.data(), DType::kI64};
  Floats cost = zeros(p.layers * pred.slots * target.slots);
  matching_cost(subject(), p, cost.data(), {});
  return cost;
}

/// All that is computed of boxes, and of gradients and logits, that lie so.
std::vector<Floats> results(std::int64_t slots, const Strides& of_boxes,
                            const Strides& of_numbers) {
  const Operand pred(slots, of_boxes, true), target(slots, of_boxes, false);
  const FarArray grads = numbers(slots, of_numbers);
  std::vector<Floats> all =
      losses(problem(pred.view, target.view), {grads.get(), of_numbers.image, of_numbers.slot});
  all.push_back(costs(pred.view, target.view, grads.get(), of_numbers));
  return all;
}

void require_host() {
  if (subject().device != Device::kCpu) SKIP("a GPU's memory is not reserved so");
}

TEST_CASE("what lies far apart is read as what lies close together") {
  require_host();
  require_giou(Pairing::Kind::kDense);
  for (const std::int64_t slots : {3, 40}) {
    const Strides packed = {4 * slots, 4, 1}, dense = {slots, 1, 1};
    const std::vector<Floats> close = results(slots, packed, dense);
    for (const Strides& far : {Strides{kFar, 4, 1}, {4, kFar, 1}, {slots, 1, kFar}}) {
      CAPTURE(slots, far.image, far.slot, far.value);
      REQUIRE(results(slots, far, dense) == close);
    }
    for (const Strides& far : {Strides{kFar, 1, 1}, {1, kFar, 1}}) {
      CAPTURE(slots, far.image, far.slot);
      REQUIRE(results(slots, packed, far) == close);
    }
  }
}

TEST_CASE("rows far down a list are read") {
  require_host();
  require_giou(Pairing::Kind::kIndexed);
  constexpr std::int64_t kSlots = 20, kPairs = kImages * kSlots;
  const Strides packed = {4 * kSlots, 4, 1}, dense = {kSlots, 1, 1};
  const Operand pred(kSlots, packed, true);
  // The gap keeps the images from being merged into one.
  constexpr std::int64_t kRows = kFar + kSlots, kGap = 12;
  Operand target(kSlots, {4 * kRows + kGap, 4, 1}, false);
  target.view.slots = kRows;
  std::vector<std::int64_t> rows;
  for (std::int64_t k = 0; k < kPairs; ++k) rows.push_back(k / kSlots * kRows + k % kSlots);
  LossProblem p = problem(pred.view, target.view);
  p.pairing.kind = Pairing::Kind::kIndexed;
  p.pairing.pairs = kPairs;
  p.target.rows = {rows.data(), DType::kI64};
  const FarArray grads = numbers(kSlots, dense);
  const std::vector<Floats> far = losses(p, {grads.get(), kPairs, 1});
  const std::vector<Floats> close = results(kSlots, packed, dense);
  REQUIRE(far[0] == close[0]);
  REQUIRE(far[1] == close[1]);
}

}  // namespace
}  // namespace boxloss::conformance
