// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace boxloss {
namespace {

using Catch::Matchers::Message;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Two layers of three images with two queries, four columns and five classes: right, until a test
/// spoils it.
struct CostCall {
  alignas(8) float preds[2 * 3 * 2 * 4] = {};
  alignas(8) float targets[4 * 4] = {};
  alignas(8) std::int32_t offsets[8] = {0, 1, 2, 4};
  alignas(8) float scores[2 * 3 * 2 * 5] = {};
  alignas(8) std::int32_t labels[8] = {0, 1, 2, 3};
  alignas(8) float cost_memory[2 * 2 * 4] = {};

  CostProblem problem;
  float* cost = cost_memory;
  const Implementation* implementation = &boxloss::implementation("cpu/native");

  explicit CostCall(ClassTerm term) {
    problem.loss = Loss::kGiou;
    problem.layers = 2;
    problem.pred = {preds, DType::kF32, BoxFormat::kCxcywh, 6, 2, 8, 4};
    problem.target = {targets, DType::kF32, BoxFormat::kCxcywh, 1, 4, 16, 4};
    problem.offsets = {offsets, DType::kI32};
    problem.class_term = term;
    if (term == ClassTerm::kNone) return;
    const bool is_given = term == ClassTerm::kGiven;
    problem.scores = {scores, DType::kF32, is_given ? 8 : 10, is_given ? 4 : 5};
    if (is_given) return;
    problem.classes = 5;
    problem.labels = {labels, DType::kI32};
  }
  CostCall(const CostCall&) = delete;
  CostCall& operator=(const CostCall&) = delete;

