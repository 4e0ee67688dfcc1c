// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of boxloss/torch.hpp for test_typed_functions.py: by default, and with all options.
#include <boxloss/torch.hpp>  // first: it needs no other

#include <torch/library.h>

#include <cstdint>
#include <tuple>

namespace {

using at::Tensor;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;
using TwoTensors = std::tuple<Tensor, Tensor>;

Tensor loss_defaults(const Tensor& pred, const Tensor& target) {
  return boxloss::box_loss(pred, target);
}

/// Of a pairing: what of it is not given stays undefined.
ThreeTensors losses(const Tensor& pred, const Tensor& target, const Tensor& weight,
                    const Tensor& normalizer, const Tensor& lengths, const Tensor& mask,
                    const Tensor& offsets, const Tensor& pred_index, const Tensor& target_index) {
  const boxloss::BoxLosses losses = boxloss::box_losses(pred, target,
                                                        {.loss = boxloss::Loss::kMpdiou,
                                                         .weight = weight,
                                                         .normalizer = normalizer,
                                                         .lengths = lengths,
                                                         .mask = mask,
                                                         .offsets = offsets,
                                                         .pred_format = boxloss::BoxFormat::kXywh,
                                                         .target_format = boxloss::BoxFormat::kXywh,
                                                         .eps = 0.125,
                                                         .eps_mode = boxloss::EpsMode::kClamp,
                                                         .pred_index = pred_index,
                                                         .target_index = target_index,
                                                         .parameters = {64.0, 48.0}});
  return {losses.loss, losses.l1, losses.iou};
}

Tensor zero_padded(const Tensor& pred, const Tensor& target) {
  return boxloss::box_loss(pred, target,
                           {.zero_padded = true, .reduction = boxloss::Reduction::kNone});
}

Tensor loss_unset(const Tensor& pred, const Tensor& target) {
  return boxloss::box_loss(pred, target, {.loss = boxloss::Loss{}});
}

Tensor rotated_defaults(const Tensor& pred, const Tensor& target) {
  return boxloss::rotated_box_loss(pred, target, {.loss = boxloss::RotatedLoss::kKld});
}

Tensor rotated(const Tensor& pred, const Tensor& target, const Tensor& weight,
               const Tensor& normalizer, const Tensor& lengths, const Tensor& mask,
               const Tensor& offsets, const Tensor& pred_index, const Tensor& target_index) {
  return boxloss::rotated_box_loss(pred, target,
                                   {.loss = boxloss::RotatedLoss::kGiou,
                                    .weight = weight,
                                    .normalizer = normalizer,
                                    .lengths = lengths,
                                    .mask = mask,
                                    .offsets = offsets,
                                    .angle_unit = boxloss::AngleUnit::kDegrees,
                                    .eps = 0.125,
                                    .eps_mode = boxloss::EpsMode::kClamp,
                                    .pred_index = pred_index,
                                    .target_index = target_index});
}

Tensor rotated_zero_padded(const Tensor& pred, const Tensor& target) {
  return boxloss::rotated_box_loss(pred, target,
                                   {.loss = boxloss::RotatedLoss::kGwd,
                                    .zero_padded = true,
                                    .reduction = boxloss::Reduction::kNone,
                                    .parameters = {2.0, 0.125}});
}

Tensor rotated_unset(const Tensor& pred, const Tensor& target) {
  return boxloss::rotated_box_loss(pred, target, {});
}

Tensor cost_defaults(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::matching_cost(pred, target, offsets);
}

Tensor cost_of_logits(const Tensor& pred, const Tensor& target, const Tensor& offsets,
                      const Tensor& logits, const Tensor& labels) {
  return boxloss::matching_cost(pred, target, offsets,
                                {.logits = logits,
                                 .labels = labels,
                                 .loss = boxloss::Loss::kMpdiou,
                                 .iou_weight = 0.5,
                                 .l1_weight = 0,
                                 .class_weight = 3,
                                 .class_mode = boxloss::ClassTerm::kFocal,
                                 .focal_alpha = 0.75,
                                 .focal_gamma = 1.5,
                                 .pred_format = boxloss::BoxFormat::kXyxy,
                                 .target_format = boxloss::BoxFormat::kXywh,
                                 .eps = 0.125,
                                 .eps_mode = boxloss::EpsMode::kClamp,
                                 .parameters = {64.0, 48.0}});
}

Tensor cost_of_classes(const Tensor& pred, const Tensor& target, const Tensor& offsets,
                       const Tensor& class_cost) {
  return boxloss::matching_cost(pred, target, offsets,
                                {.class_cost = class_cost, .nonfinite = 100.0});
}

Tensor cost_rotated(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::matching_cost(pred, target, offsets,
                                {.loss = boxloss::RotatedLoss::kKld,
                                 .angle_weight = 3.0,
                                 .angle_unit = boxloss::AngleUnit::kDegrees});
}

Tensor iou_rotated(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::pairwise_iou(
      pred, target, offsets,
      {.loss = boxloss::RotatedLoss::kKld, .angle_unit = boxloss::AngleUnit::kDegrees});
}

Tensor iou_defaults(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::pairwise_iou(pred, target, offsets);
}

Tensor iou(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::pairwise_iou(pred, target, offsets,
                               {.loss = boxloss::Loss::kMpdiou,
                                .pred_format = boxloss::BoxFormat::kCxcywh,
                                .target_format = boxloss::BoxFormat::kXywh,
                                .eps = 0.125,
                                .eps_mode = boxloss::EpsMode::kClamp,
                                .parameters = {64.0, 48.0}});
}

ThreeTensors match_defaults(const Tensor& cost, const Tensor& offsets) {
  const auto [pred_index, target_index, target_of_query] = boxloss::hungarian_match(cost, offsets);
  return {pred_index, target_index, target_of_query};
}

ThreeTensors match(const Tensor& cost, const Tensor& offsets) {
  const boxloss::MatchResult result = boxloss::hungarian_match(cost, offsets, {.groups = 3});
  return {result.pred_index, result.target_index, result.target_of_query};
}

TwoTensors matrices_defaults(const Tensor& cost) {
  const auto [column_of_row, row_of_column] = boxloss::linear_sum_assignment(cost);
  return {column_of_row, row_of_column};
}

TwoTensors matrices_of_lengths(const Tensor& cost, const Tensor& lengths) {
  const boxloss::LinearSumAssignment result =
      boxloss::linear_sum_assignment(cost, {.lengths = lengths, .maximize = true});
  return {result.column_of_row, result.row_of_column};
}

TwoTensors matrices_limited(const Tensor& cost) {
  const auto [column_of_row, row_of_column] =
      boxloss::linear_sum_assignment(cost, {.cost_limit = 0.0});
  return {column_of_row, row_of_column};
}

TwoTensors max_iou_defaults(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const boxloss::MaxIouMatch matches =
      boxloss::max_iou_match(anchors, target, offsets, {.high = 0.7, .low = 0.3});
  return {matches.target_index, matches.iou};
}

TwoTensors max_iou(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const auto [target_index, iou] = boxloss::max_iou_match(
      anchors, target, offsets,
      {.high = 0.7, .low = 0.3, .low_quality = boxloss::LowQuality::kForce, .min_pos_iou = 0.4});
  return {target_index, iou};
}

TwoTensors max_iou_rotated(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const auto [target_index, iou] =
      boxloss::max_iou_match(anchors, target, offsets,
                             {.high = 0.7, .low = 0.3, .angle_unit = boxloss::AngleUnit::kDegrees});
  return {target_index, iou};
}

TwoTensors max_iou_unset(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const auto [target_index, iou] = boxloss::max_iou_match(anchors, target, offsets, {});
  return {target_index, iou};
}

ThreeTensors task_aligned_defaults(const Tensor& scores, const Tensor& pred, const Tensor& points,
                                   const Tensor& target, const Tensor& labels) {
  const boxloss::TaskAlignedMatch match =
      boxloss::task_aligned_match(scores, pred, points, target, {}, labels);
  return {match.target_index, match.score, match.overlap};
}

ThreeTensors task_aligned(const Tensor& scores, const Tensor& pred, const Tensor& points,
                          const Tensor& target, const Tensor& labels, const Tensor& offsets) {
  const auto [target_index, score, overlap] =
      boxloss::task_aligned_match(scores, pred, points, target, offsets, labels,
                                  {.topk = 3,
                                   .topk2 = 2,
                                   .alpha = 1.5,
                                   .beta = 0.5,
                                   .min_side = 64,
                                   .pred_format = boxloss::BoxFormat::kCxcywh,
                                   .small_side = 16});
  return {target_index, score, overlap};
}

ThreeTensors task_aligned_rotated(const Tensor& scores, const Tensor& pred, const Tensor& points,
                                  const Tensor& target, const Tensor& labels,
                                  const Tensor& offsets) {
  const auto [target_index, score, overlap] = boxloss::task_aligned_match(
      scores, pred, points, target, offsets, labels, {.angle_unit = boxloss::AngleUnit::kDegrees});
  return {target_index, score, overlap};
}

Tensor classes_defaults(const Tensor& logits, const Tensor& target_index, const Tensor& labels) {
  return boxloss::class_loss(logits, target_index, labels, {.mode = boxloss::ClassLoss::kFocal});
}

Tensor classes(const Tensor& logits, const Tensor& target_index, const Tensor& labels,
               const Tensor& weight, const Tensor& quality, const Tensor& normalizer) {
  return boxloss::class_loss(logits, target_index, labels,
                             {.mode = boxloss::ClassLoss::kVarifocal,
                              .quality = quality,
                              .weight = weight,
                              .alpha = 0.5,
                              .gamma = 1.5,
                              .normalizer = normalizer});
}

Tensor classes_by_query(const Tensor& logits, const Tensor& target_index, const Tensor& labels,
                        const Tensor& weight, const Tensor& query_quality) {
  return boxloss::class_loss(logits, target_index, labels,
                             {.mode = boxloss::ClassLoss::kMal,
                              .query_quality = query_quality,
                              .weight = weight,
                              .reduction = boxloss::Reduction::kNone});
}

Tensor classes_softmax(const Tensor& logits, const Tensor& target_index, const Tensor& labels,
                       const Tensor& weight) {
  return boxloss::class_loss(
      logits, target_index, labels,
      {.mode = boxloss::ClassLoss::kSoftmax, .weight = weight, .no_object_weight = 0.25});
}

Tensor classes_unset(const Tensor& logits, const Tensor& target_index, const Tensor& labels) {
  return boxloss::class_loss(logits, target_index, labels, {});
}

Tensor fgl_defaults(const Tensor& logits, const Tensor& target_index, const Tensor& reference,
                    const Tensor& target, const Tensor& edges) {
  return boxloss::distribution_loss(logits, target_index,
                                    {.mode = boxloss::DistributionLoss::kFgl,
                                     .reference = reference,
                                     .target = target,
                                     .edges = edges});
}

Tensor fgl(const Tensor& logits, const Tensor& target_index, const Tensor& reference,
           const Tensor& target, const Tensor& edges, const Tensor& quality,
           const Tensor& normalizer) {
  return boxloss::distribution_loss(logits, target_index,
                                    {.mode = boxloss::DistributionLoss::kFgl,
                                     .quality = quality,
                                     .reference = reference,
                                     .target = target,
                                     .edges = edges,
                                     .reg_scale = 2,
                                     .normalizer = normalizer});
}

Tensor ddf_defaults(const Tensor& logits, const Tensor& target_index, const Tensor& teacher,
                    const Tensor& confidence) {
  return boxloss::distribution_loss(
      logits, target_index,
      {.mode = boxloss::DistributionLoss::kDdf, .teacher = teacher, .confidence = confidence});
}

Tensor ddf(const Tensor& logits, const Tensor& target_index, const Tensor& teacher,
           const Tensor& confidence) {
  return boxloss::distribution_loss(logits, target_index,
                                    {.mode = boxloss::DistributionLoss::kDdf,
                                     .teacher = teacher,
                                     .confidence = confidence,
                                     .temperature = 2,
                                     .reduction = boxloss::Reduction::kNone});
}

Tensor distribution_unset(const Tensor& logits, const Tensor& target_index) {
  return boxloss::distribution_loss(logits, target_index, {});
}

}  // namespace

