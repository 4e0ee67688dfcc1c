// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include "bounds.hpp"

namespace boxloss::conformance {
namespace {

const Implementation& oracle() { return implementation("cpu/reference"); }

/// Which gradients are wanted, and how they lie.
struct Wish {
  Wanted wanted;
  Alignment alignment;
  GradientLayout layout = GradientLayout::kRows;
};

/// All combinations of the gradients that the problem can give, but none at all.
std::vector<Wish> combinations(const LossProblem& p) {
  const Wanted all = all_gradients(p);
  std::vector<Wish> list = {{all, Alignment::kElement}};
  if (can_keep_strides(p)) {
    list.push_back({all, Alignment::kWide, GradientLayout::kOfBoxes});
    list.push_back({all, Alignment::kElement, GradientLayout::kOfBoxes});
    list.push_back({{true, false, false}, Alignment::kWide, GradientLayout::kOfBoxes});
  }
  // Alone: else pred's gradient, unaligned as well, keeps wide stores from the target's.
  if (all.target) list.push_back({{false, true, false}, Alignment::kElement});
  for (unsigned bits = 1; bits < 8; ++bits) {
    const Wanted some = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    if (some.pred <= all.pred && some.target <= all.target && some.weight <= all.weight) {
      list.push_back({some, Alignment::kWide});
    }
  }
  return list;
}

void check_backward(const Implementation& implementation, const HostProblem& host,
                    const BackwardBoundsOf& bounds_of, const Upstreams& upstreams,
                    const Array& scale, const std::vector<Wish>& wishes, Report& report) {
  const BackwardBounds bounds = bounds_of(upstreams, scale);
  const BackwardResult expected =
      run_backward(oracle(), host, upstreams, scale, all_gradients(host.problem));
  for (const auto& [wanted, alignment, layout] : wishes) {
    const BackwardResult got = run_backward(implementation, host, upstreams, scale, wanted,
                                            boxloss::parallel_for, alignment, layout);
    report.expect(got.sentinels_intact, "backward wrote outside its outputs");
    if (wanted.pred) report.compare("pred's gradient", got.pred, expected.pred, bounds.pred);
    if (wanted.target) {
      report.compare("target's gradient", got.target, expected.target, bounds.target);
    }
    if (wanted.weight) {
      report.compare("weight's gradient", got.weight, expected.weight, bounds.weight);
    }
  }
}

void check_forward(const Implementation& implementation, const HostProblem& host,
                   const std::vector<Set<Extra>>& wishes, Report& report) {
  const ForwardBounds bounds = forward_bounds(host);
  const ForwardResult expected = run_forward(oracle(), host, all_extras(host.problem));
  for (const Set<Extra>& extras : wishes) {
    const ForwardResult got = run_forward(implementation, host, extras);
    report.expect(got.sentinels_intact, "forward wrote outside its outputs");
    report.compare("loss", got.loss, expected.loss, bounds.loss);
    report.compare("scale", got.scale, expected.scale, bounds.scale);
    if (extras.contains(Extra::kL1)) report.compare("l1", got.l1, expected.l1, bounds.l1);
    if (extras.contains(Extra::kIou)) report.compare("iou", got.iou, expected.iou, bounds.iou);
  }
}

}  // namespace

Report check(const Implementation& implementation, const HostProblem& host, Values upstream_values,
             Random& random) {
  Report report;
  const Set<Extra> extras = all_extras(host.problem);
  check_forward(implementation, host, {{}, extras}, report);

  const Wanted all = all_gradients(host.problem);
  const std::vector<Wish> all_at_once = {{all, Alignment::kWide}};
  const Array scale = run_forward(oracle(), host).scale;
  const BackwardBoundsOf bounds_of = backward_bounds(host);
  const auto upstream = [&](UpstreamLayout layout) {
    return make_upstream(host, layout, upstream_values, random);
  };
  const auto check_from = [&](const Upstreams& upstreams, const std::vector<Wish>& wishes) {
    check_backward(implementation, host, bounds_of, upstreams, scale, wishes, report);
  };
  check_from({upstream(UpstreamLayout::kContiguous), {}}, combinations(host.problem));
  check_from({upstream(UpstreamLayout::kGaps), {}}, all_at_once);
  check_from({upstream(UpstreamLayout::kOneValue), {}}, all_at_once);
  if (!extras.contains(Extra::kL1)) return report;
  check_from({{}, upstream(UpstreamLayout::kContiguous)}, all_at_once);
  check_from({upstream(UpstreamLayout::kContiguous), upstream(UpstreamLayout::kGaps)}, all_at_once);
  return report;
}

Report check_extras(const Implementation& implementation, const HostProblem& host) {
  Report report;
  std::vector<Set<Extra>> wishes;
  all_extras(host.problem).for_each([&](Extra extra) { wishes.push_back({extra}); });
  check_forward(implementation, host, wishes, report);
  return report;
}

}  // namespace boxloss::conformance
