// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <utility>

#include "arguments.hpp"

namespace boxloss::binding {

/// What losses of pairs are called with, whatever a box is.
template <class Kinds>
struct PairArguments {
  BOXLOSS_PAIR_LOSS_PARAMETERS(BOXLOSS_ARGUMENT)
};

/// A problem of boxes along the axes, (..., 4), or of rotated ones, (..., 5).
struct AnyPairProblem : LossProblem {
  int numbers = 4;             ///< of a box
  Set<Extra> extras = {};      ///< that are results
  RotatedLoss rotated_loss{};  ///< in place of the loss, of rotated boxes
  AngleUnit angle_unit{};

  bool is_rotated() const { return numbers == 5; }

  /// Calls `use` with core's problem.
  template <class Use>
  auto visit(const Use& use) const {
    if (!is_rotated()) return use(static_cast<const LossProblem&>(*this));
    RotatedLossProblem p;
    static_cast<PairProblem&>(p) = *this;
    p.loss = rotated_loss;
    p.angle_unit = angle_unit;
    return use(p);
  }
};

inline void check_options(const AnyPairProblem& p) {
  p.visit([&](const auto& own) { check_options(own, p.extras); });
}

/// Whether pred is (images, slots, numbers).
inline bool is_by_image(Pairing::Kind pairing) {
  return pairing == Pairing::Kind::kZeroPadded || pairing == Pairing::Kind::kLengths ||
         pairing == Pairing::Kind::kOffsets;
}

/// And what backward is given.
struct AnyPairGradientProblem : AnyPairProblem {
  GradOutputs grads = {};
  const void* scale = nullptr;
  LossGradients results = {};  ///< without memory
};

/// Sizes, strides and memory of all, of boxes of any leading dimensions. `grads` are the incoming
/// ones, null if not given.
void set_sizes(AnyPairProblem& p, const PairArguments<Described<std::int64_t>>& a,
               const std::array<const Array<std::int64_t>*, 2>& grads, GradOutputs& views);

/// An array that must be row-major, so that two strides tell all leading dimensions; or null.
Array<std::int64_t>* unfit_for_grid(PairArguments<Described<std::int64_t>>& a,
                                    const std::array<Array<std::int64_t>*, 2>& grads);

/// What a loss of pairs says of itself, of arguments whose sizes are of that type.
template <class Size>
struct Pairs {
  using Args = PairArguments<Described<Size>>;
  using Shape = std::vector<Size>;

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  static const auto* index_of(const Args& a) {
    return a.pred_index ? &a.pred_index : a.target_index ? &a.target_index : nullptr;
  }

  /// Shape of the unreduced loss, of weight and of iou.
  static Shape shape_of_rows(const Args& a) {
    const auto* const index = index_of(a);
    if (index != nullptr) return {index->shape, index->shape + index->rank};
    const auto& boxes = a.offsets ? a.target : a.pred;
    return {boxes.shape, boxes.shape + boxes.rank - 1};
  }

  /// Shape of the reduced loss and of scale: none, or (S).
  static Shape shape_of_sets(const Args& a) {
    const auto* const index = index_of(a);
    if (index == nullptr || index->rank == 1) return {};
    return {index->size(0)};
  }

  /// Without sizes, strides and pointers. Boxes have that many numbers.
  static void describe(AnyPairProblem& p, const Args& a, int numbers, bool has_extras) {
    p.numbers = numbers;
    if (has_extras) p.extras = kExtras;
    p.pred.slot_stride = p.target.slot_stride = numbers;
    if (p.is_rotated()) {
      p.rotated_loss = rotated_loss_named(a.loss);
      p.angle_unit = parse_angle_unit(a.angle_unit);
    } else {
      p.loss = loss_named(a.loss);
      p.pred.format = parse_format("pred_format", a.pred_format);
      p.target.format = parse_format("target_format", a.target_format);
    }
    p.pairing.kind = pairing_of(a);
    p.reduction =
        parse("reduction", a.reduction, {Reduction::kNone, Reduction::kSum, Reduction::kMean});
    p.eps = a.eps;
    p.eps_mode = parse_eps_mode(a.eps_mode);
    p.parameters = p.is_rotated() ? parameters_of(p.rotated_loss, a.parameters)
                                  : parameters_of(p.loss, a.parameters);
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

    check_boxes_shape(a.pred, numbers);
    check_boxes_shape(a.target, numbers);
    check_pairing(a, p);
    if (a.weight) check_shape(a.weight, shape_of_rows(a), "the shape of the unreduced loss");
    if (a.normalizer) check_normalizer(a);
  }

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
  static ArrayView pairing_data(const Args& a) {
    if (!a.mask) return view_of(a.lengths ? a.lengths : a.offsets, kIndexDTypes);
    const bool is_bool = !a.mask.dtype && a.mask.other_dtype == "bool";
    if (!is_bool) {
      refuse_dtype("mask", a.mask.dtype ? name_of(*a.mask.dtype) : a.mask.other_dtype, "bool");
    }
    return {a.mask.data, DType::kU8};
  }

