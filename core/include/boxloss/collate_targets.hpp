// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>

/// A batch's ground truth as one list, image after image, and whether it has faults: in one launch
/// on a GPU for 128 images, and without waiting.
///
/// A fault is a label that is negative, or not less than the classes; a box that is not finite or
/// has a negative size; a row whose image is none of the images, or less than that of the row
/// above.
namespace boxloss {

struct Implementation;

/// Boxes (rows, 4) and labels (rows), both contiguous on the problem's device.
struct TargetList {
  const void* boxes = nullptr;
  const void* labels = nullptr;
  std::int64_t rows = 0;
};

struct CollateProblem {
  Device device = Device::kCpu;
  const TargetList* lists = nullptr;  ///< (list_count), on the host
  std::int64_t list_count = 0;
  DType boxes_dtype = DType::kF32;   ///< any
  DType labels_dtype = DType::kI64;  ///< int64 or int32
  /// (rows of all lists), any dtype: the image of each row. Not given: each list is an image.
  ArrayView image = {};
  std::int64_t images = 0;
  std::int64_t classes = 0;  ///< labels must be less; 0: nobody knows how many there are
  /// A box's last two values are its size. Else they are its second corner, which must not lie
  /// before the first.
  bool has_sizes = false;
};

struct CollateOutputs {
  void* boxes = nullptr;            ///< (rows, 4), in the boxes' dtype
  std::int64_t* labels = nullptr;   ///< (rows), each clamped to what it may be
  std::int64_t* offsets = nullptr;  ///< (images + 1): image b has rows offsets[b] to offsets[b + 1]
  /// 1, or NaN if there is a fault: what a loss is to be multiplied by, so that no fault trains in
  /// silence.
  float* factor = nullptr;
  float* number = nullptr;  ///< factor * max(rows, 1): what a loss is to be divided by
  /// The factor for the host, or null: memory that host and device can both address, so that the
  /// host sees the number once the call has been executed, without a copy.
  float* answer = nullptr;
};

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void collate_targets(const Implementation& implementation,
                                 const CollateProblem& problem, const CollateOutputs& outputs,
                                 const Execution& execution);

}  // namespace boxloss
