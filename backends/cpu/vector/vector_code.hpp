// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <boxloss/view.hpp>
#include <cstdint>
#include <type_traits>

#include "kernels/class_loss.hpp"
#include "kernels/distribution_loss.hpp"
#include "kernels/matching_cost.hpp"
#include "kernels/max_iou_match.hpp"
#include "losses/eps.hpp"

/// The loops that are compiled once for each capability. Arrays are of the compute type C; boxes
/// are rows of four.
namespace boxloss::native {

/// The pairs of a vector loop's block. Loops take whole blocks and need no remainder: arrays are
/// padded to the end of the last block, and the padding's results are discarded.
constexpr int kBlock = 16;

constexpr int whole_blocks(int count) { return (count + kBlock - 1) / kBlock * kBlock; }

/// The pairs of a tile, which go through all steps before the next tile, so that their arrays stay
/// in the level 1 cache. Not 256: the arrays would begin 4096 bytes apart, where stores delay
/// loads.
constexpr int kTilePairs = 240;

/// A tile of anchors, number by number: of a box along the axes its corners and its area; of a
/// rotated one its bounds, and then its own five. The last block is filled up with copies of the
/// last anchor.
template <class B>
struct AnchorTile {
  using C = typename B::Value;
  static constexpr int kBlocks = kTilePairs / kBlock;

  int blocks;
  C x1[kTilePairs], y1[kTilePairs], x2[kTilePairs], y2[kTilePairs];
  C own[B::kNumbers == 5 ? 5 : 1][kTilePairs];
  Box<C> bounds[kBlocks];  ///< of each block's anchors
};

/// A box's number: as wide as C, so that vectors of both have as many elements. Not an integer of
/// 64 bits, which not every capability can select.
template <class C>
using BoxNumber = std::conditional_t<std::is_same_v<C, double>, double, std::int32_t>;

/// For max-IoU matching.
template <class B, class C = typename B::Value>
struct AnchorCode {
  /// Takes anchors to a tile: corners, or boxes with an angle in radians.
  void (*to_tile)(const C* anchors, int count, AnchorTile<B>* tile);
  /// Updates each anchor's best IoU, and the number of the box that has it, where this box's IoU is
  /// better. Returns the box's best IoU with the tile's anchors.
  C (*match_with)(const MatchBox<B>& box, BoxNumber<C> number, const AnchorTile<B>& tile, C* ious,
                  BoxNumber<C>* numbers);
  /// Sets the number where the box's IoU is `best`, which is more than 0.
  void (*mark_best)(const MatchBox<B>& box, C best, BoxNumber<C> number, const AnchorTile<B>& tile,
                    BoxNumber<C>* numbers);
};

/// As those of VectorCode, for rotated boxes, which are rows of five.
template <class C>
struct RotatedCode {
  void (*in_radians)(C* boxes, AngleUnit unit, int count);
  void (*from_radians_gradient)(C* gradients, AngleUnit unit, int count);
  /// For angles in radians.
  void (*losses)(RotatedLoss loss, const C* pred, const C* target, const Constants<C>& constants,
                 int count, C* losses);
  void (*ious)(const C* pred, const C* target, const Eps<C>& eps, int count, C* ious);
  void (*gradients)(RotatedLoss loss, const C* pred, const C* target, const Constants<C>& constants,
                    int count, const C* by, C* losses, C* d_pred, C* d_target);
  void (*find_padding)(const C* targets, int count, std::uint8_t* counts);
  void (*losses_with)(const C* one, RotatedLoss loss, const C* boxes, const Constants<C>& constants,
                      int count, C* losses);
  void (*distances_with)(const CostArgs<AnyRotatedFormula, C>& args, const C* one, const C* boxes,
                         int count, C* distances);
  void (*cost_entries)(const CostArgs<AnyRotatedFormula, C>& args, const C* losses,
                       const C* distances, const C* class_terms, int count, float* entries);
  AnchorCode<RotatedBox<C>> anchors;
};

template <class C>
struct VectorCode {
  /// Converts values of any dtype to C, and back. Only these two process exactly `values`, without
  /// padding.
  void (*read)(const void* from, DType dtype, int values, C* to);
  void (*write)(const C* from, int values, void* to, DType dtype);
  /// Transposes boxes whose `numbers`, four or five, are separate arrays, `stride` elements apart,
  /// to rows, and back. In those arrays only `boxes` are touched, without padding.
  void (*read_columns)(const void* from, DType dtype, std::int64_t stride, int numbers, int boxes,
                       C* to);
  void (*write_columns)(const C* from, int numbers, int boxes, void* to, DType dtype,
                        std::int64_t stride);

