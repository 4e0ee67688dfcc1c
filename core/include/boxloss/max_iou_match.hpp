// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>
#include <cstddef>
#include <limits>
#include <optional>

/// Max-IoU matching: each anchor gets the box of its image that it overlaps most, if it overlaps
/// that enough. No implementation but the reference writes the matrix of IoUs. Matches are those of
/// torchvision's Matcher and SSDMatcher, and of mmdetection's MaxIoUAssigner, on IoUs of torch's
/// order of operations.
///
/// The boxes of all images are one list of T rows; image b owns rows offsets[b] to offsets[b + 1].
/// Boxes are corners; or rotated boxes, whose IoU is the one of rotated_box_loss, with the same
/// bits on every device. Of a pair whose bounds along the axes do not overlap, and of a box without
/// area, it is 0. The compute dtype is float64 when either box array is float64 and float32
/// otherwise.
namespace boxloss {

struct Implementation;

/// What becomes of anchors whose IoU is a box's best, however low it is. A box of which all IoUs
/// are 0 has the best IoU 0, with every anchor.
enum class LowQuality : std::uint8_t {
  kNone,    ///< nothing
  kArgmax,  ///< each gets the box that it overlaps most, which may be another one: torchvision's
  /// Each gets the box whose best it is; of several the last: mmdetection's.
  kOverwrite,
  /// Each box gets the first of its best anchors; of several boxes that get the same, the last
  /// does: SSD's.
  kForce,
};

/// "none", "argmax", "overwrite" or "force".
BOXLOSS_API const char* name_of(LowQuality low_quality);

/// All inputs. All pointers are on `device`.
struct MaxIouProblem {
  static constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

  Device device = Device::kCpu;
  BoxView anchors = {};  ///< (images, A, 4), any floating dtype; shared where image_stride is 0
  BoxView target = {};   ///< (1, T, 4), any dtype
  /// If it is given, anchors and target are rotated boxes, (..., 5).
  std::optional<AngleUnit> angle_unit = {};
  /// (images + 1), int32 or int64. If one decreases or lies outside [0, T], no image has boxes.
  ArrayView offsets = {};
  /// An anchor whose best IoU is less than `low` has no box, less than `high` is to be ignored.
  double high = kUnset, low = kUnset;  ///< must be set
  LowQuality low_quality = LowQuality::kNone;
  /// Of low_quality: a box whose best IoU is less gets none by it.
  double min_pos_iou = 0;
  /// Of the output: kI64 or kI32.
  DType index = DType::kI64;
};

/// float64 when either box array is float64, else float32.
BOXLOSS_API DType compute_dtype(const MaxIouProblem& problem);

constexpr std::int64_t kNoBox = -1, kIgnored = -2;

/// Each is written whole, or null if it is not wanted.
struct MaxIouOutputs {
  /// (images, A): of each anchor its row of target, kNoBox or kIgnored.
  void* target_index = nullptr;
  /// (images, A), in the compute dtype: its best IoU, 0 where its image has no boxes.
  void* iou = nullptr;
};

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const MaxIouProblem& problem);

/// Bytes of workspace that a run needs. Throws as a run does, but looks at no pointers.
BOXLOSS_API std::size_t max_iou_match_workspace_bytes(const Implementation& implementation,
                                                      const MaxIouProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void max_iou_match(const Implementation& implementation, const MaxIouProblem& problem,
                               const MaxIouOutputs& outputs, const Execution& execution);

}  // namespace boxloss
