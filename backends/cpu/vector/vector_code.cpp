// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/vector/vector_code.hpp"

#include "cpu/vector/capabilities.hpp"
#include "cpu/vector/coordinates.hpp"
#include "cpu/vector/rotated_coordinates.hpp"
#include "dtypes/elements.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "losses/rotated/formulas.hpp"
#include "pairings/grid.hpp"

/// Compiled once for each capability. The linker keeps one copy of a weak symbol for the whole
/// library, which might be AVX-512's: so everything here is local to the file, or always inlined.
namespace boxloss::native {
namespace {

template <class Body>
BOXLOSS_HOST_DEVICE void for_each_pair(int count, const Body& body) {
  for (int block = 0; block < count; block += kBlock) {
    for_each_in_block([=](int i) BOXLOSS_INLINE { body(block + i); });
  }
}

template <class C>
void read(const void* from, DType dtype, int values, C* to) {
  with_elements(from, dtype, [=](auto elements) {
#pragma omp simd
    for (int i = 0; i < values; ++i) to[i] = elements.template get<C>(i);
  });
}

template <class C>
void write(const C* from, int values, void* to, DType dtype) {
  with_outputs(to, dtype, [=](auto outputs) {
#pragma omp simd
    for (int i = 0; i < values; ++i) outputs.set(i, from[i]);
  });
}

template <class C>
BOXLOSS_HOST_DEVICE void set_row(C* to, const C (&columns)[4][kTilePairs], int i) {
  set_box_at(to, i, Box<C>{columns[0][i], columns[1][i], columns[2][i], columns[3][i]});
}
template <class C>
BOXLOSS_HOST_DEVICE void set_row(C* to, const C (&columns)[5][kTilePairs], int i) {
  set_box_at(
      to, i,
      RotatedBox<C>{columns[0][i], columns[1][i], columns[2][i], columns[3][i], columns[4][i]});
}

/// In two steps: g++ makes scalar code of one that converts and transposes.
template <int kNumbers, class C>
BOXLOSS_HOST_DEVICE void read_columns_of(const void* from, DType dtype, std::int64_t stride,
                                         int boxes, C* to) {
  with_elements(from, dtype, [=](auto elements) {
    C columns[kNumbers][kTilePairs];
    for (int coordinate = 0; coordinate < kNumbers; ++coordinate) {
      C* const column = columns[coordinate];
      const std::int64_t first = coordinate * stride;
#pragma omp simd
      for (int i = 0; i < boxes; ++i) column[i] = elements.template get<C>(first + i);
    }
#pragma omp simd
    for (int i = 0; i < boxes; ++i) set_row(to, columns, i);
  });
}

template <class C>
void read_columns(const void* from, DType dtype, std::int64_t stride, int numbers, int boxes,
                  C* to) {
  if (numbers == 4) return read_columns_of<4>(from, dtype, stride, boxes, to);
  read_columns_of<5>(from, dtype, stride, boxes, to);
}

template <int kNumbers, class C>
BOXLOSS_HOST_DEVICE void write_columns_of(const C* from, int boxes, void* to, DType dtype,
                                          std::int64_t stride) {
  with_outputs(to, dtype, [=](auto outputs) {
    for (int coordinate = 0; coordinate < kNumbers; ++coordinate) {
      const std::int64_t first = coordinate * stride;
#pragma omp simd
      for (int i = 0; i < boxes; ++i) outputs.set(first + i, from[kNumbers * i + coordinate]);
    }
  });
}

template <class C>
void write_columns(const C* from, int numbers, int boxes, void* to, DType dtype,
                   std::int64_t stride) {
  if (numbers == 4) return write_columns_of<4>(from, boxes, to, dtype, stride);
  write_columns_of<5>(from, boxes, to, dtype, stride);
}

/// Calls `use` with the format as a type, so that it is selected outside the loop.
template <BoxFormat format>
struct Format {
  static constexpr BoxFormat kValue = format;
};

template <class Use>
BOXLOSS_HOST_DEVICE void with_format(BoxFormat format, const Use& use) {
  switch (format) {
    case BoxFormat::kXyxy: return;
    case BoxFormat::kXywh: return use(Format<BoxFormat::kXywh>());
    case BoxFormat::kCxcywh: return use(Format<BoxFormat::kCxcywh>());
  }
}

template <class C>
void to_corners(C* boxes, BoxFormat format, int count) {
  with_format(format, [=](auto known) {
    for_each_pair(count, [=](int i) BOXLOSS_INLINE {
      set_box_at(boxes, i, boxloss::to_corners(box_at(boxes, i), known.kValue));
    });
  });
}

template <class C>
void from_corners_gradient(C* gradients, BoxFormat format, int count) {
  with_format(format, [=](auto known) {
    for_each_pair(count, [=](int i) BOXLOSS_INLINE {
      set_box_at(gradients, i, boxloss::from_corners_gradient(box_at(gradients, i), known.kValue));
    });
  });
}

template <class C>
void losses(Loss loss, const C* pred, const C* target, const Constants<C>& at, int count,
            C* losses) {
  const Constants<C> constants = at;  // a copy, which no store can change
  with_formula(loss, [=](auto formula) {
    for (int block = 0; block < count; block += kBlock) {
      Coordinates<C> p, t;
      p.read(pred + 4 * block);
      t.read(target + 4 * block);
      for_each_in_block([=, &p, &t](int i) BOXLOSS_INLINE {
        losses[block + i] = formula.loss(p.get(i), t.get(i), constants);
      });
    }
  });
}

template <class C>
void ious(const C* pred, const C* target, const Eps<C>& at, int count, C* ious) {
  const Eps<C> eps = at;
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    ious[i] = iou_of(overlap(box_at(pred, i), box_at(target, i), eps));
  });
}