  void (*to_corners)(C* boxes, BoxFormat format, int count);
  void (*from_corners_gradient)(C* gradients, BoxFormat format, int count);

  /// For corner boxes.
  void (*losses)(Loss loss, const C* pred, const C* target, const Constants<C>& constants,
                 int count, C* losses);
  void (*ious)(const C* pred, const C* target, const Eps<C>& eps, int count, C* ious);
  /// The losses again, and their gradients times `by`; d_target may be null.
  void (*gradients)(Loss loss, const C* pred, const C* target, const Constants<C>& constants,
                    int count, const C* by, C* losses, C* d_pred, C* d_target);

  /// For boxes as given.
  void (*l1)(const C* pred, const C* target, int count, C* l1);
  /// Adds l1 times `by`.
  void (*add_l1)(const C* pred, const C* target, int count, const C* by, C* values);
  /// Adds l1's gradients times `by`; d_target may be null.
  void (*add_l1_gradients)(const C* pred, const C* target, int count, const C* by, C* d_pred,
                           C* d_target);
  void (*multiply)(const C* by, int count, C* values);

  /// Which targets are valid: those that are not four zeros.
  void (*find_padding)(const C* targets, int count, std::uint8_t* counts);

  RotatedCode<C> rotated;

  /// For a matcher: the terms of one box with each of `boxes`.
  void (*losses_with)(const C* one, Loss loss, const C* boxes, const Constants<C>& constants,
                      int count, C* losses);
  void (*l1_with)(const C* one, const C* boxes, int count, C* l1);
  void (*class_costs)(ClassTerm term, const Focal<C>& focal, const C* scores, int count, C* costs);
  void (*cost_entries)(const CostArgs<AnyFormula, C>& args, const C* losses, const C* l1,
                       const C* class_terms, int count, float* entries);

  AnchorCode<Box<C>> anchors;

  /// For class losses: of classes that are not the query's own.
  void (*other_losses)(const ClassNumbers<C>& numbers, const C* logits, int count, C* losses);
  void (*other_slopes)(const ClassNumbers<C>& numbers, const C* logits, int count, C* slopes);
  /// exp(x - largest), for x that are not larger.
  void (*exps)(const C* x, C largest, int count, C* exps);

  /// For losses of distributions: the largest, with NaN any; the padding must not be it.
  C (*largest)(const C* x, int count);
  /// exp of the logits and of the teacher's, less the largest and times `by`; and the divergence's
  /// parts.
  void (*distill)(const C* own, C largest, const C* teacher, C largest_of_teacher, C by, int count,
                  C* own_exps, C* teacher_exps, C* parts);

  /// For exactly `count` values.
  double (*sum)(const C* values, int count);

  /// A step of a row's search in an assignment, for exactly `count` places:
  /// distances[i] = the lesser of it and length + sign * costs[i] - dual - duals[i]. One that is
  /// NaN is of a place that was visited, and stays. Sets `least` to the least of them, `places` to
  /// those that have it, and returns how many these are.
  int (*relax)(const C* costs, double sign, double length, double dual, const double* duals,
               int count, double* distances, double* least, int* places);
};

/// The loops of the capability that cpu_capability() names, with its errors.
template <class C>
const VectorCode<C>& vector_code();
template <>
const VectorCode<float>& vector_code();
template <>
const VectorCode<double>& vector_code();

}  // namespace boxloss::native
