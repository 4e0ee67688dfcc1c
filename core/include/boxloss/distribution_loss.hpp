// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>
#include <cstddef>

/// Losses of boxes whose sides are distributions over bins, after a matcher has said which box each
/// query has. D-FINE, Peng et al. 2024.
///
/// Queries come in sets, such as decoder layers, each with a reduced loss of its own. The compute
/// dtype is float64 where logits are, else float32; losses, `scale` and incoming gradients have it.
namespace boxloss {

struct Implementation;

enum class DistributionLoss : std::uint8_t {
  kUnset,
  /// Fine-grained localization, 4.2: the cross-entropy of each side towards the two bins that the
  /// true side lies between. Of matched queries alone.
  kFgl,
  /// Decoupled distillation focal, 4.3: T^2 KL(teacher, own) of each side at temperature T.
  kDdf,
};

/// "fgl" or "ddf".
BOXLOSS_API const char* name_of(DistributionLoss mode);

/// Non-owned logits of shape (sets, images, queries, 4 * bins): those of left, top, right and
/// bottom. A query's are neighbours. Strides count elements and may be 0, not negative.
struct CornerView {
  const void* data = nullptr;
  DType dtype = DType::kNone;
  std::int64_t set_stride = kUnsetStride, image_stride = kUnsetStride, query_stride = kUnsetStride;
};

/// All inputs of the loss. All pointers are on `device`.
struct DistributionLossProblem {
  Device device = Device::kCpu;
  DistributionLoss mode{};  ///< must be set
  std::int64_t sets = 1;
  std::int64_t images = kUnsetSize, queries = kUnsetSize, bins = kUnsetSize;
  CornerView logits = {};  ///< any floating dtype
  /// (sets, images, queries), int32 or int64: each query's row of target. kIgnored: it is left out.
  /// Any other that is negative, or not less than kFgl's `targets`, has no box.
  ArrayView target_index = {};
  ArrayView quality = {};  ///< optional, shaped as target_index, floating: matched queries' weights

  // Of kFgl.
  std::int64_t targets = kUnsetSize;
  ArrayView reference = {};  ///< (sets, images, queries, 4), floating, cxcywh
  ArrayView target = {};     ///< (targets, 4), floating, cxcywh
  /// (bins), at least 2, floating, increasing: where bins lie, as offsets from a reference's side.
  ArrayView edges = {};
  double reg_scale = 4;  ///< offsets are in units of the reference's size / reg_scale

  // Of kDdf.
  CornerView teacher = {};    ///< any floating dtype
  ArrayView confidence = {};  ///< (images, queries), floating: other queries' weights
  double temperature = 5;

  /// kMean divides a set's sum by its number of matched queries, at least 1. Of kDdf it is (P p + O
  /// o) / (P + O): p is the mean over sides of matched queries, P the root of how many sides there
  /// are for each image, o and O those of others.
  Reduction reduction = Reduction::kMean;
  /// Optional, of kFgl: kMean divides by it instead.
  ArrayView normalizer = {};
  /// 0: one normalizer for all sets; 1: one for each.
  std::int64_t normalizer_stride = 0;
};

/// float64 where logits are, else float32.
BOXLOSS_API DType compute_dtype(const DistributionLossProblem& problem);

/// Each is written whole.
struct DistributionLossOutputs {
  /// kNone: (sets, images, queries), the sums of queries' sides; else one value for each set.
  void* loss = nullptr;
  /// (sets, 2), for backward: what losses of matched queries, and of others, are multiplied by.
  void* scale = nullptr;
};

/// The same, and an incoming gradient. Nothing but logits has a gradient.
struct DistributionLossGradProblem : DistributionLossProblem {
  const void* grad = nullptr;   ///< shaped as DistributionLossOutputs::loss
  const void* scale = nullptr;  ///< what the loss wrote
};

struct DistributionLossGradOutputs {
  void* logits = nullptr;  ///< in the logits' dtype, contiguous, written whole
};

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const DistributionLossProblem& problem);

/// Bytes of workspace that a run needs. Throws as a run does, but looks at no pointers.
BOXLOSS_API std::size_t distribution_loss_workspace_bytes(const Implementation& implementation,
                                                          const DistributionLossProblem& problem);
BOXLOSS_API std::size_t distribution_loss_backward_workspace_bytes(
    const Implementation& implementation, const DistributionLossGradProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void distribution_loss(const Implementation& implementation,
                                   const DistributionLossProblem& problem,
                                   const DistributionLossOutputs& outputs,
                                   const Execution& execution);
BOXLOSS_API void distribution_loss_backward(const Implementation& implementation,
                                            const DistributionLossGradProblem& problem,
                                            const DistributionLossGradOutputs& outputs,
                                            const Execution& execution);

}  // namespace boxloss
