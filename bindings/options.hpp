// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one list of each operation's parameters, for every framework: kind, name, and default as
/// Python writes it, in the operators' order. One without a default must be given. Schemas,
/// argument structs, calls, and the conversion of the typed functions' options derive from it.
///
/// Strided: an array of any strides; Packed: one whose values are read as they lie in a row-major
/// array, and copied if they do not; Flag: a bool; Word: a string; Number: a float; Numbers:
/// several; Whole: an int. Optional…: one that may be missing. PackedList: several arrays; Answer:
/// maybe a number that the host reads, and the operation writes.
// clang-format off
#define BOXLOSS_PAIRING_OPTIONS(use)    \
  use(OptionalPacked, weight, None)     \
  use(OptionalPacked, normalizer, None) \
  use(OptionalPacked, lengths, None)    \
  use(OptionalPacked, mask, None)       \
  use(OptionalPacked, offsets, None)    \
  use(Flag, zero_padded, False)

#define BOXLOSS_BOX_FORMATS(use)  \
  use(Word, pred_format, 'xyxy')  \
  use(Word, target_format, 'xyxy')

#define BOXLOSS_REDUCTION_OPTIONS(use)    \
  use(Word, reduction, 'mean')            \
  use(Number, eps, 1e-7)                  \
  use(Word, eps_mode, 'add')              \
  use(OptionalPacked, pred_index, None)   \
  use(OptionalPacked, target_index, None) \
  use(Numbers, parameters, [])

#define BOXLOSS_BOX_LOSS_OPTIONS(use) \
  use(Word, loss, 'giou')             \
  BOXLOSS_PAIRING_OPTIONS(use)        \
  BOXLOSS_BOX_FORMATS(use)            \
  BOXLOSS_REDUCTION_OPTIONS(use)

#define BOXLOSS_ROTATED_BOX_LOSS_OPTIONS(use) \
  BOXLOSS_PAIRING_OPTIONS(use)                \
  use(Word, angle_unit, 'radians')            \
  BOXLOSS_REDUCTION_OPTIONS(use)

#define BOXLOSS_MATCHING_COST_OPTIONS(use) \
  use(OptionalStrided, logits, None)       \
  use(OptionalPacked, labels, None)        \
  use(OptionalStrided, class_cost, None)   \
  use(Word, loss, 'giou')                  \
  use(Number, iou_weight, 2.0)             \
  use(Number, l1_weight, 5.0)              \
  use(Number, class_weight, 1.0)           \
  use(Word, class_mode, 'softmax')         \
  use(Number, focal_alpha, 0.25)           \
  use(Number, focal_gamma, 2.0)            \
  use(Word, pred_format, 'cxcywh')         \
  use(Word, target_format, 'cxcywh')       \
  use(Number, eps, 0.0)                    \
  use(Word, eps_mode, 'add')               \
  use(OptionalNumber, nonfinite, None)     \
  use(Number, angle_weight, 0.0)           \
  use(Word, angle_unit, 'radians')         \
  use(Numbers, parameters, [])

#define BOXLOSS_PAIRWISE_IOU_OPTIONS(use) \
  use(Word, loss, 'ciou')                 \
  BOXLOSS_BOX_FORMATS(use)                \
  use(Number, eps, 1e-7)                  \
  use(Word, eps_mode, 'add')              \
  use(Word, angle_unit, 'radians')        \
  use(Numbers, parameters, [])

#define BOXLOSS_MAX_IOU_MATCH_OPTIONS(use) \
  use(Word, low_quality, 'none')           \
  use(Number, min_pos_iou, 0.0)            \
  use(Word, angle_unit, 'radians')

#define BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(use) \
  use(Whole, topk, 10)                          \
  use(OptionalWhole, topk2, None)               \
  use(Number, alpha, 0.5)                       \
  use(Number, beta, 6.0)                        \
  use(Number, min_side, 0.0)                    \
  use(Word, pred_format, 'xyxy')                \
  use(OptionalNumber, small_side, None)         \
  use(Word, angle_unit, 'radians')

#define BOXLOSS_CLASS_LOSS_OPTIONS(use)    \
  use(OptionalPacked, quality, None)       \
  use(OptionalPacked, query_quality, None) \
  use(OptionalPacked, weight, None)        \
  use(OptionalNumber, alpha, None)         \
  use(OptionalNumber, gamma, None)         \
  use(Number, no_object_weight, 1.0)       \
  use(Word, reduction, 'mean')             \
  use(OptionalPacked, normalizer, None)

#define BOXLOSS_DISTRIBUTION_LOSS_OPTIONS(use) \
  use(OptionalPacked, quality, None)           \
  use(OptionalPacked, reference, None)         \
  use(OptionalPacked, target, None)            \
  use(OptionalPacked, edges, None)             \
  use(Number, reg_scale, 4.0)                  \
  use(OptionalStrided, teacher, None)          \
  use(OptionalPacked, confidence, None)        \
  use(Number, temperature, 5.0)                \
  use(Word, reduction, 'mean')                 \
  use(OptionalPacked, normalizer, None)