  void run() { matching_cost(*implementation, problem, cost, {}); }
};

using Spoil = std::function<void(CostCall&)>;

template <class Error>
void require_refused(ClassTerm term, const Spoil& spoil, const std::string& text) {
  CostCall call(term);
  spoil(call);
  for (float& entry : call.cost_memory) entry = 99;
  REQUIRE_THROWS_MATCHES(call.run(), Error, Message(text));
  for (const float entry : call.cost_memory) REQUIRE(entry == 99);
}

/// Whatever the class term is.
void require_invalid(const Spoil& spoil, const std::string& text) {
  kClassTerms.for_each(
      [&](ClassTerm term) { require_refused<InvalidArgument>(term, spoil, text); });
}

void require_unsupported(const Spoil& spoil, const std::string& text) {
  kClassTerms.for_each([&](ClassTerm term) { require_refused<Unsupported>(term, spoil, text); });
}

void require_ok(ClassTerm term, const Spoil& change) {
  CostCall call(term);
  change(call);
  INFO(name_of(term));
  REQUIRE_NOTHROW(call.run());
}

constexpr ClassTerm kLogitTerms[] = {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal};
constexpr std::int64_t kMany = std::int64_t{1} << 33;

TEST_CASE("a cost without fault is not refused") {
  kClassTerms.for_each([](ClassTerm term) { require_ok(term, [](CostCall&) {}); });
}

TEST_CASE("float64 boxes of either kind are matched in float64") {
  CostProblem p;
  REQUIRE(compute_dtype(p) == DType::kF32);
  p.target.dtype = DType::kI64;
  REQUIRE(compute_dtype(p) == DType::kF32);
  p.target.dtype = DType::kF64;
  REQUIRE(compute_dtype(p) == DType::kF64);
  p.target.dtype = DType::kF32;
  p.pred.dtype = DType::kF64;
  REQUIRE(compute_dtype(p) == DType::kF64);
}

TEST_CASE("a cost on another device is refused") {
  require_invalid([](CostCall& c) { c.problem.device = Device::kCuda; },
                  "the problem is on cuda, but cpu/native was asked to run it");
}

TEST_CASE("a cost's loss is checked") {
  require_invalid([](CostCall& c) { c.problem.loss = Loss{}; },
                  "loss is not set; it must be one of " + names_of(kLosses));
  Implementation modest = implementation("cpu/native");
  modest.matching_cost.losses = {Loss::kIou};
  require_unsupported([&](CostCall& c) { c.implementation = &modest; },
                      "cpu/native does not serve the loss 'giou', only 'iou'");
}

TEST_CASE("an implementation without a matching cost refuses it") {
  Implementation lossy = implementation("cpu/native");
  lossy.matching_cost = {};
  require_unsupported([&](CostCall& c) { c.implementation = &lossy; },
                      "cpu/native does not serve matching_cost");
}

TEST_CASE("a cost needs no workspace, and no pointers to say so") {
  CostCall call(ClassTerm::kSigmoid);
  CostProblem& p = call.problem;
  p.pred.data = p.target.data = p.offsets.data = p.scores.data = p.labels.data = nullptr;
  REQUIRE(matching_cost_workspace_bytes(*call.implementation, p) == 0);
  p.classes = -1;
  REQUIRE_THROWS_AS(matching_cost_workspace_bytes(*call.implementation, p), InvalidArgument);
}

TEST_CASE("a class term that an implementation does not say that it serves is refused") {
  Implementation modest = implementation("cpu/native");
  kClassTerms.for_each([&](ClassTerm term) {
    modest.matching_cost.class_terms = {};
    require_refused<Unsupported>(
        term, [&](CostCall& c) { c.implementation = &modest; },
        std::string("cpu/native does not serve the matching cost with the class term ") +
            name_of(term));
    modest.matching_cost.class_terms = {term};
    require_ok(term, [&](CostCall& c) { c.implementation = &modest; });
  });
  require_invalid([](CostCall& c) { c.problem.class_term = static_cast<ClassTerm>(200); },
                  "class_term is 200; it must be one of none, softmax, sigmoid, focal, given");
  require_invalid([](CostCall& c) { c.problem.pred.format = static_cast<BoxFormat>(3); },
                  "pred.format is 3; it must be one of xyxy, xywh, cxcywh");
  require_invalid([](CostCall& c) { c.problem.target.format = static_cast<BoxFormat>(3); },
                  "target.format is 3; it must be one of xyxy, xywh, cxcywh");
  require_invalid([](CostCall& c) { c.problem.eps_mode = static_cast<EpsMode>(2); },
                  "eps_mode is 2; it must be one of add, clamp");
}

TEST_CASE("a cost's boxes are checked") {
  require_invalid([](CostCall& c) { c.problem.pred.images = -6; },
                  "pred has a negative shape: -6 images, 2 slots");
  require_invalid([](CostCall& c) { c.problem.target.slots = -2; },
                  "target has a negative shape: 1 images, -2 slots");
  require_invalid([](CostCall& c) { c.problem.pred.image_stride = -8; },
                  "pred has a negative stride: -8 by image, 4 by slot, 1 by coordinate");
  require_invalid([](CostCall& c) { c.problem.target.slot_stride = -4; },
                  "target has a negative stride: 16 by image, -4 by slot, 1 by coordinate");
  require_invalid([](CostCall& c) { c.problem.pred.data = nullptr; }, "pred.data is null");
  require_invalid([](CostCall& c) { c.problem.target.data = nullptr; }, "target.data is null");
  require_unsupported([](CostCall& c) { c.problem.pred.dtype = DType::kI32; },
                      "pred is int32; it must be float64, float32, float16 or bfloat16");
  require_unsupported([](CostCall& c) { c.problem.target.dtype = static_cast<DType>(77); },
                      "target.dtype is 77; it must be one of float64, float32, float16, bfloat16, "
                      "uint8, int16, int32, int64");
}

TEST_CASE("rows are not for a cost") {
  require_invalid([](CostCall& c) { c.problem.pred.rows = {c.labels, DType::kI32}; },
                  "pred.rows and target.rows must not be given for a matching cost");
  require_invalid([](CostCall& c) { c.problem.target.rows = {c.labels, DType::kI32}; },
                  "pred.rows and target.rows must not be given for a matching cost");
}

TEST_CASE("layers share pred's images evenly") {
  require_invalid([](CostCall& c) { c.problem.layers = 0; }, "layers is 0; it must be at least 1");
  require_invalid([](CostCall& c) { c.problem.layers = -2; },
                  "layers is -2; it must be at least 1");
  require_invalid([](CostCall& c) { c.problem.layers = 4; },
                  "pred has 6 images, which 4 layers cannot have in equal numbers");
}

TEST_CASE("targets are one list") {
  require_invalid([](CostCall& c) { c.problem.target.images = 2; },
                  "target must be one image of T slots, but has 2 images");
  require_invalid([](CostCall& c) { c.problem.target.images = 0; },
                  "target must be one image of T slots, but has 0 images");
}

TEST_CASE("more entries than 64 bits can count are refused") {
  require_invalid(
      [](CostCall& c) {
        c.problem.pred.slots = kMany;
        c.problem.target.slots = kMany;
      },
      "cost would have 2 layers of 8589934592 queries and 8589934592 columns, which is more than "
      "64 bits can count");
  require_invalid(
      [](CostCall& c) {
        c.problem.layers = kMany;
        c.problem.pred.images = 0;
        c.problem.pred.slots = kMany;
      },
      "cost would have 8589934592 layers of 8589934592 queries and 4 columns, which is more than "
      "64 bits can count");
}

/// 2^64 pairs of a query and a column: in 64 bits, none.
TEST_CASE("a cost so large that it looks empty needs its arrays all the same") {
  Implementation harmless = implementation("cpu/native");
  harmless.matching_cost.run = [](const CostProblem&, float*, const Execution&) {};
  require_invalid(
      [&](CostCall& c) {
        c.implementation = &harmless;
        c.problem.pred.images = kMany;
        c.problem.pred.slots = 1 << 10;
        c.problem.target.slots = 1 << 21;
        c.problem.offsets = {};
      },
      "offsets.dtype is not set; it must be that of (images + 1) integers");
}

TEST_CASE("a cost's offsets are checked") {
  require_invalid([](CostCall& c) { c.problem.offsets.data = nullptr; },
                  "offsets.data is null; where offsets.dtype is set it must not be");
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32}) {
    require_unsupported(
        [=](CostCall& c) { c.problem.offsets.dtype = dtype; },
        std::string("offsets is ") + name_of(dtype) + "; it must be int32 or int64");
  }
}

