// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of boxloss/torch.hpp for test_typed_functions.py, each option by itself.
// Enumerators come as numbers.
#include <torch/library.h>

#include <boxloss/torch.hpp>
#include <cstdint>
#include <tuple>

namespace {

using at::Tensor;
using boxloss::BoxLossOptions;

Tensor defaults(const Tensor& pred, const Tensor& target) {
  return boxloss::box_loss(pred, target);
}

template <auto option>
Tensor with_tensor(const Tensor& pred, const Tensor& target, const Tensor& value) {
  BoxLossOptions options;
  options.*option = value;
  return boxloss::box_loss(pred, target, options);
}

template <auto option, class Number>
Tensor with_number(const Tensor& pred, const Tensor& target, Number value) {
  BoxLossOptions options;
  options.*option = static_cast<std::remove_reference_t<decltype(options.*option)>>(value);
  return boxloss::box_loss(pred, target, options);
}

std::tuple<Tensor, Tensor, Tensor> box_losses(const Tensor& pred, const Tensor& target,
                                              const Tensor& weight) {
  const boxloss::BoxLosses losses = boxloss::box_losses(
      pred, target, {.loss = boxloss::Loss::kSiou, .weight = weight, .eps = 0.25});
  return {losses.loss, losses.l1, losses.iou};
}

Tensor cost_defaults(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::matching_cost(pred, target, offsets);
}

Tensor cost_of_logits(const Tensor& pred, const Tensor& target, const Tensor& offsets,
                      const Tensor& logits, const Tensor& labels, std::int64_t class_mode) {
  return boxloss::matching_cost(pred, target, offsets,
                                {.logits = logits,
                                 .labels = labels,
                                 .loss = boxloss::Loss::kDiou,
                                 .iou_weight = 0.5,
                                 .l1_weight = 0,
                                 .class_weight = 3,
                                 .class_mode = static_cast<boxloss::ClassTerm>(class_mode),
                                 .focal_alpha = 0.75,
                                 .focal_gamma = 1.5,
                                 .pred_format = boxloss::BoxFormat::kXyxy,
                                 .target_format = boxloss::BoxFormat::kXywh,
                                 .eps = 0.125,
                                 .eps_mode = boxloss::EpsMode::kClamp});
}

Tensor cost_of_classes(const Tensor& pred, const Tensor& target, const Tensor& offsets,
                       const Tensor& class_cost) {
  return boxloss::matching_cost(pred, target, offsets,
                                {.class_cost = class_cost, .nonfinite = 100.0});
}

using Matched = std::tuple<Tensor, Tensor, Tensor>;

Matched match_defaults(const Tensor& cost, const Tensor& offsets) {
  const auto [pred_index, target_index, target_of_query] = boxloss::hungarian_match(cost, offsets);
  return {pred_index, target_index, target_of_query};
}

Matched match_groups(const Tensor& cost, const Tensor& offsets, std::int64_t groups) {
  const boxloss::MatchResult result = boxloss::hungarian_match(cost, offsets, {.groups = groups});
  return {result.pred_index, result.target_index, result.target_of_query};
}

using MatchedByIou = std::tuple<Tensor, Tensor>;

MatchedByIou max_iou_defaults(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const boxloss::MaxIouMatch matches =
      boxloss::max_iou_match(anchors, target, offsets, {.high = 0.5, .low = 0.4});
  return {matches.target_index, matches.iou};
}

MatchedByIou max_iou_unset(const Tensor& anchors, const Tensor& target, const Tensor& offsets) {
  const auto [target_index, iou] = boxloss::max_iou_match(anchors, target, offsets, {});
  return {target_index, iou};
}

MatchedByIou max_iou_options(const Tensor& anchors, const Tensor& target, const Tensor& offsets,
                             std::int64_t low_quality, double min_pos_iou) {
  const auto [target_index, iou] =
      boxloss::max_iou_match(anchors, target, offsets,
                             {.high = 0.7,
                              .low = 0.3,
                              .low_quality = static_cast<boxloss::LowQuality>(low_quality),
                              .min_pos_iou = min_pos_iou});
  return {target_index, iou};
}

Matched task_aligned_defaults(const Tensor& scores, const Tensor& pred, const Tensor& points,
                              const Tensor& target, const Tensor& labels) {
  const boxloss::TaskAlignedMatch match =
      boxloss::task_aligned_match(scores, pred, points, target, {}, labels);
  return {match.target_index, match.score, match.overlap};
}

Matched task_aligned_options(const Tensor& scores, const Tensor& pred, const Tensor& points,
                             const Tensor& target, const Tensor& offsets, const Tensor& labels) {
  const auto [target_index, score, overlap] =
      boxloss::task_aligned_match(scores, pred, points, target, offsets, labels,
                                  {.topk = 3,
                                   .topk2 = 2,
                                   .alpha = 1.5,
                                   .beta = 0.5,
                                   .min_side = 8,
                                   .pred_format = boxloss::BoxFormat::kCxcywh,
                                   .small_side = 5.5});
  return {target_index, score, overlap};
}

Tensor parameters(const Tensor& pred, const Tensor& target, at::ArrayRef<double> numbers) {
  return boxloss::box_loss(pred, target,
                           {.loss = boxloss::Loss::kMpdiou, .parameters = numbers.vec()});
}

Tensor pairwise_defaults(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::pairwise_iou(pred, target, offsets);
}

Tensor pairwise_iou(const Tensor& pred, const Tensor& target, const Tensor& offsets) {
  return boxloss::pairwise_iou(pred, target, offsets,
                               {.loss = boxloss::Loss::kEiou,
                                .pred_format = boxloss::BoxFormat::kCxcywh,
                                .target_format = boxloss::BoxFormat::kXywh,
                                .eps = 0.125,
                                .eps_mode = boxloss::EpsMode::kClamp});
}

}  // namespace

