// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/set.hpp>
#include <boxloss/view.hpp>

/// A box-regression loss of paired boxes, forward and backward.
///
/// Boxes are read in their own dtype. The compute dtype is float64 when either box array is float64
/// and float32 otherwise; losses, `scale` and incoming gradients have it.
namespace boxloss {

struct Implementation;

/// Which slots (image b, slot j) are valid pairs. The loss and gradients of an invalid one are
/// exactly 0, whatever its boxes contain, NaN included.
struct Pairing {
  enum class Kind : std::uint8_t {
    kDense,       ///< every slot
    kZeroPadded,  ///< those whose target is not all zeros
    kLengths,     ///< j < data[b], clamped to [0, slots]
    kMask,        ///< data[b * slots + j] is not 0
    kOffsets,     ///< targets are one ragged list; image b owns rows data[b] to data[b + 1]
    kIndexed,     ///< pair k of set s is the row that the views' `rows` hold at s * pairs + k
  };
  Kind kind = Kind::kDense;
  /// kLengths: (images) and kOffsets: (images + 1), int32 or int64; kMask: (images, slots), uint8.
  ArrayView data = {};
  /// kIndexed: pairs come in sets of equal size, fewer than 2^31, each with a reduced loss of its
  /// own. A view without `rows` has shape (sets, pairs, 4), of rotated boxes 5. A pair whose row is
  /// not in its list is not valid. `pairs` must be set.
  std::int64_t sets = 1, pairs = kUnsetSize;
};

/// "dense", "zero-padded", "lengths", "mask", "offsets" or "indexed".
BOXLOSS_API const char* name_of(Pairing::Kind kind);

enum class Reduction : std::uint8_t { kNone, kSum, kMean };

/// "none", "sum" or "mean".
BOXLOSS_API const char* name_of(Reduction reduction);

/// The inputs of forward and backward that losses of all kinds of boxes have. All pointers are on
/// `device`.
struct PairProblem {
  Device device = Device::kCpu;
  BoxView pred =
      {};  ///< (images, slots, 4), of rotated boxes 5; float64, float32, float16 or bfloat16
  BoxView target = {};  ///< as pred, any dtype; with offsets one image of T slots
  Pairing pairing = {};
  ArrayView weight = {};  ///< optional, shaped as the unreduced loss; multiplies each loss
  /// Optional: kMean divides by it instead of the number of valid pairs. It is not read if no pair
  /// is valid.
  ArrayView normalizer = {};
  /// 0: one normalizer for all sets; 1: one for each.
  std::int64_t normalizer_stride = 0;
  Reduction reduction = Reduction::kMean;
  double eps = 1e-7;  ///< finite, >= 0
  EpsMode eps_mode = EpsMode::kAdd;
  LossParameters parameters = {};  ///< of a loss that has some
};

/// All inputs of forward and backward.
struct LossProblem : PairProblem {
  static constexpr int kNumbers = 4;  ///< of a box

  Loss loss{};  ///< must be set
};

/// Optional outputs of forward; backward does not read them.
enum class Extra : std::uint8_t { kL1, kIou };
constexpr Set<Extra> kExtras = {Extra::kL1, Extra::kIou};

/// "l1" or "iou".
BOXLOSS_API const char* name_of(Extra extra);

/// Outputs of forward, written whole (but for rows of no image, with offsets that decrease).
struct LossOutputs {
  /// kNone: (images, slots), with offsets (T), indexed (sets, pairs); else one value for each set.
  void* loss = nullptr;
  /// Read by backward; one value for each set: 1 / count, 1 / normalizer, or 1 if nothing is
  /// divided or no pair is valid. 0 if the problem has no slots at all.
  void* scale = nullptr;
  /// Optional, shaped, weighted and reduced as `loss`: the sum of |pred - target| over the four
  /// values as they are given, in one format for both.
  void* l1 = nullptr;
  /// Optional, never reduced or weighted: I / U' of each pair, 0 for invalid ones. It has no
  /// gradient.
  void* iou = nullptr;
};

/// The incoming gradient of `loss` or `l1`, of any strides. For a reduced one `image_stride` leads
/// from set to set, and is not used without sets.
struct GradView {
  const void* data = nullptr;
  std::int64_t image_stride = kUnsetStride;
  std::int64_t slot_stride = kUnsetStride;
};

/// The incoming gradients of backward, at least one. One with null data is left out.
struct GradOutputs {
  GradView loss = {}, l1 = {};
};

/// Outputs of backward, contiguous and written whole, each in the dtype of its input. Null if not
/// wanted. Integer targets have no gradient. With `rows`, the gradients of pairs that share a row
/// add up, on a GPU in any order, each rounded to the dtype; those of 16-bit boxes along the axes
/// must be aligned to 8 bytes.
struct LossGradients {
  void* pred = nullptr;
  void* target = nullptr;
  void* weight = nullptr;
  /// The gradient has the strides of its boxes instead of being contiguous. Their dimensions may
  /// lie in memory in any order, but without gaps or overlaps. Not for an indexed pairing.
  bool keeps_pred_strides = false, keeps_target_strides = false;
};

/// float64 when either box array is float64, else float32.
BOXLOSS_API DType compute_dtype(const PairProblem& problem);

/// Number of values of the unreduced loss. Throws InvalidArgument for a size that is not set.
BOXLOSS_API std::int64_t loss_rows(const PairProblem& problem);

/// Number of values of a reduced loss, and of `scale`: one, or one for each set.
BOXLOSS_API std::int64_t loss_sets(const PairProblem& problem);

/// Checks what needs no sizes: options, for these extra outputs, and dtypes but those of `rows`, as
/// all functions below do. Throws InvalidArgument or Unsupported, naming the argument.
BOXLOSS_API void check_options(const LossProblem& problem, Set<Extra> extras = {});

/// Bytes of workspace that forward needs; backward needs none. Throws as forward does, but looks at
/// no pointers, so it may be asked before there are any.
BOXLOSS_API std::size_t loss_workspace_bytes(const Implementation& implementation,
                                             const LossProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void loss_forward(const Implementation& implementation, const LossProblem& problem,
                              const LossOutputs& outputs, const Execution& execution);

/// `scale` is what forward wrote. Errors as above.
BOXLOSS_API void loss_backward(const Implementation& implementation, const LossProblem& problem,
                               const GradOutputs& grads, const void* scale,
                               const LossGradients& gradients, const Execution& execution);

}  // namespace boxloss
