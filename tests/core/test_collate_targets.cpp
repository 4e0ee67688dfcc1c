// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "conformance/array.hpp"
#include "conformance/collated_rows.hpp"
#include "refusals.hpp"

/// Ground truth as one list, with one fault or none, by hand.
namespace boxloss {
namespace {

using conformance::Array;

constexpr DType kAll[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                          DType::kU8,  DType::kI16, DType::kI32, DType::kI64};

Array array_of(DType dtype, const std::vector<double>& values) {
  Array array(dtype, static_cast<std::int64_t>(values.size()));
  std::int64_t i = 0;
  for (const double value : values) array.set(i++, value);
  return array;
}

Array some_boxes(DType dtype) { return array_of(dtype, {1, 2, 3, 4, 5, 5, 5, 5, 0, 0, 9, 8}); }
Array some_labels(DType dtype) { return array_of(dtype, {0, 4, 2}); }

/// Three rows of two images in one list: right, until a test spoils them.
struct Call {
  Array boxes = some_boxes(DType::kF32), labels = some_labels(DType::kI64);
  Array image = array_of(DType::kF32, {0, 0, 2});
  TargetList list, lists[2];
  CollateProblem p;
  std::vector<double> all_boxes = std::vector<double>(12, 7);  // of any dtype
  std::vector<std::int64_t> all_labels = {7, 7, 7}, offsets = std::vector<std::int64_t>(5, 7);
  float factor = 7, number = 7, answer = 7;
  CollateOutputs outputs = {all_boxes.data(), all_labels.data(), offsets.data(),
                            &factor,          &number,           &answer};
  Implementation implementation = boxloss::implementation("cpu/native");

  Call() {
    list.rows = 3;
    p.lists = &list;
    p.list_count = 1;
    p.images = 4;
    p.classes = 5;
    set_views();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void set_views() {
    list.boxes = boxes.data();
    list.labels = labels.data();
    p.boxes_dtype = boxes.dtype();
    p.labels_dtype = labels.dtype();
    p.image = {image.data(), image.dtype()};
  }
  void set_one_image() {
    p.image = {};
    p.images = 1;
  }
  void run() { collate_targets(implementation, p, outputs, {}); }
  bool is_untouched() const {
    return factor == 7 && number == 7 && answer == 7 && all_labels[0] == 7 && offsets[0] == 7 &&
           all_boxes[0] == 7;
  }
};

using Rows = Refusals<Call>;
using Spoil = std::function<void(Call&)>;

bool finds_fault(const Spoil& spoil) {
  Call call;
  spoil(call);
  call.run();
  const bool is_found = std::isnan(call.factor);
  REQUIRE(std::isnan(call.answer) == is_found);
  REQUIRE(std::isnan(call.number) == is_found);
  if (!is_found) REQUIRE((call.factor == 1 && call.answer == 1));
  return is_found;
}

/// With boxes of a dtype, one of whose numbers is another.
Spoil boxes_of(DType dtype, bool has_sizes, std::int64_t at, double value) {
  return [=](Call& c) {
    c.boxes = some_boxes(dtype);
    c.boxes.set(at, value);
    c.p.has_sizes = has_sizes;
    c.set_views();
  };
}

Spoil label(std::int64_t at, double value, std::int64_t classes, DType dtype = DType::kI64) {
  return [=](Call& c) {
    c.labels = some_labels(dtype);
    c.labels.set(at, value);
    c.p.classes = classes;
    c.set_views();
  };
}

TEST_CASE("ground truth without a fault gets 1") {
  REQUIRE_FALSE(finds_fault([](Call&) {}));
  REQUIRE_FALSE(finds_fault([](Call& c) { c.set_one_image(); }));
  Call call;
  call.outputs.answer = nullptr;
  call.run();
  REQUIRE(call.factor == 1);
}

TEST_CASE("a label must be one of the classes") {
  for (const DType dtype : {DType::kI64, DType::kI32}) {
    for (const std::int64_t row : {0, 1, 2}) {
      REQUIRE(finds_fault(label(row, -1, 5, dtype)));
      REQUIRE(finds_fault(label(row, 5, 5, dtype)));
      REQUIRE_FALSE(finds_fault(label(row, 4, 5, dtype)));
      REQUIRE(finds_fault(label(row, -1, 0, dtype)));
      REQUIRE_FALSE(finds_fault(label(row, 1e9, 0, dtype)));
    }
  }
  REQUIRE(finds_fault(label(2, 0x1p40, 5)));
  REQUIRE(finds_fault(label(2, 4, 4)));
}

TEST_CASE("a box must be finite") {
  for (const DType dtype : kAll) {
    CAPTURE(name_of(dtype));
    for (const bool has_sizes : {false, true}) {
      REQUIRE_FALSE(finds_fault(boxes_of(dtype, has_sizes, 0, 1)));
      if (!is_floating(dtype)) continue;
      for (std::int64_t at = 0; at < 12; ++at) {
        REQUIRE(finds_fault(boxes_of(dtype, has_sizes, at, kNan)));
        REQUIRE(finds_fault(boxes_of(dtype, has_sizes, at, kInfinity)));
        REQUIRE(finds_fault(boxes_of(dtype, has_sizes, at, -kInfinity)));
      }
    }
  }
  REQUIRE_FALSE(finds_fault(boxes_of(DType::kF16, false, 2, 65504)));
  REQUIRE_FALSE(finds_fault(boxes_of(DType::kF32, false, 2, std::numeric_limits<float>::max())));
  REQUIRE_FALSE(finds_fault(boxes_of(DType::kF64, false, 2, std::numeric_limits<double>::max())));
}

TEST_CASE("a box' second corner must not lie before the first") {
  for (const DType dtype : kAll) {
    CAPTURE(name_of(dtype));
    REQUIRE_FALSE(finds_fault(boxes_of(dtype, false, 0, 3)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 0, 4)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 1, 5)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 6, 4)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 7, 4)));
    if (dtype == DType::kU8) continue;
    REQUIRE_FALSE(finds_fault(boxes_of(dtype, false, 8, -3)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 10, -1)));
    REQUIRE(finds_fault(boxes_of(dtype, false, 11, -1)));
  }
}