/// Delays the stores of single coordinates until the block is done: among other stores they would
/// not become vector stores.
template <bool kOfTarget, class F, class C>
BOXLOSS_HOST_DEVICE void gradients_of(const F& formula, const C* pred, const C* target,
                                      const Constants<C>& constants, int count, const C* by,
                                      C* losses, C* d_pred, C* d_target) {
  for (int block = 0; block < count; block += kBlock) {
    Coordinates<C> of_pred, of_target, p, t;
    p.read(pred + 4 * block);
    t.read(target + 4 * block);
    for_each_in_block([=, &of_pred, &of_target, &p, &t](int i) BOXLOSS_INLINE {
      const int k = block + i;
      PairGradient<C> d = gradient(formula, p.get(i), t.get(i), constants);
      of_pred.set(i, by[k] * d.pred);
      if constexpr (kOfTarget) of_target.set(i, by[k] * d.target);
      losses[k] = d.loss;
    });
    of_pred.write(d_pred + 4 * block);
    if constexpr (kOfTarget) of_target.write(d_target + 4 * block);
  }
}

template <class C>
void gradients(Loss loss, const C* pred, const C* target, const Constants<C>& at, int count,
               const C* by, C* losses, C* d_pred, C* d_target) {
  const Constants<C> constants = at;
  with_formula(loss, [=](auto formula) {
    if (d_target == nullptr) {
      gradients_of<false>(formula, pred, target, constants, count, by, losses, d_pred, d_target);
    } else {
      gradients_of<true>(formula, pred, target, constants, count, by, losses, d_pred, d_target);
    }
  });
}

template <class C>
void l1(const C* pred, const C* target, int count, C* l1) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    l1[i] = l1_distance(box_at(pred, i), box_at(target, i));
  });
}

template <class C>
void add_l1(const C* pred, const C* target, int count, const C* by, C* values) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    values[i] += by[i] * l1_distance(box_at(pred, i), box_at(target, i));
  });
}

template <class C>
void add_l1_gradients(const C* pred, const C* target, int count, const C* by, C* d_pred,
                      C* d_target) {
  const auto add_to = [=](C* gradient, C sign) {
    for_each_pair(count, [=](int i) BOXLOSS_INLINE {
      Box<C> signs = l1_signs(box_at(pred, i), box_at(target, i));
      set_box_at(gradient, i, box_at(gradient, i) + (sign * by[i]) * signs);
    });
  };
  add_to(d_pred, C(1));
  if (d_target != nullptr) add_to(d_target, C(-1));
}

template <class C>
void multiply(const C* by, int count, C* values) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE { values[i] *= by[i]; });
}

template <class C>
void find_padding(const C* targets, int count, std::uint8_t* counts) {
  for_each_pair(count,
                [=](int i) BOXLOSS_INLINE { counts[i] = ZeroPadded().counts(box_at(targets, i)); });
}

template <class C>
void in_radians(C* boxes, AngleUnit unit, int count) {
  if (unit == AngleUnit::kRadians) return;
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    set_box_at(boxes, i, boxloss::in_radians(rotated_box_at(boxes, i), AngleUnit::kDegrees));
  });
}

