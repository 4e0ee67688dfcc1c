// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "core/rotated_losses.hpp"
#include "example_parameters.hpp"
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

HostRotated host_of(RotatedLoss loss, DType dtype, const BoxPairs& pairs,
                    AngleUnit unit = AngleUnit::kRadians) {
  HostRotated host;
  host.problem.loss = loss;
  host.problem.reduction = Reduction::kNone;
  host.problem.eps = 0;
  host.problem.angle_unit = unit;
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

/// Losses and gradients, of which the factors that lead to them are the same for all pairs.
struct Outcome {
  Array loss, pred, target;
};

Outcome outcome_of(const HostRotated& host) {
  Random random(Catch::getSeed());
  const Upstreams from = {make_upstream(host, UpstreamLayout::kContiguous, Values::kPlain, random),
                          {}};
  const Results forward = run_forward(subject(), boxloss::parallel_for, host);
  const Results backward =
      run_backward(subject(), boxloss::parallel_for, host, from, *forward.outputs[1].values);
  return {*forward.outputs[0].values, *backward.outputs[0].values, *backward.outputs[1].values};
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
      const Outcome got = outcome_of(host);
      // Rounding may lead beyond 0 and the largest loss.
      const double least = -1e-6, most = (loss == RotatedLoss::kGiou ? 2 : 1) + 1e-6;
      INFO(name_of(loss) << " of " << name_of(dtype));
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto pair = static_cast<std::int64_t>(i);
        const double value = got.loss.get(pair);
        bool is_right = least <= value && value <= most;
        for (std::int64_t k = 5 * pair; k < 5 * pair + 5; ++k) {
          is_right &= std::isfinite(got.pred.get(k)) && std::isfinite(got.target.get(k));
        }
        if (is_right) continue;
        FAIL_CHECK(value << ": "
                         << text_of({as<float>(pairs[i].pred), as<float>(pairs[i].target)}));
      }
    }
  });
}

constexpr double kPi = 3.14159265358979323846;

/// What becomes of pairs that have the same losses afterwards, and of their gradients.
struct Change {
  const char* name;
  DType dtype;
  double most = 0;                 ///< what losses and gradients may differ by
  double scale = 1, x = 0, y = 0;  ///< of both boxes
  double turn = 0;                 ///< of pred
  bool is_exchanged = false;       ///< the target is turned by a quarter, and its sides exchanged
  AngleUnit unit = AngleUnit::kRadians;

  double per_radian() const { return unit == AngleUnit::kDegrees ? -180 / kPi : 1; }

  DoubleBox after(const DoubleBox& b, bool is_pred) const {
    const bool exchanges = is_exchanged && !is_pred;
    const double angle = b.angle + (is_pred ? turn : exchanges ? kPi / 2 : 0);
    return {scale * b.cx + x, scale * b.cy + y, scale * (exchanges ? b.h : b.w),
            scale * (exchanges ? b.w : b.h), angle * per_radian()};
  }
  /// The gradient by the box before, from that by the box afterwards.
  DoubleBox before(const DoubleBox& d, bool is_pred) const {
    const bool exchanges = is_exchanged && !is_pred;
    return {scale * d.cx, scale * d.cy, scale * (exchanges ? d.h : d.w),
            scale * (exchanges ? d.w : d.h), d.angle * per_radian()};
  }
};

/// A derivative of far boxes that are enlarged may be subnormal, and off by 2^-150. In the angle's
/// this is multiplied by a distance below 2^10 times 2^9; there are fewer than 8 such roundings.
constexpr double kOfSubnormals = 8 * 0x1p-150 * 0x1p19;

/// Bits stay where nothing is rounded but what is subnormal. Double's rounding of an angle moves a
/// corner by 1e-13 of a pixel at most, and boxes of 5 pixels' sides the more, by which derivatives
/// change.
constexpr double kOfAngles = 1e-11;

constexpr Change kChanges[] = {
    {"shifted", DType::kF32, 0, 1, 512, -256},
    {"enlarged", DType::kF32, kOfSubnormals, 0x1p9},
    {"reduced", DType::kF64, 0, 0x1p-20},
    {"half a turn of pred", DType::kF64, kOfAngles, 1, 0, 0, kPi},
    {"a quarter turn of the target", DType::kF64, kOfAngles, 1, 0, 0, 0, true},
    {"in degrees, counterclockwise", DType::kF64, kOfAngles, 1, 0, 0, 0, false,
     AngleUnit::kDegrees},
};

Array before(const Change& change, const Array& gradient, bool is_pred) {
  Array result(gradient.dtype(), gradient.count());
  for (std::int64_t i = 0; i < gradient.count(); i += 5) {
    const auto at = [&](std::int64_t k) { return gradient.get(i + k); };
    const DoubleBox d = change.before({at(0), at(1), at(2), at(3), at(4)}, is_pred);
    const double numbers[] = {d.cx, d.cy, d.w, d.h, d.angle};
    for (std::int64_t k = 0; k < 5; ++k) result.set(i + k, numbers[k]);
  }
  return result;
}

TEST_CASE("rotated losses and gradients stay where only the way to write a pair changes") {
  RotatedPairs source(static_cast<std::uint32_t>(Catch::getSeed()));
  BoxPairs pairs;
  for (int i = 0; i < 500; ++i) {
    RotatedPair pair = source.pixel_random();
    // Short enough that nothing is rounded where it is shifted.
    for (FloatBox* b : {&pair.pred, &pair.target}) {
      for (float* centre : {&b->cx, &b->cy}) *centre = std::round(*centre * 64) / 64;
    }
    pairs.push_back({as<double>(pair.pred), as<double>(pair.target)});
  }
  for_each_served([&](RotatedLoss loss) {
    // Without a length that does not change: eps is 0 already.
    LossParameters parameters = example_parameters(loss);
    set_parameter(loss, "floor", 0, parameters);
    for (const Change& change : kChanges) {
      BoxPairs after;
      for (const BoxPair& pair : pairs) {
        after.push_back({change.after(pair.pred, true), change.after(pair.target, false)});
      }
      HostRotated plain = host_of(loss, change.dtype, pairs);
      HostRotated changed = host_of(loss, change.dtype, after, change.unit);
      plain.problem.parameters = changed.problem.parameters = parameters;
      const Outcome expected = outcome_of(plain), got = outcome_of(changed);
      const auto most = [&](const Array& values) {
        return std::vector<double>(static_cast<std::size_t>(values.count()), change.most);
      };
      Report report;
      report.compare("loss", got.loss, expected.loss, most(got.loss));
      report.compare("pred's gradient", before(change, got.pred, true), expected.pred,
                     most(got.pred));
      report.compare("target's gradient", before(change, got.target, false), expected.target,
                     most(got.target));
      INFO(name_of(loss) << ", " << change.name << "\n" << report.text());
      CHECK(report.ok());
    }
  });
}

}  // namespace
}  // namespace boxloss::conformance