TEST_CASE("a size must not be negative") {
  for (const DType dtype : kAll) {
    CAPTURE(name_of(dtype));
    REQUIRE_FALSE(finds_fault(boxes_of(dtype, true, 0, 100)));  // a centre
    REQUIRE_FALSE(finds_fault(boxes_of(dtype, true, 2, 0)));
    if (dtype == DType::kU8) continue;
    REQUIRE_FALSE(finds_fault(boxes_of(dtype, true, 1, -100)));
    REQUIRE(finds_fault(boxes_of(dtype, true, 2, -1)));
    REQUIRE(finds_fault(boxes_of(dtype, true, 11, -1)));
  }
}

TEST_CASE("differences that no number of the dtype can be do not hide a size's sign") {
  REQUIRE(finds_fault([](Call& c) {  // one of the smallest numbers apart
    boxes_of(DType::kF32, false, 0, 0x1p-140)(c);
    c.boxes.set(2, 0x1p-141);
  }));
  REQUIRE(finds_fault([](Call& c) {  // as doubles these are the same
    boxes_of(DType::kI64, false, 0, 0x1p53)(c);
    c.boxes.set(2, 0x1p53);
    static_cast<std::int64_t*>(c.boxes.data())[0] += 1;
  }));
  constexpr double kLeast = -0x1p63;
  REQUIRE(finds_fault([](Call& c) {
    boxes_of(DType::kI64, false, 2, kLeast)(c);
    c.boxes.set(0, 0x1p62);
  }));
  REQUIRE_FALSE(finds_fault(boxes_of(DType::kI64, false, 0, kLeast)));
}

TEST_CASE("images must not decrease, where they are given") {
  for (const DType dtype : kAll) {
    CAPTURE(name_of(dtype));
    const auto images = [&](const std::vector<double>& values) {
      return [=](Call& c) {
        c.image = array_of(dtype, values);
        c.set_views();
      };
    };
    REQUIRE_FALSE(finds_fault(images({0, 1, 1})));
    REQUIRE_FALSE(finds_fault(images({3, 3, 3})));
    REQUIRE(finds_fault(images({1, 0, 1})));
    REQUIRE(finds_fault(images({0, 2, 1})));
    REQUIRE(finds_fault(images({100, 0, 0})));
    REQUIRE(finds_fault(images({0, 1, 4})));
  }
}

TEST_CASE("what lies behind the last row is not read") {
  for (const std::int64_t rows : {0, 2}) {
    REQUIRE_FALSE(finds_fault([=](Call& c) {
      c.list.rows = rows;
      c.boxes.set(4 * rows, kNan);
      c.labels.set(rows, -1);
      c.image.set(rows, -1);
    }));
  }
  REQUIRE_FALSE(finds_fault([](Call& c) {
    c.list = {};
    c.outputs.boxes = nullptr;
    c.outputs.labels = nullptr;
  }));
}

