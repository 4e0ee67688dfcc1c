// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

namespace boxloss {
namespace {

/// Two layers of three images with two queries, four columns and five classes: right, until a test
/// spoils it.
struct CostCall {
  alignas(8) float preds[2 * 3 * 2 * 4] = {};
  alignas(8) float targets[4 * 4] = {};
  alignas(8) std::int32_t offsets[8] = {0, 1, 2, 4};
  alignas(8) float scores[2 * 3 * 2 * 5] = {};
  alignas(8) std::int32_t labels[8] = {0, 1, 2, 3};
  Output<float, 2 * 2 * 4> cost_memory;

  CostProblem p;
  float* cost = cost_memory.values;
  Workspace workspace;
  Implementation implementation = boxloss::implementation("cpu/native");

  explicit CostCall(ClassTerm term = ClassTerm::kNone) {
    p.loss = Loss::kGiou;
    p.layers = 2;
    p.pred = {preds, DType::kF32, BoxFormat::kCxcywh, 6, 2, 8, 4};
    p.target = {targets, DType::kF32, BoxFormat::kCxcywh, 1, 4, 16, 4};
    p.offsets = {offsets, DType::kI32};
    use(term);
  }

  void use(ClassTerm term) {
    p.class_term = term;
    if (term == ClassTerm::kNone) return;
    const bool is_given = term == ClassTerm::kGiven;
    p.scores = {scores, DType::kF32, is_given ? 8 : 10, is_given ? 4 : 5};
    if (is_given) return;
    p.classes = 5;
    p.labels = {labels, DType::kI32};
  }
  void run() { matching_cost(implementation, p, cost, workspace.execution); }
  bool is_untouched() const { return cost_memory.is_untouched(); }
};

using Rows = Refusals<CostCall>;

constexpr Set<ClassTerm> kLogitTerms = {ClassTerm::kSoftmax, ClassTerm::kSigmoid,
                                        ClassTerm::kFocal};
constexpr Set<ClassTerm> kScoreTerms = {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal,
                                        ClassTerm::kGiven};
constexpr Set<ClassTerm> kOtherTerms = {ClassTerm::kNone, ClassTerm::kGiven};

template <class Error>
void require_refused_with(Set<ClassTerm> terms, const Rows& rows) {
  terms.for_each([&](ClassTerm term) {
    INFO(name_of(term));
    Rows with_term;
    for (const Refusal<CostCall>& row : rows) {
      const auto spoil = [&row, term](CostCall& c) {
        c.use(term);
        row.spoil(c);
      };
      with_term.push_back({spoil, row.text});
    }
    require_refused<Error>(with_term);
  });
}

void require_ok_with(ClassTerm term, const std::function<void(CostCall&)>& change) {
  INFO(name_of(term));
  CostCall call(term);
  change(call);
  REQUIRE_NOTHROW(call.run());
}

// clang-format off
TEST_CASE("a cost that is wrong is refused, whatever the class term is") {
  const std::string finite = "; it must be finite, as a float32", rest = ", which is more than 64 bits can count";
  const std::string no_rows = "pred.rows and target.rows must not be given for a matching cost";
  require_refused_with<InvalidArgument>(kClassTerms, {
      {[](CostCall& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](CostCall& c) { c.workspace.execution.parallel_for = {}; }, "parallel_for is empty; it must run tasks, as boxloss::parallel_for does"},
      {[](CostCall& c) { c.p.loss = Loss{}; }, "loss is not set; it must be one of " + names_of(kLosses)},
      {[](CostCall& c) { c.p.class_term = static_cast<ClassTerm>(200); }, "class_term is 200; it must be one of none, softmax, sigmoid, focal, given"},
      {[](CostCall& c) { c.p.pred.format = kNoFormat; }, "pred.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](CostCall& c) { c.p.target.format = kNoFormat; }, "target.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](CostCall& c) { c.p.eps_mode = kNoEpsMode; }, "eps_mode is 2; it must be one of add, clamp"},
      {[](CostCall& c) { c.p.eps = 1e300; }, "eps is 1e+300; it must be finite and not negative, as a float32"},
      {[](CostCall& c) { c.p.pred.images = -6; }, "pred has a negative shape: -6 images, 2 slots"},
      {[](CostCall& c) { c.p.target.slots = -2; }, "target has a negative shape: 1 images, -2 slots"},
      {[](CostCall& c) { c.p.pred.rows = {c.labels, DType::kI32}; }, no_rows},
      {[](CostCall& c) { c.p.target.rows = {c.labels, DType::kI32}; }, no_rows},
      {[](CostCall& c) { c.p.layers = 0; }, "layers is 0; it must be at least 1"},
      {[](CostCall& c) { c.p.layers = 4; }, "pred has 6 images, which 4 layers cannot have in equal numbers"},
      {[](CostCall& c) { c.p.target.images = 2; }, "target must be one image of T slots, but has 2 images"},
      {[](CostCall& c) { c.p.pred.slots = c.p.target.slots = kMany; }, "cost would have 2 layers of 8589934592 queries and 8589934592 columns" + rest},
      {[](CostCall& c) { c.p.layers = c.p.pred.slots = kMany; c.p.pred.images = 0; }, "cost would have 8589934592 layers of 8589934592 queries and 4 columns" + rest},
      {[](CostCall& c) { c.p.offsets = {}; }, "offsets.dtype is not set; it must be that of (images + 1) integers"},
      {[](CostCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](CostCall& c) { c.p.pred.data = nullptr; }, "pred.data is null"},
      {[](CostCall& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](CostCall& c) { c.cost = nullptr; }, "cost is null"},
      {[](CostCall& c) { shift(c.cost); }, "cost" + kOffFour + "float32"},
      {[](CostCall& c) { c.p.target.format = BoxFormat::kXyxy; }, "l1_weight is 5, and l1 is of values in one format, but pred is cxcywh and target xyxy"},
      // --- factors, in the compute dtype; what replaces NaN, in float32, as the cost is
      {[](CostCall& c) { c.p.iou_weight = 1e300; }, "iou_weight is 1e+300" + finite},
      {[](CostCall& c) { c.p.iou_weight = kNan; }, "iou_weight is nan" + finite},
      {[](CostCall& c) { c.p.l1_weight = 1e300; }, "l1_weight is 1e+300" + finite},
      {[](CostCall& c) { c.p.class_weight = 1e300; }, "class_weight is 1e+300" + finite},
      {[](CostCall& c) { c.p.focal_alpha = 1e300; }, "focal_alpha is 1e+300" + finite},
      {[](CostCall& c) { c.p.focal_gamma = 1e300; }, "focal_gamma is 1e+300" + finite},
      {[](CostCall& c) { c.p.focal_gamma = -0.5; }, "focal_gamma is -0.5; it must be >= 0"},
      {[](CostCall& c) { c.p.nonfinite = 1e300; c.p.target.dtype = DType::kF64; }, "nonfinite is 1e+300" + finite},
  });
}

TEST_CASE("what is not served of a cost is refused, whatever the class term is") {
  require_refused_with<Unsupported>(kClassTerms, {
      {[](CostCall& c) { c.p.pred.dtype = DType::kI32; }, "pred is int32" + kNotFloating},
      {[](CostCall& c) { c.p.target.dtype = kNoDType; }, "target.dtype is 77" + kNoElements},
      {[](CostCall& c) { c.p.offsets.dtype = DType::kU8; }, "offsets is uint8" + kNotIndices},
      {[](CostCall& c) { c.implementation.matching_cost.losses = {Loss::kIou}; }, "cpu/native does not serve the loss 'giou', only 'iou'"},
      {[](CostCall& c) { c.implementation.matching_cost = {}; }, "cpu/native does not serve matching_cost"},
  });
}

TEST_CASE("scores and labels are checked") {
  require_refused_with<InvalidArgument>(kScoreTerms, {
      {[](CostCall& c) { c.p.scores.data = nullptr; }, "scores.data is null"},
      {[](CostCall& c) { shift(c.p.scores.data); }, "scores" + kOffFour + "float32"},
      {[](CostCall& c) { c.p.scores.block_stride = -1; c.p.scores.query_stride = 5; }, "scores has a negative stride: -1 by block, 5 by query"},
      {[](CostCall& c) { c.p.scores.block_stride = 0; c.p.scores.query_stride = -5; }, "scores has a negative stride: 0 by block, -5 by query"},
  });
  require_refused_with<Unsupported>(kScoreTerms, {{[](CostCall& c) { c.p.scores.dtype = DType::kU8; }, "scores is uint8" + kNotFloating}});
  require_refused<InvalidArgument>(Rows{{[](CostCall& c) { c.p.scores.data = c.scores; }, "scores.data must be null where class_term is none"}});
  require_refused_with<InvalidArgument>(kLogitTerms, {
      {[](CostCall& c) { c.p.labels = {}; }, "labels.dtype is not set; it must be that of (T) integers"},
      {[](CostCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels.dtype is set it must not be"},
      {[](CostCall& c) { c.p.classes = CostProblem().classes; }, "classes is not set; it must be the number of scores of each query"},
      {[](CostCall& c) { c.p.classes = -1; }, "classes is -1; it must not be negative"},
  });
  require_refused_with<Unsupported>(kLogitTerms, {{[](CostCall& c) { c.p.labels.dtype = DType::kI16; }, "labels is int16" + kNotIndices}});
  kOtherTerms.for_each([](ClassTerm term) {
    require_refused_with<InvalidArgument>({term}, {
        {[](CostCall& c) { c.p.labels = {c.labels, DType::kI32}; }, std::string("labels must not be given where class_term is ") + name_of(term)},
        {[](CostCall& c) { c.p.labels.data = c.labels; }, "labels.dtype is not set; it must be, where labels.data is"},
    });
  });
}
// clang-format on

TEST_CASE("a class term that an implementation does not say that it serves is refused") {
  kClassTerms.for_each([](ClassTerm term) {
    require_refused_with<Unsupported>(
        {term}, {{[](CostCall& c) { c.implementation.matching_cost.class_terms = {}; },
                  std::string("cpu/native does not serve the matching cost with the class term ") +
                      name_of(term)}});
    require_ok_with(term,
                    [=](CostCall& c) { c.implementation.matching_cost.class_terms = {term}; });
  });
}

/// 2^64 pairs of a query and a column: in 64 bits, none.
TEST_CASE("a cost so large that it looks empty needs its arrays all the same") {
  require_refused_with<InvalidArgument>(
      kClassTerms, {{[](CostCall& c) {
                       c.implementation.matching_cost.run = [](const CostProblem&, float*,
                                                               const Execution&) {};
                       c.p.pred.images = kMany;
                       c.p.pred.slots = 1 << 10;
                       c.p.target.slots = 1 << 21;
                       c.p.offsets = {};
                     },
                     "offsets.dtype is not set; it must be that of (images + 1) integers"}});
}

TEST_CASE("a cost needs no workspace, and no pointers to say so") {
  CostCall call(ClassTerm::kSigmoid);
  CostProblem& p = call.p;
  p.pred.data = p.target.data = p.offsets.data = p.scores.data = p.labels.data = nullptr;
  REQUIRE(matching_cost_workspace_bytes(call.implementation, p) == 0);
  p.classes = -1;
  REQUIRE_THROWS_AS(matching_cost_workspace_bytes(call.implementation, p), InvalidArgument);
  p.layers = 0;
  REQUIRE_THROWS_MATCHES(cost_images(p), InvalidArgument,
                         Message("layers is 0; it must be at least 1"));
}

TEST_CASE("numbers at the ends of what is allowed are not refused") {
  for (double CostProblem::* const factor :
       {&CostProblem::iou_weight, &CostProblem::l1_weight, &CostProblem::class_weight,
        &CostProblem::focal_alpha, &CostProblem::focal_gamma}) {
    require_ok_with(ClassTerm::kFocal, [=](CostCall& c) {
      c.p.target.dtype = DType::kF64;
      c.p.target.slots = 2;  // as many as there is memory for
      c.p.*factor = 1e300;
    });
  }
  require_ok_with(ClassTerm::kFocal, [](CostCall& c) { c.p.focal_gamma = 0; });
  require_ok_with(ClassTerm::kFocal, [](CostCall& c) { c.p.focal_alpha = -1.5; });
  for (const double sign : {1.0, -1.0}) {
    require_ok_with(ClassTerm::kSoftmax, [=](CostCall& c) {
      c.p.nonfinite = sign * static_cast<double>(std::numeric_limits<float>::max());
    });
  }
  require_ok_with(ClassTerm::kSoftmax, [](CostCall& c) {  // l1 needs one format
    c.p.target.format = BoxFormat::kXyxy;
    c.p.l1_weight = 0;
  });
  require_ok_with(ClassTerm::kNone, [](CostCall& c) { c.p.scores.dtype = kNoDType; });
}

TEST_CASE("what has no elements may be null") {
  const auto without_arrays = [](CostCall& c) {
    c.p.scores.data = c.p.labels.data = c.p.offsets.data = nullptr;
  };
  kClassTerms.for_each([&](ClassTerm term) {
    require_ok_with(term, [](CostCall&) {});
    for (BoxView CostProblem::* const side : {&CostProblem::pred, &CostProblem::target}) {
      require_ok_with(term, [=](CostCall& c) {  // no queries, or no columns
        without_arrays(c);
        (c.p.*side).slots = 0;
        (c.p.*side).data = nullptr;
        c.cost = nullptr;
      });
    }
    CostCall no_images(term);
    without_arrays(no_images);
    no_images.p.offsets = no_images.p.labels = {};  // nor do they have a dtype
    no_images.p.pred.images = 0;
    no_images.p.pred.data = nullptr;
    REQUIRE_NOTHROW(no_images.run());
    for (const float entry : no_images.cost_memory.values) REQUIRE(entry == 0);
  });
  kLogitTerms.for_each([](ClassTerm term) {
    require_ok_with(term, [](CostCall& c) {  // no classes
      c.p.classes = 0;
      c.p.scores.data = nullptr;
    });
  });
}

}  // namespace
}  // namespace boxloss