  static void check_pairing(const Args& a, const AnyPairProblem& p) {
    const Pairing::Kind pairing = p.pairing.kind;
    const int numbers = p.numbers;
    if (pairing == Pairing::Kind::kIndexed) return check_indexed(a, numbers);
    check(!is_by_image(pairing) || a.pred.rank == 3, "pred has shape ", ShapeOf(a.pred),
          "; with zero_padded, lengths or offsets it must be (images, slots, ", numbers, ")");
    if (pairing == Pairing::Kind::kOffsets) {
      check(a.target.rank == 2, "target has shape ", ShapeOf(a.target),
            "; with offsets it must be (boxes of all images, ", numbers, ")");
      return check_shape(a.offsets, {a.pred.size(0) + 1}, "one more than pred has images");
    }
    check(has_shape(a.pred, ShapeOf(a.target)), "pred has shape ", ShapeOf(a.pred),
          ", target has shape ", ShapeOf(a.target), "; they must be equal");
    if (a.lengths) check_shape(a.lengths, {a.pred.size(0)}, "one for each image of pred");
    if (a.mask) check_shape(a.mask, shape_of_rows(a), "pred's without the ", numbers);
  }

  static void check_indexed(const Args& a, int numbers) {
    for (const auto* index : {&a.pred_index, &a.target_index}) {
      if (*index) {
        check_shape_is(*index, index->rank == 1 || index->rank == 2, "(pairs) or (sets, pairs)");
      }
    }
    Shape shape = shape_of_rows(a);
    if (a.pred_index && a.target_index) {
      check_shape(a.target_index, shape, "pred_index's shape");
    }
    shape.push_back(Size(numbers));
    for (const auto& [index, boxes] :
         {std::tie(a.pred_index, a.pred), std::tie(a.target_index, a.target)}) {
      if (index) continue;
      check_shape(boxes, shape, "the shape of the other index, with a ", numbers, " behind it");
    }
  }

  static void check_normalizer(const Args& a) {
    const auto& normalizer = a.normalizer;
    const bool fits =
        normalizer.rank == 0 || (index_of(a) != nullptr && has_shape(normalizer, shape_of_sets(a)));
    check(fits, "normalizer has shape ", ShapeOf(normalizer),
          "; it must have no dimension or, with indices (sets, pairs), be (sets)");
  }

  /// loss and scale
  static std::array<Output<Size>, 2> outputs(const Args& a, const AnyPairProblem& p) {
    const DType dtype = compute_dtype(p);
    const bool is_reduced = p.reduction != Reduction::kNone;
    return {{{dtype, is_reduced ? shape_of_sets(a) : shape_of_rows(a)}, {dtype, shape_of_sets(a)}}};
  }
};

/// A loss of pairs as frameworks call it: `Own` says of how many numbers boxes are, and whether l1
/// and iou are results, too.
template <class Own>
struct PairLoss {
  static constexpr int kNumbers = 4;
  static constexpr bool kHasExtras = false;
  static constexpr std::array kDifferentiable = {"pred", "target", "weight"};

  template <class Size>
  static AnyPairProblem describe(const PairArguments<Described<Size>>& a) {
    AnyPairProblem p;
    Pairs<Size>::describe(p, a, Own::kNumbers, Own::kHasExtras);
    if constexpr (kHasNumbers<Size>) {
      GradOutputs none;
      set_sizes(p, a, {}, none);
    }
    return p;
  }

  template <class Size>
  static auto outputs(const PairArguments<Described<Size>>& a, const AnyPairProblem& p) {
    auto both = Pairs<Size>::outputs(a, p);
    if constexpr (Own::kHasExtras) {
      const Output<Size> iou = {both[0].dtype, Pairs<Size>::shape_of_rows(a)};
      return std::array{both[0], both[1], both[0], iou};
    } else {
      return both;
    }
  }

