// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <cstdint>
#include <optional>
#include <vector>

/// What the operator library exports.
#define BOXLOSS_TORCH_API __attribute__((visibility("default")))

/// PyTorch's operators `boxloss::box_loss` and so on as C++ functions, with enumerators in place of
/// strings. Link `boxloss::torch` of find_package(boxloss COMPONENTS torch).
///
/// Each function calls its operator through torch's dispatcher, on the tensors' device and current
/// stream: autograd, double backward, meta tensors and function transforms follow. Defaults are the
/// operators' own. Options are aggregates, which C++20 can name:
///
///     boxloss::box_loss(pred, target, {.loss = boxloss::Loss::kCiou, .offsets = offsets})
///
/// An option that is an undefined tensor is not given. The docstrings of Python's functions of the
/// same names have the details. Errors are c10::ValueError (a bad value or shape), c10::TypeError
/// (a bad dtype) and c10::Error (tensors on several devices, or on one without an implementation in
/// this build); each names the argument.
///
/// Offsets are (images + 1), int32 or int64: image b owns rows offsets[b] to offsets[b + 1] of a
/// list of all images' boxes, (T, 4), or columns of a cost. Those of `hungarian_match` and the
/// assigners may be on the CPU. Bad ones are an error there; on a GPU they give -1.
namespace boxloss {

/// Options of `box_loss` and `box_losses`. Valid pairs are given by at most one of lengths, mask,
/// offsets, zero_padded and indices (one or both); by default all are valid.
struct BoxLossOptions {
  Loss loss = Loss::kGiou;
  /// Factors, shaped as the unreduced loss, of any floating dtype.
  at::Tensor weight = {};
  /// Reduction::kMean divides the sum by this instead of the number of valid pairs: no dimension,
  /// or with indices (S, P) also (S); float64, float32, int64 or int32. It gets no gradient.
  at::Tensor normalizer = {};
  /// (images), int32 or int64: of image b's slots the first lengths[b] are valid.
  at::Tensor lengths = {};
  /// pred's shape without the 4, bool: true for valid pairs.
  at::Tensor mask = {};
  /// An image's target rows are paired with its first predictions.
  at::Tensor offsets = {};
  /// Pairs whose target is four zeros are not valid.
  bool zero_padded = false;
  BoxFormat pred_format = BoxFormat::kXyxy;
  BoxFormat target_format = BoxFormat::kXyxy;
  Reduction reduction = Reduction::kMean;
  double eps = 1e-7;  ///< finite, >= 0
  EpsMode eps_mode = EpsMode::kAdd;
  /// (P) or (S, P), int32 or int64: pair k reads these rows of the lists of boxes. A pair with an
  /// index outside its list is not valid; use -1 for padding.
  at::Tensor pred_index = {};
  at::Tensor target_index = {};
  std::vector<double> parameters = {};  ///< a loss' own, as `parameters_of` names them
};

/// A box-regression loss of paired boxes.
///
/// pred: (..., 4), float64, float32, float16 or bfloat16; with lengths, offsets or zero_padded
/// (images, slots, 4). target: shaped as pred, with offsets (T, 4); any floating dtype, uint8,
/// int16, int32 or int64.
///
/// Gives the loss, float64 when either box tensor is and float32 otherwise: without dimensions,
/// with indices (S, P) of shape (S); unreduced shaped as pred without the 4, with offsets (T), with
/// indices as they are. It is differentiable with respect to pred, weight and a floating target.
BOXLOSS_TORCH_API at::Tensor box_loss(const at::Tensor& pred, const at::Tensor& target,
                                      const BoxLossOptions& options = {});

/// The results of `box_losses`.
struct BoxLosses {
  at::Tensor loss;
  at::Tensor l1;   ///< weighted and reduced as the loss, and differentiable
  at::Tensor iou;  ///< shaped as the unreduced loss, 0 where nothing counts; without gradient
};

/// The loss, the L1 distance of the boxes' values and the IoU of the same pairs, from one read.
/// Both formats must be equal; else as `box_loss`.
BOXLOSS_TORCH_API BoxLosses box_losses(const at::Tensor& pred, const at::Tensor& target,
                                       const BoxLossOptions& options = {});

/// Options of `rotated_box_loss`; those that are not explained are as in BoxLossOptions.
struct RotatedBoxLossOptions {
  RotatedLoss loss{};  ///< must be set
  at::Tensor weight = {};
  at::Tensor normalizer = {};
  at::Tensor lengths = {};
  at::Tensor mask = {};  ///< pred's shape without the 5
  at::Tensor offsets = {};
  bool zero_padded = false;  ///< pairs whose target is five zeros are not valid
  AngleUnit angle_unit = AngleUnit::kRadians;
  Reduction reduction = Reduction::kMean;
  double eps = 1e-7;  ///< finite, >= 0; of kIou and kGiou, the others have a floor
  EpsMode eps_mode = EpsMode::kAdd;
  at::Tensor pred_index = {};
  at::Tensor target_index = {};
  std::vector<double> parameters = {};  ///< a loss' own, as `parameters_of` names them
};

/// A loss of paired rotated boxes: centre, width, height and angle.
///
/// pred: (..., 5), target: shaped as pred, with offsets (T, 5). Shapes, dtypes and the result are
/// as for `box_loss` in all else. Gradients are by the values as they are given, in their unit of
/// angles.
BOXLOSS_TORCH_API at::Tensor rotated_box_loss(const at::Tensor& pred, const at::Tensor& target,
                                              const RotatedBoxLossOptions& options);

/// A loss of boxes along the axes or of rotated ones, by its name.
class AnyLoss {
 public:
  AnyLoss(Loss loss) : name_(boxloss::name_of(loss)) {}  // NOLINT(google-explicit-constructor)
  AnyLoss(RotatedLoss loss)
      : name_(boxloss::name_of(loss)) {}  // NOLINT(google-explicit-constructor)
  friend const char* name_of(const AnyLoss& loss) { return loss.name_; }

