// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <boxloss/set.hpp>
#include <boxloss/view.hpp>
#include <cstddef>
#include <optional>

/// The cost that a matcher of predictions and ground-truth boxes minimizes: of each query of an
/// image with each ground-truth box of the same image. It has no gradient.
///
/// The ground-truth boxes of all images are one list of T rows, each a column of the result; image
/// b owns rows offsets[b] to offsets[b + 1]. Queries come in layers (of a decoder), each matched
/// separately. The compute dtype is float64 when either box array is float64 and float32 otherwise.
namespace boxloss {

struct Implementation;

/// The class term of the cost. x is a query's score of the column's label.
enum class ClassTerm : std::uint8_t {
  kNone,     ///< nothing
  kSoftmax,  ///< -exp(x), DETR's: scores are log-probabilities, log-softmax(logits)
  kSigmoid,  ///< -sigmoid(x), of logits
  /// Deformable DETR's, with p = sigmoid(x), a = focal_alpha, g = focal_gamma:
  /// (1 - a) p^g log(1 - p + 1e-8) - a (1 - p)^g log(p + 1e-8)
  kFocal,
  kGiven,  ///< an entry of a matrix
};

/// All of them.
constexpr Set<ClassTerm> kClassTerms = {ClassTerm::kNone, ClassTerm::kSoftmax, ClassTerm::kSigmoid,
                                        ClassTerm::kFocal, ClassTerm::kGiven};

/// "none", "softmax", "sigmoid", "focal" or "given".
BOXLOSS_API const char* name_of(ClassTerm term);

/// Non-owned numbers of shape (blocks, queries, n). The n of a query are contiguous; strides count
/// elements and may be 0, not negative.
struct ScoreView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t block_stride = kUnsetStride;
  std::int64_t query_stride = kUnsetStride;
};

/// The inputs that costs of all kinds of boxes have. All pointers are on `device`.
struct PairwiseProblem {
  Device device = Device::kCpu;
  std::int64_t layers = 1;
  BoxView pred = {};    ///< (layers * images, queries, 4); float64, float32, float16 or bfloat16
  BoxView target = {};  ///< (1, T, 4), any dtype
  /// (images + 1), int32 or int64. Offsets are clamped; columns of no image are 0.
  ArrayView offsets = {};

  ClassTerm class_term = ClassTerm::kNone;
  /// kSoftmax, kSigmoid, kFocal: (layers * images, queries, classes), any floating dtype. kGiven:
  /// (layers, queries, T), likewise.
  ScoreView scores = {};
  std::int64_t classes = kUnsetSize;  ///< must be set for these three
  /// (T), int32 or int64; a label outside [0, classes) has class term 0. Not with kGiven.
  ArrayView labels = {};
  double focal_alpha = 0.25, focal_gamma = 2.0;

  /// Factors of loss - 1, of the sum of |pred - target| over a box's first four values as they are
  /// given, in one format for both, and of the class term. A term whose factor is 0 is left out.
  double iou_weight = 2.0, l1_weight = 5.0, class_weight = 1.0;
  double eps = 0;  ///< finite, >= 0
  EpsMode eps_mode = EpsMode::kAdd;
  LossParameters parameters = {};  ///< of a loss that has some
  /// If given, replaces NaN and infinities in the result; finite, as a float32.
  std::optional<double> nonfinite = {};
};

/// All inputs of the cost.
struct CostProblem : PairwiseProblem {
  static constexpr int kNumbers = 4;  ///< of a box

  Loss loss{};  ///< must be set
};

/// All inputs of the cost of rotated boxes, (…, 5): see rotated_box_loss.hpp, also for views.
struct RotatedCostProblem : PairwiseProblem {
  static constexpr int kNumbers = 5;  ///< of a box

  RotatedLoss loss{};  ///< must be set
  AngleUnit angle_unit = AngleUnit::kRadians;
  /// Factor of 1 - cos(2d), d being the difference of the angles: it is 0 to 2, and has the period
  /// of a box, half a turn.
  double angle_weight = 0;

  /// Boxes are contiguous at first, as a view's are.
  RotatedCostProblem() { pred.slot_stride = target.slot_stride = kNumbers; }
};

/// float64 when either box array is float64, else float32.
BOXLOSS_API DType compute_dtype(const PairwiseProblem& problem);

/// Number of images: pred has `layers` times as many. Throws InvalidArgument without layers.
BOXLOSS_API std::int64_t cost_images(const PairwiseProblem& problem);

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const CostProblem& problem);
BOXLOSS_API void check_options(const RotatedCostProblem& problem);

/// Bytes of workspace that a run needs, of which there are none yet. Throws as a run does, but
/// looks at no pointers.
BOXLOSS_API std::size_t matching_cost_workspace_bytes(const Implementation& implementation,
                                                      const CostProblem& problem);
BOXLOSS_API std::size_t matching_cost_workspace_bytes(const Implementation& implementation,
                                                      const RotatedCostProblem& problem);

/// Writes `cost`, (layers, queries, T) float32, whole (but for columns of no image, with offsets
/// that decrease). Throws InvalidArgument or Unsupported, naming the argument, before it reads or
/// writes anything.
BOXLOSS_API void matching_cost(const Implementation& implementation, const CostProblem& problem,
                               float* cost, const Execution& execution);
BOXLOSS_API void matching_cost(const Implementation& implementation,
                               const RotatedCostProblem& problem, float* cost,
                               const Execution& execution);

}  // namespace boxloss