template <class C>
void from_radians_gradient(C* gradients, AngleUnit unit, int count) {
  if (unit == AngleUnit::kRadians) return;
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    set_box_at(gradients, i,
               boxloss::from_radians_gradient(rotated_box_at(gradients, i), AngleUnit::kDegrees));
  });
}

template <class C>
void rotated_losses(RotatedLoss loss, const C* pred, const C* target, const Constants<C>& at,
                    int count, C* losses) {
  const Constants<C> constants = at;
  with_formula(loss, [=](auto formula) {
    for (int block = 0; block < count; block += kBlock) {
      RotatedCoordinates<C> p, t;
      p.read(pred + 5 * block);
      t.read(target + 5 * block);
      for_each_in_block([=, &p, &t](int i) BOXLOSS_INLINE {
        losses[block + i] = formula.loss(p.get(i), t.get(i), constants);
      });
    }
  });
}

template <class C>
void rotated_ious(const C* pred, const C* target, const Eps<C>& at, int count, C* ious) {
  const Eps<C> eps = at;
  for (int block = 0; block < count; block += kBlock) {
    RotatedCoordinates<C> p, t;
    p.read(pred + 5 * block);
    t.read(target + 5 * block);
    for_each_in_block([=, &p, &t](int i) BOXLOSS_INLINE {
      ious[block + i] = rotated::iou_of(rotated::overlap(p.get(i), t.get(i), eps));
    });
  }
}

/// Both gradients are computed, since they have almost all in common.
template <class C>
void rotated_gradients(RotatedLoss loss, const C* pred, const C* target, const Constants<C>& at,
                       int count, const C* by, C* losses, C* d_pred, C* d_target) {
  const Constants<C> constants = at;
  with_formula(loss, [=](auto formula) {
    for (int block = 0; block < count; block += kBlock) {
      RotatedCoordinates<C> of_pred, of_target, p, t;
      p.read(pred + 5 * block);
      t.read(target + 5 * block);
      for_each_in_block([=, &of_pred, &of_target, &p, &t](int i) BOXLOSS_INLINE {
        const int k = block + i;
        RotatedPairGradient<C> d = formula.derivatives(p.get(i), t.get(i), constants);
        of_pred.set(i, by[k] * d.pred);
        of_target.set(i, by[k] * d.target);
        losses[k] = d.loss;
      });
      of_pred.write(d_pred + 5 * block);
      if (d_target != nullptr) of_target.write(d_target + 5 * block);
    }
  });
}

template <class C>
void find_rotated_padding(const C* targets, int count, std::uint8_t* counts) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    counts[i] = ZeroPadded().counts(rotated_box_at(targets, i));
  });
}

template <class C>
void losses_with(const C* one, Loss loss, const C* boxes, const Constants<C>& at, int count,
                 C* losses) {
  const Constants<C> constants = at;
  Coordinates<C> target;
  for (int i = 0; i < kBlock; ++i) target.set(i, box_at(one, 0));
  // Hides that all targets are equal: for a uniform value the compiler makes scalar conditions, and
  // no vector loop.
  asm("" : "+m"(target));
  with_formula(loss, [=, &target](auto formula) {
    for (int block = 0; block < count; block += kBlock) {
      for_each_in_block([=, &target](int i) BOXLOSS_INLINE {
        losses[block + i] = formula.loss(box_at(boxes, block + i), target.get(i), constants);
      });
    }
  });
}

template <class C>
void rotated_losses_with(const C* one, RotatedLoss loss, const C* boxes, const Constants<C>& at,
                         int count, C* losses) {
  const Constants<C> constants = at;
  RotatedCoordinates<C> target;
  for (int i = 0; i < kBlock; ++i) target.set(i, rotated_box_at(one, 0));
  asm("" : "+m"(target));  // as in losses_with
  with_formula(loss, [=, &target](auto formula) {
    for (int block = 0; block < count; block += kBlock) {
      RotatedCoordinates<C> p;
      p.read(boxes + 5 * block);
      for_each_in_block([=, &p, &target](int i) BOXLOSS_INLINE {
        losses[block + i] = formula.loss(p.get(i), target.get(i), constants);
      });
    }
  });
}