  template <class Pack>
  static void lay_out(PairArguments<Described<std::int64_t>>& a, const Pack& pack) {
    while (auto* const each = unfit_for_grid(a, {})) pack(*each);
  }

  static std::size_t workspace_bytes(const Implementation& implementation,
                                     const AnyPairProblem& p) {
    return p.visit([&](const auto& own) { return loss_workspace_bytes(implementation, own); });
  }

  template <std::size_t count>
  static void run(const Implementation& implementation, const AnyPairProblem& p,
                  const std::array<void*, count>& outputs, const Execution& execution) {
    LossOutputs to = {outputs[0], outputs[1]};
    if constexpr (count == 4) {
      to.l1 = outputs[2];
      to.iou = outputs[3];
    }
    p.visit([&](const auto& own) { loss_forward(implementation, own, to, execution); });
  }
};

/// Its gradient.
template <class Loss>
struct PairGradient {
  static constexpr const char* kFunction = Loss::kFunction;
  static constexpr std::array kOutputs = {"pred", "target", "weight"};
  using Problem = AnyPairGradientProblem;

  template <class Args>
  static Problem describe(const Args& a) {
    using Size = std::decay_t<decltype(a.pred.size(0))>;
    Problem p;
    Pairs<Size>::describe(p, a, Loss::kNumbers, Loss::kHasExtras);
    const auto forward = Pairs<Size>::outputs(a, p);
    const auto grads = grads_of<const Array<Size>>(a);
    check(grads[0] || grads[1], "grad_loss and grad_l1 are both None");
    for (const auto* each : grads) {
      if (each) check_as(*each, forward[0], "the shape of the loss");
    }
    check_as(a.scale, forward[1], "as forward returned it");
    check(!a.wants_weight || a.weight, "wants_weight is True, but weight is not given");
    p.scale = a.scale.data;
    if constexpr (kHasNumbers<Size>) {
      set_sizes(p, a, grads, p.grads);
      const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
      p.results.keeps_pred_strides = !is_indexed && a.pred.is_permuted;
      p.results.keeps_target_strides = !is_indexed && a.target.is_permuted;
    }
    return p;
  }

  template <class Args>
  static auto outputs(const Args& a, const Problem& p) {
    using Size = std::decay_t<decltype(a.pred.size(0))>;
    const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
    const auto of = [&](const Array<Size>& array, DType dtype, bool is_wanted) {
      return Output<Size>{dtype, {array.shape, array.shape + array.rank}, is_wanted};
    };
    std::array all = {of(a.pred, p.pred.dtype, a.wants_pred),
                      of(a.target, p.target.dtype, a.wants_target),
                      of(a.weight, a.weight ? p.weight.dtype : p.pred.dtype, a.wants_weight)};
    if (!is_indexed) {
      all[0].like = &a.pred;
      all[1].like = &a.target;
    }
    return all;
  }

  /// Whether several threads may add to a value.
  template <class Args>
  static bool adds_up(const Args& a) {
    return (a.wants_pred && a.pred_index) || (a.wants_target && a.target_index);
  }

  template <class Args, class Pack>
  static void lay_out(Args& a, const Pack& pack) {
    const auto grads = grads_of<Array<std::int64_t>>(a);
    while (auto* const each = unfit_for_grid(a, grads)) pack(*each);
  }

  /// None: it is only checked.
  static std::size_t workspace_bytes(const Implementation& implementation, const Problem& p) {
    Loss::workspace_bytes(implementation, p);
    return 0;
  }

  static void run(const Implementation& implementation, const Problem& p,
                  const std::array<void*, 3>& outputs, const Execution& execution) {
    LossGradients to = p.results;
    to.pred = outputs[0];
    to.target = outputs[1];
    to.weight = outputs[2];
    p.visit([&](const auto& own) {
      loss_backward(implementation, own, p.grads, p.scale, to, execution);
    });
  }

 private:
  /// Those of the loss and of l1; null if not given.
  template <class Grad, class Args>
  static std::array<Grad*, 2> grads_of(Args& a) {
    const auto given = [](Grad& grad) { return grad ? &grad : nullptr; };
    if constexpr (Loss::kHasExtras) {
      return {given(a.grad_loss), given(a.grad_l1)};
    } else {
      return {&a.grad_loss, nullptr};
    }
  }
};

}  // namespace boxloss::binding
