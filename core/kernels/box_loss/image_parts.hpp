// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "../../math/optimization_barrier.hpp"
#include "../../pairings/grid.hpp"
#include "../../pairings/offsets.hpp"
#include "pair_args.hpp"

/// Boxes of any strides in images, divided into parts that a few threads take together. Backends'
/// loops call this for pairings that depend on the image, and for boxes that are not contiguous.
namespace boxloss {

/// Slots of a part. A pair of rotated boxes takes as long as ten others, so few go to one thread.
template <class F>
constexpr int kPartSlots = kIsRotated<F> ? 32 : 256;

/// A part of an image: its slots [begin, end), and its index.
struct ImagePart {
  std::int64_t image, begin, end;
  std::int64_t index, parts;
};

template <class F>
BOXLOSS_HOST_DEVICE std::int64_t parts_of_image(std::int64_t slots) {
  return ceil_div(slots, kPartSlots<F>);
}

/// Of all images.
template <class F, class C>
BOXLOSS_HOST_DEVICE std::int64_t parts_of(const PairArgs<F, C>& a) {
  return a.images * parts_of_image<F>(a.slots);
}

inline std::int64_t parts_of(const LossProblem& p) {
  return p.pred.images * parts_of_image<AnyFormula>(p.pred.slots);
}

inline std::int64_t parts_of(const RotatedLossProblem& p) {
  return p.pred.images * parts_of_image<AnyRotatedFormula>(p.pred.slots);
}

/// Part i of all the parts of all images.
template <class F, class C>
BOXLOSS_HOST_DEVICE ImagePart image_part(const PairArgs<F, C>& a, std::int64_t i) {
  const std::int64_t parts = parts_of_image<F>(a.slots);
  // A GPU divides 64 bits in some 70 instructions.
  const std::int64_t image = a.images == 1 ? 0 : parts == 1 ? i : i / parts;
  const std::int64_t index = i - image * parts;
  const std::int64_t begin = index * kPartSlots<F>;
  const std::int64_t end = begin + kPartSlots<F> < a.slots ? begin + kPartSlots<F> : a.slots;
  return {image, begin, end, index, parts};
}

/// Calls for_rows(first, end) for the part's share of the rows that no valid slot writes.
template <class Pairing, class ForRows>
BOXLOSS_HOST_DEVICE void for_uncounted_rows(const Pairing& pairing, const ImagePart& part,
                                            const ImageSlots& image, const ForRows& for_rows) {
  const RowRange rows = pairing.rows(part.image);
  const RowRange before = share_of({rows.begin, image.row}, part.index, part.parts);
  const RowRange behind = share_of({image.row + image.count, rows.end}, part.index, part.parts);
  for_rows(before.begin, before.end);
  for_rows(behind.begin, behind.end);
}

/// Where the boxes of a problem are.
template <class P, class T>
struct StridedPair {
  StridedBoxes<P> pred;
  StridedBoxes<T> target;
};

template <class P, class T>
StridedPair<P, T> strided_pair(const PairProblem& p) {
  return {strided_boxes<P>(p.pred), strided_boxes<T>(p.target)};
}

/// Slot j < image.count of image b.
template <class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE LossesPartial forward_slot(const ForwardArgs<F, C>& a,
                                               const StridedPair<P, T>& boxes,
                                               const Pairing& pairing, std::int64_t b,
                                               const ImageSlots& image, std::int64_t j) {
  j = index_barrier(j);
  const std::int64_t row = image.row + j;
  PairLosses<C> all;
  bool counts = false;
  if (pairing.counts(row)) {
    const auto target = boxes.target.template get<BoxOf<F, C>>(b, image.target + j);
    if (pairing.counts(target)) {
      all = pair_losses(a, boxes.pred.template get<BoxOf<F, C>>(b, j), boxes.pred.boxes.format,
                        target, boxes.target.boxes.format, row);
      counts = true;
    }
  }
  set_row_losses(a, row, all);
  return partial_of(all, counts);
}

/// Writes the gradient of box (b, slot): to its row or, if the gradient keeps strides, to where the
/// box is in its array.
template <class E, class B>
BOXLOSS_HOST_DEVICE void set_gradient(const BoxOutputs<E>& gradient, bool keeps_strides,
                                      const Boxes<E>& boxes, std::int64_t b, std::int64_t slot,
                                      std::int64_t row, const B& value) {
  if (__builtin_expect(optimization_barrier(keeps_strides), 0)) {
    gradient.values.set_box(boxes.element_of(b, slot), value,
                            index_barrier(boxes.coordinate_stride));
  } else {
    gradient.set(row, value);
  }
}

/// Writes the gradients that belong to a row of image b, those of them that are wanted.
template <class F, class P, class T, class C>
BOXLOSS_HOST_DEVICE void set_row_gradients(const BackwardArgs<F, P, T, C>& a,
                                           const StridedPair<P, T>& boxes, std::int64_t b,
                                           const ImageSlots& image, std::int64_t row,
                                           const Gradients<BoxOf<F, C>>& d) {
  row = index_barrier(row);
  if constexpr (!std::is_integral_v<T>) {
    if (a.d_target.values.data != nullptr) {
      set_gradient(a.d_target, a.keeps_target_strides, boxes.target.boxes, b,
                   image.target + row - image.row, row, d.target);
    }
  }
  if (a.d_weight.data != nullptr) a.d_weight.set(row, d.weight);
}

template <class F, class P, class T, class C>
BOXLOSS_HOST_DEVICE bool writes_rows(const BackwardArgs<F, P, T, C>& a) {
  return a.d_weight.data != nullptr || a.d_target.values.data != nullptr;
}

/// Slot j of image b, valid or not.
template <class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE void backward_slot(const BackwardArgs<F, P, T, C>& a,
                                       const StridedPair<P, T>& boxes, const Pairing& pairing,
                                       C scale, std::int64_t b, const ImageSlots& image,
                                       std::int64_t j) {
  j = index_barrier(j);
  const std::int64_t row = image.row + j;
  Gradients<BoxOf<F, C>> d;
  if (j < image.count && pairing.counts(row)) {
    const auto target = boxes.target.template get<BoxOf<F, C>>(b, image.target + j);
    if (pairing.counts(target)) {
      d = pair_gradients(a, scale, b, image.target + j, boxes.pred.template get<BoxOf<F, C>>(b, j),
                         boxes.pred.boxes.format, target, boxes.target.boxes.format, row);
    }
  }
  if (a.d_pred.values.data != nullptr) {
    set_gradient(a.d_pred, a.keeps_pred_strides, boxes.pred.boxes, b, j, b * a.slots + j, d.pred);
  }
  if (j < image.count) set_row_gradients(a, boxes, b, image, row, d);
}

/// The work of one of `lanes` threads on a part of an image: every lanes-th slot and row. Adds its
/// losses to `own`.
template <class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE void forward_part(const ForwardArgs<F, C>& a, const StridedPair<P, T>& boxes,
                                      const Pairing& pairing, const ImagePart& part, int lane,
                                      int lanes, LossesPartial& own) {
  const ImageSlots image = pairing.image(part.image);
  const std::int64_t stop = image.count < part.end ? image.count : part.end;
  for (std::int64_t j = part.begin + lane; j < stop; j += lanes) {
    own += forward_slot(a, boxes, pairing, part.image, image, j);
  }
  if (!writes_rows(a)) return;
  for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first + lane; row < end; row += lanes)
      set_row_losses(a, row, PairLosses<C>{});
  });
}

/// The same for the gradients.
template <class F, class P, class T, class C, class Pairing>
BOXLOSS_HOST_DEVICE void backward_part(const BackwardArgs<F, P, T, C>& a,
                                       const StridedPair<P, T>& boxes, const Pairing& pairing,
                                       C scale, const ImagePart& part, int lane, int lanes) {
  const ImageSlots image = pairing.image(part.image);
  for (std::int64_t j = part.begin + lane; j < part.end; j += lanes) {
    backward_slot(a, boxes, pairing, scale, part.image, image, j);
  }
  if (!writes_rows(a)) return;
  for_uncounted_rows(pairing, part, image, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first + lane; row < end; row += lanes) {
      set_row_gradients(a, boxes, part.image, image, row, Gradients<BoxOf<F, C>>{});
    }
  });
}

}  // namespace boxloss