template <class C>
void distances_with(const CostArgs<AnyRotatedFormula, C>& args, const C* one, const C* boxes,
                    int count, C* distances) {
  const RotatedBox<C> target = rotated_box_at(one, 0);
  const C l1_weight = args.l1_weight, angle_weight = args.angle_weight;
  for (int block = 0; block < count; block += kBlock) {
    RotatedCoordinates<C> p;
    p.read(boxes + 5 * block);
    C* const own = distances + block;
    if (l1_weight == C(0)) {
      for_each_in_block([=](int i) BOXLOSS_INLINE { own[i] = 0; });
    } else {
      for_each_in_block([=, &p](int i)
                            BOXLOSS_INLINE { own[i] = l1_weight * l1_value(p.get(i), target); });
    }
    if (angle_weight == C(0)) continue;
    for_each_in_block(
        [=, &p](int i) BOXLOSS_INLINE { own[i] += angle_weight * angle_cost(p.get(i), target); });
  }
}

template <class C>
void l1_with(const C* one, const C* boxes, int count, C* l1) {
  const Box<C> target = box_at(one, 0);
  for_each_pair(count, [=](int i) BOXLOSS_INLINE { l1[i] = l1_value(box_at(boxes, i), target); });
}

/// In two loops: in a longer one the compiler makes branches.
template <class C, class Focus>
BOXLOSS_HOST_DEVICE void focal_costs(C alpha, const Focus& focus, const C* logits, int count,
                                     C* costs) {
  for (int block = 0; block < count; block += kBlock) {
    C p[kBlock], rest[kBlock];
    for_each_in_block([=, &p, &rest](int i) BOXLOSS_INLINE {
      Odds<C> o = odds(logits[block + i]);
      p[i] = o.p;
      rest[i] = o.rest;
    });
    for_each_in_block([=, &p, &rest](int i) BOXLOSS_INLINE {
      costs[block + i] = focal_cost(Odds<C>{p[i], rest[i]}, alpha, focus);
    });
  }
}

template <class C>
void class_costs(ClassTerm term, const Focal<C>& focal, const C* scores, int count, C* costs) {
  switch (term) {
    case ClassTerm::kSoftmax:
      return for_each_pair(count,
                           [=](int i) BOXLOSS_INLINE { costs[i] = softmax_cost(scores[i]); });
    case ClassTerm::kSigmoid:
      return for_each_pair(count,
                           [=](int i) BOXLOSS_INLINE { costs[i] = sigmoid_cost(scores[i]); });
    case ClassTerm::kFocal:
      if (focal.squares) return focal_costs(focal.alpha, Square(), scores, count, costs);
      return focal_costs(focal.alpha, Power<C>{focal.gamma}, scores, count, costs);
    default: return;
  }
}

template <class C, class F>
void cost_entries(const CostArgs<F, C>& args, const C* losses, const C* l1, const C* class_terms,
                  int count, float* entries) {
  for_each_pair(count, [=, &args](int i) BOXLOSS_INLINE {
    entries[i] = entry_of(args, losses[i], l1[i], class_terms[i]);
  });
}

/// Reduces a block of values to one: `choose` takes one of two.
template <class C, class Choose>
BOXLOSS_HOST_DEVICE C chosen_of(const C* block, const Choose& choose) {
  C values[kBlock];
  for_each_in_block([=, &values](int i) BOXLOSS_INLINE { values[i] = block[i]; });
  for (int half = kBlock / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] = choose(values[i], values[i + half]);
  }
  return values[0];
}

// Not inlined: what is left of a block in the end are single numbers.
template <class C>
__attribute__((noinline)) C least_of_block(const C* block) {
  return chosen_of(block, [](C a, C b) BOXLOSS_INLINE { return smaller(a, b); });
}
template <class C>
__attribute__((noinline)) C most_of_block(const C* block) {
  return chosen_of(block, [](C a, C b) BOXLOSS_INLINE { return larger(a, b); });
}
template <class C>
__attribute__((noinline)) C best_of_block(const C* block) {
  return chosen_of(block, [](C a, C b) BOXLOSS_INLINE { return select(is_better(b, a), b, a); });
}

template <class C>
BOXLOSS_HOST_DEVICE MatchBox<Box<C>> anchor_at(const AnchorTile<Box<C>>& tile, int i) {
  return {{tile.x1[i], tile.y1[i], tile.x2[i], tile.y2[i]}, tile.own[0][i]};
}
template <class C>
BOXLOSS_HOST_DEVICE MatchBox<RotatedBox<C>> anchor_at(const AnchorTile<RotatedBox<C>>& tile,
                                                      int i) {
  return {{tile.own[0][i], tile.own[1][i], tile.own[2][i], tile.own[3][i], tile.own[4][i]},
          {tile.x1[i], tile.y1[i], tile.x2[i], tile.y2[i]}};
}

