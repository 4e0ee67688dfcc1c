// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "placed_boxes.hpp"

#include <limits>

namespace boxloss::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Strides {
  std::int64_t image, slot, start, coordinate = 1;
};

Strides strides_of(Layout layout, std::int64_t images, std::int64_t slots) {
  switch (layout) {
    case Layout::kPacked: return {4 * slots, 4, 0};
    case Layout::kWide: return {7 * slots, 7, 0};
    case Layout::kGaps: return {4 * slots + 12, 4, 0};
    case Layout::kOddGaps: return {4 * slots + 5, 4, 0};
    case Layout::kShifted: return {4 * slots, 4, 1};
    case Layout::kOneImage: return {0, 4, 0};
    case Layout::kOneBox: return {0, 0, 0};
    case Layout::kTransposed: return {4, 4 * images, 0};
    case Layout::kPlanes: return {4 * slots, 1, 0, slots};
    case Layout::kCommonPlanes: return {slots, 1, 0, images * slots};
    case Layout::kApart: return {16 * slots + 3, 4, 0, 4 * slots};
    case Layout::kOneCoordinate: return {slots, 1, 0, 0};
  }
  return {};
}

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

}  // namespace

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
                    Array& values) {
  const Strides strides = strides_of(operand.layout, images, slots);
  const bool is_empty = images * slots == 0;
  view = {nullptr, operand.dtype, operand.format, images,
          slots,   strides.image, strides.slot,   strides.coordinate};
  const std::int64_t last = offset_of(view, images - 1, slots - 1) + 3 * strides.coordinate;
  const std::int64_t count = is_empty ? 0 : strides.start + last + 1;
  values = Array(operand.dtype, count);
  for (std::int64_t i = 0; i < count; ++i) values.set(i, kNan);
  if (!is_empty) {
    view.data = static_cast<const std::byte*>(values.data()) +
                static_cast<std::size_t>(strides.start) * size_of(operand.dtype);
  }
  return {values, view, strides.start};
}

void fill(const PlacedBoxes& boxes, Values values, double origin, Random& random) {
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    boxes.set(b, j, in_format(random_corners(values, origin, random), boxes.view.format));
  });
}

void spoil(const PlacedBoxes& boxes, const std::vector<bool>& is_read) {
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    if (!is_read[static_cast<std::size_t>(offset_of(boxes.view, b, j))]) {
      boxes.set(b, j, {kNan, kNan, kNan, kNan});
    }
  });
}

}  // namespace boxloss::conformance
