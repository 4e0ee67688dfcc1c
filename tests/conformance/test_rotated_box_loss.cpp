// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "core/rotated_losses.hpp"
#include "operations.hpp"

/// What only the loss of rotated boxes is tested for.
namespace boxloss::conformance {
namespace {

using HostRotated = HostPairs<RotatedLossProblem>;
using DoubleBox = RotatedBox<double>;

struct BoxPair {
  DoubleBox pred, target;
};
using BoxPairs = std::vector<BoxPair>;

BoxView place(Array& values, const BoxPairs& pairs, DoubleBox BoxPair::* side, DType dtype) {
  const auto count = static_cast<std::int64_t>(pairs.size());
  values = Array(dtype, 5 * count);
  for (std::int64_t i = 0; i < count; ++i) {
    const DoubleBox& b = pairs[static_cast<std::size_t>(i)].*side;
    const double numbers[] = {b.cx, b.cy, b.w, b.h, b.angle};
    for (std::int64_t k = 0; k < 5; ++k) values.set(5 * i + k, numbers[k]);
  }
  return {values.data(), dtype, BoxFormat::kCxcywh, 1, count, 5 * count, 5, 1};
}

HostRotated host_of(RotatedLoss loss, DType dtype, const BoxPairs& pairs) {
  HostRotated host;
  host.problem.loss = loss;
  host.problem.reduction = Reduction::kNone;
  host.problem.eps = 0;
  host.problem.pred = place(host.pred, pairs, &BoxPair::pred, dtype);
  host.problem.target = place(host.target, pairs, &BoxPair::target, dtype);
  return host;
}

/// Calls use(loss) for each that the subject serves.
template <class Use>
void for_each_served(const Use& use) {
  const RotatedLossFunctions& served = subject_for<RotatedBoxLoss>().rotated_box_loss;
  if (!served.pairings.contains(Pairing::Kind::kDense)) SKIP(subject_name() << " is not dense");
  served.losses.for_each(use);
}

Array losses_of(const HostRotated& host) {
  return *run_forward(subject(), boxloss::parallel_for, host).outputs[0].values;
}

TEST_CASE("rotated losses of every family agree with other algorithms in long double") {
  for (const RotatedFamily& family : kRotatedFamilies) {
    RotatedPairs source(static_cast<std::uint32_t>(Catch::getSeed()));
    std::vector<RotatedPair> drawn;
    BoxPairs pairs;
    for (int i = 0; i < 5000; ++i) {
      drawn.push_back(family.draw(source));
      pairs.push_back({as<double>(drawn.back().pred), as<double>(drawn.back().target)});
    }
    for_each_served([&](RotatedLoss loss) {
      const Array got = losses_of(host_of(loss, DType::kF32, pairs));
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        const auto p = rotated_oracle::exactly(drawn[i].pred);
        const auto t = rotated_oracle::exactly(drawn[i].target);
        const auto expected = static_cast<double>(oracle_loss(loss, p, t));
        const double value = got.get(static_cast<std::int64_t>(i));
        if (std::fabs(value - expected) <= family.most) continue;
        FAIL_CHECK(name_of(loss) << " of '" << family.name << "' is " << value << ", expected "
                                 << expected << ": " << text_of(drawn[i]));
      }
    });
  }
}

TEST_CASE("rotated losses of pairs from reports are exact") {
  const std::vector<KnownPair> known = known_rotated_pairs(BOXLOSS_ROTATED_PAIRS);
  REQUIRE(known.size() == 102);
  BoxPairs pairs;
  for (const KnownPair& each : known) {
    pairs.push_back({as<double>(each.pair.pred), as<double>(each.pair.target)});
  }
  for_each_served([&](RotatedLoss loss) {
    if (!kLossesByArea.contains(loss)) return;
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Array got = losses_of(host_of(loss, dtype, pairs));
      for (std::size_t i = 0; i < known.size(); ++i) {
        const double exact = 1 - (loss == RotatedLoss::kIou ? known[i].iou : known[i].giou);
        INFO(name_of(loss) << " of " << known[i].line);
        CHECK(std::fabs(got.get(static_cast<std::int64_t>(i)) - exact) <=
              (dtype == DType::kF32 ? 3e-6 : 1e-12));
      }
    }
  });
}

TEST_CASE("no rotated loss or gradient is NaN or infinite for extreme boxes") {
  BoxPairs pairs;
  const double sides[] = {0, 1e-18, 1e-9, 1, 1e9}, distances[] = {0, 1e-9, 1, 1e9};
  for (const double pw : sides)
    for (const double ph : sides)
      for (const double tw : sides)
        for (const double th : sides)
          for (const double x : distances)
            for (const double y : {0.0, x})
              for (const double angle : {0.0, 1e-12, 0.5, 1.5707963267948966, -3.0}) {
                pairs.push_back({{x, y, pw, ph, angle}, {0, 0, tw, th, 0.25}});
              }
  for_each_served([&](RotatedLoss loss) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      HostRotated host = host_of(loss, dtype, pairs);
      host.problem.eps = 1e-12;
      Random random(Catch::getSeed());
      const Upstreams from = {
          make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random), {}};
      const Results forward = run_forward(subject(), boxloss::parallel_for, host);
      const Results backward =
          run_backward(subject(), boxloss::parallel_for, host, from, *forward.outputs[1].values);
      const Array& losses = *forward.outputs[0].values;
      const Array &by_pred = *backward.outputs[0].values, &by_target = *backward.outputs[1].values;
      // Rounding may lead beyond 0 and the largest loss.
      const double least = -1e-6, most = (loss == RotatedLoss::kGiou ? 2 : 1) + 1e-6;
      INFO(name_of(loss) << " of " << name_of(dtype));
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto pair = static_cast<std::int64_t>(i);
        const double value = losses.get(pair);
        bool is_right = least <= value && value <= most;
        for (std::int64_t k = 5 * pair; k < 5 * pair + 5; ++k) {
          is_right &= std::isfinite(by_pred.get(k)) && std::isfinite(by_target.get(k));
        }
        if (is_right) continue;
        FAIL_CHECK(value << ": "
                         << text_of({as<float>(pairs[i].pred), as<float>(pairs[i].target)}));
      }
    }
  });
}

}  // namespace
}  // namespace boxloss::conformance
