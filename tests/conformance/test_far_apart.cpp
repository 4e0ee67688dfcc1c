// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

#include "check.hpp"
#include "subject.hpp"

/// Few numbers, so far apart in memory that 32 bits do not count the elements between them.
namespace boxloss::conformance {
namespace {

/// In 32 bits it is 64, and there is nothing but zeros.
constexpr std::int64_t kFar = (std::int64_t{1} << 32) + 64;

/// Zeros, of which the system keeps the pages that are written to.
class FarArray {
 public:
  explicit FarArray(std::int64_t count) : bytes_(static_cast<std::size_t>(count) * sizeof(float)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED)
      SKIP("this system does not reserve addresses of " << bytes_ << " bytes");
  }
  FarArray(FarArray&& other) noexcept
      : bytes_(other.bytes_), data_(std::exchange(other.data_, MAP_FAILED)) {}
  FarArray& operator=(FarArray&&) = delete;
  ~FarArray() {
    if (data_ != MAP_FAILED) munmap(data_, bytes_);
  }

  float* data() const { return static_cast<float*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

/// An array of shape (images, slots, values), filled by value_of(image, slot, value).
struct Strides {
  std::int64_t image, slot, value;
};

template <class ValueOf>
FarArray fill(std::int64_t images, std::int64_t slots, std::int64_t values, const Strides& strides,
              const ValueOf& value_of) {
  FarArray array((images - 1) * strides.image + (slots - 1) * strides.slot +
                 (values - 1) * strides.value + 1);
  for (std::int64_t b = 0; b < images; ++b) {
    for (std::int64_t j = 0; j < slots; ++j) {
      for (std::int64_t i = 0; i < values; ++i) {
        array.data()[b * strides.image + j * strides.slot + i * strides.value] = value_of(b, j, i);
      }
    }
  }
  return array;
}

constexpr std::int64_t kImages = 2;

/// Pair k's boxes are {0, 0, 4, 4} and {0, 0, (k + 1) / 32, 4}: all that is computed of them is
/// exact, in any order.
float loss_of(std::int64_t k) { return 1 - static_cast<float>(k + 1) / 128; }

struct Operand {
  FarArray values;
  BoxView view;
};

Operand boxes(std::int64_t slots, const Strides& strides, bool is_pred) {
  FarArray values = fill(kImages, slots, 4, strides, [&](auto b, auto j, auto i) {
    const auto width = is_pred ? 4.0f : static_cast<float>(b * slots + j + 1) / 32;
    return i < 2 ? 0.0f : i == 2 ? width : 4.0f;
  });
  BoxView view = {values.data(), DType::kF32,   BoxFormat::kXyxy, kImages,
                  slots,         strides.image, strides.slot,     strides.value};
  return {std::move(values), view};
}

/// Incoming gradients, or logits of one class.
FarArray numbers(std::int64_t slots, const Strides& strides) {
  return fill(kImages, slots, 1, strides,
              [&](auto b, auto j, auto) { return static_cast<float>(b * slots + j + 1); });
}

struct Result {
  std::vector<float> loss, pred, target;

  friend bool operator==(const Result& a, const Result& b) {
    return a.loss == b.loss && a.pred == b.pred && a.target == b.target;
  }
};

/// Without the gradient of a list that is read by index, which would be as large as the list.
Result run(const LossProblem& p, const GradView& grad) {
  const Implementation& implementation = subject();
  const auto values = static_cast<std::size_t>(4 * loss_rows(p));
  const bool is_listed = p.target.rows.data != nullptr;
  Result result{std::vector<float>(values / 4), std::vector<float>(values),
                std::vector<float>(is_listed ? 0 : values)};
  std::vector<double> workspace(loss_workspace_bytes(implementation, p) / sizeof(double) + 1);
  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace.size() * sizeof(double);
  float scale = 0;
  loss_forward(implementation, p, {result.loss.data(), &scale}, execution);
  loss_backward(implementation, p, {grad, {}}, &scale,
                {result.pred.data(), is_listed ? nullptr : result.target.data()}, execution);
  return result;
}

LossProblem problem(const BoxView& pred, const BoxView& target) {
  LossProblem p;
  p.loss = Loss::kGiou;
  p.pred = pred;
  p.target = target;
  p.reduction = Reduction::kNone;
  p.eps = 0;
  return p;
}

/// Nothing where the subject does not serve them.
std::vector<float> costs(const BoxView& pred, BoxView target, const float* logits,
                         const Strides& strides) {
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
  std::vector<float> cost(static_cast<std::size_t>(p.layers * pred.slots * target.slots));
  matching_cost(subject(), p, cost.data(), {});
  return cost;
}

void require_host() {
  if (subject().device != Device::kCpu) SKIP("a GPU's memory is not reserved so");
}

TEST_CASE("what lies far apart is read as what lies close together") {
  require_host();
  require_giou(Pairing::Kind::kDense);
  for (const std::int64_t slots : {3, 40}) {
    const Strides packed = {4 * slots, 4, 1}, dense = {slots, 1, 1};
    const Operand pred = boxes(slots, packed, true), target = boxes(slots, packed, false);
    const FarArray grads = numbers(slots, dense);
    const GradView grad = {grads.data(), dense.image, dense.slot};
    const Result close = run(problem(pred.view, target.view), grad);
    for (std::int64_t k = 0; k < kImages * slots; ++k) {
      REQUIRE(close.loss[static_cast<std::size_t>(k)] == loss_of(k));
    }
    const std::vector<float> close_costs = costs(pred.view, target.view, grads.data(), dense);
    for (const Strides& strides : {Strides{kFar, 4, 1}, {4, kFar, 1}, {slots, 1, kFar}}) {
      CAPTURE(slots, strides.image, strides.slot, strides.value);
      const Operand far_pred = boxes(slots, strides, true);
      const Operand far_target = boxes(slots, strides, false);
      REQUIRE(run(problem(far_pred.view, far_target.view), grad) == close);
      REQUIRE(costs(far_pred.view, far_target.view, grads.data(), dense) == close_costs);
    }
    for (const Strides& strides : {Strides{kFar, 1, 1}, {1, kFar, 1}}) {
      CAPTURE(slots, strides.image, strides.slot);
      const FarArray far_grads = numbers(slots, strides);
      const GradView far_grad = {far_grads.data(), strides.image, strides.slot};
      REQUIRE(run(problem(pred.view, target.view), far_grad) == close);
      REQUIRE(costs(pred.view, target.view, far_grads.data(), strides) == close_costs);
    }
  }
}

TEST_CASE("rows far down a list are read") {
  require_host();
  require_giou(Pairing::Kind::kIndexed);
  constexpr std::int64_t kPairs = 40, kSlots = kPairs / kImages;
  const Operand pred = boxes(kSlots, {4 * kSlots, 4, 1}, true);
  // The gap keeps the images from being merged into one.
  constexpr std::int64_t kRows = kFar + kSlots, kGap = 12;
  Operand target = boxes(kSlots, {4 * kRows + kGap, 4, 1}, false);
  target.view.slots = kRows;
  std::vector<std::int64_t> rows;
  for (std::int64_t k = 0; k < kPairs; ++k) {
    rows.push_back(k / kSlots * kRows + k % kSlots);
  }
  LossProblem p = problem(pred.view, target.view);
  p.pairing.kind = Pairing::Kind::kIndexed;
  p.pairing.pairs = kPairs;
  p.target.rows = {rows.data(), DType::kI64};
  const float one = 1;
  const Result result = run(p, {&one, 0, 0});
  for (std::int64_t k = 0; k < kPairs; ++k) {
    REQUIRE(result.loss[static_cast<std::size_t>(k)] == loss_of(k));
    // Of I / U, by the side of pred that does not touch the target.
    REQUIRE(result.pred[static_cast<std::size_t>(4 * k + 2)] == static_cast<float>(k + 1) / 512);
  }
}

}  // namespace
}  // namespace boxloss::conformance
