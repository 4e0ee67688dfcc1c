// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/box_loss.hpp>

#include "call.hpp"

/// The losses, forward and backward.
namespace boxloss::jax_binding {
namespace {

using Shape = std::vector<std::int64_t>;

struct LossArgs {
  explicit LossArgs(const Arguments& arguments)
      : pred(given(arguments, "pred")), target(given(arguments, "target")) {
    LossArgs& options = *this;
    BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_READ_OPTION)
    arguments.read("extras", extras);
  }

  const Operand& pred;
  const Operand& target;
  BOXLOSS_BOX_LOSS_OPTIONS(BOXLOSS_OPTION_MEMBER)
  /// Whether l1 and iou are wanted, too.
  Flag extras;

  /// Pairs by index: the index that gives them their shape, (P) or (S, P). Null for all others.
  Array index() const { return pred_index != nullptr ? pred_index : target_index; }

  /// Of the unreduced loss.
  Shape shape() const {
    if (index() != nullptr) return index()->shape;
    const Shape& boxes = (offsets != nullptr ? target : pred).shape;
    return {boxes.begin(), boxes.end() - 1};
  }
};

Pairing::Kind parse_pairing(const LossArgs& a) {
  std::string words;
  int count = 0;
  const auto note = [&](bool is_given, const char* name) {
    if (is_given) words += std::string(" ") + name;
    count += is_given;
  };
  note(a.zero_padded, "zero_padded");
  note(a.lengths != nullptr, "lengths");
  note(a.mask != nullptr, "mask");
  note(a.offsets != nullptr, "offsets");
  note(a.pred_index != nullptr, "pred_index");
  note(a.target_index != nullptr, "target_index");
  const bool has_both = a.pred_index != nullptr && a.target_index != nullptr;
  check(count - has_both <= 1,
        "give at most one of zero_padded, lengths, mask, offsets and indices; got", words);
  if (a.index() != nullptr) return Pairing::Kind::kIndexed;
  if (a.zero_padded) return Pairing::Kind::kZeroPadded;
  if (a.lengths != nullptr) return Pairing::Kind::kLengths;
  if (a.mask != nullptr) return Pairing::Kind::kMask;
  return a.offsets != nullptr ? Pairing::Kind::kOffsets : Pairing::Kind::kDense;
}

void check_index(Array index) {
  if (index == nullptr) return;
  check_indices(*index, dtype_of(*index, kIndexDTypes));
  check(index->shape.size() == 1 || index->shape.size() == 2, index->name, " has shape ",
        text_of(index->shape), "; it must be (pairs) or (sets, pairs)");
}

void check_indexed(const LossArgs& a) {
  check_index(a.pred_index);
  check_index(a.target_index);
  const auto check_boxes = [&](const Operand& boxes) {
    Shape wanted = a.shape();
    wanted.push_back(4);
    check_shape(boxes, wanted, "the shape of the other index, with a 4 behind it");
  };
  if (a.pred_index == nullptr) check_boxes(a.pred);
  if (a.target_index == nullptr) check_boxes(a.target);
  if (a.pred_index != nullptr && a.target_index != nullptr) {
    check_shape(*a.target_index, a.shape(), "pred_index's shape");
  }
}

bool is_by_image(Pairing::Kind pairing) {
  return pairing == Pairing::Kind::kZeroPadded || pairing == Pairing::Kind::kLengths ||
         pairing == Pairing::Kind::kOffsets;
}

void check_pairing(const LossArgs& a, Pairing::Kind pairing) {
  if (pairing == Pairing::Kind::kIndexed) return check_indexed(a);
  const Shape &pred = a.pred.shape, &target = a.target.shape;
  check(!is_by_image(pairing) || pred.size() == 3, "pred has shape ", text_of(pred),
        "; with zero_padded, lengths or offsets it must be (images, slots, 4)");
  if (pairing == Pairing::Kind::kOffsets) {
    check(target.size() == 2, "target has shape ", text_of(target),
          "; with offsets it must be (boxes of all images, 4)");
    check_shape(*a.offsets, {pred[0] + 1}, "one more than pred has images");
    return;
  }
  check(pred == target, "pred has shape ", text_of(pred), ", target has shape ", text_of(target),
        "; they must be equal");
  if (pairing == Pairing::Kind::kLengths) {
    check_shape(*a.lengths, {pred[0]}, "one for each image of pred");
  }
  if (pairing == Pairing::Kind::kMask) check_shape(*a.mask, a.shape(), "pred's without the 4");
}

void check_normalizer(const LossArgs& a) {
  const Shape& shape = a.normalizer->shape;
  const bool has_sets = a.index() != nullptr && a.index()->shape.size() == 2;
  check(shape.empty() || (has_sets && shape.size() == 1 && shape[0] == a.index()->shape[0]),
        "normalizer has shape ", text_of(shape),
        "; it must have no dimension or, with indices (sets, pairs), be (sets)");
}

ArrayView pairing_data(const LossArgs& a) {
  if (a.mask == nullptr) {
    return later(a.lengths != nullptr ? a.lengths : a.offsets, kIndexDTypes);
  }
  if (a.mask->dtype != "bool") {
    throw Unsupported(message("mask is ", a.mask->dtype, "; it must be bool"));
  }
  return {kLater, DType::kU8};
}

/// Boxes by image, or as one list.
void set_boxes(BoxView& view, const Operand& boxes, bool by_image) {
  view.data = kLater;
  view.images = by_image ? boxes.shape[0] : 1;
  view.slots = by_image ? boxes.shape[1] : leading(boxes.shape, 1);
  view.image_stride = 4 * view.slots;
}

/// What core does not know is checked here, shapes first of all. Memory comes with the run.
LossProblem describe(const LossArgs& a) {
  LossProblem p;
  p.loss = loss_named(a.loss);
  p.pred.format = parse_format("pred_format", a.pred_format);
  p.target.format = parse_format("target_format", a.target_format);
  p.pairing.kind = parse_pairing(a);
  p.reduction =
      parse("reduction", a.reduction, {Reduction::kNone, Reduction::kSum, Reduction::kMean});
  p.eps = a.eps;
  p.eps_mode = parse_eps_mode(a.eps_mode);
  p.pred.dtype = dtype_of(a.pred, kFloatingDTypes);
  p.target.dtype = dtype_of(a.target);
  p.pairing.data = pairing_data(a);
  p.pred.rows = later(a.pred_index, kIndexDTypes);
  p.target.rows = later(a.target_index, kIndexDTypes);
  p.weight = later(a.weight, kFloatingDTypes);
  p.normalizer = later(a.normalizer, kNormalizerDTypes);

  check_boxes_shape(a.pred);
  check_boxes_shape(a.target);
  check_pairing(a, p.pairing.kind);
  if (a.weight != nullptr) {
    check_shape(*a.weight, a.shape(), "the shape of the unreduced loss");
  }
  if (a.normalizer != nullptr) {
    check_normalizer(a);
    p.normalizer_stride = static_cast<std::int64_t>(a.normalizer->shape.size());
  }

  const bool by_image = is_by_image(p.pairing.kind);
  set_boxes(p.pred, a.pred, by_image);
  set_boxes(p.target, a.target, by_image && a.offsets == nullptr);
  if (Array index = a.index()) {
    p.pairing.sets = index->shape.size() == 2 ? index->shape[0] : 1;
    p.pairing.pairs = index->shape.back();
  }
  check_options(p, a.extras ? kExtras : Set<Extra>{});
  return p;
}

LossProblem describe_on(const Implementation& implementation, const LossArgs& a) {
  LossProblem problem = describe(a);
  problem.device = implementation.device;
  return problem;
}

LossArrays arrays_of(const LossArgs& a) {
  const Array pairing = a.lengths != nullptr ? a.lengths : a.mask != nullptr ? a.mask : a.offsets;
  return {a.pred.data,      a.target.data,     data_of(a.pred_index), data_of(a.target_index),
          data_of(pairing), data_of(a.weight), data_of(a.normalizer)};
}

std::size_t workspace(const Arguments& arguments, const Implementation& implementation) {
  const LossProblem problem = describe_on(implementation, LossArgs(arguments));
  return if_served([&] { return LossPlan(implementation, problem).workspace_bytes(); });
}

void forward(const Call& call) {
  const LossArgs args(call.arguments);
  const LossPlan plan(call.implementation, describe_on(call.implementation, args));
  plan.forward(arrays_of(args),
               {call.result("loss"), call.result("scale"), call.result("l1"), call.result("iou")},
               call.execution);
}

/// A gradient that XLA hands in is contiguous.
GradView view_of(Array grad, const LossProblem& p) {
  if (grad == nullptr) return {};
  if (p.reduction != Reduction::kNone) return {grad->data, 1, 0};
  const bool is_indexed = p.pairing.kind == Pairing::Kind::kIndexed;
  return {grad->data, is_indexed ? p.pairing.pairs : p.pred.slots, 1};
}

void backward(const Call& call) {
  const LossArgs args(call.arguments);
  const LossProblem problem = describe_on(call.implementation, args);
  const LossPlan plan(call.implementation, problem);
  Array of_loss, of_l1;
  call.arguments.read("grad_loss", of_loss);
  call.arguments.read("grad_l1", of_l1);
  plan.backward(arrays_of(args), {view_of(of_loss, problem), view_of(of_l1, problem)},
                given(call.arguments, "scale").data,
                {call.result("pred"), call.result("target"), call.result("weight")},
                call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_CHECK(boxloss_jax_box_loss, boxloss::jax_binding::workspace);
BOXLOSS_JAX_HANDLERS(boxloss_jax_box_loss, boxloss::jax_binding::forward);
BOXLOSS_JAX_HANDLERS(boxloss_jax_box_loss_backward, boxloss::jax_binding::backward);
