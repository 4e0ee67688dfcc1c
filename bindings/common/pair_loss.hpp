// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <type_traits>
#include <utility>

#include "arguments.hpp"

namespace boxloss::binding {

/// The type of sizes in a loss' arguments.
template <class Args>
using SizeOf = std::decay_t<decltype(std::declval<const Args&>().pred.size(0))>;

/// What losses of pairs share, whatever a box is. Sizes and memory of a problem are set by the
/// framework, which lays boxes of any leading dimensions out as images and slots. `Own` has the
/// arguments, and sets the loss and what a box' numbers mean by `set_own(problem, arguments)`.
template <class Own, class ItsProblem>
struct PairLoss {
  using Problem = ItsProblem;
  static constexpr int kNumbers = Problem::kNumbers;  ///< of a box

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  template <class Args>
  static const auto* index_of(const Args& a) {
    return a.pred_index ? &a.pred_index : a.target_index ? &a.target_index : nullptr;
  }

  /// Shape of the unreduced loss, of weight and of iou.
  template <class Args>
  static std::vector<SizeOf<Args>> shape_of_rows(const Args& a) {
    const auto* const index = index_of(a);
    if (index != nullptr) return {index->shape, index->shape + index->rank};
    const auto& boxes = a.offsets ? a.target : a.pred;
    return {boxes.shape, boxes.shape + boxes.rank - 1};
  }

  /// Shape of the reduced loss and of scale: none, or (S).
  template <class Args>
  static std::vector<SizeOf<Args>> shape_of_sets(const Args& a) {
    const auto* const index = index_of(a);
    if (index == nullptr || index->rank == 1) return {};
    return {index->size(0)};
  }

  /// Without sizes, strides and pointers.
  template <class Args>
  static Problem describe(const Args& a, bool extras = false) {
    Problem p;
    Own::set_own(p, a);
    p.pairing.kind = pairing_of(a);
    p.reduction =
        parse("reduction", a.reduction, {Reduction::kNone, Reduction::kSum, Reduction::kMean});
    p.eps = a.eps;
    p.eps_mode = parse_eps_mode(a.eps_mode);
    p.parameters = parameters_of(p.loss, a.parameters);
    p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
    p.target.dtype = dtype_of(a.target);
    p.pairing.data = pairing_data(a);
    for (const auto& [view, index] :
         {std::tie(p.pred.rows, a.pred_index), std::tie(p.target.rows, a.target_index)}) {
      if (index) view = {index.data, index_dtype_of(index)};
    }
    p.weight = view_of(a.weight, kFloatingDTypes);
    p.normalizer = view_of(a.normalizer, kNormalizerDTypes);
    p.normalizer_stride = a.normalizer ? static_cast<std::int64_t>(a.normalizer.rank) : 0;

    check_boxes_shape(a.pred, kNumbers);
    check_boxes_shape(a.target, kNumbers);
    check_pairing(a, p.pairing.kind);
    if (a.weight) check_shape(a.weight, shape_of_rows(a), "the shape of the unreduced loss");
    if (a.normalizer) check_normalizer(a);
    check_options(p, extras ? kExtras : Set<Extra>{});
    return p;
  }

  template <class Args>
  static Pairing::Kind pairing_of(const Args& a) {
    const bool has_index = a.pred_index || a.target_index;
    const int count =
        a.zero_padded + a.lengths.is_given + a.mask.is_given + a.offsets.is_given + has_index;
    check(count <= 1, "give at most one of zero_padded, lengths, mask, offsets and indices; got",
          a.zero_padded ? " zero_padded" : "", a.lengths ? " lengths" : "", a.mask ? " mask" : "",
          a.offsets ? " offsets" : "", a.pred_index ? " pred_index" : "",
          a.target_index ? " target_index" : "");
    if (has_index) return Pairing::Kind::kIndexed;
    if (a.zero_padded) return Pairing::Kind::kZeroPadded;
    if (a.lengths) return Pairing::Kind::kLengths;
    if (a.mask) return Pairing::Kind::kMask;
    return a.offsets ? Pairing::Kind::kOffsets : Pairing::Kind::kDense;
  }

  /// Lengths, mask or offsets. Core has a mask's bytes.
  template <class Args>
  static ArrayView pairing_data(const Args& a) {
    if (!a.mask) return view_of(a.lengths ? a.lengths : a.offsets, kIndexDTypes);
    const bool is_bool = !a.mask.dtype && a.mask.other_dtype == "bool";
    if (!is_bool) {
      refuse_dtype("mask", a.mask.dtype ? name_of(*a.mask.dtype) : a.mask.other_dtype, "bool");
    }
    return {a.mask.data, DType::kU8};
  }

  /// Whether pred is (images, slots, kNumbers).
  static bool is_by_image(Pairing::Kind pairing) {
    return pairing == Pairing::Kind::kZeroPadded || pairing == Pairing::Kind::kLengths ||
           pairing == Pairing::Kind::kOffsets;
  }

  template <class Args>
  static void check_pairing(const Args& a, Pairing::Kind pairing) {
    if (pairing == Pairing::Kind::kIndexed) return check_indexed(a);
    check(!is_by_image(pairing) || a.pred.rank == 3, "pred has shape ", ShapeOf(a.pred),
          "; with zero_padded, lengths or offsets it must be (images, slots, ", kNumbers, ")");
    if (pairing == Pairing::Kind::kOffsets) {
      check(a.target.rank == 2, "target has shape ", ShapeOf(a.target),
            "; with offsets it must be (boxes of all images, ", kNumbers, ")");
      return check_shape(a.offsets, {a.pred.size(0) + 1}, "one more than pred has images");
    }
    check(has_shape(a.pred, ShapeOf(a.target)), "pred has shape ", ShapeOf(a.pred),
          ", target has shape ", ShapeOf(a.target), "; they must be equal");
    if (a.lengths) check_shape(a.lengths, {a.pred.size(0)}, "one for each image of pred");
    if (a.mask) check_shape(a.mask, shape_of_rows(a), "pred's without the ", kNumbers);
  }

  template <class Args>
  static void check_indexed(const Args& a) {
    for (const auto* index : {&a.pred_index, &a.target_index}) {
      if (*index) {
        check_shape_is(*index, index->rank == 1 || index->rank == 2, "(pairs) or (sets, pairs)");
      }
    }
    std::vector<SizeOf<Args>> shape = shape_of_rows(a);
    if (a.pred_index && a.target_index) {
      check_shape(a.target_index, shape, "pred_index's shape");
    }
    shape.push_back(kNumbers);
    for (const auto& [index, boxes] :
         {std::tie(a.pred_index, a.pred), std::tie(a.target_index, a.target)}) {
      if (index) continue;
      check_shape(boxes, shape, "the shape of the other index, with a ", kNumbers, " behind it");
    }
  }

  template <class Args>
  static void check_normalizer(const Args& a) {
    const auto& normalizer = a.normalizer;
    const bool fits =
        normalizer.rank == 0 || (index_of(a) != nullptr && has_shape(normalizer, shape_of_sets(a)));
    check(fits, "normalizer has shape ", ShapeOf(normalizer),
          "; it must have no dimension or, with indices (sets, pairs), be (sets)");
  }

  /// loss and scale
  template <class Args>
  static std::array<Output<SizeOf<Args>>, 2> outputs(const Args& a, const Problem& p) {
    const DType dtype = compute_dtype(p);
    const bool is_reduced = p.reduction != Reduction::kNone;
    return {{{dtype, is_reduced ? shape_of_sets(a) : shape_of_rows(a)}, {dtype, shape_of_sets(a)}}};
  }
};

}  // namespace boxloss::binding
