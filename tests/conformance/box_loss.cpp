// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "box_loss.hpp"

#include <memory>
#include <utility>

#include "pairings/indexed.hpp"

namespace boxloss::conformance {
namespace {

/// The problem with its arrays on the device of a run.
template <class Problem>
Problem on_device(const Implementation& implementation, const HostPairs<Problem>& host, Run& run) {
  Problem p = host.problem;
  p.device = implementation.device;
  run.move(p.pred.data, host.pred);
  run.move(p.target.data, host.target);
  run.move(p.pairing.data.data, host.indices);
  run.move(p.pred.rows.data, host.pred_rows);
  run.move(p.target.rows.data, host.target_rows);
  run.move(p.weight.data, host.weight);
  run.move(p.normalizer.data, host.normalizer);
  return p;
}

/// Whether gradients are contiguous or, as far as they can, keep the strides of their boxes.
enum class GradientLayout { kRows, kOfBoxes };

/// Which gradients are wanted, and how they lie.
struct Wish {
  bool pred, target, weight;
  Alignment alignment;
  GradientLayout layout = GradientLayout::kRows;
};

template <class Problem>
std::int64_t values_of(const BoxView& boxes) {
  return Problem::kNumbers * boxes.images * boxes.slots;
}

/// Of boxes at all, in any of the table's layouts.
template <class Problem>
bool has_no_gaps(const BoxView& boxes) {
  return (boxes.images - 1) * boxes.image_stride + (boxes.slots - 1) * boxes.slot_stride +
             (Problem::kNumbers - 1) * boxes.coordinate_stride + 1 ==
         values_of<Problem>(boxes);
}

template <class Problem>
bool are_rows(const BoxView& boxes) {
  return boxes.coordinate_stride == 1 && boxes.slot_stride == Problem::kNumbers &&
         (boxes.images <= 1 || boxes.image_stride == Problem::kNumbers * boxes.slots);
}

/// Does a gradient with these boxes' strides lie in another way?
template <class Problem>
bool can_keep_strides(const Problem& p, const BoxView& boxes) {
  return !is_indexed(p) && values_of<Problem>(boxes) > 0 && has_no_gaps<Problem>(boxes) &&
         !are_rows<Problem>(boxes);
}

template <class Problem>
std::vector<std::int64_t> places_of(const BoxView& boxes) {
  std::vector<std::int64_t> places;
  for (std::int64_t b = 0; b < boxes.images; ++b) {
    for (std::int64_t j = 0; j < boxes.slots; ++j) {
      for (std::int64_t i = 0; i < Problem::kNumbers; ++i) {
        places.push_back(b * boxes.image_stride + j * boxes.slot_stride +
                         i * boxes.coordinate_stride);
      }
    }
  }
  return places;
}

/// The gradient of boxes. Where threads add 16-bit values to shared rows, it is aligned to a box.
template <class Problem>
OutputArray gradient_of(const Problem& p, const BoxView& boxes, const char* name, bool is_wanted,
                        const Wish& wish) {
  OutputArray gradient{name, boxes.dtype, values_of<Problem>(boxes), is_wanted};
  if (wish.alignment == Alignment::kElement) {
    const bool is_added_by_words =
        Problem::kNumbers == 4 && boxes.rows.dtype != DType::kNone && size_of(boxes.dtype) == 2;
    gradient.shift = is_added_by_words ? 8 : size_of(boxes.dtype);
  }
  if (wish.layout == GradientLayout::kOfBoxes && is_wanted && can_keep_strides(p, boxes)) {
    gradient.places = places_of<Problem>(boxes);
  }
  return gradient;
}

GradView on_device(const std::optional<Upstream>& upstream, Run& run) {
  if (!upstream) return {};
  GradView view = {upstream->values.data(), upstream->image_stride, upstream->slot_stride};
  run.move(view.data, upstream->values);
  return view;
}

template <class Problem>
Results run_backward(const Implementation& implementation, const ParallelFor& parallel_for,
                     const HostPairs<Problem>& host, const Upstreams& upstreams, const Array& scale,
                     const Wish& wish) {
  const Problem& p = host.problem;
  const OutputArray pred = gradient_of(p, p.pred, "pred's gradient", wish.pred, wish);
  const OutputArray target = gradient_of(p, p.target, "target's gradient", wish.target, wish);
  const std::size_t shift = wish.alignment == Alignment::kWide ? 0 : size_of(p.weight.dtype);
  Run run(implementation, parallel_for,
          {pred, target, {"weight's gradient", p.weight.dtype, loss_rows(p), wish.weight, shift}});
  const Problem device = on_device(implementation, host, run);
  const GradView loss = on_device(upstreams.loss, run), l1 = on_device(upstreams.l1, run);
  const void* scale_data = scale.data();
  run.move(scale_data, scale);
  loss_backward(
      implementation, device, {loss, l1}, scale_data,
      {run.output(0), run.output(1), run.output(2), !pred.places.empty(), !target.places.empty()},
      run.execution());
  return run.results();
}

/// All that the problem can give: integer targets and absent weights have no gradient.
Wish all_gradients(const PairProblem& p) {
  return {true, is_floating(p.target.dtype), p.weight.dtype != DType::kNone, Alignment::kWide};
}

/// All combinations of the gradients that the problem can give, but none at all, behind `all`.
template <class Problem>
std::vector<Wish> combinations(const Problem& p) {
  const Wish all = all_gradients(p);
  const auto [has_pred, has_target, has_weight, wide, rows] = all;
  constexpr Alignment kElement = Alignment::kElement;
  std::vector<Wish> list = {all, {has_pred, has_target, has_weight, kElement}};
  if (can_keep_strides(p, p.pred) || can_keep_strides(p, p.target)) {
    constexpr GradientLayout kOfBoxes = GradientLayout::kOfBoxes;
    list.push_back({has_pred, has_target, has_weight, wide, kOfBoxes});
    list.push_back({has_pred, has_target, has_weight, kElement, kOfBoxes});
    list.push_back({true, false, false, wide, kOfBoxes});
  }
  // Alone: else pred's gradient, unaligned as well, keeps wide stores from the target's.
  if (has_target) list.push_back({false, true, false, kElement});
  for (unsigned bits = 1; bits < 8; ++bits) {
    const bool pred = (bits & 1) != 0, target = (bits & 2) != 0, weight = (bits & 4) != 0;
    const bool is_all = pred && target == has_target && weight == has_weight;
    if (is_all || target > has_target || weight > has_weight) continue;
    list.push_back({pred, target, weight, wide});
  }
  return list;
}

/// With each of the extras alone for one loss only, since they are not the loss's, and not for more
/// sets than a GPU has blocks, which take long without one.
template <class Problem>
std::vector<Set<Extra>> wanted_extras(const Problem& p) {
  const Set<Extra> all = all_extras(p);
  std::vector<Set<Extra>> list = {{}, all};
  if (p.loss == decltype(p.loss)::kGiou && all.contains(Extra::kL1) && loss_sets(p) < 1000) {
    all.for_each([&](Extra extra) { list.push_back({extra}); });
  }
  return list;
}

const LossFunctions& functions_of(const Implementation& i, const LossProblem&) {
  return i.box_loss;
}
const RotatedLossFunctions& functions_of(const Implementation& i, const RotatedLossProblem&) {
  return i.rotated_box_loss;
}

template <class Problem>
auto serves(const Problem& p, const Set<Extra>& extras) {
  return [p, loss = p.loss, pairing = p.pairing.kind,
          extras](const Implementation& implementation) {
    const auto& served = functions_of(implementation, p);
    bool is_served = served.losses.contains(loss) && served.pairings.contains(pairing);
    extras.for_each([&](Extra extra) { is_served = is_served && served.extras.contains(extra); });
    return is_served;
  };
}

}  // namespace

template <class Problem>
Results run_forward(const Implementation& implementation, const ParallelFor& parallel_for,
                    const HostPairs<Problem>& host, const Set<Extra>& extras) {
  const Problem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const std::int64_t values = p.reduction == Reduction::kNone ? loss_rows(p) : loss_sets(p);
  Run run(implementation, parallel_for,
          {{"loss", dtype, values},
           {"scale", dtype, loss_sets(p)},
           {"l1", dtype, values, extras.contains(Extra::kL1)},
           {"iou", dtype, loss_rows(p), extras.contains(Extra::kIou)}});
  const Problem device = on_device(implementation, host, run);
  loss_forward(implementation, device, {run.output(0), run.output(1), run.output(2), run.output(3)},
               run.execution(loss_workspace_bytes(implementation, device)));
  return run.results();
}

template <class Problem>
Results run_backward(const Implementation& implementation, const ParallelFor& parallel_for,
                     const HostPairs<Problem>& host, const Upstreams& upstreams,
                     const Array& scale) {
  return run_backward(implementation, parallel_for, host, upstreams, scale,
                      all_gradients(host.problem));
}

Set<Extra> all_extras(const LossProblem& p) {
  return p.pred.format == p.target.format ? kExtras : Set<Extra>{Extra::kIou};
}

Set<Extra> all_extras(const RotatedLossProblem& p) {
  return kLossesByArea.contains(p.loss) ? Set<Extra>{Extra::kIou} : Set<Extra>{};
}

template <class P>
std::vector<Call> PairLoss<P>::calls(const Case& c, const Host& host, Random& random) {
  const Problem& p = host.problem;
  const Results expected = run_forward(oracle(), boxloss::parallel_for, host, all_extras(p));
  const bool has_l1 = all_extras(p).contains(Extra::kL1);
  // As DETR asks for its pairs, which are by index.
  const bool l1_is_typical = has_l1 && is_indexed(p);
  std::vector<Call> calls(1);
  calls[0] = {
      "forward", {}, [&host, expected] { return within_bounds(expected, forward_bounds(host)); }};
  for (const Set<Extra>& extras : wanted_extras(p)) {
    const auto run = [&host, extras](const auto& implementation, const auto& parallel_for) {
      return run_forward(implementation, parallel_for, host, extras);
    };
    calls[0].ways.push_back(
        {run, serves(p, extras), calls[0].ways.size() == (l1_is_typical ? 1 : 0)});
  }

  const BackwardBoundsOf bounds_of = backward_bounds(host);
  const auto add_backward = [&, scale = *expected.outputs[1].values](
                                Upstreams given, const std::vector<Wish>& wishes, bool is_typical) {
    const auto from = std::make_shared<const Upstreams>(std::move(given));
    Call call{"backward", {}, [=, &host] {
                const Results right =
                    run_backward(oracle(), boxloss::parallel_for, host, *from, scale);
                return within_bounds(right, bounds_of(*from, scale));
              }};
    for (const Wish& wish : wishes) {
      const auto run = [=, &host](const auto& implementation, const auto& parallel_for) {
        return run_backward(implementation, parallel_for, host, *from, scale, wish);
      };
      const bool from_l1 = from->l1 && from->l1->values.count() > 0;  // else it has no pointer
      const Set<Extra> incoming = from_l1 ? Set<Extra>{Extra::kL1} : Set<Extra>{};
      call.ways.push_back({run, serves(p, incoming), is_typical && call.ways.empty()});
    }
    calls.push_back(std::move(call));
  };
  const auto upstream = [&](UpstreamLayout layout) {
    return make_upstream(host, layout, c.values, random);
  };
  const std::vector<Wish> all = {all_gradients(p)};
  add_backward({upstream(UpstreamLayout::kContiguous), {}}, combinations(p), !l1_is_typical);
  add_backward({upstream(UpstreamLayout::kGaps), {}}, all, false);
  add_backward({upstream(UpstreamLayout::kOneValue), {}}, all, false);
  if (!has_l1) return calls;
  add_backward({{}, upstream(UpstreamLayout::kContiguous)}, all, false);
  add_backward({upstream(UpstreamLayout::kContiguous), upstream(UpstreamLayout::kGaps)}, all,
               l1_is_typical);
  return calls;
}

template Results run_forward(const Implementation&, const ParallelFor&, const HostLoss&,
                             const Set<Extra>&);
template Results run_forward(const Implementation&, const ParallelFor&,
                             const HostPairs<RotatedLossProblem>&, const Set<Extra>&);
template Results run_backward(const Implementation&, const ParallelFor&,
                              const HostPairs<RotatedLossProblem>&, const Upstreams&, const Array&);
template std::vector<Call> PairLoss<LossProblem>::calls(const Case&, const Host&, Random&);
template std::vector<Call> PairLoss<RotatedLossProblem>::calls(const Case&, const Host&, Random&);

}  // namespace boxloss::conformance
