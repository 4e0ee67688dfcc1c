// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>
#include <cstddef>
#include <optional>

/// Which ground-truth box each anchor of a dense detector learns: the task-aligned assignment of
/// TOOD (Feng et al., ICCV 2021) as Ultralytics has it, without a matrix of anchors and boxes.
///
/// An anchor is a candidate of a ground-truth box that its point lies in. With the overlap,
/// max(CIoU, 0) of prediction and ground-truth box with an eps of 1e-7, added, its metric is
///     metric = score of the box's class ^ alpha * overlap ^ beta.
/// Each box chooses the `topk` candidates of the highest metrics, of equal ones the first. An
/// anchor that several boxes chose goes to the one of highest overlap among all that it is a
/// candidate of, of equal ones the first. In the end
///     score = metric * highest overlap of the box's anchors / (their highest metric + 1e-9).
/// Only a metric above 0 counts: with another an anchor is nobody's. What is NaN is no candidate.
///
/// Of rotated boxes the overlap is 1 - the "probiou" loss, and a point lies in a box if it lies on
/// the inner side of its four edges, or on them.
namespace boxloss {

struct Implementation;

/// Non-owned probabilities of shape (images, anchors, classes). Strides count elements and may be
/// 0, not negative.
struct ClassScores {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t image_stride = kUnsetStride, anchor_stride = kUnsetStride, class_stride = 1;
};

/// Non-owned points (x, y) of shape (images, anchors, 2), likewise. An image stride of 0 is for
/// points that all images share.
struct PointView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t image_stride = kUnsetStride, anchor_stride = 2, coordinate_stride = 1;
};

/// All inputs. All pointers are on `device`. The metric is computed in float64 if scores, pred,
/// points or target are, else in float32, and decisions are made on float32.
struct TaskAlignedProblem {
  Device device = Device::kCpu;
  std::int64_t images = kUnsetSize, anchors = kUnsetSize, classes = kUnsetSize;  ///< must be set
  ClassScores scores = {};                                                       ///< floating
  BoxView pred = {};      ///< (images, anchors, 4), floating
  PointView points = {};  ///< floating
  /// Corner boxes of any dtype: (1, T, 4) with offsets, or (images, N, 4), where a box whose
  /// numbers, an angle in radians, do not add up to more than 0 is padding. Its row is its place in
  /// this list.
  BoxView target = {};
  /// If it is given, pred and target are rotated boxes, (..., 5).
  std::optional<AngleUnit> angle_unit = {};
  /// (images + 1), int32 or int64, or not given: image b owns rows offsets[b] to offsets[b + 1]. If
  /// one decreases or lies outside [0, T], no anchor has a box.
  ArrayView offsets = {};
  /// One for each row of target, int32 or int64. A box with a label outside [0, classes) is
  /// padding.
  ArrayView labels = {};

  std::int64_t topk = 10;  ///< at least 1
  /// If it is given, and not topk, a box keeps the anchors of the `topk2` highest metrics.
  std::optional<std::int64_t> topk2 = {};
  double alpha = 0.5, beta = 6.0;  ///< finite, >= 0
  /// If it is above 0, a point lies in a box whose sides below `small_side`, or below it if that is
  /// not given, were enlarged to it.
  double min_side = 0;
  std::optional<double> small_side = {};  ///< finite, >= 0, at most a min_side above 0
  /// Of target_index: kI64 or kI32.
  DType index = DType::kI64;
};

/// Each is (images, anchors), and written whole.
struct TaskAlignedOutputs {
  void* target_index = nullptr;  ///< the row of the anchor's box, or -1
  float* score = nullptr;        ///< 0 where there is none
  float* overlap = nullptr;      ///< 0 where there is none
};

/// float64 or float32.
BOXLOSS_API DType compute_dtype(const TaskAlignedProblem& problem);

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const TaskAlignedProblem& problem);

/// Bytes of workspace that a run needs. Throws as a run does, but looks at no pointers.
BOXLOSS_API std::size_t task_aligned_match_workspace_bytes(const Implementation& implementation,
                                                           const TaskAlignedProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void task_aligned_match(const Implementation& implementation,
                                    const TaskAlignedProblem& problem,
                                    const TaskAlignedOutputs& outputs, const Execution& execution);

}  // namespace boxloss
