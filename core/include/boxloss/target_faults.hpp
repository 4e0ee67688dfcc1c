// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>

/// Faults in a batch's ground truth, found where it lies: in one launch on a GPU, and nobody waits.
///
/// A fault is a label that is negative, or not less than the classes; a box that is not finite or
/// has a negative size; a row whose image comes before the image of the row above.
namespace boxloss {

struct Implementation;

/// All inputs, of `rows` boxes. All pointers are on `device`.
struct TargetProblem {
  Device device = Device::kCpu;
  std::int64_t rows = 0;
  ArrayView boxes = {};      ///< (rows, 4), any dtype
  ArrayView labels = {};     ///< (rows), int64 or int32
  ArrayView image = {};      ///< (rows), any dtype; not given: there is no order to look at
  std::int64_t classes = 0;  ///< labels must be less; 0: nobody knows how many there are
  std::int64_t images = 0;   ///< the same for `image`
  /// A box's last two values are its size. Else they are its second corner, which must not lie
  /// before the first.
  bool has_sizes = false;
};

/// Both get 1, or NaN if there is a fault; without rows there is none.
struct TargetOutputs {
  /// On the device: what a loss is to be multiplied by, so that no fault trains in silence.
  float* factor = nullptr;
  /// The same for the host, or null: memory that host and device can both address, so that the host
  /// sees the number once the call has been executed, without a copy.
  float* answer = nullptr;
};

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void target_faults(const Implementation& implementation, const TargetProblem& problem,
                               const TargetOutputs& outputs, const Execution& execution);

}  // namespace boxloss