TORCH_LIBRARY(boxloss_typed, m) {
  m.def("defaults", defaults);
  m.def("loss", with_number<&BoxLossOptions::loss, std::int64_t>);
  m.def("weight", with_tensor<&BoxLossOptions::weight>);
  m.def("normalizer", with_tensor<&BoxLossOptions::normalizer>);
  m.def("lengths", with_tensor<&BoxLossOptions::lengths>);
  m.def("mask", with_tensor<&BoxLossOptions::mask>);
  m.def("offsets", with_tensor<&BoxLossOptions::offsets>);
  m.def("zero_padded", with_number<&BoxLossOptions::zero_padded, bool>);
  m.def("pred_format", with_number<&BoxLossOptions::pred_format, std::int64_t>);
  m.def("target_format", with_number<&BoxLossOptions::target_format, std::int64_t>);
  m.def("reduction", with_number<&BoxLossOptions::reduction, std::int64_t>);
  m.def("eps", with_number<&BoxLossOptions::eps, double>);
  m.def("eps_mode", with_number<&BoxLossOptions::eps_mode, std::int64_t>);
  m.def("pred_index", with_tensor<&BoxLossOptions::pred_index>);
  m.def("target_index", with_tensor<&BoxLossOptions::target_index>);
  m.def("parameters", parameters);
  m.def("box_losses", box_losses);
  m.def("cost_defaults", cost_defaults);
  m.def("cost_of_logits", cost_of_logits);
  m.def("cost_of_classes", cost_of_classes);
  m.def("match_defaults", match_defaults);
  m.def("match_groups", match_groups);
  m.def("max_iou_defaults", max_iou_defaults);
  m.def("max_iou_unset", max_iou_unset);
  m.def("max_iou_options", max_iou_options);
  m.def("task_aligned_defaults", task_aligned_defaults);
  m.def("task_aligned_options", task_aligned_options);
  m.def("pairwise_defaults", pairwise_defaults);
  m.def("pairwise_iou", pairwise_iou);
}
