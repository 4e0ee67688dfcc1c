// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/box_loss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <sstream>

#include "conformance/example_parameters.hpp"
#include "dispatch/class_loss.hpp"
#include "dual.hpp"
#include "losses/formulas.hpp"

/// For every formula: its gradient is the derivative of its own loss, at kinks, too. All that the
/// conformance table compares shares the formula, so it would not see a wrong one.
namespace boxloss {
namespace {

using Bounded = conformance::Bounded<double>;

struct Pair {
  Box<double> pred, target;
};

Box<Bounded> exactly(const Box<double>& b) { return {b.x1, b.y1, b.x2, b.y2}; }

Box<Dual> variables(const Box<double>& b, std::size_t first) {
  return {Dual::variable(b.x1, first), Dual::variable(b.y1, first + 1),
          Dual::variable(b.x2, first + 2), Dual::variable(b.y2, first + 3)};
}

void compare(const Pair& pair, const LossProblem& p, Tally& tally) {
  const auto constants = constants_of<double>(p);
  std::ostringstream text;
  text << "eps " << p.eps << ", mode " << name_of(p.eps_mode);
  for (const Box<double>& box : {pair.pred, pair.target}) {
    text << "; " << box.x1 << ", " << box.y1 << ", " << box.x2 << ", " << box.y2;
  }
  const auto by_hand = with_formula(p.loss, [&](auto formula) {
    return gradient(formula, exactly(pair.pred), exactly(pair.target),
                    converted<Bounded>(constants));
  });
  const Dual own = with_formula(p.loss, [&](auto formula) {
    return formula.loss(variables(pair.pred, 0), variables(pair.target, 4),
                        converted<Dual>(constants));
  });
  const auto &a = by_hand.pred, &b = by_hand.target;
  tally.compare({by_hand.loss, {a.x1, a.y1, a.x2, a.y2, b.x1, b.y1, b.x2, b.y2}}, own,
                conformance::kUnbounded, text.str());
}

/// Real coordinates, or small integers of which many tie, touch or are inverted.
Box<double> random_box(bool is_kink, std::mt19937& random) {
  const auto coordinate = [&] {
    return is_kink ? static_cast<double>(random() % 5)
                   : 1e-3 * static_cast<double>(random() % 4000);
  };
  return {coordinate(), coordinate(), coordinate(), coordinate()};
}

constexpr int kPairs = 8000;

TEST_CASE("each formula's gradient is the derivative of its loss") {
  kLosses.for_each([](Loss loss) {
    LossProblem p;
    p.loss = loss;
    p.parameters = conformance::example_parameters(loss);
    std::mt19937 random(20260101);
    Tally tally;
    for (int i = 0; i < kPairs; ++i) {
      const bool is_kink = i % 2 == 0;
      Pair pair{random_box(is_kink, random), random_box(is_kink, random)};
      if (i % 8 == 0) pair.target = pair.pred;
      p.eps_mode = random() % 2 == 0 ? EpsMode::kAdd : EpsMode::kClamp;
      // 4 lies in the middle of the kinks' areas, some of which then equal it.
      const double eps[] = {1e-7, 0.5, 4};
      p.eps = eps[random() % 3];
      compare(pair, p, tally);
    }
    INFO(name_of(loss) << ": " << tally.first_wrong);
    CHECK(tally.wrong == 0);
    CHECK(100 * tally.checked >= 95 * kPairs);
  });
}

void require_equal(const Bounded& slope, const Bounded& derivative) {
  REQUIRE(std::isfinite(slope.value + slope.error + derivative.error));
  REQUIRE(std::fabs(slope.value - derivative.value) <= slope.error + derivative.error);
  // Else the bounds would excuse everything.
  REQUIRE(slope.error + derivative.error <= 1e-11);
}

TEST_CASE("each class loss' slope is the derivative of its loss") {
  std::mt19937 random(20260101);
  const auto fraction = [&] { return 1e-3 * static_cast<double>(random() % 1001); };
  for (const ClassLoss mode : {ClassLoss::kFocal, ClassLoss::kVarifocal, ClassLoss::kMal,
                               ClassLoss::kIaBce, ClassLoss::kBce}) {
    for (int i = 0; i < 3000; ++i) {
      ClassLossProblem p;
      p.mode = mode;
      const double gammas[] = {0, 1, 1.5, 2, 3.5};
      if (mode != ClassLoss::kBce) p.gamma = gammas[random() % 5];
      if (mode != ClassLoss::kBce && i % 3 > 0) p.alpha = i % 3 == 1 ? 1 : fraction();
      const double x = i % 7 == 0 ? 0 : i % 7 == 1 ? -0.0 : 24 * fraction() - 12, q = fraction();
      CAPTURE(name_of(mode), p.gamma.value_or(-1), p.alpha.value_or(-1), x, q);
      const auto numbers = class_numbers<Bounded>(p);
      const auto dual_numbers = class_numbers<Dual>(p);
      const Dual logit = Dual::variable(x, 0);
      require_equal(other_slope(numbers, Bounded(x)), other_loss(dual_numbers, logit).d[0]);
      require_equal(own_slope(numbers, Bounded(x), Bounded(q)),
                    own_loss(dual_numbers, logit, Dual(q)).d[0]);
    }
  }
}

}  // namespace
}  // namespace boxloss
