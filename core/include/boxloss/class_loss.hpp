// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>
#include <cstddef>
#include <optional>

/// The class loss of queries or anchors, after a matcher has said which box each has. Targets of
/// the logits' size are never written down.
///
/// Queries come in sets, such as decoder layers, each with a reduced loss of its own. The compute
/// dtype is float64 where logits are, else float32; losses, `scale` and incoming gradients have it.
namespace boxloss {

struct Implementation;

/// x is a logit, p = sigmoid(x), q the quality of a query's box. BCE(x, t) is the binary
/// cross-entropy of p towards t. A query's own class is that of its box, if it has one.
enum class ClassLoss : std::uint8_t {
  kUnset,
  /// alpha (1 - p)^gamma BCE(x, 1) of the own class, (1 - alpha) p^gamma BCE(x, 0) of others; an
  /// alpha below 0 weighs nothing. RetinaNet's (Lin et al., ICCV 2017). 0.25 and 2.
  kFocal,
  /// q BCE(x, q) and alpha p^gamma BCE(x, 0), the weights without gradient: RT-DETR's, after
  /// VarifocalNet (Zhang et al., CVPR 2021). 0.75 and 2.
  kVarifocal,
  /// BCE(x, q^gamma) and alpha p^gamma BCE(x, 0), the weight without gradient: DEIM's (Huang et
  /// al., CVPR 2025). 1 and 1.5.
  kMal,
  /// BCE(x, t) with t = p^alpha q^(1 - alpha), at least 0.01 and without gradient, and p^gamma
  /// BCE(x, 0): LW-DETR's and RF-DETR's. 0.25 and 2.
  kIaBce,
  /// BCE(x, q) and BCE(x, 0): Ultralytics'. It has neither alpha nor gamma.
  kBce,
  /// Cross-entropy of the softmax. The last class is that of queries without a box: DETR's.
  kSoftmax,
};

/// "focal", "varifocal", "mal", "ia_bce", "bce" or "softmax".
BOXLOSS_API const char* name_of(ClassLoss mode);

/// Non-owned logits of shape (sets, images, queries, classes). Strides count elements and may be 0,
/// not negative.
struct LogitView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t set_stride = kUnsetStride, image_stride = kUnsetStride;
  std::int64_t query_stride = kUnsetStride, class_stride = 1;
};

/// All inputs of the loss. All pointers are on `device`.
struct ClassLossProblem {
  Device device = Device::kCpu;
  ClassLoss mode{};  ///< must be set
  std::int64_t sets = 1;
  std::int64_t images = kUnsetSize, queries = kUnsetSize, classes = kUnsetSize;
  LogitView logits = {};  ///< any floating dtype
  /// (sets, images, queries), int32 or int64: each query's row of labels. kIgnored: it is left out.
  /// Any other that is not in [0, targets) has no box, as one whose label is not in [0, classes).
  ArrayView target_index = {};
  std::int64_t targets = kUnsetSize;
  ArrayView labels = {};  ///< (targets), int32 or int64
  /// Of kVarifocal, kMal, kIaBce and kBce, which without them has the quality 1: one of these, of
  /// any floating dtype. (targets); or of queries, shaped as target_index.
  ArrayView quality = {}, query_quality = {};
  ArrayView weight = {};  ///< optional, (classes), of any floating dtype: of a class' losses
  std::optional<double> alpha = {}, gamma = {};  ///< if not given, the mode's own
  double no_object_weight = 1;                   ///< of kSoftmax: of queries without a box
  /// kMean divides a set's sum by its number of queries with a box, at least 1, kSoftmax by the sum
  /// of all queries' weights, if that is not 0.
  Reduction reduction = Reduction::kMean;
  /// Optional: kMean divides by it instead.
  ArrayView normalizer = {};
  /// 0: one normalizer for all sets; 1: one for each.
  std::int64_t normalizer_stride = 0;
};

/// float64 where logits are, else float32.
BOXLOSS_API DType compute_dtype(const ClassLossProblem& problem);

/// Each is written whole.
struct ClassLossOutputs {
  /// kNone: (sets, images, queries), the sums of queries' classes; else one value for each set.
  void* loss = nullptr;
  void* scale = nullptr;  ///< for backward: what each set's sum is multiplied by
};

/// The same, and an incoming gradient. Nothing but logits has a gradient.
struct ClassLossGradProblem : ClassLossProblem {
  const void* grad = nullptr;   ///< shaped as ClassLossOutputs::loss
  const void* scale = nullptr;  ///< what the loss wrote
  /// The gradient is (sets, images, classes, queries): for logits whose queries are neighbours.
  bool is_transposed = false;
};

struct ClassLossGradOutputs {
  void* logits = nullptr;  ///< in the logits' dtype, contiguous, written whole
};

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const ClassLossProblem& problem);

/// Bytes of workspace that a run needs. Throws as a run does, but looks at no pointers.
BOXLOSS_API std::size_t class_loss_workspace_bytes(const Implementation& implementation,
                                                   const ClassLossProblem& problem);
BOXLOSS_API std::size_t class_loss_backward_workspace_bytes(const Implementation& implementation,
                                                            const ClassLossGradProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void class_loss(const Implementation& implementation, const ClassLossProblem& problem,
                            const ClassLossOutputs& outputs, const Execution& execution);
BOXLOSS_API void class_loss_backward(const Implementation& implementation,
                                     const ClassLossGradProblem& problem,
                                     const ClassLossGradOutputs& outputs,
                                     const Execution& execution);

}  // namespace boxloss