TEST_CASE("scores are checked") {
  const auto require_checked = [](ClassTerm term) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.scores.data = nullptr; }, "scores.data is null");
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.scores.block_stride = -1; },
        "scores has a negative stride: -1 by block, " +
            std::to_string(CostCall(term).problem.scores.query_stride) + " by query");
    require_refused<InvalidArgument>(
        term,
        [](CostCall& c) {
          c.problem.scores.block_stride = 0;
          c.problem.scores.query_stride = -5;
        },
        "scores has a negative stride: 0 by block, -5 by query");
    for (const DType dtype : {DType::kU8, DType::kI64}) {
      require_refused<Unsupported>(
          term, [=](CostCall& c) { c.problem.scores.dtype = dtype; },
          std::string("scores is ") + name_of(dtype) +
              "; it must be float64, float32, float16 or bfloat16");
    }
  };
  for (const ClassTerm term : kLogitTerms) require_checked(term);
  require_checked(ClassTerm::kGiven);
  require_refused<InvalidArgument>(
      ClassTerm::kNone, [](CostCall& c) { c.problem.scores.data = c.scores; },
      "scores.data must be null where class_term is none");
}

TEST_CASE("labels are checked") {
  for (const ClassTerm term : kLogitTerms) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.labels.data = nullptr; },
        "labels.data is null; where labels.dtype is set it must not be");
    require_refused<Unsupported>(
        term, [](CostCall& c) { c.problem.labels.dtype = DType::kI16; },
        "labels is int16; it must be int32 or int64");
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.classes = -1; },
        "classes is -1; it must not be negative");
  }
  for (const ClassTerm term : {ClassTerm::kNone, ClassTerm::kGiven}) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.labels = {c.labels, DType::kI32}; },
        std::string("labels must not be given where class_term is ") + name_of(term));
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.labels.data = c.labels; },
        "labels.dtype is not set; it must be, where labels.data is");
  }
}