/// What both losses of pairs have, and more: those of either.
#define BOXLOSS_PAIR_LOSS_PARAMETERS(use) \
  BOXLOSS_BOX_LOSS_PARAMETERS(use)        \
  use(Word, angle_unit, 'radians')

#define BOXLOSS_BOX_LOSS_PARAMETERS(use) \
  use(Strided, pred, )                   \
  use(Strided, target, )                 \
  BOXLOSS_BOX_LOSS_OPTIONS(use)

#define BOXLOSS_ROTATED_BOX_LOSS_PARAMETERS(use) \
  use(Strided, pred, )                           \
  use(Strided, target, )                         \
  use(Word, loss, )                              \
  BOXLOSS_ROTATED_BOX_LOSS_OPTIONS(use)

#define BOXLOSS_MATCHING_COST_PARAMETERS(use) \
  use(Strided, pred, )                        \
  use(Strided, target, )                      \
  use(Packed, offsets, )                      \
  BOXLOSS_MATCHING_COST_OPTIONS(use)

#define BOXLOSS_PAIRWISE_IOU_PARAMETERS(use) \
  use(Strided, pred, )                       \
  use(Strided, target, )                     \
  use(Packed, offsets, )                     \
  BOXLOSS_PAIRWISE_IOU_OPTIONS(use)

#define BOXLOSS_ASSIGN_PARAMETERS(use) \
  use(Strided, cost, )                 \
  use(Packed, offsets, )               \
  use(Whole, groups, 1)

#define BOXLOSS_LINEAR_SUM_ASSIGNMENT_OPTIONS(use) \
  use(OptionalPacked, lengths, None)               \
  use(Flag, maximize, False)                       \
  use(OptionalNumber, cost_limit, None)

#define BOXLOSS_LINEAR_SUM_ASSIGNMENT_PARAMETERS(use) \
  use(Strided, cost, )                                \
  BOXLOSS_LINEAR_SUM_ASSIGNMENT_OPTIONS(use)

#define BOXLOSS_MAX_IOU_MATCH_PARAMETERS(use) \
  use(Strided, anchors, )                     \
  use(Strided, target, )                      \
  use(Packed, offsets, )                      \
  use(Number, high, )                         \
  use(Number, low, )                          \
  BOXLOSS_MAX_IOU_MATCH_OPTIONS(use)

#define BOXLOSS_TASK_ALIGNED_MATCH_PARAMETERS(use) \
  use(Strided, scores, )                           \
  use(Strided, pred, )                             \
  use(Strided, points, )                           \
  use(Strided, target, )                           \
  use(OptionalPacked, offsets, )                   \
  use(Packed, labels, )                            \
  BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(use)

#define BOXLOSS_COLLATE_TARGETS_PARAMETERS(use) \
  use(PackedList, boxes, )                      \
  use(PackedList, labels, )                     \
  use(OptionalPacked, image, )                  \
  use(Whole, classes, )                         \
  use(Whole, images, )                          \
  use(Flag, has_sizes, )                        \
  use(Answer, answer, )

#define BOXLOSS_CLASS_LOSS_PARAMETERS(use) \
  use(Strided, logits, )                   \
  use(Packed, target_index, )              \
  use(Packed, labels, )                    \
  use(Word, mode, )                        \
  BOXLOSS_CLASS_LOSS_OPTIONS(use)

#define BOXLOSS_DISTRIBUTION_LOSS_PARAMETERS(use) \
  use(Strided, logits, )                          \
  use(Packed, target_index, )                     \
  use(Word, mode, )                               \
  BOXLOSS_DISTRIBUTION_LOSS_OPTIONS(use)

/// Of gradients, in front of the loss' own.
#define BOXLOSS_LOGITS_GRADIENT_PARAMETERS(use) \
  use(Packed, grad, )                           \
  use(Packed, scale, )

#define BOXLOSS_WANTED_GRADIENTS(use) \
  use(Packed, scale, )                \
  use(Flag, wants_pred, )             \
  use(Flag, wants_target, )           \
  use(Flag, wants_weight, )

#define BOXLOSS_PAIR_GRADIENT_PARAMETERS(use) \
  use(Strided, grad_loss, )                   \
  BOXLOSS_WANTED_GRADIENTS(use)

#define BOXLOSS_PAIRS_GRADIENT_PARAMETERS(use) \
  use(OptionalStrided, grad_loss, )            \
  use(OptionalStrided, grad_l1, )              \
  BOXLOSS_WANTED_GRADIENTS(use)
// clang-format on