template <class B>
BOXLOSS_HOST_DEVICE void set_corners(AnchorTile<B>& tile, int i, const Box<typename B::Value>& of) {
  tile.x1[i] = of.x1;
  tile.y1[i] = of.y1;
  tile.x2[i] = of.x2;
  tile.y2[i] = of.y2;
}
template <class C>
BOXLOSS_HOST_DEVICE void set_anchor(AnchorTile<Box<C>>& tile, int i, const Box<C>& anchor) {
  const MatchBox<Box<C>> box = match_box(anchor);
  set_corners(tile, i, anchor);
  tile.own[0][i] = box.area;
}
template <class C>
BOXLOSS_HOST_DEVICE void set_anchor(AnchorTile<RotatedBox<C>>& tile, int i,
                                    const RotatedBox<C>& anchor) {
  set_corners(tile, i, match_box(anchor).extent);
  tile.own[0][i] = anchor.cx;
  tile.own[1][i] = anchor.cy;
  tile.own[2][i] = anchor.w;
  tile.own[3][i] = anchor.h;
  tile.own[4][i] = anchor.angle;
}

template <class B, class CoordinatesOfB, class C>
BOXLOSS_HOST_DEVICE void set_tile(const C* anchors, int count, AnchorTile<B>* tile) {
  AnchorTile<B>& t = *tile;
  t.blocks = (count + kBlock - 1) / kBlock;
  for (int b = 0; b < t.blocks; ++b) {
    const int first = b * kBlock;
    CoordinatesOfB own;
    own.read(anchors + B::kNumbers * first);
    for (int i = count - first; i < kBlock; ++i) own.set(i, own.get(count - first - 1));
    C bounded[kBlock];
    for_each_in_block([=, &t, &own](int i)
                          BOXLOSS_INLINE { set_anchor(t, first + i, own.get(i)); });
    for_each_in_block([=, &t, &bounded](int i) BOXLOSS_INLINE {
      bounded[i] = select(has_bounds(anchor_at(t, first + i)), C(1), C(0));
    });
    const bool are_bounded = least_of_block(bounded) == C(1);
    t.bounds[b] = are_bounded ? Box<C>{least_of_block(t.x1 + first), least_of_block(t.y1 + first),
                                       most_of_block(t.x2 + first), most_of_block(t.y2 + first)}
                              : everywhere<C>();
  }
}
template <class C>
void to_tile(const C* anchors, int count, AnchorTile<Box<C>>* tile) {
  set_tile<Box<C>, Coordinates<C>>(anchors, count, tile);
}
template <class C>
void to_rotated_tile(const C* anchors, int count, AnchorTile<RotatedBox<C>>* tile) {
  set_tile<RotatedBox<C>, RotatedCoordinates<C>>(anchors, count, tile);
}

/// Calls body(first anchor) for each block that the box can overlap.
template <class B, class Body>
BOXLOSS_HOST_DEVICE void for_each_overlapped(const AnchorTile<B>& tile, const MatchBox<B>& box,
                                             const Body& body) {
  const auto extent = extent_of(box);
  for (int b = 0; b < tile.blocks; ++b) {
    if (can_overlap(extent, tile.bounds[b])) body(b * kBlock);
  }
}

template <class B, class C = typename B::Value>
C match_with(const MatchBox<B>& given, BoxNumber<C> number, const AnchorTile<B>& tile, C* ious,
             BoxNumber<C>* numbers) {
  const MatchBox<B> box = given;
  C best[kBlock];
  for_each_in_block([&best](int i) BOXLOSS_INLINE { best[i] = C(0); });
  for_each_overlapped(tile, box, [=, &tile, &best](int first) BOXLOSS_INLINE {
    C own[kBlock];  // in two loops: in a longer one the compiler makes branches
    for_each_in_block([=, &tile, &own](int i)
                          BOXLOSS_INLINE { own[i] = iou_of(box, anchor_at(tile, first + i)); });
    for_each_in_block([=, &own, &best](int i) BOXLOSS_INLINE {
      const int k = first + i;
      const bool is_anchors_best = is_better(own[i], ious[k]);
      ious[k] = select(is_anchors_best, own[i], ious[k]);
      numbers[k] = select(is_anchors_best, number, numbers[k]);
      best[i] = select(is_better(own[i], best[i]), own[i], best[i]);
    });
  });
  return best_of_block(best);
}