TEST_CASE("what was forgotten of a cost is named") {
  require_invalid([](CostCall& c) { c.problem.offsets = {}; },
                  "offsets.dtype is not set; it must be that of (images + 1) integers");
  require_invalid([](CostCall& c) { c.problem.pred.slots = BoxView().slots; },
                  "pred.slots is not set; it must be the number of boxes of each image");
  for (const ClassTerm term : kLogitTerms) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.labels = {}; },
        "labels.dtype is not set; it must be that of (T) integers");
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.classes = CostProblem().classes; },
        "classes is not set; it must be the number of scores of each query");
  }
  CostCall call(ClassTerm::kNone);
  Execution execution;
  execution.parallel_for = {};
  REQUIRE_THROWS_MATCHES(
      matching_cost(*call.implementation, call.problem, call.cost, execution), InvalidArgument,
      Message("parallel_for is empty; it must run tasks, as boxloss::parallel_for does"));
  call.problem.layers = 0;
  REQUIRE_THROWS_MATCHES(cost_images(call.problem), InvalidArgument,
                         Message("layers is 0; it must be at least 1"));
}

TEST_CASE("a dtype of nothing is not looked at") {
  constexpr auto kNoDType = static_cast<DType>(77);
  require_ok(ClassTerm::kNone, [](CostCall& c) { c.problem.scores.dtype = kNoDType; });
}

TEST_CASE("weights and focal's options must be finite in the compute dtype") {
  const auto require_finite = [](const char* name, double CostProblem::* factor) {
    require_invalid([=](CostCall& c) { c.problem.*factor = 1e300; },
                    std::string(name) + " is 1e+300; it must be finite, as a float32");
    require_ok(ClassTerm::kFocal, [=](CostCall& c) {
      c.problem.target.dtype = DType::kF64;
      c.problem.target.slots = 2;  // as many as there is memory for
      c.problem.*factor = 1e300;
    });
    for (const double value : {kNan, kInfinity, -kInfinity}) {
      const char* const word = value != value ? "nan" : value > 0 ? "inf" : "-inf";
      require_invalid([=](CostCall& c) { c.problem.*factor = value; },
                      std::string(name) + " is " + word + "; it must be finite, as a float32");
    }
  };
  require_finite("iou_weight", &CostProblem::iou_weight);
  require_finite("l1_weight", &CostProblem::l1_weight);
  require_finite("class_weight", &CostProblem::class_weight);
  require_finite("focal_alpha", &CostProblem::focal_alpha);
  require_finite("focal_gamma", &CostProblem::focal_gamma);
  require_invalid([](CostCall& c) { c.problem.focal_gamma = -0.5; },
                  "focal_gamma is -0.5; it must be >= 0");
  require_ok(ClassTerm::kFocal, [](CostCall& c) { c.problem.focal_gamma = 0; });
  require_ok(ClassTerm::kFocal, [](CostCall& c) { c.problem.focal_alpha = -1.5; });
}

TEST_CASE("what replaces NaN must be finite as a float32, as the cost is") {
  const double largest = std::numeric_limits<float>::max();
  const auto require_refused = [](double value, const std::string& word) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const auto spoil = [=](CostCall& c) {
        c.problem.target.dtype = dtype;
        c.problem.nonfinite = value;
      };
      require_invalid(spoil, "nonfinite is " + word + "; it must be finite, as a float32");
    }
  };
  require_refused(kNan, "nan");
  require_refused(kInfinity, "inf");
  require_refused(-kInfinity, "-inf");
  require_refused(1e300, "1e+300");
  require_refused(-2 * largest, "-6.80565e+38");
  for (const double value : {largest, -largest, 0.1, 0.0}) {
    require_ok(ClassTerm::kSoftmax, [=](CostCall& c) { c.problem.nonfinite = value; });
  }
}

