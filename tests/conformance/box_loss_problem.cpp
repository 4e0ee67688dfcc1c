// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss.hpp"

#include <limits>

#include "box_loss_pairs.hpp"
#include "example_parameters.hpp"
#include "index_arrays.hpp"
#include "placed_boxes.hpp"

namespace boxloss::conformance {
namespace {

/// A zero of either sign.
double zero(Random& random) { return random.chance(0.5) ? 0.0 : -0.0; }

void pad_with_zeros(const PlacedBoxes& targets, Random& random) {
  for_each_place(targets.view, [&](std::int64_t b, std::int64_t j) {
    if (random.chance(0.7)) return;
    if (targets.numbers == 4) {
      targets.set(b, j, {zero(random), zero(random), zero(random), zero(random)});
    } else {
      // A point that is turned is not padding.
      const double angle = random.chance(0.9) ? zero(random) : 1;
      targets.set_numbers(b, j, {zero(random), zero(random), zero(random), zero(random), angle});
    }
  });
}

Array random_mask(std::int64_t rows, Random& random) {
  Array mask(DType::kU8, rows);
  // Whatever is not 0 counts.
  const std::vector<int> values = {0, 0, 1, 2, 128, 255};
  for (std::int64_t i = 0; i < rows; ++i) mask.set(i, random.pick(values));
  return mask;
}

/// Below 0 and above `slots`, too.
Array random_lengths(DType dtype, std::int64_t images, std::int64_t slots, Random& random) {
  Array lengths(dtype, images);
  for (std::int64_t b = 0; b < images; ++b) {
    lengths.set(b, static_cast<double>(random.below(slots + 6) - 3));
  }
  return lengths;
}

template <class Case>
Array random_indices(const Case& c, Random& random) {
  const std::int64_t images = c.shape.images, slots = c.shape.slots, rows = c.shape.rows;
  switch (c.pairing.kind) {
    case Pairing::Kind::kMask: return random_mask(images * slots, random);
    case Pairing::Kind::kLengths: return random_lengths(c.pairing.indices, images, slots, random);
    case Pairing::Kind::kOffsets: return random_offsets(c.pairing.indices, images, rows, random);
    default: return Array(c.pairing.indices, 0);
  }
}

/// `indices` for pred, for each of which the target goes through all of them.
std::vector<std::int64_t> combined(const std::vector<std::int64_t>& indices, std::int64_t count,
                                   bool is_pred) {
  const auto n = static_cast<std::int64_t>(indices.size());
  std::vector<std::int64_t> rows;
  for (std::int64_t k = 0; k < count; ++k) {
    rows.push_back(indices[static_cast<std::size_t>((is_pred ? k / n : k) % n)]);
  }
  return rows;
}

/// The rows of one side, if it is indexed.
template <class Case>
void add_rows(const Case& c, bool is_pred, Random& random, BoxView& list, Array& rows) {
  const std::optional<DType> dtype = is_pred ? c.pairing.pred_rows : c.pairing.target_rows;
  if (!dtype) return;
  const std::int64_t count = c.shape.sets * c.shape.pairs;
  rows = exactly(c.indices.empty() ? random_rows(*dtype, count, list.images * list.slots, random)
                                   : combined(c.indices, count, is_pred),
                 *dtype);
  list.rows = {rows.data(), *dtype};
}

/// A weight or an incoming gradient. Of rotated boxes not infinity, which determines nothing where
/// a derivative is 0 but for rounding.
template <class Problem>
double factor(const Problem&, Values values, double low, double high, Random& random) {
  if (values == Values::kSpecial && random.chance(0.1)) {
    return random.pick(std::vector<double>{0, kNan, Problem::kNumbers == 4 ? kInfinity : 0});
  }
  // With kinks, where much is exact, a factor that keeps it so.
  return values == Values::kPlain ? random.uniform(low, high) : low * 2;
}

template <class Problem>
std::vector<bool> counted_rows(const Problem& p) {
  std::vector<bool> counted(static_cast<std::size_t>(loss_rows(p)));
  for_each_pair(p, [&](const Pair& pair) { counted[static_cast<std::size_t>(pair.row)] = true; });
  return counted;
}

template <class Problem>
void spoil_excluded_boxes(const Problem& p, const PlacedBoxes& preds, const PlacedBoxes& targets) {
  spoil_unread(preds, [&](const auto& read) {
    for_each_pair(p, [&](const Pair& pair) { read(pair.image, pair.slot); });
  });
  // What makes a target padding must stay.
  if (p.pairing.kind == Pairing::Kind::kZeroPadded) return;
  spoil_unread(targets, [&](const auto& read) {
    for_each_pair(p, [&](const Pair& pair) { read(pair.target_image, pair.target_slot); });
  });
}

struct Extent {
  std::int64_t images, slots;
};

template <class Case>
Extent pred_extent(const Case& c) {
  const bool is_pair = c.pairing.kind == Pairing::Kind::kIndexed && !c.pairing.pred_rows;
  return is_pair ? Extent{c.shape.sets, c.shape.pairs} : Extent{c.shape.images, c.shape.slots};
}

template <class Case>
Extent target_extent(const Case& c) {
  switch (c.pairing.kind) {
    case Pairing::Kind::kOffsets: return {1, c.shape.rows};
    case Pairing::Kind::kIndexed:
      if (!c.pairing.target_rows) return {c.shape.sets, c.shape.pairs};
      return {c.shape.images, c.shape.rows};
    default: return {c.shape.images, c.shape.slots};
  }
}

/// Of the unreduced loss.
Extent upstream_extent(const PairProblem& p) {
  switch (p.pairing.kind) {
    case Pairing::Kind::kOffsets: return {1, p.target.slots};
    case Pairing::Kind::kIndexed: return {p.pairing.sets, p.pairing.pairs};
    default: return {p.pred.images, p.pred.slots};
  }
}

void fill(const LossProblem&, const PlacedBoxes& boxes, Values values, double origin,
          Random& random) {
  fill(boxes, values, origin, random);
}
void fill(const RotatedLossProblem& p, const PlacedBoxes& boxes, Values values, double origin,
          Random& random) {
  fill_rotated(boxes, values, origin, p.angle_unit, is_indexed(p), random);
}

}  // namespace

template <class P>
HostPairs<P> PairLoss<P>::make(const Case& c, Random& random) {
  Host host;
  P& p = host.problem;
  if constexpr (P::kNumbers == 5) p.angle_unit = c.angle_unit;
  p.loss = c.loss;
  p.pairing.kind = c.pairing.kind;
  const Extent pred = pred_extent(c), target = target_extent(c);
  const PlacedBoxes preds =
      lay_out(c.pred, pred.images, pred.slots, p.pred, host.pred, P::kNumbers);
  const PlacedBoxes targets =
      lay_out(c.target, target.images, target.slots, p.target, host.target, P::kNumbers);
  // Negative coordinates, too, where the target can have them.
  const double origin = c.target.dtype == DType::kU8 ? 0 : -80;
  fill(p, preds, c.values, origin, random);
  fill(p, targets, c.values, origin, random);
  if (c.pairing.kind == Pairing::Kind::kZeroPadded) pad_with_zeros(targets, random);

  if (is_indexed(p)) {
    p.pairing.sets = c.shape.sets;
    p.pairing.pairs = c.shape.pairs;
    add_rows(c, true, random, p.pred, host.pred_rows);
    add_rows(c, false, random, p.target, host.target_rows);
  } else if (p.pairing.kind != Pairing::Kind::kDense &&
             p.pairing.kind != Pairing::Kind::kZeroPadded) {
    host.indices =
        c.indices.empty() ? random_indices(c, random) : exactly(c.indices, c.pairing.indices);
    p.pairing.data = {host.indices.data(), host.indices.dtype()};
  }
  p.reduction = c.reduction;
  p.eps = c.eps.value;
  p.eps_mode = c.eps.mode;
  p.parameters = example_parameters(c.loss);
  if (c.tau) set_parameter(c.loss, "tau", *c.tau, p.parameters);
  if (c.floor) set_parameter(c.loss, "floor", *c.floor, p.parameters);
  spoil_excluded_boxes(p, preds, targets);

  if (c.weight) {
    const std::vector<bool> counted = counted_rows(p);
    host.weight = Array(*c.weight, loss_rows(p));
    for (std::int64_t i = 0; i < host.weight.count(); ++i) {
      host.weight.set(
          i, counted[static_cast<std::size_t>(i)] ? factor(p, c.values, 0.25, 2, random) : kNan);
    }
    p.weight = {host.weight.data(), *c.weight};
  }
  if (c.normalizer) {
    const auto [dtype, stride] = *c.normalizer;
    const double least = is_floating(dtype) ? 3.3 : 3;
    host.normalizer = Array(dtype, stride == 0 ? 1 : loss_sets(p));
    p.normalizer = {host.normalizer.data(), dtype};
    p.normalizer_stride = stride;
    // Stays 0 where nothing counts, which it must not spoil.
    for_each_pair(p, [&](const Pair& pair) {
      const std::int64_t set = pair.set * p.normalizer_stride;
      host.normalizer.set(set, static_cast<double>(set) + least);
    });
  }
  return host;
}

template <class Problem>
Upstream make_upstream(const HostPairs<Problem>& host, UpstreamLayout layout, Values values,
                       Random& random) {
  const Problem& p = host.problem;
  const DType dtype = compute_dtype(p);
  // Never special: NaN or infinity here would be everywhere, and hide all else.
  const auto common = [&] { return values == Values::kPlain ? random.uniform(-1.25, -0.5) : -2.5; };
  if (layout == UpstreamLayout::kOneValue) {
    Upstream upstream{Array(dtype, 1), 0, 0};
    upstream.values.set(0, common());
    return upstream;
  }
  const bool is_reduced = p.reduction != Reduction::kNone;
  const auto [images, slots] = is_reduced ? Extent{loss_sets(p), 1} : upstream_extent(p);
  const std::int64_t step = layout == UpstreamLayout::kGaps ? 3 : 1;
  const Strides strides = {step * slots + 5 * (step - 1), step, 0};
  Upstream upstream{Array(), strides.image, strides.slot};
  lay_out(strides, images, slots, 1, dtype, upstream.values);
  for (std::int64_t set = 0; is_reduced && set < images; ++set) {
    upstream.values.set(set * strides.image, common());
  }
  if (is_reduced) return upstream;
  for_each_pair(p, [&](const Pair& pair) {
    upstream.values.set(pair.grad_image * strides.image + pair.grad_slot * strides.slot,
                        factor(p, values, -2, 2, random));
  });
  return upstream;
}

template HostLoss PairLoss<LossProblem>::make(const Case&, Random&);
template HostPairs<RotatedLossProblem> PairLoss<RotatedLossProblem>::make(const Case&, Random&);
template Upstream make_upstream(const HostLoss&, UpstreamLayout, Values, Random&);
template Upstream make_upstream(const HostPairs<RotatedLossProblem>&, UpstreamLayout, Values,
                                Random&);

}  // namespace boxloss::conformance
