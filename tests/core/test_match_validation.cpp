// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

/// What the operations that match predictions with boxes refuse, and what they do not.
namespace boxloss {
namespace {

// --- Cost

/// Two layers of three images with two queries, four columns and five classes: right, until a test
/// spoils it.
struct CostCall : Prepared {
  CostProblem p;
  float* cost = output(0);

  CostCall() {
    p.loss = Loss::kGiou;
    p.layers = 2;
    p.pred = {zeros, DType::kF32, BoxFormat::kCxcywh, 6, 2, 8, 4};
    p.target = {zeros, DType::kF32, BoxFormat::kCxcywh, 1, 4, 16, 4};
    p.offsets = {zeros, DType::kI32};
  }

  void use(ClassTerm term) {
    p.class_term = term;
    if (term == ClassTerm::kNone) return;
    const bool is_given = term == ClassTerm::kGiven;
    p.scores = {zeros, DType::kF32, is_given ? 8 : 10, is_given ? 4 : 5};
    if (is_given) return;
    p.classes = 5;
    p.labels = {zeros, DType::kI32};
  }
  void forget_arrays() {
    p.pred.data = p.target.data = p.offsets.data = p.scores.data = p.labels.data = nullptr;
  }
  std::size_t workspace_bytes() const { return matching_cost_workspace_bytes(implementation, p); }
  void run() { matching_cost(implementation, p, cost, execution); }
};

using CostRows = Refusals<CostCall>;
constexpr Set<ClassTerm> kLogitTerms = {ClassTerm::kSoftmax, ClassTerm::kSigmoid,
                                        ClassTerm::kFocal};
constexpr Set<ClassTerm> kScoreTerms = {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal,
                                        ClassTerm::kGiven};
constexpr Set<ClassTerm> kOtherTerms = {ClassTerm::kNone, ClassTerm::kGiven};

/// The call with the term, and then changed.
Change<CostCall> with_term(ClassTerm term, const Change<CostCall>& change) {
  return [=](CostCall& c) {
    c.use(term);
    change(c);
  };
}

template <class Error>
void require_refused_with(Set<ClassTerm> terms, CostRows rows) {
  terms.for_each([&](ClassTerm term) {
    INFO(name_of(term));
    CostRows with;
    for (const auto& [spoil, text] : rows) with.push_back({with_term(term, spoil), text});
    require_refused<Error>(with);
  });
}

// clang-format off
TEST_CASE("a cost that is wrong is refused, whatever the class term is") {
  const std::string finite = "; it must be finite, as a float32", rest = ", which is more than 64 bits can count";
  const std::string no_rows = "pred.rows and target.rows must not be given for a matching cost";
  require_shared_refused<CostCall>();
  require_refused_with<InvalidArgument>(kClassTerms, {
      {[](CostCall& c) { c.p.loss = Loss{}; }, "loss is not set; it must be one of " + names_of(kLosses)},
      {[](CostCall& c) { c.p.class_term = static_cast<ClassTerm>(200); }, "class_term is 200; it must be one of none, softmax, sigmoid, focal, given"},
      {[](CostCall& c) { c.p.pred.format = kNoFormat; }, "pred.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](CostCall& c) { c.p.target.format = kNoFormat; }, "target.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](CostCall& c) { c.p.eps_mode = kNoEpsMode; }, "eps_mode is 2; it must be one of add, clamp"},
      {[](CostCall& c) { c.p.eps = 1e300; }, "eps is 1e+300; it must be finite and not negative, as a float32"},
      {[](CostCall& c) { c.p.pred.images = -6; }, "pred has a negative shape: -6 images, 2 slots"},
      {[](CostCall& c) { c.p.target.slots = -2; }, "target has a negative shape: 1 images, -2 slots"},
      {[](CostCall& c) { c.p.pred.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](CostCall& c) { c.p.target.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](CostCall& c) { c.p.layers = 0; }, "layers is 0; it must be at least 1"},
      {[](CostCall& c) { c.p.layers = 4; }, "pred has 6 images, which 4 layers cannot have in equal numbers"},
      {[](CostCall& c) { c.p.target.images = 2; }, "target must be one image of T slots, but has 2 images"},
      {[](CostCall& c) { c.p.pred.slots = c.p.target.slots = kMany; }, "cost would have 2 layers of 8589934592 queries and 8589934592 columns" + rest},
      {[](CostCall& c) { c.p.layers = c.p.pred.slots = kMany; c.p.pred.images = 0; }, "cost would have 8589934592 layers of 8589934592 queries and 4 columns" + rest},
      {[](CostCall& c) { c.p.offsets = {}; }, "offsets" + kNoDTypeSet + "(images + 1) integers"},
      {[](CostCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets" + kNull},
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
      // 2^64 pairs of a query and a column: in 64 bits, none. They need arrays all the same.
      {[](CostCall& c) { c.p.pred.images = kMany; c.p.pred.slots = 1 << 10; c.p.target.slots = 1 << 21; c.p.offsets = {}; }, "offsets" + kNoDTypeSet + "(images + 1) integers"},
  });
  require_refused_with<Unsupported>(kClassTerms, {
      {[](CostCall& c) { c.p.pred.dtype = DType::kI32; }, "pred is int32" + kNotFloating},
      {[](CostCall& c) { c.p.target.dtype = kNoDType; }, "target.dtype is 77" + kNoElements},
      {[](CostCall& c) { c.p.offsets.dtype = DType::kU8; }, "offsets is uint8" + kNotIndices},
      {[](CostCall& c) { c.implementation.matching_cost.losses = {Loss::kIou}; }, "cpu/native does not serve the loss 'giou', only 'iou'"},
      {[](CostCall& c) { c.implementation.matching_cost = {}; }, "cpu/native does not serve matching_cost"},
  });
  require_refused_with<InvalidArgument>(kScoreTerms, {
      {[](CostCall& c) { c.p.scores.data = nullptr; }, "scores.data is null"},
      {[](CostCall& c) { shift(c.p.scores.data); }, "scores" + kOffFour + "float32"},
      {[](CostCall& c) { c.p.scores.block_stride = kUnsetStride; }, "scores.block_stride is not set; it must lead from each block to the next"},
      {[](CostCall& c) { c.p.scores.query_stride = kUnsetStride; }, "scores.query_stride is not set; it must lead from each query to the next"},
      {[](CostCall& c) { c.p.scores.block_stride = -1; c.p.scores.query_stride = 5; }, "scores has a negative stride: -1 by block, 5 by query"},
      {[](CostCall& c) { c.p.scores.block_stride = 0; c.p.scores.query_stride = -5; }, "scores has a negative stride: 0 by block, -5 by query"},
  });
  require_refused_with<Unsupported>(kScoreTerms, {{[](CostCall& c) { c.p.scores.dtype = DType::kU8; }, "scores is uint8" + kNotFloating}});
  require_refused<InvalidArgument>(Refusals<CostCall>{{[](CostCall& c) { c.p.scores.data = c.zeros; }, "scores.data must be null where class_term is none"}});
  require_refused_with<InvalidArgument>(kLogitTerms, {
      {[](CostCall& c) { c.p.labels = {}; }, "labels" + kNoDTypeSet + "(T) integers"},
      {[](CostCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels" + kNull},
      {[](CostCall& c) { c.p.classes = kUnsetSize; }, "classes" + kNotSet + "scores of each query"},
      {[](CostCall& c) { c.p.classes = -1; }, "classes is -1" + kNotNegative},
  });
  require_refused_with<Unsupported>(kLogitTerms, {{[](CostCall& c) { c.p.labels.dtype = DType::kI16; }, "labels is int16" + kNotIndices}});
  kOtherTerms.for_each([](ClassTerm term) {
    require_refused_with<InvalidArgument>({term}, {
        {[](CostCall& c) { c.p.labels = {c.zeros, DType::kI32}; }, std::string("labels must not be given where class_term is ") + name_of(term)},
        {[](CostCall& c) { c.p.labels.data = c.zeros; }, "labels.dtype is not set; it must be, where labels.data is"},
    });
  });
  kClassTerms.for_each([](ClassTerm term) {
    require_refused_with<Unsupported>({term}, {
        {[](CostCall& c) { c.implementation.matching_cost.class_terms = {}; }, std::string("cpu/native does not serve the matching cost with the class term ") + name_of(term)},
    });
  });
}

TEST_CASE("a cost without fault is not refused") {
  kClassTerms.for_each([&](ClassTerm term) {
    INFO(name_of(term));
    require_ok<CostCall>({
        with_term(term, [](CostCall&) {}),
        with_term(term, [=](CostCall& c) { c.implementation.matching_cost.class_terms = {term}; }),
        // No queries or no columns: arrays may be null, but boxes.
        with_term(term, [](CostCall& c) { c.forget_arrays(); c.p.pred.slots = 0; c.p.target.data = c.zeros; c.cost = nullptr; }),
        with_term(term, [](CostCall& c) { c.forget_arrays(); c.p.target.slots = 0; c.p.pred.data = c.zeros; c.cost = nullptr; }),
    });
    CostCall no_images;
    no_images.use(term);
    no_images.forget_arrays();
    no_images.p.offsets = no_images.p.labels = {};  // nor do they have a dtype
    no_images.p.pred.images = 0;
    no_images.p.target.data = no_images.zeros;
    REQUIRE_NOTHROW(no_images.run());
    REQUIRE(std::count(no_images.cost, no_images.cost + 16, 0.0f) == 16);
  });
  kLogitTerms.for_each([](ClassTerm term) {
    require_ok<CostCall>({with_term(term, [](CostCall& c) { c.p.classes = 0; c.p.scores.data = nullptr; })});
  });
  for (double CostProblem::* const factor : {&CostProblem::iou_weight, &CostProblem::l1_weight, &CostProblem::class_weight, &CostProblem::focal_alpha, &CostProblem::focal_gamma}) {
    require_ok<CostCall>({with_term(ClassTerm::kFocal, [=](CostCall& c) { c.p.target.dtype = DType::kF64; c.p.*factor = 1e300; })});
  }
  const double most = std::numeric_limits<float>::max();
  require_ok<CostCall>({
      with_term(ClassTerm::kFocal, [](CostCall& c) { c.p.focal_gamma = 0; }),
      with_term(ClassTerm::kFocal, [](CostCall& c) { c.p.focal_alpha = -1.5; }),
      with_term(ClassTerm::kSoftmax, [=](CostCall& c) { c.p.nonfinite = most; }),
      with_term(ClassTerm::kSoftmax, [=](CostCall& c) { c.p.nonfinite = -most; }),
      with_term(ClassTerm::kSoftmax, [](CostCall& c) { c.p.target.format = BoxFormat::kXyxy; c.p.l1_weight = 0; }),  // l1 needs one format
      [](CostCall& c) { c.p.scores.dtype = kNoDType; },
  });
}
// clang-format on

TEST_CASE("a cost needs no workspace, and no pointers to say so") {
  CostCall call;
  call.use(ClassTerm::kSigmoid);
  call.forget_arrays();
  REQUIRE(call.workspace_bytes() == 0);
  call.p.classes = -1;
  REQUIRE_THROWS_AS(call.workspace_bytes(), InvalidArgument);
  call.p.layers = 0;
  REQUIRE_THROWS_MATCHES(cost_images(call.p), InvalidArgument,
                         Message("layers is 0; it must be at least 1"));
}

// --- Assignment

/// Two layers of three images with four queries in two groups, and five columns: right, until a
/// test spoils it.
struct AssignCall : Prepared {
  AssignProblem p;
  AssignOutputs outputs = {output(0), output(1), output(2)};

  AssignCall() {
    p.layers = 2;
    p.images = 3;
    p.queries = 4;
    p.columns = 5;
    p.cost = {zeros, DType::kF32, 20, 5, 1};
    p.offsets = {zeros, DType::kI32};
    p.groups = 2;
  }

  void forget_arrays() { p.cost.data = p.offsets.data = nullptr; }
  std::size_t workspace_bytes() const { return assign_workspace_bytes(implementation, p); }
  void run() { assign(implementation, p, outputs, execution); }
};

/// One image without offsets, with lengths of its layers.
void be_alone(AssignCall& c) {
  c.p.images = c.p.groups = 1;
  c.p.offsets = {};
  c.p.lengths = {c.zeros, DType::kI32};
}

/// Too large for a thread's stack.
struct LargeAssignCall : AssignCall {
  LargeAssignCall() {
    p.layers = p.groups = 1;
    p.queries = 150;
    p.cost = {zeros, DType::kF32, 0, 0, 0};
    outputs = {};
  }
};

// clang-format off
TEST_CASE("an assignment that is wrong is refused") {
  const std::string rest = ", which is more than ", groups = "; it must be at least 1, and divide the 4 queries";
  require_shared_refused<AssignCall>();
  require_workspace_checked<LargeAssignCall>();
  require_refused<InvalidArgument>(Refusals<AssignCall>{
      // --- sizes
      {[](AssignCall& c) { c.p.layers = -1; }, "layers is -1" + kNotNegative},
      {[](AssignCall& c) { c.p.images = kUnsetSize; }, "images" + kNotSet + "images that share the columns"},
      {[](AssignCall& c) { c.p.queries = kUnsetSize; }, "queries" + kNotSet + "queries of each image"},
      {[](AssignCall& c) { c.p.columns = kUnsetSize; }, "columns" + kNotSet + "columns of cost"},
      {[](AssignCall& c) { c.p.groups = 0; }, "groups is 0" + groups},
      {[](AssignCall& c) { c.p.groups = -1; }, "groups is -1" + groups},
      {[](AssignCall& c) { c.p.groups = 3; }, "groups is 3" + groups},
      {[](AssignCall& c) { c.p.queries = kMany; }, "cost has 8589934592 queries and 5 columns; it can have 2^31 - 1 of each"},
      {[](AssignCall& c) { c.p.columns = kMost32 + 1; }, "cost has 4 queries and 2147483648 columns; it can have 2^31 - 1 of each"},
      {[](AssignCall& c) { c.p.index = DType::kI32; c.p.images = 268435456; }, "there are 2 layers of 268435456 images of 4 queries, and 2 groups of 5 columns" + rest + "int32 can count"},
      {[](AssignCall& c) { c.p.index = DType::kI32; c.p.columns = 536870912; }, "there are 2 layers of 3 images of 4 queries, and 2 groups of 536870912 columns" + rest + "int32 can count"},
      {[](AssignCall& c) { c.p.layers = c.p.images = kMany; }, "there are 8589934592 layers of 8589934592 images of 4 queries, and 2 groups of 5 columns" + rest + "int64 can count"},
      // Whose workspace would have 2^64 bytes.
      {[](AssignCall& c) { c.p.cost = {c.zeros, DType::kF64, 0, 0, 0}; c.p.queries = c.p.columns = 1073741824; }, "cost has 2 layers of 1073741824 queries and 1073741824 columns" + rest + "64 bits can count"},
      // --- arrays
      {[](AssignCall& c) { c.p.cost.layer_stride = kUnsetStride; }, "cost.layer_stride is not set; it must lead from each layer to the next"},
      {[](AssignCall& c) { c.p.cost.query_stride = kUnsetStride; }, "cost.query_stride is not set; it must lead from each query to the next"},
      {[](AssignCall& c) { c.p.cost.layer_stride = -20; }, "cost has a negative stride: -20 by layer, 5 by query, 1 by column"},
      {[](AssignCall& c) { c.p.cost.query_stride = -5; }, "cost has a negative stride: 20 by layer, -5 by query, 1 by column"},
      {[](AssignCall& c) { c.p.cost.column_stride = -1; }, "cost has a negative stride: 20 by layer, 5 by query, -1 by column"},
      {[](AssignCall& c) { c.p.cost.data = nullptr; }, "cost.data is null"},
      {[](AssignCall& c) { shift(c.p.cost.data); }, "cost" + kOffFour + "float32"},
      {[](AssignCall& c) { c.p.offsets = {}; }, "offsets.dtype is not set; it must be that of (images + 1) integers"},
      {[](AssignCall& c) { c.p.lengths = {c.zeros, DType::kI32}; }, "lengths are for one image, without offsets and groups"},
      {[](AssignCall& c) { be_alone(c); c.p.groups = 2; }, "lengths are for one image, without offsets and groups"},
      {[](AssignCall& c) { be_alone(c); c.p.lengths.data = nullptr; }, "lengths.data is null; where lengths.dtype is set it must not be"},
      {[](AssignCall& c) { c.p.cost_limit = kNan; }, "cost_limit is nan; it must be a number, or +inf for none"},
      {[](AssignCall& c) { c.p.cost_limit = -kInfinity; }, "cost_limit is -inf; it must be a number, or +inf for none"},
      {[](AssignCall& c) { c.p.cost_limit = 2; c.p.maximize = true; }, "cost_limit and maximize exclude each other: a limit is for costs"},
      {[](AssignCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](AssignCall& c) { shift(c.outputs.pred_index); }, "outputs.pred_index" + kOffEight + "int64"},
      {[](AssignCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](AssignCall& c) { shift(c.outputs.target_of_query); c.p.index = DType::kI32; }, "outputs.target_of_query" + kOffFour + "int32"},
      {[](AssignCall& c) { shift(c.outputs.query_of_column); }, "outputs.query_of_column" + kOffEight + "int64"},
  });
  require_refused<Unsupported>(Refusals<AssignCall>{
      {[](AssignCall& c) { c.p.cost.dtype = DType::kNone; }, "cost is none; it must be one of float64, float32, float16, bfloat16, uint8, int16, int32, int64"},
      {[](AssignCall& c) { be_alone(c); c.p.lengths.dtype = DType::kF32; }, "lengths is float32" + kNotIndices},
      {[](AssignCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](AssignCall& c) { c.p.index = DType::kU8; }, "index is uint8" + kNotIndices},
      {[](AssignCall& c) { c.implementation.assign = {}; }, "cpu/native does not serve assign"},
  });
}

TEST_CASE("an assignment without fault is not refused") {
  require_ok<AssignCall>({
      [](AssignCall&) {},
      [](AssignCall& c) { c.p.groups = 4; },
      [](AssignCall& c) { c.p.cost = {c.zeros, DType::kF32, 0, 0, 0}; },
      [](AssignCall& c) { c.outputs = {}; },
      be_alone,
      [](AssignCall& c) { be_alone(c); c.p.lengths = {}; c.p.cost_limit = 1; },
  });
  require_nothing_needed<AssignCall>({
      [](AssignCall& c) { c.p.layers = 0; },
      [](AssignCall& c) { c.p.images = 0; },
      [](AssignCall& c) { c.p.queries = 0; },
      [](AssignCall& c) { c.p.columns = 0; },
  });
  AssignProblem options;  // which have no sizes
  options.offsets.dtype = DType::kI32;
  REQUIRE_NOTHROW(check_options(options));
  options.offsets.dtype = DType::kF32;
  REQUIRE_THROWS_AS(check_options(options), Unsupported);
}
// clang-format on

TEST_CASE("as much as the outputs' dtype can count is not refused") {
  AssignCall call;
  call.p.index = DType::kI32;
  call.p.layers = call.p.queries = call.p.groups = 1;
  call.p.images = call.p.columns = kMost32;
  REQUIRE_NOTHROW(call.workspace_bytes());
  call.p.layers = 2;
  REQUIRE_THROWS_AS(call.workspace_bytes(), InvalidArgument);
  call.p.index = DType::kI64;
  REQUIRE_NOTHROW(call.workspace_bytes());
}

// --- By IoU

/// Two images of three anchors each, and five boxes: right, until a test spoils it.
struct MaxIouCall : Prepared {
  MaxIouProblem p;
  MaxIouOutputs outputs = {output(0), output(1)};

  MaxIouCall() {
    p.anchors = {zeros, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4, 1};
    p.target = {zeros, DType::kF32, BoxFormat::kXyxy, 1, 5, 20, 4, 1};
    p.offsets = {zeros, DType::kI32};
    p.high = 0.7;
    p.low = 0.3;
    p.low_quality = LowQuality::kArgmax;
  }

  void be_rotated() {
    p.angle_unit = AngleUnit::kRadians;
    p.anchors.slot_stride = p.target.slot_stride = 5;
  }
  void forget_arrays() { p.anchors.data = p.target.data = p.offsets.data = nullptr; }
  std::size_t workspace_bytes() const { return max_iou_match_workspace_bytes(implementation, p); }
  void run() { max_iou_match(implementation, p, outputs, execution); }
};

// clang-format off
TEST_CASE("a matching that is wrong is refused") {
  const std::string order = "; low must not be more than high, and neither NaN", most = "; there can be 2^31 - 1 of each";
  const std::string no_rows = "anchors.rows and target.rows must not be given for a matching";
  require_shared_refused<MaxIouCall>();
  require_workspace_checked<MaxIouCall>();
  require_refused<InvalidArgument>(Refusals<MaxIouCall>{
      {[](MaxIouCall& c) { c.p.low_quality = static_cast<LowQuality>(4); }, "low_quality is 4; it must be one of none, argmax, overwrite, force"},
      {[](MaxIouCall& c) { c.p.low = 0.8; }, "low is 0.8 and high 0.7" + order},
      {[](MaxIouCall& c) { c.p.high = kNan; }, "low is 0.3 and high nan" + order},
      {[](MaxIouCall& c) { c.p.min_pos_iou = kNan; }, "min_pos_iou is NaN; it must be a number"},
      {[](MaxIouCall& c) { c.p.anchors.format = BoxFormat::kCxcywh; }, "anchors are cxcywh and target xyxy; both must be xyxy"},
      {[](MaxIouCall& c) { c.p.target.format = BoxFormat::kXywh; }, "anchors are xyxy and target xywh; both must be xyxy"},
      {[](MaxIouCall& c) { c.p.anchors.images = -1; }, "anchors has a negative shape: -1 images, 3 slots"},
      {[](MaxIouCall& c) { c.p.target.slots = -1; }, "target has a negative shape: 1 images, -1 slots"},
      {[](MaxIouCall& c) { c.p.target.images = 2; }, "target must be one image of T slots, but has 2 images"},
      {[](MaxIouCall& c) { c.p.anchors.slots = kMost32 + 1; }, "there are 2147483648 anchors and 5 boxes" + most},
      {[](MaxIouCall& c) { c.p.target.slots = kMost32 + 1; }, "there are 3 anchors and 2147483648 boxes" + most},
      {[](MaxIouCall& c) { c.p.anchors.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](MaxIouCall& c) { c.p.target.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](MaxIouCall& c) { c.p.target.rows.data = c.zeros; }, "target.rows.dtype is not set; it must be, where target.rows.data is"},
      {[](MaxIouCall& c) { c.p.anchors.data = nullptr; }, "anchors.data is null"},
      {[](MaxIouCall& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](MaxIouCall& c) { c.p.offsets = {}; }, "offsets.dtype is not set; it must be that of (images + 1) integers"},
      {[](MaxIouCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](MaxIouCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](MaxIouCall& c) { shift(c.outputs.iou); }, "outputs.iou" + kOffFour + "float32"},
      {[](MaxIouCall& c) { c.be_rotated(); c.p.angle_unit = kNoUnit; }, "angle_unit is 2; it must be one of radians, degrees"},
      {[](MaxIouCall& c) { c.be_rotated(); c.p.anchors.slot_stride = 4; }, "anchors" + kFour},
      {[](MaxIouCall& c) { c.be_rotated(); c.p.target.slot_stride = 4; }, "target" + kFour},
  });
  require_refused<Unsupported>(Refusals<MaxIouCall>{
      {[](MaxIouCall& c) { c.p.anchors.dtype = DType::kI32; }, "anchors is int32" + kNotFloating},
      {[](MaxIouCall& c) { c.p.target.dtype = kNoDType; }, "target.dtype is 77" + kNoElements},
      {[](MaxIouCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](MaxIouCall& c) { c.p.index = DType::kU8; }, "index is uint8" + kNotIndices},
      {[](MaxIouCall& c) { c.implementation.max_iou_match = {}; }, "cpu/native does not serve max_iou_match"},
      {[](MaxIouCall& c) { c.be_rotated(); c.implementation.rotated_max_iou_match = {}; }, "cpu/native does not serve rotated_max_iou_match"},
  });
  REQUIRE_THROWS_AS(check_options(MaxIouProblem()), Error);  // without thresholds
}

TEST_CASE("a matching without fault is not refused") {
  require_ok<MaxIouCall>({
      [](MaxIouCall&) {},
      [](MaxIouCall& c) { c.be_rotated(); },
      [](MaxIouCall& c) { c.p.target.dtype = DType::kU8; },
      [](MaxIouCall& c) { c.p.high = c.p.low = 0.5; },
      [](MaxIouCall& c) { c.outputs = {}; },
  });
  require_nothing_needed<MaxIouCall>({
      [](MaxIouCall& c) { c.p.anchors.images = 0; c.p.target.data = c.zeros; },
      [](MaxIouCall& c) { c.p.anchors.slots = 0; c.p.target.data = c.zeros; },
      [](MaxIouCall& c) { c.p.target.slots = 0; c.p.anchors.data = c.zeros; },  // not read, but must be there
  });
}
// clang-format on

// --- Task-aligned

/// Two images of three anchors, two classes and four boxes: right, until a test spoils it.
struct AlignedCall : Prepared {
  TaskAlignedProblem p;
  TaskAlignedOutputs outputs = {output(0), output(1), output(2)};

  AlignedCall() {
    p.images = 2;
    p.anchors = 3;
    p.classes = 2;
    p.scores = {zeros, DType::kF32, 6, 2, 1};
    p.pred = {zeros, DType::kF32, BoxFormat::kXyxy, 2, 3, 12, 4};
    p.points = {zeros, DType::kF32, 0};
    p.target = {zeros, DType::kF32, BoxFormat::kXyxy, 1, 4, 0, 4};
    p.offsets = {zeros, DType::kI32};
    p.labels = {zeros, DType::kI32};
  }

  void pad(std::int64_t images, std::int64_t slots) {
    p.images = p.pred.images = p.target.images = images;
    p.target.slots = slots;
    p.target.image_stride = 8;
    p.offsets = {};
  }
  void be_rotated() {
    p.angle_unit = AngleUnit::kRadians;
    p.pred.slot_stride = p.target.slot_stride = 5;
  }
  void forget_arrays() {
    p.scores.data = p.pred.data = p.points.data = nullptr;
    p.target.data = p.offsets.data = p.labels.data = nullptr;
  }
  std::size_t workspace_bytes() const {
    return task_aligned_match_workspace_bytes(implementation, p);
  }
  void run() { task_aligned_match(implementation, p, outputs, execution); }
};

// clang-format off
TEST_CASE("a task-aligned match that is wrong is refused") {
  const std::string finite = "; it must be finite and not negative, as a float32", most = "; there can be 2^31 - 1 of each";
  const std::string no_rows = "pred.rows and target.rows must not be given for a task-aligned match";
  require_shared_refused<AlignedCall>();
  require_workspace_checked<AlignedCall>();
  require_refused<InvalidArgument>(Refusals<AlignedCall>{
      // --- sizes
      {[](AlignedCall& c) { c.p.images = kUnsetSize; }, "images" + kNotSet + "images"},
      {[](AlignedCall& c) { c.p.anchors = kUnsetSize; }, "anchors" + kNotSet + "anchors of each image"},
      {[](AlignedCall& c) { c.p.classes = kUnsetSize; }, "classes" + kNotSet + "scores of each anchor"},
      {[](AlignedCall& c) { c.p.classes = -1; }, "classes is -1" + kNotNegative},
      {[](AlignedCall& c) { c.p.pred.images = -2; }, "pred has a negative shape: -2 images, 3 slots"},
      {[](AlignedCall& c) { c.p.pred.slots = 2; }, "pred has 2 images of 2 boxes; it must have one for each of 2 images' 3 anchors"},
      {[](AlignedCall& c) { c.p.pred.images = 3; }, "pred has 3 images of 3 boxes; it must have one for each of 2 images' 3 anchors"},
      {[](AlignedCall& c) { c.p.target.slots = kUnsetSize; }, "target.slots" + kNotSet + "boxes of each image"},
      {[](AlignedCall& c) { c.p.target.images = 2; }, "target has 2 images; it must have 1, a list of all boxes, with offsets"},
      {[](AlignedCall& c) { c.p.offsets = {}; }, "target has 1 images; it must have 2, one for each image, without offsets"},
      {[](AlignedCall& c) { c.p.anchors = c.p.pred.slots = kMost32 + 1; }, "there are 2147483648 anchors, and target has 4 slots" + most},
      {[](AlignedCall& c) { c.p.target.slots = kMost32 + 1; }, "there are 3 anchors, and target has 2147483648 slots" + most},
      {[](AlignedCall& c) { c.pad(kMost32, 2); c.p.index = DType::kI32; }, "target has 2147483647 images of 2 slots, which is more than int32 can count"},
      {[](AlignedCall& c) { c.pad(std::int64_t{1} << 54, 4); }, "target has 72057594037927936 boxes, which choose 3 anchors each; that is more than 64 bits can count"},
      // --- options
      {[](AlignedCall& c) { c.p.pred.format = kNoFormat; }, "pred.format is 3; it must be one of xyxy, xywh, cxcywh"},
      {[](AlignedCall& c) { c.p.target.format = BoxFormat::kXywh; }, "target is xywh; it must be xyxy"},
      {[](AlignedCall& c) { c.p.topk = 0; }, "topk is 0; it must be at least 1"},
      {[](AlignedCall& c) { c.p.topk2 = 0; }, "topk2 is 0; it must be at least 1"},
      {[](AlignedCall& c) { c.p.alpha = -1; }, "alpha is -1" + finite},
      {[](AlignedCall& c) { c.p.beta = kNan; }, "beta is nan" + finite},
      {[](AlignedCall& c) { c.p.min_side = 1e300; }, "min_side is 1e+300" + finite},
      {[](AlignedCall& c) { c.p.small_side = -1; }, "small_side is -1" + finite},
      {[](AlignedCall& c) { c.p.min_side = 4; c.p.small_side = 5; }, "small_side is 5; it must be at most min_side, 4"},
      // --- arrays
      {[](AlignedCall& c) { c.p.pred.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](AlignedCall& c) { c.p.target.rows = {c.zeros, DType::kI32}; }, no_rows},
      {[](AlignedCall& c) { c.p.scores.image_stride = kUnsetStride; }, "scores.image_stride is not set; it must lead from each image to the next"},
      {[](AlignedCall& c) { c.p.scores.anchor_stride = kUnsetStride; }, "scores.anchor_stride is not set; it must lead from each anchor to the next"},
      {[](AlignedCall& c) { c.p.points.image_stride = kUnsetStride; }, "points.image_stride is not set; it must lead from each image to the next"},
      {[](AlignedCall& c) { c.p.scores.image_stride = -1; }, "scores has a negative stride: -1 by image, 2 by anchor, 1 by class"},
      {[](AlignedCall& c) { c.p.scores.anchor_stride = -1; }, "scores has a negative stride: 6 by image, -1 by anchor, 1 by class"},
      {[](AlignedCall& c) { c.p.scores.class_stride = -1; }, "scores has a negative stride: 6 by image, 2 by anchor, -1 by class"},
      {[](AlignedCall& c) { c.p.points.image_stride = -1; }, "points has a negative stride: -1 by image, 2 by anchor, 1 by coordinate"},
      {[](AlignedCall& c) { c.p.points.anchor_stride = -2; }, "points has a negative stride: 0 by image, -2 by anchor, 1 by coordinate"},
      {[](AlignedCall& c) { c.p.points.coordinate_stride = -1; }, "points has a negative stride: 0 by image, 2 by anchor, -1 by coordinate"},
      {[](AlignedCall& c) { c.p.scores.data = nullptr; }, "scores.data is null"},
      {[](AlignedCall& c) { c.p.pred.data = nullptr; }, "pred.data is null"},
      {[](AlignedCall& c) { c.p.points.data = nullptr; }, "points.data is null"},
      {[](AlignedCall& c) { c.p.target.data = nullptr; }, "target.data is null"},
      {[](AlignedCall& c) { c.p.labels = {}; }, "labels.dtype is not set; it must be that of an integer for each row of target"},
      {[](AlignedCall& c) { c.p.labels.data = nullptr; }, "labels.data is null; where labels.dtype is set it must not be"},
      {[](AlignedCall& c) { c.p.offsets.data = nullptr; }, "offsets.data is null; where offsets.dtype is set it must not be"},
      {[](AlignedCall& c) { c.pad(2, 2); c.p.offsets.data = c.zeros; }, "offsets.dtype is not set; it must be, where offsets.data is"},
      {[](AlignedCall& c) { c.outputs.target_index = nullptr; }, "outputs.target_index is null"},
      {[](AlignedCall& c) { c.outputs.score = nullptr; }, "outputs.score is null"},
      {[](AlignedCall& c) { c.outputs.overlap = nullptr; }, "outputs.overlap is null"},
      {[](AlignedCall& c) { shift(c.p.scores.data); }, "scores" + kOffFour + "float32"},
      {[](AlignedCall& c) { shift(c.p.points.data); }, "points" + kOffFour + "float32"},
      {[](AlignedCall& c) { shift(c.outputs.target_index); }, "outputs.target_index" + kOffEight + "int64"},
      {[](AlignedCall& c) { shift(c.outputs.score); }, "outputs.score" + kOffFour + "float32"},
      {[](AlignedCall& c) { shift(c.outputs.overlap); }, "outputs.overlap" + kOffFour + "float32"},
      {[](AlignedCall& c) { c.p.angle_unit = kNoUnit; }, "angle_unit is 2; it must be one of radians, degrees"},
      {[](AlignedCall& c) { c.be_rotated(); c.p.pred.slot_stride = 4; }, "pred" + kFour},
      {[](AlignedCall& c) { c.be_rotated(); c.p.target.slot_stride = 4; }, "target" + kFour},
  });
  require_refused<Unsupported>(Refusals<AlignedCall>{
      {[](AlignedCall& c) { c.p.scores.dtype = DType::kI32; }, "scores is int32" + kNotFloating},
      {[](AlignedCall& c) { c.p.pred.dtype = DType::kU8; }, "pred is uint8" + kNotFloating},
      {[](AlignedCall& c) { c.p.points.dtype = DType::kI64; }, "points is int64" + kNotFloating},
      {[](AlignedCall& c) { c.p.offsets.dtype = DType::kF32; }, "offsets is float32" + kNotIndices},
      {[](AlignedCall& c) { c.p.labels.dtype = DType::kU8; }, "labels is uint8" + kNotIndices},
      {[](AlignedCall& c) { c.p.index = DType::kI16; }, "index is int16" + kNotIndices},
      {[](AlignedCall& c) { c.implementation.task_aligned_match = {}; }, "cpu/native does not serve task_aligned_match"},
      {[](AlignedCall& c) { c.be_rotated(); c.implementation.rotated_task_aligned_match = {}; }, "cpu/native does not serve rotated_task_aligned_match"},
  });
}

TEST_CASE("a task-aligned match without fault is not refused") {
  require_ok<AlignedCall>({
      [](AlignedCall&) {},
      [](AlignedCall& c) { c.be_rotated(); },
      [](AlignedCall& c) { c.pad(2, 2); },
      [](AlignedCall& c) { c.p.small_side = 5; },  // where none is enlarged
      [](AlignedCall& c) { c.p.index = DType::kI32; },
      [](AlignedCall& c) { c.p.index = DType::kI32; c.p.target.slots = 0; },
  });
  // Where no anchor can have a box nothing is read, and of no anchors nothing is written.
  require_nothing_needed<AlignedCall>({
      [](AlignedCall& c) { c.p.target.slots = 0; c.p.pred.data = c.zeros; },
      [](AlignedCall& c) { c.p.classes = 0; c.p.pred.data = c.p.target.data = c.zeros; },
      [](AlignedCall& c) { c.p.anchors = c.p.pred.slots = 0; c.p.target.data = c.zeros; c.outputs = {}; },
      [](AlignedCall& c) { c.p.images = c.p.pred.images = 0; c.p.target.data = c.zeros; c.outputs = {}; },
  });
}
// clang-format on

/// By the pointer of its offsets.
std::size_t one_if_padded(const TaskAlignedProblem& p) { return p.offsets.data == nullptr; }

TEST_CASE("an implementation knows padding before there are arrays") {
  AlignedCall call;
  call.forget_arrays();
  call.implementation.task_aligned_match.workspace_bytes = one_if_padded;
  REQUIRE(call.workspace_bytes() == 0);
  call.pad(2, 2);
  REQUIRE(call.workspace_bytes() == 1);
}

}  // namespace
}  // namespace boxloss