TEST_CASE("l1 is of one format, unless it is left out") {
  require_invalid([](CostCall& c) { c.problem.target.format = BoxFormat::kXyxy; },
                  "l1_weight is 5, and l1 is of values in one format, but pred is cxcywh and "
                  "target xyxy");
  require_ok(ClassTerm::kSoftmax, [](CostCall& c) {
    c.problem.target.format = BoxFormat::kXyxy;
    c.problem.l1_weight = 0;
  });
}

TEST_CASE("a cost's eps must be finite and not negative, in its compute dtype") {
  const std::string rest = "; it must be finite and not negative, as a float32";
  require_invalid([](CostCall& c) { c.problem.eps = -0.5; }, "eps is -0.5" + rest);
  require_invalid([](CostCall& c) { c.problem.eps = kInfinity; }, "eps is inf" + rest);
  require_invalid([](CostCall& c) { c.problem.eps = kNan; }, "eps is nan" + rest);
  require_invalid([](CostCall& c) { c.problem.eps = 1e300; }, "eps is 1e+300" + rest);
}

TEST_CASE("a cost's output is checked") {
  require_invalid([](CostCall& c) { c.cost = nullptr; }, "cost is null");
}

/// One byte behind where it should be.
template <class T>
T* off(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

TEST_CASE("a cost's array that does not lie on its elements is refused") {
  const std::string off_four = " does not lie on a multiple of the 4 bytes of a ";
  const std::string off_eight = " does not lie on a multiple of the 8 bytes of a ";
  require_invalid([](CostCall& c) { c.problem.pred.data = off(c.preds); },
                  "pred" + off_four + "float32");
  require_invalid([](CostCall& c) { c.problem.target.data = off(c.targets); },
                  "target" + off_four + "float32");
  require_invalid([](CostCall& c) { c.problem.offsets.data = off(c.offsets); },
                  "offsets" + off_four + "int32");
  require_invalid([](CostCall& c) { c.problem.offsets = {c.offsets + 1, DType::kI64}; },
                  "offsets" + off_eight + "int64");
  require_invalid([](CostCall& c) { c.cost = off(c.cost_memory); }, "cost" + off_four + "float32");
  for (const ClassTerm term : {ClassTerm::kSoftmax, ClassTerm::kFocal, ClassTerm::kGiven}) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.scores.data = off(c.scores); },
        "scores" + off_four + "float32");
  }
  for (const ClassTerm term : kLogitTerms) {
    require_refused<InvalidArgument>(
        term, [](CostCall& c) { c.problem.labels = {c.labels + 1, DType::kI64}; },
        "labels" + off_eight + "int64");
  }
}

TEST_CASE("what has no elements may be null") {
  const auto without_arrays = [](CostCall& c) {
    c.problem.scores.data = nullptr;
    c.problem.labels.data = c.problem.offsets.data = nullptr;
  };
  kClassTerms.for_each([&](ClassTerm term) {
    require_ok(term, [&](CostCall& c) {  // no columns
      without_arrays(c);
      c.problem.target.slots = 0;
      c.problem.target.data = nullptr;
      c.cost = nullptr;
    });
    require_ok(term, [&](CostCall& c) {  // no queries
      without_arrays(c);
      c.problem.pred.slots = 0;
      c.problem.pred.data = nullptr;
      c.cost = nullptr;
    });
    CostCall no_images(term);
    without_arrays(no_images);
    no_images.problem.pred.images = 0;
    no_images.problem.pred.data = nullptr;
    for (float& entry : no_images.cost_memory) entry = 99;
    REQUIRE_NOTHROW(no_images.run());
    for (const float entry : no_images.cost_memory) REQUIRE(entry == 0);
  });
  for (const ClassTerm term : kLogitTerms) {
    require_ok(term, [](CostCall& c) {  // no classes
      c.problem.classes = 0;
      c.problem.scores.data = nullptr;
    });
  }
}

}  // namespace
}  // namespace boxloss
