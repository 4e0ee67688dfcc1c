// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/box_loss.hpp>
#include <boxloss/error.hpp>
#include <boxloss/registry.hpp>
#include <iterator>
#include <limits>

#include "dispatch/box_loss/zero_outputs.hpp"
#include "src/checks.hpp"

/// The public functions of the losses of pairs, for each kind of box. What only one of them checks
/// is a function of its problem: `served_by`, `kOperation`, `check_format`, `check_extras`.
namespace boxloss {

inline const LossFunctions& served_by(const Implementation& implementation, const LossProblem&) {
  return implementation.box_loss;
}
inline const RotatedLossFunctions& served_by(const Implementation& implementation,
                                             const RotatedLossProblem&) {
  return implementation.rotated_box_loss;
}

template <class Problem>
constexpr const char* kOperation = "box_loss";
template <>
inline constexpr const char* kOperation<RotatedLossProblem> = "rotated_box_loss";

inline void check_format(const LossProblem& p) {
  check_enumerator("pred", ".format", p.pred.format);
  check_enumerator("target", ".format", p.target.format);
}
inline void check_format(const RotatedLossProblem& p) {
  check_enumerator("angle_unit", "", p.angle_unit);
}

inline void check_extras(const LossProblem& p, Set<Extra> extras) {
  check(!extras.contains(Extra::kL1) || p.pred.format == p.target.format,
        "l1 is of values in one format, but pred is ", name_of(p.pred.format), " and target ",
        name_of(p.target.format));
}
/// An angle's distance is another quantity than those of lengths; and the Gaussian losses compute
/// no areas.
inline void check_extras(const RotatedLossProblem& p, Set<Extra> extras) {
  if (extras.contains(Extra::kL1)) throw InvalidArgument("rotated boxes have no output l1");
  if (!extras.contains(Extra::kIou) || kLossesByArea.contains(p.loss)) return;
  throw InvalidArgument(message("the output iou needs one of the losses ", names_of(kLossesByArea),
                                ", but loss is '", name_of(p.loss), "'"));
}

/// One side of the pairs by index.
inline void check_list(const char* name, const char* rows, const BoxView& boxes,
                       const Pairing& pairing) {
  if (is_given(boxes.rows)) return;
  check(boxes.images * boxes.slots == pairing.sets * pairing.pairs, name, " has ", boxes.images,
        " images of ", boxes.slots, " boxes; without ", rows, " it must have one for each of ",
        pairing.sets, " sets of ", pairing.pairs, " pairs");
}

inline void check_indexed(const PairProblem& p) {
  const Pairing& pairing = p.pairing;
  check(!is_given(pairing.data), "pairing.data must not be given for an indexed pairing");
  check(pairing.pairs != kUnsetSize,
        "pairing.pairs is not set; it must be the number of pairs of each set");
  check(pairing.sets >= 0 && pairing.pairs >= 0, "pairing has a negative shape: ", pairing.sets,
        " sets of ", pairing.pairs, " pairs");
  constexpr std::int64_t kMostSets = std::numeric_limits<std::int32_t>::max();
  check(pairing.sets <= kMostSets, "pairing has ", pairing.sets, " sets, more than ", kMostSets);
  check(pairing.pairs == 0 || pairing.sets <= kMostBoxes / pairing.pairs, "pairing has ",
        pairing.sets, " sets of ", pairing.pairs, " pairs, which is more than 64 bits can count");
  check_indices("pred.rows", p.pred.rows);
  check_indices("target.rows", p.target.rows);
  if (pairing.sets * pairing.pairs == 0) return;
  check(is_given(p.pred.rows) || is_given(p.target.rows),
        "pred.rows.dtype and target.rows.dtype are not set; an indexed pairing needs one of them");
  check_list("pred", "pred.rows", p.pred, pairing);
  check_list("target", "target.rows", p.target, pairing);
}

template <class Problem>
void check_pairing(const Problem& p) {
  if (is_indexed(p)) return check_indexed(p);
  const ArrayView& data = p.pairing.data;
  const bool is_needed = p.pred.images * p.pred.slots > 0;
  check(!is_given(p.pred.rows) && !is_given(p.target.rows),
        "pred.rows and target.rows must not be given for a ", name_of(p.pairing.kind), " pairing");
  switch (p.pairing.kind) {
    case Pairing::Kind::kDense:
    case Pairing::Kind::kZeroPadded:
      check(!is_given(data), "pairing.data must not be given for a dense or zero-padded pairing");
      break;
    case Pairing::Kind::kLengths:
      check_given("pairing.data", data, is_needed, "lengths, (images) integers");
      break;
    case Pairing::Kind::kMask:
      check_given("pairing.data", data, is_needed, "a mask, (images, slots) bytes");
      break;
    case Pairing::Kind::kOffsets:
      check_given("pairing.data", data, is_needed, "offsets, (images + 1) integers");
      check(p.target.images == 1, "target must be one image of T slots with offsets, but has ",
            p.target.images, " images");
      return;
    case Pairing::Kind::kIndexed: return;
  }
  check(p.target.images == p.pred.images && p.target.slots == p.pred.slots, "target has shape (",
        p.target.images, ", ", p.target.slots, ", ", Problem::kNumbers, "), pred has (",
        p.pred.images, ", ", p.pred.slots, ", ", Problem::kNumbers, "); they must be equal");
}

/// All checks but those of pointers.
template <class Problem>
void check_problem(const Implementation& implementation, const Problem& p) {
  const PairLossFunctions<Problem>& served = served_by(implementation, p);
  const bool is_served = served.forward != nullptr && served.backward != nullptr;
  check_served(implementation, kOperation<Problem>, is_served, p.device, p.loss, served.losses);
  check_options(p);
  check_dtype(served.pairings.contains(p.pairing.kind), implementation.name,
              " does not serve the pairing ", name_of(p.pairing.kind));
  check_boxes("pred", p.pred, Problem::kNumbers);
  check_boxes("target", p.target, Problem::kNumbers);
  check_pairing(p);
}

/// Without slots only boxes must be there.
inline void check_pointers(const PairProblem& p) {
  const bool is_read = has_slots(p);
  const ArrayView& data = p.pairing.data;
  check_pointers("pred", "pred.rows", p.pred, is_read);
  check_pointers("target", "target.rows", p.target, is_read);
  check_pointer(is_given(data) ? name_of(p.pairing.kind) : "pairing.data", data, is_read);
  check_pointer("weight", p.weight, is_read);
  check_pointer("normalizer", p.normalizer, is_read);
}

template <class Problem>
void check_output(const Implementation& implementation, const Problem& p, Extra extra,
                  const char* name, const void* array) {
  check_dtype(array == nullptr || served_by(implementation, p).extras.contains(extra),
              implementation.name, " does not serve the output ", name_of(extra));
  if (array != nullptr) check_extras(p, {extra});
  check_aligned(name, array, compute_dtype(p));
}

/// Checks alignment: threads that add to one row exchange its four 16-bit values as one word.
/// Those of other boxes are added one by one.
template <class Problem>
void check_added(const char* name, const void* gradient, const BoxView& boxes) {
  if (Problem::kNumbers != 4) return;
  check(!is_given(boxes.rows) || size_of(boxes.dtype) != 2 ||
            reinterpret_cast<std::uintptr_t>(gradient) % 8 == 0,
        name, " does not lie on a multiple of the 8 bytes of a ", name_of(boxes.dtype), " box");
}

/// Whether the boxes fill their memory without gaps or overlaps, in any order of dimensions.
template <class Problem>
bool are_dense(const BoxView& boxes) {
  struct Dimension {
    std::int64_t size, stride;
  };
  Dimension dimensions[] = {{boxes.images, boxes.image_stride},
                            {boxes.slots, boxes.slot_stride},
                            {Problem::kNumbers, boxes.coordinate_stride}};
  std::sort(std::begin(dimensions), std::end(dimensions),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t elements = 1;
  for (const Dimension& each : dimensions) {
    if (each.size == 1) continue;
    if (each.stride != elements) return false;
    elements *= each.size;
  }
  return true;
}

/// Checks a gradient that keeps strides: no gaps, which would stay unwritten, and no element
/// written twice.
template <class Problem>
void check_kept_strides(const char* name, bool keeps_strides, const Problem& p,
                        const BoxView& boxes) {
  if (!keeps_strides || boxes.images * boxes.slots == 0) return;
  check(!is_indexed(p), name, " is set, but gradients of pairs by index are contiguous");
  check(are_dense<Problem>(boxes), name,
        " is set, but the boxes have gaps or overlap: their strides are ", boxes.image_stride,
        " by image, ", boxes.slot_stride, " by slot, ", boxes.coordinate_stride, " by coordinate");
}

/// Whether the loss has no values at all.
inline bool has_no_loss(const PairProblem& p) {
  return (p.reduction == Reduction::kNone ? loss_rows(p) : loss_sets(p)) == 0;
}

template <class Problem>
bool is_contiguous(const BoxView& boxes) {
  return boxes.coordinate_stride == 1 && boxes.slot_stride == Problem::kNumbers &&
         (boxes.images == 1 || boxes.image_stride == Problem::kNumbers * boxes.slots);
}

/// Whether the images of boxes or a gradient follow each other without a gap.
template <class View>
bool is_one_image(const View& view, std::int64_t slots) {
  return slots == 1 || view.image_stride == slots * view.slot_stride;
}

template <class View>
void make_one_image(View& view, std::int64_t slots) {
  if (slots == 1) view.slot_stride = view.image_stride;
}

inline void flatten(BoxView& boxes) {
  make_one_image(boxes, boxes.slots);
  boxes.slots *= boxes.images;
  boxes.images = 1;
}

/// A gradient's strides without those that nothing uses.
inline GradView with_used_strides(const char* name, GradView grad, const PairProblem& p) {
  if (grad.data == nullptr) return {nullptr, 0, 0};
  const bool is_list = p.pairing.kind == Pairing::Kind::kOffsets;
  const bool is_reduced = p.reduction != Reduction::kNone;  // to one value, or one for each set
  std::int64_t images = is_indexed(p) ? p.pairing.sets : p.pred.images;
  if (is_list || (is_reduced && !is_indexed(p))) images = 1;
  const std::int64_t slots = is_reduced ? 1 : loss_rows(p) / std::max<std::int64_t>(images, 1);
  check_stride(name, "image", grad.image_stride, images);
  check_stride(name, "slot", grad.slot_stride, slots);
  return {grad.data, images <= 1 ? 0 : grad.image_stride, slots <= 1 ? 0 : grad.slot_stride};
}

/// Merges images that follow each other without a gap into one, so that loops need no division. Not
/// with lengths and offsets, which are given by image. Each list of an indexed pairing on its own.
template <class Problem>
Problem flattened(Problem p) {
  switch (p.pairing.kind) {
    case Pairing::Kind::kOffsets: p.target.image_stride = 0; return p;
    case Pairing::Kind::kLengths: return p;
    case Pairing::Kind::kIndexed:
      for (BoxView* const boxes : {&p.pred, &p.target}) {
        if (is_one_image(*boxes, boxes->slots)) flatten(*boxes);
      }
      return p;
    default: break;
  }
  if (is_one_image(p.pred, p.pred.slots) && is_one_image(p.target, p.pred.slots)) {
    flatten(p.pred);
    flatten(p.target);
  }
  return p;
}

/// As implementations get it.
template <class Problem>
Problem with_parameters(Problem p) {
  p.parameters = complete_parameters(p.loss, p.parameters);
  return p;
}

/// What forward needs for a problem that was checked and flattened.
template <class Problem>
std::size_t workspace_bytes(const Implementation& implementation, Problem flat) {
  if (flat.reduction == Reduction::kNone || !has_slots(flat)) return 0;
  for (ArrayView* const array :
       {&flat.pred.rows, &flat.target.rows, &flat.pairing.data, &flat.weight, &flat.normalizer}) {
    mark_if_given(*array);
  }
  return bytes_of(served_by(implementation, flat), flat);
}

template <class Problem>
void check_pair_options(const Problem& p, Set<Extra> extras) {
  check_enumerator("pairing", ".kind", p.pairing.kind);
  check_format(p);
  check_enumerator("reduction", "", p.reduction);
  check_enumerator("eps_mode", "", p.eps_mode);
  check_floating("pred", p.pred.dtype);
  const Pairing& pairing = p.pairing;
  const ArrayView& data = pairing.data;
  if (pairing.kind == Pairing::Kind::kLengths) check_indices("lengths", data);
  if (pairing.kind == Pairing::Kind::kOffsets) check_indices("offsets", data);
  const bool has_mask = pairing.kind == Pairing::Kind::kMask && is_given(data);
  check_dtype(!has_mask || data.dtype == DType::kU8, "mask is ", shown(data.dtype),
              "; it must be uint8");
  if (is_given(p.weight)) check_floating("weight", p.weight.dtype);
  check_eps(p.eps, compute_dtype(p));
  complete_parameters(p.loss, p.parameters);  // throws
  check_normalizer(p.normalizer, p.normalizer_stride, p.reduction);
  check_extras(p, extras);  // last, as where arrays are given
}

template <class Problem>
std::size_t workspace_bytes_for(const Implementation& implementation, const Problem& problem) {
  check_problem(implementation, problem);
  return workspace_bytes(implementation, flattened(problem));
}

template <class Problem>
void run_forward(const Implementation& implementation, const Problem& problem,
                 const LossOutputs& outputs, const Execution& execution) {
  if (!execution.is_checked) check_problem(implementation, problem);
  check_pointers(problem);
  const DType compute = compute_dtype(problem);
  check(outputs.loss != nullptr || has_no_loss(problem), "outputs.loss is null");
  check(outputs.scale != nullptr || loss_sets(problem) == 0, "outputs.scale is null");
  check_aligned("outputs.loss", outputs.loss, compute);
  check_aligned("outputs.scale", outputs.scale, compute);
  check_output(implementation, problem, Extra::kL1, "outputs.l1", outputs.l1);
  check_output(implementation, problem, Extra::kIou, "outputs.iou", outputs.iou);
  const Problem flat = flattened(with_parameters(problem));
  check_execution(execution, problem.device,
                  execution.is_checked ? 0 : workspace_bytes(implementation, flat));
  served_by(implementation, flat).forward(flat, outputs, execution);
}

template <class Problem>
void run_backward(const Implementation& implementation, const Problem& problem,
                  const GradOutputs& grads, const void* scale, const LossGradients& gradients,
                  const Execution& execution) {
  if (!execution.is_checked) check_problem(implementation, problem);
  check_pointers(problem);
  const DType compute = compute_dtype(problem);
  const bool has_grad = grads.loss.data != nullptr || grads.l1.data != nullptr;
  check(has_grad || has_no_loss(problem), "grads.loss.data and grads.l1.data are null");
  check(scale != nullptr || loss_sets(problem) == 0, "scale is null");
  check_aligned("grads.loss", grads.loss.data, compute);
  check_output(implementation, problem, Extra::kL1, "grads.l1", grads.l1.data);
  check_aligned("scale", scale, compute);
  check_dtype(gradients.target == nullptr || is_floating(problem.target.dtype), "target is ",
              name_of(problem.target.dtype), ", which has no gradient");
  check(gradients.weight == nullptr || is_given(problem.weight),
        "gradients.weight is wanted, but the problem has no weight");
  check_aligned("gradients.pred", gradients.pred, problem.pred.dtype);
  check_aligned("gradients.target", gradients.target, problem.target.dtype);
  check_aligned("gradients.weight", gradients.weight, problem.weight.dtype);
  check_added<Problem>("gradients.pred", gradients.pred, problem.pred);
  check_added<Problem>("gradients.target", gradients.target, problem.target);
  check_kept_strides("gradients.keeps_pred_strides", gradients.keeps_pred_strides, problem,
                     problem.pred);
  check_kept_strides("gradients.keeps_target_strides", gradients.keeps_target_strides, problem,
                     problem.target);
  check_execution(execution, problem.device);

  GradOutputs used{with_used_strides("grads.loss", grads.loss, problem),
                   with_used_strides("grads.l1", grads.l1, problem)};
  Problem p = flattened(with_parameters(problem));
  if (p.pred.images != problem.pred.images && !is_indexed(problem)) {
    const std::int64_t slots = problem.pred.slots;
    if (is_one_image(used.loss, slots) && is_one_image(used.l1, slots)) {
      make_one_image(used.loss, slots);
      make_one_image(used.l1, slots);
    } else {
      p = with_parameters(problem);
    }
  }
  LossGradients written = gradients;
  if (is_contiguous<Problem>(p.pred)) written.keeps_pred_strides = false;
  if (is_contiguous<Problem>(p.target)) written.keeps_target_strides = false;
  served_by(implementation, p).backward(p, used, scale, written, execution);
}

}  // namespace boxloss
