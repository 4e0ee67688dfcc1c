// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "bounds.hpp"

#include <algorithm>
#include <cmath>

#include "bounded.hpp"
#include "losses/formulas.hpp"
#include "pairs.hpp"

namespace boxloss::conformance {
namespace {

struct Precision {
  double unit_roundoff, smallest_subnormal;
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return {0x1p-53, 0x1p-1074};
    case DType::kF32: return {0x1p-24, 0x1p-149};
    case DType::kF16: return {0x1p-11, 0x1p-24};
    default: return {0x1p-8, 0x1p-133};
  }
}

/// The bound once both computations have stored their number in `dtype`: each is rounded once more,
/// by at most half a unit in the last place. The last factor covers the oracle's way to 16 bits,
/// which leads through float. Equal numbers are stored equally.
template <class C>
double stored(const Bounded<C>& x, DType dtype) {
  if (x.error == 0) return 0;
  if (!(x.error < kUnbounded)) return kUnbounded;
  const Precision precision = precision_of(dtype);
  const double half_ulp = std::max(precision.unit_roundoff * (std::fabs(x.value) + x.error),
                                   precision.smallest_subnormal / 2);
  return (x.error + 2 * half_ulp) * (1 + 0x1p-8);
}

/// A number that the oracle reads as it is and other implementations round to C.
template <class C>
Bounded<C> read_as(double value) {
  return std::isfinite(value) ? rounded<C>(value, 0, 0, kHalfSubnormal<C>) : Bounded<C>(value);
}

/// Corners are formed in C by everybody, so they are exact.
template <class C>
Box<Bounded<C>> corners(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> values{view.data, view.dtype};
  const std::int64_t at = image * view.image_stride + slot * view.slot_stride;
  const Box<C> box = to_corners(values.get_box<C>(at), view.format);
  return {static_cast<double>(box.x1), static_cast<double>(box.y1), static_cast<double>(box.x2),
          static_cast<double>(box.y2)};
}

template <class C>
PairGradient<Bounded<C>> pair_gradient(const LossProblem& p, const Pair& pair) {
  const Eps<C> exact = make_eps<C>(p.eps, p.eps_mode);
  const Eps<Bounded<C>> eps{static_cast<double>(exact.added), static_cast<double>(exact.floor),
                            static_cast<double>(exact.value)};
  return with_formula(p.loss, [&](auto formula) {
    return gradient(formula, corners<C>(p.pred, pair.image, pair.slot),
                    corners<C>(p.target, pair.target_image, pair.target_slot), eps);
  });
}

template <class C>
Bounded<C> weight_at(const LossProblem& p, std::int64_t row) {
  if (p.weight.data == nullptr) return 1.0;
  return read_as<C>(Elements<Any>{p.weight.data, p.weight.dtype}.get<double>(row));
}

/// A sum of n losses that are bounded already: to their bounds comes what adding them rounds off.
/// In double, in any order, that is at most n roundings of sums up to `magnitude`, on both sides.
/// In float it is promised to be no more than 1e-6, however many there are, and a balanced tree of
/// float additions, one level more for each doubling of n, is the worst that we know to keep it.
template <class C>
double adding_error(double n, double magnitude) {
  const double in_double = 2 * n * 0x1p-53;
  if (sizeof(C) == sizeof(double)) return in_double * magnitude;
  return (in_double + std::min(1e-6, (1 + std::ceil(std::log2(n + 1))) * 0x1p-24)) * magnitude;
}

template <class C>
ForwardBounds forward_bounds_in(const HostProblem& host) {
  const LossProblem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const bool is_reduced = p.reduction != Reduction::kNone;
  std::vector<double> rows(static_cast<std::size_t>(loss_rows(p)));
  double count = 0, sum = 0, magnitude = 0, error = 0;
  for_each_pair(p, [&](const Pair& pair) {
    const Bounded<C> loss = pair_gradient<C>(p, pair).loss * weight_at<C>(p, pair.row);
    rows[static_cast<std::size_t>(pair.row)] = stored(loss, dtype);
    count += 1;
    sum += loss.value;
    magnitude += std::fabs(loss.value);
    error += loss.error;
  });

  double divisor = 1;
  if (p.reduction == Reduction::kMean) divisor = std::max(count, 1.0);
  if (p.normalizer.data != nullptr) divisor = host.normalizer.get(0);
  // The oracle divides in double; 1 / divisor may be rounded to C first.
  const Bounded<C> scale = read_as<C>(1 / divisor);
  ForwardBounds bounds{std::move(rows), stored(scale, dtype)};
  if (is_reduced) {
    if (std::isfinite(sum)) error += adding_error<C>(count, magnitude);
    bounds.loss = {stored(Bounded<C>(sum, error) * scale, dtype)};
  }
  return bounds;
}

template <class C>
void store(std::vector<double>& bounds, std::int64_t box, const Box<Bounded<C>>& d, DType dtype) {
  double* const four = bounds.data() + 4 * box;
  four[0] = stored(d.x1, dtype);
  four[1] = stored(d.y1, dtype);
  four[2] = stored(d.x2, dtype);
  four[3] = stored(d.y2, dtype);
}

template <class C>
BackwardBounds backward_bounds_in(const HostProblem& host, const Upstream& upstream,
                                  const Array& scale) {
  const LossProblem& p = host.problem;
  const auto rows = static_cast<std::size_t>(loss_rows(p));
  const auto slots = static_cast<std::size_t>(p.pred.images * p.pred.slots);
  BackwardBounds bounds{std::vector<double>(4 * slots), std::vector<double>(4 * rows),
                        std::vector<double>(rows)};
  for_each_pair(p, [&](const Pair& pair) {
    const std::int64_t at =
        pair.target_image * upstream.image_stride + pair.target_slot * upstream.slot_stride;
    const Bounded<C> by_loss = Bounded<C>(scale.get(0)) * Bounded<C>(upstream.values.get(at));
    const Bounded<C> by_pair = by_loss * weight_at<C>(p, pair.row);
    const PairGradient<Bounded<C>> d = pair_gradient<C>(p, pair);
    store(bounds.pred, pair.image * p.pred.slots + pair.slot,
          from_corners_gradient(by_pair * d.pred, p.pred.format), p.pred.dtype);
    store(bounds.target, pair.row, from_corners_gradient(by_pair * d.target, p.target.format),
          p.target.dtype);
    bounds.weight[static_cast<std::size_t>(pair.row)] = stored(by_loss * d.loss, p.weight.dtype);
  });
  return bounds;
}

}  // namespace

ForwardBounds forward_bounds(const HostProblem& host) {
  return compute_dtype(host.problem) == DType::kF64 ? forward_bounds_in<double>(host)
                                                    : forward_bounds_in<float>(host);
}

BackwardBounds backward_bounds(const HostProblem& host, const Upstream& upstream,
                               const Array& scale) {
  return compute_dtype(host.problem) == DType::kF64
             ? backward_bounds_in<double>(host, upstream, scale)
             : backward_bounds_in<float>(host, upstream, scale);
}

}  // namespace boxloss::conformance