template <class B, class C = typename B::Value>
void mark_best(const MatchBox<B>& given, C best, BoxNumber<C> number, const AnchorTile<B>& tile,
               BoxNumber<C>* numbers) {
  const MatchBox<B> box = given;
  for_each_overlapped(tile, box, [=, &tile](int first) BOXLOSS_INLINE {
    for_each_in_block([=, &tile](int i) BOXLOSS_INLINE {
      const int k = first + i;
      numbers[k] = select(iou_of(box, anchor_at(tile, k)) == best, number, numbers[k]);
    });
  });
}

/// Calls use(numbers) with the focus, and whether it has a slope, as constants, so that they are
/// selected outside the loop.
template <class C, class Use>
BOXLOSS_HOST_DEVICE void with_focus(const ClassNumbers<C>& at, const Use& use) {
  const auto use_as = [&](Focus focus, bool derives_focus) BOXLOSS_INLINE {
    ClassNumbers<C> numbers = at;  // a copy, which no store can change
    numbers.focus = focus;
    numbers.derives_focus = derives_focus;
    use(numbers);
  };
  const auto use_of = [&](bool derives_focus) BOXLOSS_INLINE {
    switch (at.focus) {
      case Focus::kOne: return use_as(Focus::kOne, derives_focus);
      case Focus::kSquare: return use_as(Focus::kSquare, derives_focus);
      case Focus::kPower: return use_as(Focus::kPower, derives_focus);
    }
  };
  if (at.derives_focus) return use_of(true);
  use_of(false);
}

template <class C>
void other_losses(const ClassNumbers<C>& at, const C* logits, int count, C* losses) {
  with_focus(at, [=](const ClassNumbers<C>& numbers) BOXLOSS_INLINE {
    for_each_pair(count, [=](int i) BOXLOSS_INLINE { losses[i] = other_loss(numbers, logits[i]); });
  });
}

template <class C>
void other_slopes(const ClassNumbers<C>& at, const C* logits, int count, C* slopes) {
  with_focus(at, [=](const ClassNumbers<C>& numbers) BOXLOSS_INLINE {
    for_each_pair(count,
                  [=](int i) BOXLOSS_INLINE { slopes[i] = other_slope(numbers, logits[i]); });
  });
}

template <class C>
void exps(const C* x, C largest, int count, C* exps) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE { exps[i] = exp(x[i] - largest); });
}

template <class C>
C largest(const C* x, int count) {
  C best = x[0];
  const int padded = whole_blocks(count);
#pragma omp simd reduction(max : best)
  for (int i = 0; i < padded; ++i) best = best < x[i] ? x[i] : best;
  return best;
}

template <class C>
void distill(const C* own, C largest, const C* teacher, C largest_of_teacher, C by, int count,
             C* own_exps, C* teacher_exps, C* parts) {
  for_each_pair(count, [=](int i) BOXLOSS_INLINE {
    const C below = (own[i] - largest) * by, of_teacher = (teacher[i] - largest_of_teacher) * by;
    const C teacher_exp = exp(of_teacher);
    own_exps[i] = exp(below);
    teacher_exps[i] = teacher_exp;
    parts[i] = divergence_part(teacher_exp, of_teacher, below);
  });
}

template <class C>
double sum(const C* values, int count) {
  double sums[kBlock] = {};
  const int whole = count / kBlock * kBlock;
  for (int block = 0; block < whole; block += kBlock) {
    for (int i = 0; i < kBlock; ++i) sums[i] += static_cast<double>(values[block + i]);
  }
  double total = 0;
  for (int i = whole; i < count; ++i) total += static_cast<double>(values[i]);
  for (int i = 0; i < kBlock; ++i) total += sums[i];
  return total;
}

template <class C>
BOXLOSS_HOST_DEVICE void relax_place(const C* costs, double sign, double length, double dual,
                                     const double* duals, int i, double* distances, double& least) {
  const double distance = length + sign * static_cast<double>(costs[i]) - dual - duals[i];
  const double nearer = distance < distances[i] ? distance : distances[i];
  distances[i] = nearer;
  least = nearer < least ? nearer : least;
}

