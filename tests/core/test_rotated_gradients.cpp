// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "dual.hpp"
#include "rotated_losses.hpp"

/// Gradients of the losses of rotated boxes: beside the derivative of the loss' own text, by
/// numbers that carry it, and beside its slopes, since that text says some derivatives itself. The
/// loss is compared with other algorithms by the conformance suite.
namespace boxloss {
namespace {

using Bounded = conformance::Bounded<double>;

RotatedBox<Dual> variables(const RotatedBox<double>& b, std::size_t first) {
  return {Dual::variable(b.cx, first), Dual::variable(b.cy, first + 1),
          Dual::variable(b.w, first + 2), Dual::variable(b.h, first + 3),
          Dual::variable(b.angle, first + 4)};
}

void compare_with_dual(RotatedLoss loss, const RotatedBox<double>& p, const RotatedBox<double>& t,
                       const Constants<double>& c, Tally& tally) {
  const auto by_hand = derivatives_of(loss, as<Bounded>(p), as<Bounded>(t), converted<Bounded>(c));
  const Dual own = loss_of(loss, variables(p, 0), variables(t, 5), converted<Dual>(c));
  // What is not known to a thousandth proves nothing.
  tally.compare({by_hand.loss, numbers_of(by_hand)}, own, 1e-3,
                "eps " + std::to_string(c.value) + "; " + text_of({as<float>(p), as<float>(t)}));
}

/// Real numbers; or small integers, at angle 0, of which many tie or touch.
RotatedBox<double> random_box(bool is_kink, RotatedPairs& source) {
  if (is_kink) {
    return {0.5 * source.below(8), 0.5 * source.below(8), 1.0 + source.below(4),
            1.0 + source.below(4), 0};
  }
  return {source.between(0, 4), source.between(0, 4), source.between(0.2, 4),
          source.between(0.2, 4), source.between(-4, 4)};
}

constexpr int kPairs = 4000;

TEST_CASE("each rotated loss' gradient is the derivative of its own text, at kinks, too") {
  kRotatedLosses.for_each([](RotatedLoss loss) {
    RotatedPairs source(20260101);
    Tally tally;
    for (int i = 0; i < kPairs; ++i) {
      const bool is_kink = i % 2 == 0;
      const RotatedBox<double> p = random_box(is_kink, source);
      const RotatedBox<double> t = i % 8 == 0 ? p : random_box(is_kink, source);
      const double all_eps[] = {1e-7, 0.5, 4}, floors[] = {1e-15, 0.1, 2};
      Constants<double> c = rotated_constants<double>(loss, 0, floors[i % 3], 1 + i % 4);
      static_cast<Eps<double>&>(c) =
          make_eps<double>(all_eps[i % 3], i % 5 == 0 ? EpsMode::kClamp : EpsMode::kAdd);
      compare_with_dual(loss, p, t, c, tally);
    }
    INFO(name_of(loss) << ": " << tally.first_wrong);
    CHECK(tally.wrong == 0);
    CHECK(100 * tally.checked >= 90 * kPairs);
  });
}

/// Number i of the pair, 0 to 9.
template <class T>
auto& number(T& p, T& t, std::size_t i) {
  T& b = i < 5 ? p : t;
  decltype(&b.cx) const all[] = {&b.cx, &b.cy, &b.w, &b.h, &b.angle};
  return *all[i % 5];
}

/// By a step to either side, but where one way boxes that only touch come to overlap: of that way
/// they have no derivative.
void compare_with_slopes(RotatedLoss loss, RotatedBox<double> p, RotatedBox<double> t,
                         Tally& tally) {
  constexpr double kStep = 1e-7, kError = 1e-5;  // of steps, and of differences of 1e-15
  const auto c = rotated_constants<double>(loss, 1, 1);
  const auto got = numbers_of(derivatives_of(loss, p, t, c));
  const auto do_overlap = [&] { return rotated::Iou::loss(p, t, c) < 1; };
  const bool is_overlap = do_overlap();
  for (std::size_t i = 0; i < 10; ++i) {
    double& x = number(p, t, i);
    const double at = x;
    double mean = 0;
    bool is_touch = false;
    for (const double step : {kStep, -kStep}) {
      x = at + step;
      mean += loss_of(loss, p, t, c) / (2 * step);
      is_touch = is_touch || do_overlap() != is_overlap;
    }
    x = at;
    if (is_touch) continue;
    tally.add(std::fabs(got[i] - mean) <= kError,
              std::to_string(i) + " of " + text_of({as<float>(p), as<float>(t)}));
  }
}

TEST_CASE("a gradient is a slope of the loss and, where edges coincide, the mean of two") {
  kRotatedLosses.for_each([](RotatedLoss loss) {
    RotatedPairs source(20260101);
    Tally tally;
    for (int i = 0; i < kPairs; ++i) {
      const bool is_kink = i % 4 != 0;
      const RotatedBox<double> p = random_box(is_kink, source);
      compare_with_slopes(loss, p, i % 8 == 1 ? p : random_box(is_kink, source), tally);
    }
    INFO(name_of(loss) << ": " << tally.wrong << " wrong, such as number " << tally.first_wrong);
    CHECK(tally.wrong == 0);
    CHECK(tally.checked >= 9 * kPairs);
  });
}

double longest_side(const RotatedPair& pair) {
  return static_cast<double>(std::max({pair.pred.w, pair.pred.h, pair.target.w, pair.target.h}));
}

double shortest_side(const RotatedPair& pair) {
  return static_cast<double>(std::min({pair.pred.w, pair.pred.h, pair.target.w, pair.target.h}));
}

/// Families whose pairs lie at kinks of areas, or so near that a step reaches one.
bool is_near_kinks(std::string_view family) {
  return family == "pixel, jitter 1e-6" || family == "identical" || family == "edges shared" ||
         family.substr(0, 6) == "turned";
}

/// Those whose Gaussians are so near that matrices lose digits even in long double.
bool are_near(std::string_view family) {
  return is_near_kinks(family) || family == "pixel, jitter 1e-3" || family.substr(0, 4) == "thin";
}

/// A side's step, or the angle's that moves the end of the longest side as far: in units of what
/// the loss changes over.
double unit_of(const RotatedPair& pair, std::size_t i) {
  const double side = shortest_side(pair);
  return i % 5 < 4 ? side : side / longest_side(pair);
}

/// Float32's error of each number, in units in which sides are 1, the largest of a pair's ten.
double float_error(RotatedLoss loss, const RotatedPair& pair) {
  const auto got =
      numbers_of(derivatives_of(loss, pair.pred, pair.target, rotated_constants<float>(loss)));
  const auto exact = numbers_of(derivatives_of(loss, as<double>(pair.pred), as<double>(pair.target),
                                               rotated_constants<double>(loss)));
  double largest = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    const double error = std::fabs(static_cast<double>(got[i]) - exact[i]);
    largest = std::fmax(largest, error * unit_of(pair, i));
  }
  return largest;
}

/// Of 99 pairs in 100. The other may lie so near to a kink that float32 takes its other side.
double most_float_error(RotatedLoss loss, std::string_view family) {
  if (!kLossesByArea.contains(loss)) return 1e-4;
  if (family == "thin 1:1000, slid") return 1e-2;
  return are_near(family) ? 5e-4 : 1e-5;
}

TEST_CASE("float32's gradients of rotated losses are near those of double") {
  for (const RotatedFamily& family : kRotatedFamilies) {
    if (is_near_kinks(family.name)) continue;
    kRotatedLosses.for_each([&](RotatedLoss loss) {
      RotatedPairs source(20260101);
      std::vector<double> errors(2000);
      for (double& error : errors) error = float_error(loss, family.draw(source));
      std::sort(errors.begin(), errors.end());
      INFO(name_of(loss) << " of '" << family.name << "'");
      CHECK(errors[errors.size() * 99 / 100] <= most_float_error(loss, family.name));
    });
  }
}

}  // namespace
}  // namespace boxloss
