// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/view.hpp>
#include <cstdint>

#include "lanes/matching_cost.hpp"
#include "losses/eps.hpp"

/// The loops that are compiled once for each capability of processors. Arrays are of the compute
/// type C, and boxes in them rows of four.
namespace boxloss::native {

/// Vector loops take whole blocks of pairs, and so need no loop for a remainder: arrays go on to
/// the end of the last block. What lies there is computed with, and means nothing.
constexpr int kBlock = 16;

constexpr int whole_blocks(int count) { return (count + kBlock - 1) / kBlock * kBlock; }

/// Pairs that are taken through all steps before the next, so that their arrays stay in the level 1
/// cache. Not 256: arrays of so many boxes begin 4096 bytes apart, where stores delay loads.
constexpr int kTilePairs = 240;

template <class C>
struct VectorCode {
  /// Values of any dtype to C, and back. These two alone keep to `values`.
  void (*read)(const void* from, DType dtype, int values, C* to);
  void (*write)(const C* from, int values, void* to, DType dtype);
  /// Boxes whose coordinates are arrays, `stride` elements from one to the next, to rows, and back.
  /// Of those arrays these keep to `boxes`.
  void (*read_columns)(const void* from, DType dtype, std::int64_t stride, int boxes, C* to);
  void (*write_columns)(const C* from, int boxes, void* to, DType dtype, std::int64_t stride);

  void (*to_corners)(C* boxes, BoxFormat format, int count);
  void (*from_corners_gradient)(C* gradients, BoxFormat format, int count);

  /// Of corner boxes.
  void (*losses)(Loss loss, const C* pred, const C* target, const Eps<C>& eps, int count,
                 C* losses);
  void (*ious)(const C* pred, const C* target, const Eps<C>& eps, int count, C* ious);
  /// The losses again, and their gradients times `by`; d_target may be null.
  void (*gradients)(Loss loss, const C* pred, const C* target, const Eps<C>& eps, int count,
                    const C* by, C* losses, C* d_pred, C* d_target);

  /// Of boxes as they are given.
  void (*l1)(const C* pred, const C* target, int count, C* l1);
  /// Adds l1 times `by`.
  void (*add_l1)(const C* pred, const C* target, int count, const C* by, C* values);
  /// Adds l1's gradients times `by`; d_target may be null.
  void (*add_l1_gradients)(const C* pred, const C* target, int count, const C* by, C* d_pred,
                           C* d_target);
  void (*multiply)(const C* by, int count, C* values);

  /// Which targets count: those that are not four zeros.
  void (*find_padding)(const C* targets, int count, std::uint8_t* counts);

  /// For a matcher: of one box with each of `boxes`.
  void (*losses_with)(const C* one, Loss loss, const C* boxes, const Eps<C>& eps, int count,
                      C* losses);
  void (*l1_with)(const C* one, const C* boxes, int count, C* l1);
  void (*class_costs)(ClassTerm term, const Focal<C>& focal, const C* logits, const C* log_sum_exps,
                      int count, C* costs);
  void (*cost_entries)(const CostArgs<AnyFormula, C>& args, const C* losses, const C* l1,
                       const C* class_terms, int count, float* entries);

  /// Of `count` values and no more.
  double (*sum)(const C* values, int count);
};

/// Those that cpu_capability() names, with its errors.
template <class C>
const VectorCode<C>& vector_code();
template <>
const VectorCode<float>& vector_code();
template <>
const VectorCode<double>& vector_code();

}  // namespace boxloss::native
