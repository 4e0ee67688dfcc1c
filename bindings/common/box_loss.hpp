// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>

#include "arguments.hpp"

namespace boxloss::binding {

/// The losses as frameworks call them. Sizes and memory of a problem are set by the framework,
/// which lays boxes of any leading dimensions out as images and slots.
struct BoxLoss {
  static constexpr std::array kOutputs = {"loss", "scale", "l1", "iou"};
  BOXLOSS_ARGUMENTS(BOXLOSS_BOX_LOSS_PARAMETERS);

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  template <class Size>
  static const Array<Size>* index_of(const Arguments<Described<Size>>& a) {
    return a.pred_index ? &a.pred_index : a.target_index ? &a.target_index : nullptr;
  }

  /// Shape of the unreduced loss, of weight and of iou.
  template <class Size>
  static std::vector<Size> shape_of_rows(const Arguments<Described<Size>>& a) {
    const Array<Size>* const index = index_of(a);
    if (index != nullptr) return {index->shape, index->shape + index->rank};
    const Array<Size>& boxes = a.offsets ? a.target : a.pred;
    return {boxes.shape, boxes.shape + boxes.rank - 1};
  }

  /// Shape of the reduced loss and of scale: none, or (S).
  template <class Size>
  static std::vector<Size> shape_of_sets(const Arguments<Described<Size>>& a) {
    const Array<Size>* const index = index_of(a);
    if (index == nullptr || index->rank == 1) return {};
    return {index->size(0)};
  }

  /// Without sizes, strides and pointers.
  template <class Size>
  static LossProblem describe(const Arguments<Described<Size>>& a, bool extras) {
    LossProblem p;
    p.loss = loss_named(a.loss);
    p.pred.format = parse_format("pred_format", a.pred_format);
    p.target.format = parse_format("target_format", a.target_format);
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

    check_boxes_shape(a.pred);
    check_boxes_shape(a.target);
    check_pairing(a, p.pairing.kind);
    if (a.weight) check_shape(a.weight, shape_of_rows(a), "the shape of the unreduced loss");
    if (a.normalizer) check_normalizer(a);
    check_options(p, extras ? kExtras : Set<Extra>{});
    return p;
  }

  template <class Size>
  static Pairing::Kind pairing_of(const Arguments<Described<Size>>& a) {
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
  template <class Size>
  static ArrayView pairing_data(const Arguments<Described<Size>>& a) {
    if (!a.mask) return view_of(a.lengths ? a.lengths : a.offsets, kIndexDTypes);
    const bool is_bool = !a.mask.dtype && a.mask.other_dtype == "bool";
    if (!is_bool) {
      refuse_dtype("mask", a.mask.dtype ? name_of(*a.mask.dtype) : a.mask.other_dtype, "bool");
    }
    return {a.mask.data, DType::kU8};
  }

  /// Whether pred is (images, slots, 4).
  static bool is_by_image(Pairing::Kind pairing) {
    return pairing == Pairing::Kind::kZeroPadded || pairing == Pairing::Kind::kLengths ||
           pairing == Pairing::Kind::kOffsets;
  }

  template <class Size>
  static void check_pairing(const Arguments<Described<Size>>& a, Pairing::Kind pairing) {
    if (pairing == Pairing::Kind::kIndexed) return check_indexed(a);
    check(!is_by_image(pairing) || a.pred.rank == 3, "pred has shape ", ShapeOf(a.pred),
          "; with zero_padded, lengths or offsets it must be (images, slots, 4)");
    if (pairing == Pairing::Kind::kOffsets) {
      check(a.target.rank == 2, "target has shape ", ShapeOf(a.target),
            "; with offsets it must be (boxes of all images, 4)");
      return check_shape(a.offsets, {a.pred.size(0) + 1}, "one more than pred has images");
    }
    check(has_shape(a.pred, ShapeOf(a.target)), "pred has shape ", ShapeOf(a.pred),
          ", target has shape ", ShapeOf(a.target), "; they must be equal");
    if (a.lengths) check_shape(a.lengths, {a.pred.size(0)}, "one for each image of pred");
    if (a.mask) check_shape(a.mask, shape_of_rows(a), "pred's without the 4");
  }

  template <class Size>
  static void check_indexed(const Arguments<Described<Size>>& a) {
    for (const auto* index : {&a.pred_index, &a.target_index}) {
      if (*index) {
        check_shape_is(*index, index->rank == 1 || index->rank == 2, "(pairs) or (sets, pairs)");
      }
    }
    std::vector<Size> shape = shape_of_rows(a);
    if (a.pred_index && a.target_index) {
      check_shape(a.target_index, shape, "pred_index's shape");
    }
    shape.push_back(4);
    for (const auto& [index, boxes] :
         {std::tie(a.pred_index, a.pred), std::tie(a.target_index, a.target)}) {
      if (!index) check_shape(boxes, shape, "the shape of the other index, with a 4 behind it");
    }
  }

  template <class Size>
  static void check_normalizer(const Arguments<Described<Size>>& a) {
    const Array<Size>& normalizer = a.normalizer;
    const bool fits =
        normalizer.rank == 0 || (index_of(a) != nullptr && has_shape(normalizer, shape_of_sets(a)));
    check(fits, "normalizer has shape ", ShapeOf(normalizer),
          "; it must have no dimension or, with indices (sets, pairs), be (sets)");
  }

  /// loss, scale, l1, iou; without extras the last two have no shape.
  template <class Size>
  static std::array<Output<Size>, 4> outputs(const Arguments<Described<Size>>& a,
                                             const LossProblem& p, bool extras) {
    const DType dtype = compute_dtype(p);
    const bool is_reduced = p.reduction != Reduction::kNone;
    const std::vector<Size> sets = shape_of_sets(a);
    std::vector<Size> rows;
    if (extras || !is_reduced) rows = shape_of_rows(a);
    const std::vector<Size>& values = is_reduced ? sets : rows;
    if (!extras) return {{{dtype, values}, {dtype, sets}, {dtype, {}}, {dtype, {}}}};
    return {{{dtype, values}, {dtype, sets}, {dtype, values}, {dtype, rows}}};
  }
};

}  // namespace boxloss::binding
