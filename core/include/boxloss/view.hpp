// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <boxloss/export.hpp>
#include <cstdint>
#include <limits>

namespace boxloss {

/// The meaning of a box's four numbers.
enum class BoxFormat : std::uint8_t {
  kXyxy,    ///< two corners: x1, y1, x2, y2
  kXywh,    ///< first corner and size: x1, y1, width, height
  kCxcywh,  ///< centre and size: cx, cy, width, height
};

/// "xyxy", "xywh" or "cxcywh".
BOXLOSS_API const char* name_of(BoxFormat format);

/// The unit and the direction of a rotated box's angle, on the screen (x right, y down).
enum class AngleUnit : std::uint8_t {
  kRadians,  ///< clockwise
  kDegrees,  ///< counterclockwise, as detectron2 and torchvision have them
};

/// "radians" or "degrees".
BOXLOSS_API const char* name_of(AngleUnit unit);

/// A size that was not given: the default of those by which a problem would be empty. A forgotten
/// one is an error.
constexpr std::int64_t kUnsetSize = std::numeric_limits<std::int64_t>::min();

/// A stride that was not given: the default of those of outer dimensions. It is an error where
/// there is more than one to lead to. 0 is for one that all share.
constexpr std::int64_t kUnsetStride = kUnsetSize;

/// Non-owned contiguous values. The dtype says whether an optional array is given, since a
/// workspace may be asked for before there are pointers; a run needs both, or neither.
struct ArrayView {
  const void* data = nullptr;
  DType dtype = DType::kNone;
};

/// Non-owned boxes of shape (images, slots, 4), of rotated boxes (images, slots, 5). Value c of box
/// (b, j) is element b * image_stride + j * slot_stride + c * coordinate_stride. Strides count
/// elements and may be 0 (expanded), not negative.
struct BoxView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  BoxFormat format = BoxFormat::kXyxy;  ///< not of rotated boxes, which have one
  std::int64_t images = 1;
  std::int64_t slots = kUnsetSize;  ///< must be set
  std::int64_t image_stride = kUnsetStride;
  std::int64_t slot_stride = 4;
  std::int64_t coordinate_stride = 1;
  /// Optional, with Pairing::Kind::kIndexed only: which box each pair reads, int32 or int64. The
  /// boxes are then one list, whose row r is box (r / slots, r % slots).
  ArrayView rows = {};
};

}  // namespace boxloss
