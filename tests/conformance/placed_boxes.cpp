// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "placed_boxes.hpp"

#include <cmath>

namespace boxloss::conformance {
namespace {

/// `origin` is where coordinates begin.
Box<double> random_corners(Values values, double origin, Random& random) {
  if (values == Values::kPlain) {
    const double x = origin + random.uniform(0, 100), y = origin + random.uniform(0, 100);
    return {x, y, x + random.uniform(20, 120), y + random.uniform(20, 120)};
  }
  const auto coordinate = [&] { return static_cast<double>(random.below(5)); };
  Box<double> box = {coordinate(), coordinate(), coordinate(), coordinate()};
  if (random.chance(0.8)) {
    if (box.x2 < box.x1) std::swap(box.x1, box.x2);
    if (box.y2 < box.y1) std::swap(box.y1, box.y2);
  }
  if (values == Values::kSpecial && random.chance(0.2)) {
    double* const coordinates[] = {&box.x1, &box.y1, &box.x2, &box.y2};
    *random.pick(coordinates) = random.pick(std::vector<double>{kNan, kInfinity, -kInfinity});
  }
  return box;
}

/// With kinks, of small numbers, so that equal boxes abound, also turned by quarters. As few are
/// turned, without an area or inverted, and as few special ones have NaN or infinity, as leave most
/// results determined: what is unsure of one number reaches all ten derivatives and, where pairs
/// share rows, all of these. So there none is turned, since equal boxes have, but for rounding, no
/// derivative, and none is infinite.
RotatedBox<double> random_rotated(Values values, double origin, AngleUnit unit, bool is_shared,
                                  Random& random) {
  const bool has_sign = origin < 0;
  const auto signed_number = [&](double x) { return has_sign && random.chance(0.5) ? -x : x; };
  const auto angle = [&](double degrees) {
    return unit == AngleUnit::kDegrees ? degrees : degrees * 3.14159265 / 180;
  };
  if (values == Values::kPlain) {
    const Box<double> b = in_format(random_corners(values, origin, random), BoxFormat::kCxcywh);
    return {b.x1, b.y1, b.x2, b.y2, angle(signed_number(random.uniform(0, 180)))};
  }
  const auto number = [&](int least) { return static_cast<double>(least + random.below(3)); };
  RotatedBox<double> box = {number(0), number(0), number(1), number(1), 0};
  const double degrees = signed_number(45 * static_cast<double>(random.below(5)));
  if (!is_shared && random.chance(0.1)) box.angle = angle(degrees);
  if (random.chance(0.03)) box.w = 0;
  if (random.chance(0.03)) box.h = has_sign && random.chance(0.5) ? -box.h : 0;
  if (values == Values::kSpecial && random.chance(0.01)) {
    double* const numbers[] = {&box.cx, &box.cy, &box.w, &box.h, &box.angle};
    const bool is_nan = is_shared || random.chance(0.5);
    *random.pick(numbers) = is_nan ? kNan : signed_number(kInfinity);
  }
  return box;
}

}  // namespace

Strides strides_of(Layout layout, std::int64_t images, std::int64_t slots, std::int64_t values) {
  switch (layout) {
    case Layout::kPacked: return {slots * values, values, 1};
    case Layout::kWide: return {slots * (values + 3), values + 3, 1};
    case Layout::kGaps: return {(slots + 3) * values, values, 1};
    case Layout::kOddGaps: return {slots * values + 5, values, 1};
    case Layout::kShifted: return {slots * values, values, 1, 1};
    case Layout::kOneImage: return {0, values, 1};
    case Layout::kOneBox: return {0, 0, 1};
    case Layout::kTransposed: return {values, images * values, 1};
    case Layout::kPlanes: return {slots * values, 1, slots};
    case Layout::kCommonPlanes: return {slots, 1, images * slots};
    case Layout::kApart: return {slots * (2 * values + 1) + 7, 2 * values + 1, 2};
    case Layout::kOneCoordinate: return {slots, 1, 0};
  }
  return {};
}

const void* lay_out(const Strides& strides, std::int64_t images, std::int64_t slots,
                    std::int64_t values, DType dtype, Array& array) {
  array = Array(dtype, 0);
  if (images * slots * values == 0) return nullptr;
  array = Array(dtype, strides.start + (images - 1) * strides.image + (slots - 1) * strides.slot +
                           (values - 1) * strides.value + 1);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, kNan);
  return static_cast<const std::byte*>(array.data()) +
         static_cast<std::size_t>(strides.start) * size_of(dtype);
}

Box<double> in_format(const Box<double>& box, BoxFormat format) {
  const double w = box.x2 - box.x1, h = box.y2 - box.y1;
  switch (format) {
    case BoxFormat::kXyxy: return box;
    case BoxFormat::kXywh: return {box.x1, box.y1, w, h};
    case BoxFormat::kCxcywh: return {box.x1 + w / 2, box.y1 + h / 2, w, h};
  }
  return box;
}

std::int64_t offset_of(const BoxView& view, std::int64_t b, std::int64_t j) {
  return b * view.image_stride + j * view.slot_stride;
}

PlacedBoxes lay_out(const Operand& operand, std::int64_t images, std::int64_t slots, BoxView& view,
                    Array& values, int numbers) {
  Strides strides = strides_of(operand.layout, images, slots, numbers);
  // Of boxes, planes that are apart, as a convolution has them.
  if (operand.layout == Layout::kApart) strides = {4 * numbers * slots + 3, 4, 4 * slots};
  view = {lay_out(strides, images, slots, numbers, operand.dtype, values),
          operand.dtype,
          operand.format,
          images,
          slots,
          strides.image,
          strides.slot,
          strides.value};
  return {values, view, strides.start, numbers};
}

void fill(const PlacedBoxes& boxes, Values values, double origin, Random& random) {
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    boxes.set(b, j, in_format(random_corners(values, origin, random), boxes.view.format));
  });
}

void fill_rotated(const PlacedBoxes& boxes, Values values, double origin, AngleUnit unit,
                  bool is_shared, Random& random) {
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    const RotatedBox<double> box = random_rotated(values, origin, unit, is_shared, random);
    boxes.set_numbers(b, j, {box.cx, box.cy, box.w, box.h, box.angle});
  });
}

}  // namespace boxloss::conformance