 private:
  const char* name_;
};

/// Options of `matching_cost`. The defaults are DETR's.
struct MatchingCostOptions {
  /// (..., images, queries, classes), any floating dtype; it needs labels.
  at::Tensor logits = {};
  /// (T), int32 or int64: the class of each ground-truth box.
  at::Tensor labels = {};
  /// In place of logits, the class term of each entry: shaped as the result, or with leading
  /// dimensions that are 1 or missing; any floating dtype.
  at::Tensor class_cost = {};
  AnyLoss loss = Loss::kGiou;
  double iou_weight = 2.0;    ///< of loss - 1
  double l1_weight = 5.0;     ///< of the L1 distance, for which both formats must be equal
  double class_weight = 1.0;  ///< of the class term
  /// The class term of logits: kSoftmax, kSigmoid or kFocal.
  ClassTerm class_mode = ClassTerm::kSoftmax;
  double focal_alpha = 0.25;  ///< kFocal's factor for the label's class; 1 - alpha for the others
  double focal_gamma = 2.0;   ///< kFocal's exponent, not negative
  BoxFormat pred_format = BoxFormat::kCxcywh;
  BoxFormat target_format = BoxFormat::kCxcywh;
  double eps = 0.0;  ///< finite, >= 0
  EpsMode eps_mode = EpsMode::kAdd;
  /// If given, replaces NaN and infinities; finite, as a float32.
  std::optional<double> nonfinite = {};
  std::vector<double> parameters = {};  ///< as for `box_loss` or `rotated_box_loss`
  double angle_weight = 0.0;            ///< of rotated boxes: of 1 - cos(2 * angles' difference)
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
};

/// The cost that a matcher minimizes, of each query with each ground-truth box of its own image:
/// iou_weight * (loss - 1) + l1_weight * sum(|pred - target|) + class_weight * class term.
///
/// pred: (..., images, queries, 4), target: (T, 4), dtypes as for `box_loss`. Rotated boxes have 5
/// numbers, as for `rotated_box_loss`, a loss of theirs, no formats, L1 over the first four, and
/// angle_weight * (1 - cos(2 * difference of the angles)).
///
/// Gives (..., queries, T), always float32; columns of no image are 0. It has no gradient.
BOXLOSS_TORCH_API at::Tensor matching_cost(const at::Tensor& pred, const at::Tensor& target,
                                           const at::Tensor& offsets,
                                           const MatchingCostOptions& options = {});

/// The results of `hungarian_match`: int64, on the cost's device, -1 for none. Without layers each
/// lacks its first dimension.
struct MatchResult {
  at::Tensor pred_index;       ///< (layers, groups * T): each column's query, as a row of pred
  at::Tensor target_index;     ///< the same shape: the column itself, where it has a query
  at::Tensor target_of_query;  ///< (layers, images, queries): each query's column
};

/// Options of `hungarian_match`.
struct HungarianMatchOptions {
  /// Groups of consecutive queries, equally many in each, that are assigned separately.
  std::int64_t groups = 1;
};

/// The assignment of least total cost, of each image's queries to its own columns.
///
/// cost: (queries, T) or (layers, queries, T), of any dtype, as from `matching_cost`.
///
/// pred_index and target_index are `box_loss`' indices. There is no gradient. Where the
/// implementation in use does not serve the assignment, or there is none for the device, the host
/// solves it, with one synchronization.
BOXLOSS_TORCH_API MatchResult hungarian_match(const at::Tensor& cost, const at::Tensor& offsets,
                                              const HungarianMatchOptions& options = {});

/// The results of `linear_sum_assignment`: int64, on the cost's device, -1 for none.
struct LinearSumAssignment {
  at::Tensor column_of_row;  ///< (B, N) or (N)
  at::Tensor row_of_column;  ///< (B, M) or (M)
};

/// Options of `linear_sum_assignment`.
struct LinearSumAssignmentOptions {
  /// (B, 2) or (2), int32 or int64: how many rows and columns of each matrix are in use.
  at::Tensor lengths = {};
  bool maximize = false;
  /// Only costs up to it make pairs; what has none costs half of it. Not with `maximize`.
  std::optional<double> cost_limit = {};
};

/// SciPy's linear_sum_assignment of each matrix (B, N, M), or of one (N, M), of any dtype and
/// strides. Costs that are not finite, errors and the host's part are as for `hungarian_match`.
BOXLOSS_TORCH_API LinearSumAssignment
linear_sum_assignment(const at::Tensor& cost, const LinearSumAssignmentOptions& options = {});

/// Options of `pairwise_iou`.
struct PairwiseIouOptions {
  AnyLoss loss = Loss::kCiou;
  BoxFormat pred_format = BoxFormat::kXyxy;
  BoxFormat target_format = BoxFormat::kXyxy;
  double eps = 1e-7;  ///< finite, >= 0
  EpsMode eps_mode = EpsMode::kAdd;
  std::vector<double> parameters = {};         ///< as for `box_loss` or `rotated_box_loss`
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
};

/// 1 - loss of each prediction with each ground-truth box of its own image, for assigners. Shapes,
/// dtypes and result as for `matching_cost`.
BOXLOSS_TORCH_API at::Tensor pairwise_iou(const at::Tensor& pred, const at::Tensor& target,
                                          const at::Tensor& offsets,
                                          const PairwiseIouOptions& options = {});

/// The results of `max_iou_match`, on the anchors' device.
struct MaxIouMatch {
  at::Tensor target_index;  ///< (images, A), int64: a row of target; -1: none, -2: to be ignored
  at::Tensor iou;           ///< (images, A): the best, float64 when either box tensor is
};

/// Options of `max_iou_match`.
struct MaxIouMatchOptions {
  /// An anchor whose best IoU is less than `low` has no box, less than `high` is to be ignored.
  double high = MaxIouProblem::kUnset, low = MaxIouProblem::kUnset;  ///< must be set
  LowQuality low_quality = LowQuality::kNone;
  double min_pos_iou = 0;  ///< low_quality is for boxes whose best IoU is not less
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
};

/// For each anchor the box of its image that it overlaps most, if it overlaps it enough.
///
/// anchors: (A, 4), which images share, or (images, A, 4), any floating dtype. target: (T, 4). All
/// boxes are corners, or rotated, (..., 5). There is no gradient.
BOXLOSS_TORCH_API MaxIouMatch max_iou_match(const at::Tensor& anchors, const at::Tensor& target,
                                            const at::Tensor& offsets,
                                            const MaxIouMatchOptions& options);

/// The results of `task_aligned_match`, each (images, A), on the scores' device.
struct TaskAlignedMatch {
  at::Tensor target_index;  ///< int64: a row of target, or -1
  at::Tensor score;         ///< float32; 0 where there is none
  at::Tensor overlap;       ///< likewise
};

/// Options of `task_aligned_match`.
struct TaskAlignedMatchOptions {
  std::int64_t topk = 10;                  ///< anchors that a box chooses
  std::optional<std::int64_t> topk2 = {};  ///< those that it keeps in the end; all, if not given
  double alpha = 0.5;                      ///< the score's exponent, finite, >= 0
  double beta = 6.0;                       ///< the overlap's, likewise
  /// If above 0, a point also lies in a box that has its shorter sides enlarged to this.
  double min_side = 0.0;
  BoxFormat pred_format = BoxFormat::kXyxy;
  std::optional<double> small_side = {};       ///< which sides are shorter; min_side, if not given
  AngleUnit angle_unit = AngleUnit::kRadians;  ///< of rotated boxes
};

/// For each anchor of a dense detector the box that it learns, by Ultralytics' task-aligned rule.
///
/// scores: (images, A, classes), probabilities. pred: (images, A, 4). points: (A, 2), which images
/// share, or (images, A, 2). These of any floating dtype. target: corners, (T, 4) or, with
/// undefined offsets, (images, N, 4), padded with zeros. labels: (T) or (images, N), int32 or
/// int64; a bad one is an error on the CPU, and elsewhere its box gets no anchor. Rotated boxes, in
/// pred and target, are (..., 5). There is no gradient.
BOXLOSS_TORCH_API TaskAlignedMatch
task_aligned_match(const at::Tensor& scores, const at::Tensor& pred, const at::Tensor& points,
                   const at::Tensor& target, const at::Tensor& offsets, const at::Tensor& labels,
                   const TaskAlignedMatchOptions& options = {});

/// Options of `class_loss`.
struct ClassLossOptions {
  ClassLoss mode{};  ///< must be set
  /// From 0 to 1, of kVarifocal, kMal and kIaBce, which need one of these, and kBce: (T); or of
  /// queries, shaped as target_index. Any floating dtype.
  at::Tensor quality = {};
  at::Tensor query_quality = {};
  at::Tensor weight = {};  ///< (classes), any floating dtype: of a class' losses
  std::optional<double> alpha = {}, gamma = {};  ///< the mode's own, if not given
  double no_object_weight = 1.0;                 ///< of kSoftmax: of queries without a box
  /// kMean divides the sum by the number of queries with a box, at least 1; of kSoftmax by the sum
  /// of all queries' weights.
  Reduction reduction = Reduction::kMean;
  /// Reduction::kMean divides by this instead: () or (layers), float64, float32, int64 or int32.
  at::Tensor normalizer = {};
};

/// The class loss of all queries, each towards the class of the box that it was matched with.
///
/// logits: (queries, classes), (images, queries, classes) or (layers, images, queries, classes),
/// any floating dtype and strides. target_index: logits' shape without classes, int32 or int64:
/// each query's row of labels, -1 for none, -2 for a query that is left out; MatchResult's
/// target_of_query, or target_index of the assigners. labels: (T), int32 or int64.
///
/// Gives float64 where logits are, else float32: (layers) of logits with layers, else without
/// dimensions; unreduced shaped as target_index. It is differentiable with respect to logits alone.
BOXLOSS_TORCH_API at::Tensor class_loss(const at::Tensor& logits, const at::Tensor& target_index,
                                        const at::Tensor& labels, const ClassLossOptions& options);

/// Options of `distribution_loss`.
struct DistributionLossOptions {
  DistributionLoss mode{};  ///< must be set
  /// Matched queries' weights, shaped as target_index, any floating dtype; 1 if not given.
  at::Tensor quality = {};

