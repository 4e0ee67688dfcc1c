// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of boxloss/torch.hpp for test_typed_functions.py: by default, and with all options.
#include <boxloss/torch.hpp>  // first: it needs no other

#include <torch/library.h>

#include <tuple>

namespace {

using namespace boxloss;
using at::Tensor;
using In = const Tensor&;
using TwoTensors = std::tuple<Tensor, Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

/// The members of a result, in their order.
template <class Result>
TwoTensors two(const Result& result) {
  const auto& [first, second] = result;
  return {first, second};
}
template <class Result>
ThreeTensors three(const Result& result) {
  const auto& [first, second, third] = result;
  return {first, second, third};
}

}  // namespace

TORCH_LIBRARY(boxloss_typed, m) {
  m.def("loss_defaults", [](In pred, In target) { return box_loss(pred, target); });
  // Of a pairing: what of it is not given stays undefined.
  m.def("losses",
        [](In pred, In target, In weight, In normalizer, In lengths, In mask, In offsets,
           In pred_index, In target_index) -> ThreeTensors {
          const BoxLosses losses = box_losses(pred, target,
                                              {.loss = Loss::kMpdiou,
                                               .weight = weight,
                                               .normalizer = normalizer,
                                               .lengths = lengths,
                                               .mask = mask,
                                               .offsets = offsets,
                                               .pred_format = BoxFormat::kXywh,
                                               .target_format = BoxFormat::kXywh,
                                               .eps = 0.125,
                                               .eps_mode = EpsMode::kClamp,
                                               .pred_index = pred_index,
                                               .target_index = target_index,
                                               .parameters = {64.0, 48.0}});
          return {losses.loss, losses.l1, losses.iou};
        });
  m.def("zero_padded", [](In pred, In target) {
    return box_loss(pred, target, {.zero_padded = true, .reduction = Reduction::kNone});
  });
  m.def("loss_unset", [](In pred, In target) { return box_loss(pred, target, {.loss = Loss{}}); });
  m.def("rotated_defaults", [](In pred, In target) {
    return rotated_box_loss(pred, target, {.loss = RotatedLoss::kKld});
  });
  m.def("rotated", [](In pred, In target, In weight, In normalizer, In lengths, In mask, In offsets,
                      In pred_index, In target_index) {
    return rotated_box_loss(pred, target,
                            {.loss = RotatedLoss::kGiou,
                             .weight = weight,
                             .normalizer = normalizer,
                             .lengths = lengths,
                             .mask = mask,
                             .offsets = offsets,
                             .angle_unit = AngleUnit::kDegrees,
                             .eps = 0.125,
                             .eps_mode = EpsMode::kClamp,
                             .pred_index = pred_index,
                             .target_index = target_index});
  });
  m.def("rotated_zero_padded", [](In pred, In target) {
    return rotated_box_loss(pred, target,
                            {.loss = RotatedLoss::kGwd,
                             .zero_padded = true,
                             .reduction = Reduction::kNone,
                             .parameters = {2.0, 0.125}});
  });
  m.def("rotated_unset", [](In pred, In target) { return rotated_box_loss(pred, target, {}); });
  m.def("cost_defaults",
        [](In pred, In target, In offsets) { return matching_cost(pred, target, offsets); });
  m.def("cost_of_logits", [](In pred, In target, In offsets, In logits, In labels) {
    return matching_cost(pred, target, offsets,
                         {.logits = logits,
                          .labels = labels,
                          .loss = Loss::kMpdiou,
                          .iou_weight = 0.5,
                          .l1_weight = 0,
                          .class_weight = 3,
                          .class_mode = ClassTerm::kFocal,
                          .focal_alpha = 0.75,
                          .focal_gamma = 1.5,
                          .pred_format = BoxFormat::kXyxy,
                          .target_format = BoxFormat::kXywh,
                          .eps = 0.125,
                          .eps_mode = EpsMode::kClamp,
                          .parameters = {64.0, 48.0}});
  });
  m.def("cost_of_classes", [](In pred, In target, In offsets, In class_cost) {
    return matching_cost(pred, target, offsets, {.class_cost = class_cost, .nonfinite = 100.0});
  });
  m.def("cost_rotated", [](In pred, In target, In offsets) {
    return matching_cost(
        pred, target, offsets,
        {.loss = RotatedLoss::kKld, .angle_weight = 3.0, .angle_unit = AngleUnit::kDegrees});
  });
  m.def("iou_rotated", [](In pred, In target, In offsets) {
    return pairwise_iou(pred, target, offsets,
                        {.loss = RotatedLoss::kKld, .angle_unit = AngleUnit::kDegrees});
  });
  m.def("iou_defaults",
        [](In pred, In target, In offsets) { return pairwise_iou(pred, target, offsets); });
  m.def("iou", [](In pred, In target, In offsets) {
    return pairwise_iou(pred, target, offsets,
                        {.loss = Loss::kMpdiou,
                         .pred_format = BoxFormat::kCxcywh,
                         .target_format = BoxFormat::kXywh,
                         .eps = 0.125,
                         .eps_mode = EpsMode::kClamp,
                         .parameters = {64.0, 48.0}});
  });
  m.def("match_defaults",
        [](In cost, In offsets) { return three(hungarian_match(cost, offsets)); });
  m.def("match", [](In cost, In offsets) -> ThreeTensors {
    const MatchResult result = hungarian_match(cost, offsets, {.groups = 3});
    return {result.pred_index, result.target_index, result.target_of_query};
  });
  m.def("matrices_defaults", [](In cost) { return two(linear_sum_assignment(cost)); });
  m.def("matrices_of_lengths", [](In cost, In lengths) -> TwoTensors {
    const LinearSumAssignment result =
        linear_sum_assignment(cost, {.lengths = lengths, .maximize = true});
    return {result.column_of_row, result.row_of_column};
  });
  m.def("matrices_limited",
        [](In cost) { return two(linear_sum_assignment(cost, {.cost_limit = 0.0})); });
  m.def("max_iou_defaults", [](In anchors, In target, In offsets) -> TwoTensors {
    const MaxIouMatch matches = max_iou_match(anchors, target, offsets, {.high = 0.7, .low = 0.3});
    return {matches.target_index, matches.iou};
  });
  m.def("max_iou", [](In anchors, In target, In offsets) {
    return two(max_iou_match(
        anchors, target, offsets,
        {.high = 0.7, .low = 0.3, .low_quality = LowQuality::kForce, .min_pos_iou = 0.4}));
  });
  m.def("max_iou_rotated", [](In anchors, In target, In offsets) {
    return two(max_iou_match(anchors, target, offsets,
                             {.high = 0.7, .low = 0.3, .angle_unit = AngleUnit::kDegrees}));
  });
  m.def("max_iou_unset", [](In anchors, In target, In offsets) {
    return two(max_iou_match(anchors, target, offsets, {}));
  });
  m.def("task_aligned_defaults",
        [](In scores, In pred, In points, In target, In labels) -> ThreeTensors {
          const TaskAlignedMatch match =
              task_aligned_match(scores, pred, points, target, {}, labels);
          return {match.target_index, match.score, match.overlap};
        });
  m.def("task_aligned", [](In scores, In pred, In points, In target, In labels, In offsets) {
    return three(task_aligned_match(scores, pred, points, target, offsets, labels,
                                    {.topk = 3,
                                     .topk2 = 2,
                                     .alpha = 1.5,
                                     .beta = 0.5,
                                     .min_side = 64,
                                     .pred_format = BoxFormat::kCxcywh,
                                     .small_side = 16}));
  });
  m.def("task_aligned_rotated",
        [](In scores, In pred, In points, In target, In labels, In offsets) {
          return three(task_aligned_match(scores, pred, points, target, offsets, labels,
                                          {.angle_unit = AngleUnit::kDegrees}));
        });
  m.def("classes_defaults", [](In logits, In target_index, In labels) {
    return class_loss(logits, target_index, labels, {.mode = ClassLoss::kFocal});
  });
  m.def("classes", [](In logits, In target_index, In labels, In weight, In quality, In normalizer) {
    return class_loss(logits, target_index, labels,
                      {.mode = ClassLoss::kVarifocal,
                       .quality = quality,
                       .weight = weight,
                       .alpha = 0.5,
                       .gamma = 1.5,
                       .normalizer = normalizer});
  });
  m.def("classes_by_query", [](In logits, In target_index, In labels, In weight, In query_quality) {
    return class_loss(logits, target_index, labels,
                      {.mode = ClassLoss::kMal,
                       .query_quality = query_quality,
                       .weight = weight,
                       .reduction = Reduction::kNone});
  });
  m.def("classes_softmax", [](In logits, In target_index, In labels, In weight) {
    return class_loss(logits, target_index, labels,
                      {.mode = ClassLoss::kSoftmax, .weight = weight, .no_object_weight = 0.25});
  });
  m.def("classes_unset", [](In logits, In target_index, In labels) {
    return class_loss(logits, target_index, labels, {});
  });
  m.def("fgl_defaults", [](In logits, In target_index, In reference, In target, In edges) {
    return distribution_loss(
        logits, target_index,
        {.mode = DistributionLoss::kFgl, .reference = reference, .target = target, .edges = edges});
  });
  m.def("fgl", [](In logits, In target_index, In reference, In target, In edges, In quality,
                  In normalizer) {
    return distribution_loss(logits, target_index,
                             {.mode = DistributionLoss::kFgl,
                              .quality = quality,
                              .reference = reference,
                              .target = target,
                              .edges = edges,
                              .reg_scale = 2,
                              .normalizer = normalizer});
  });
  m.def("ddf_defaults", [](In logits, In target_index, In teacher, In confidence) {
    return distribution_loss(
        logits, target_index,
        {.mode = DistributionLoss::kDdf, .teacher = teacher, .confidence = confidence});
  });
  m.def("ddf", [](In logits, In target_index, In teacher, In confidence) {
    return distribution_loss(logits, target_index,
                             {.mode = DistributionLoss::kDdf,
                              .teacher = teacher,
                              .confidence = confidence,
                              .temperature = 2,
                              .reduction = Reduction::kNone});
  });
  m.def("distribution_unset",
        [](In logits, In target_index) { return distribution_loss(logits, target_index, {}); });
}