TORCH_LIBRARY(boxloss_typed, m) {
  m.def("loss_defaults", loss_defaults);
  m.def("losses", losses);
  m.def("zero_padded", zero_padded);
  m.def("loss_unset", loss_unset);
  m.def("rotated_defaults", rotated_defaults);
  m.def("rotated", rotated);
  m.def("rotated_zero_padded", rotated_zero_padded);
  m.def("rotated_unset", rotated_unset);
  m.def("cost_defaults", cost_defaults);
  m.def("cost_of_logits", cost_of_logits);
  m.def("cost_of_classes", cost_of_classes);
  m.def("cost_rotated", cost_rotated);
  m.def("iou_rotated", iou_rotated);
  m.def("iou_defaults", iou_defaults);
  m.def("iou", iou);
  m.def("match_defaults", match_defaults);
  m.def("match", match);
  m.def("matrices_defaults", matrices_defaults);
  m.def("matrices_of_lengths", matrices_of_lengths);
  m.def("matrices_limited", matrices_limited);
  m.def("max_iou_defaults", max_iou_defaults);
  m.def("max_iou", max_iou);
  m.def("max_iou_rotated", max_iou_rotated);
  m.def("max_iou_unset", max_iou_unset);
  m.def("task_aligned_defaults", task_aligned_defaults);
  m.def("task_aligned", task_aligned);
  m.def("task_aligned_rotated", task_aligned_rotated);
  m.def("classes_defaults", classes_defaults);
  m.def("classes", classes);
  m.def("classes_by_query", classes_by_query);
  m.def("classes_softmax", classes_softmax);
  m.def("classes_unset", classes_unset);
  m.def("fgl_defaults", fgl_defaults);
  m.def("fgl", fgl);
  m.def("ddf_defaults", ddf_defaults);
  m.def("ddf", ddf);
  m.def("distribution_unset", distribution_unset);
}