  // Of kFgl, which needs the tensors.
  at::Tensor reference = {};  ///< target_index' shape and 4, floating, cxcywh
  at::Tensor target = {};     ///< (T, 4), floating, cxcywh
  /// (bins), at least 2, floating, increasing: where bins lie, as offsets from a reference's side.
  at::Tensor edges = {};
  double reg_scale = 4.0;  ///< offsets are in units of the reference's size / reg_scale

  // Of kDdf, which needs the tensors.
  at::Tensor teacher = {};     ///< one layer's logits, for all layers, or logits' shape; floating
  at::Tensor confidence = {};  ///< one layer's target_index' shape, floating: the others' weights
  double temperature = 5.0;

  /// kMean divides the sum of kFgl by the number of matched queries, at least 1. Of kDdf it is
  /// D-FINE's: the means of matched and of other queries, weighed by the roots of their numbers.
  Reduction reduction = Reduction::kMean;
  /// Of kFgl: Reduction::kMean divides by this instead, as for `class_loss`.
  at::Tensor normalizer = {};
};

/// The loss of boxes whose sides are distributions over bins, as D-FINE has them.
///
/// logits: (queries, 4 * bins), (images, queries, 4 * bins) or (layers, images, queries, 4 * bins),
/// any floating dtype and strides, a copy if a query's are not neighbours: bins of left, top, right
/// and bottom. target_index: logits' shape without the last, int32 or int64: each query's row of
/// target, -1 for none, -2 for a query that is left out. Of kDdf every number from 0 on is a match.
///
/// Gives what `class_loss` gives. It is differentiable with respect to logits alone.
BOXLOSS_TORCH_API at::Tensor distribution_loss(const at::Tensor& logits,
                                               const at::Tensor& target_index,
                                               const DistributionLossOptions& options);

}  // namespace boxloss