/// Of at most kRelaxed places, from `first` on. Adds those that are as near as `least` to `places`,
/// after it dropped others if these are nearer, and returns how many there are.
constexpr int kRelaxed = 16 * kBlock;
template <class C>
BOXLOSS_HOST_DEVICE int relax_some(const C* costs, double sign, double length, double dual,
                                   const double* duals, int count, double* distances, int first,
                                   double& least, int found, int* places) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double leasts[kBlock], own = kInfinity;  // of every kBlock-th place, and of the remainder
  const int whole = count / kBlock * kBlock;
  if (whole > 0) {
    for (int i = 0; i < kBlock; ++i) leasts[i] = kInfinity;
  }
  for (int block = 0; block < whole; block += kBlock) {
#pragma omp simd
    for (int i = 0; i < kBlock; ++i) {
      relax_place(costs + block, sign, length, dual, duals + block, i, distances + block,
                  leasts[i]);
    }
  }
  for (int i = whole; i < count; ++i) {
    relax_place(costs, sign, length, dual, duals, i, distances, own);
  }
  const double of_remainder = own;
  if (whole > 0) {
#pragma omp simd reduction(min : own)
    for (int i = 0; i < kBlock; ++i) own = leasts[i] < own ? leasts[i] : own;
  }
  if (own > least) return found;
  if (own < least) found = 0;
  least = own;
  for (int i = 0; i < kBlock && whole > 0; ++i) {
    if (leasts[i] != least) continue;
    for (int place = i; place < whole; place += kBlock) {
      if (distances[place] == least) places[found++] = first + place;
    }
  }
  if (of_remainder != least) return found;
  for (int i = whole; i < count; ++i) {
    if (distances[i] == least) places[found++] = first + i;
  }
  return found;
}

template <class C>
int relax(const C* costs, double sign, double length, double dual, const double* duals, int count,
          double* distances, double* least, int* places) {
  *least = std::numeric_limits<double>::infinity();
  int found = 0;
  for (int first = 0; first < count; first += kRelaxed) {
    const int some = count - first < kRelaxed ? count - first : kRelaxed;
    found = relax_some(costs + first, sign, length, dual, duals + first, some, distances + first,
                       first, *least, found, places);
  }
  return found;
}

template <class C>
constexpr VectorCode<C> code() {
  VectorCode<C> code = {};
  code.read = read<C>;
  code.write = write<C>;
  code.read_columns = read_columns<C>;
  code.write_columns = write_columns<C>;
  code.to_corners = to_corners<C>;
  code.from_corners_gradient = from_corners_gradient<C>;
  code.losses = losses<C>;
  code.ious = ious<C>;
  code.gradients = gradients<C>;
  code.l1 = l1<C>;
  code.add_l1 = add_l1<C>;
  code.add_l1_gradients = add_l1_gradients<C>;
  code.multiply = multiply<C>;
  code.find_padding = find_padding<C>;
  code.rotated.in_radians = in_radians<C>;
  code.rotated.from_radians_gradient = from_radians_gradient<C>;
  code.rotated.losses = rotated_losses<C>;
  code.rotated.ious = rotated_ious<C>;
  code.rotated.gradients = rotated_gradients<C>;
  code.rotated.find_padding = find_rotated_padding<C>;
  code.rotated.losses_with = rotated_losses_with<C>;
  code.rotated.distances_with = distances_with<C>;
  code.rotated.cost_entries = cost_entries<C, AnyRotatedFormula>;
  code.rotated.anchors = {to_rotated_tile<C>, match_with<RotatedBox<C>>, mark_best<RotatedBox<C>>};
  code.losses_with = losses_with<C>;
  code.l1_with = l1_with<C>;
  code.class_costs = class_costs<C>;
  code.cost_entries = cost_entries<C, AnyFormula>;
  code.anchors = {to_tile<C>, match_with<Box<C>>, mark_best<Box<C>>};
  code.other_losses = other_losses<C>;
  code.other_slopes = other_slopes<C>;
  code.exps = exps<C>;
  code.largest = largest<C>;
  code.distill = distill<C>;
  code.sum = sum<C>;
  code.relax = relax<C>;
  return code;
}

}  // namespace

// The build defines the name.
const VectorCode<float> BOXLOSS_CPU_CAPABILITY::kFloat = code<float>();
const VectorCode<double> BOXLOSS_CPU_CAPABILITY::kDouble = code<double>();

}  // namespace boxloss::native