TEST_CASE("rows keep their values, and labels are clamped") {
  for (const DType dtype : kAll) {
    Call call;
    call.boxes = some_boxes(dtype);
    call.labels = array_of(DType::kI32, {-3, 4, 9});
    call.set_views();
    call.run();
    REQUIRE(std::memcmp(call.all_boxes.data(), call.boxes.data(), 12 * size_of(dtype)) == 0);
    REQUIRE(call.all_labels == std::vector<std::int64_t>{0, 4, 4});
    REQUIRE(call.offsets == std::vector<std::int64_t>{0, 2, 2, 3, 3});
  }
  Call unknown;
  unknown.labels = array_of(DType::kI64, {-3, 4, 9});
  unknown.p.classes = 0;
  unknown.set_views();
  unknown.run();
  REQUIRE(unknown.all_labels == std::vector<std::int64_t>{0, 4, 9});
  REQUIRE(unknown.offsets.back() == 3);
}

TEST_CASE("offsets stay within the rows where images are in no order") {
  for (const std::vector<double>& image : {std::vector<double>{9, kNan, -1}, {kNan, kNan, kNan}}) {
    Call call;
    call.image = array_of(DType::kF32, image);
    call.set_views();
    call.run();
    for (const std::int64_t offset : call.offsets) REQUIRE((offset >= 0 && offset <= 3));
  }
}

// clang-format off
TEST_CASE("each implementation of the host finds a fault in any row") {
  for (const Implementation* each : implementations()) {
    if (each->device != Device::kCpu) continue;
    try {
      conformance::check_collated_rows(*each);
    } catch (const NoDevice& error) {
      SKIP(error.what());
    }
  }
}

TEST_CASE("a call that cannot be is refused in words") {
  require_refused<InvalidArgument>(Rows{
      {[](Call& c) { c.p.device = Device::kCuda; }, "the problem is on cuda, but cpu/native was asked to run it"},
      {[](Call& c) { c.p.list_count = -1; }, "list_count is -1; it must not be negative"},
      {[](Call& c) { c.p.lists = nullptr; }, "lists is null; it must point to (list_count) lists"},
      {[](Call& c) { c.list.rows = -1; }, "lists[0].rows is -1; it must not be negative, nor all rows more than 64 bits can count the bytes of"},
      {[](Call& c) { c.list.rows = std::int64_t{1} << 60; }, "lists[0].rows is 1152921504606846976; it must not be negative, nor all rows more than 64 bits can count the bytes of"},
      {[](Call& c) { c.lists[0] = c.lists[1] = c.list; c.lists[1].rows = kMost64 / 64 - 2; c.p.lists = c.lists; c.p.list_count = 2; }, "lists[1].rows is 144115188075855869; it must not be negative, nor all rows more than 64 bits can count the bytes of"},
      {[](Call& c) { c.p.classes = -1; }, "classes is -1; it must not be negative, and 0 if it is unknown"},
      {[](Call& c) { c.p.images = -1; }, "images is -1; it must not be negative, nor more than 64 bits can count the bytes of"},
      {[](Call& c) { c.p.image = {}; }, "images is 4, list_count is 1; without `image` each list is an image"},
      {[](Call& c) { c.list.boxes = nullptr; }, "lists[0] has a null pointer and 3 rows"},
      {[](Call& c) { c.list.labels = nullptr; }, "lists[0] has a null pointer and 3 rows"},
      {[](Call& c) { c.p.image.data = nullptr; }, "image.data is null; where image.dtype is set it must not be"},
      {[](Call& c) { c.outputs.boxes = nullptr; }, "outputs.boxes is null"},
      {[](Call& c) { c.outputs.labels = nullptr; }, "outputs.labels is null"},
      {[](Call& c) { c.outputs.offsets = nullptr; }, "outputs.offsets is null"},
      {[](Call& c) { c.outputs.factor = nullptr; }, "outputs.factor is null"},
      {[](Call& c) { c.outputs.number = nullptr; }, "outputs.number is null"},
      {[](Call& c) { shift(c.list.boxes); }, "boxes" + kOffFour + "float32"},
      {[](Call& c) { shift(c.list.labels); }, "labels" + kOffEight + "int64"},
      {[](Call& c) { shift(c.outputs.factor); }, "outputs.factor" + kOffFour + "float32"},
      {[](Call& c) { shift(c.outputs.answer); }, "outputs.answer" + kOffFour + "float32"},
  });
  require_refused<Unsupported>(Rows{
      {[](Call& c) { c.p.labels_dtype = DType::kF32; }, "labels is float32" + kNotIndices},
      {[](Call& c) { c.p.boxes_dtype = DType::kNone; }, "boxes_dtype is none" + kNoElements},
      {[](Call& c) { c.p.image.dtype = kNoDType; }, "image.dtype is 77" + kNoElements},
      {[](Call& c) { c.implementation.collate_targets = {}; }, "cpu/native does not serve collate_targets"},
  });
  require_ok<Call>({[](Call& c) { c.list.rows = 0; c.p.image.data = nullptr; }});
}
// clang-format on

}  // namespace
}  // namespace boxloss
