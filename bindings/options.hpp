// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one list of each operation's options, for every framework: kind, name, and default as Python
/// writes it, in the order of the operators' parameters. Schemas, argument structs, calls, and the
/// conversion of the typed functions' options derive from it. A binding defines the kinds:
///
/// Array: an array that may be missing; Flag: a bool; Word: a string; Number: a float;
/// OptionalNumber: a float that may be missing; Whole, OptionalWhole: an int.
// clang-format off
#define BOXLOSS_BOX_LOSS_OPTIONS(use) \
  use(Word, loss, 'giou')             \
  use(Array, weight, None)            \
  use(Array, normalizer, None)        \
  use(Array, lengths, None)           \
  use(Array, mask, None)              \
  use(Array, offsets, None)           \
  use(Flag, zero_padded, False)       \
  use(Word, pred_format, 'xyxy')      \
  use(Word, target_format, 'xyxy')    \
  use(Word, reduction, 'mean')        \
  use(Number, eps, 1e-7)              \
  use(Word, eps_mode, 'add')          \
  use(Array, pred_index, None)        \
  use(Array, target_index, None)

#define BOXLOSS_MATCHING_COST_OPTIONS(use) \
  use(Array, logits, None)                 \
  use(Array, labels, None)                 \
  use(Array, class_cost, None)             \
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
  use(OptionalNumber, nonfinite, None)

#define BOXLOSS_PAIRWISE_IOU_OPTIONS(use) \
  use(Word, loss, 'ciou')                 \
  use(Word, pred_format, 'xyxy')          \
  use(Word, target_format, 'xyxy')        \
  use(Number, eps, 1e-7)                  \
  use(Word, eps_mode, 'add')

#define BOXLOSS_MAX_IOU_MATCH_OPTIONS(use) \
  use(Word, low_quality, 'none')           \
  use(Number, min_pos_iou, 0.0)

#define BOXLOSS_TASK_ALIGNED_MATCH_OPTIONS(use) \
  use(Whole, topk, 10)                          \
  use(OptionalWhole, topk2, None)               \
  use(Number, alpha, 0.5)                       \
  use(Number, beta, 6.0)                        \
  use(Number, min_side, 0.0)                    \
  use(Word, pred_format, 'xyxy')                \
  use(OptionalNumber, small_side, None)
// clang-format on

/// What lists become: members of a struct, names behind others, and rows of kind, name and default.
#define BOXLOSS_OPTION_MEMBER(Kind, name, standard) Kind name;
#define BOXLOSS_OPTION_NAME(Kind, name, standard) , name
#define BOXLOSS_OPTION_ROW(Kind, name, standard) {kind_of<Kind>, #name, #standard},
