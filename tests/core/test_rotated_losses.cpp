// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "rotated_losses.hpp"

/// Losses of rotated boxes where they are known exactly. The conformance suite compares them with
/// other algorithms in long double.
namespace boxloss {
namespace {

TEST_CASE("values of rotated losses worked out by hand") {
  // A square of side 2, and the same turned by an eighth: the intersection is a regular octagon of
  // inradius 1, 8 (sqrt(2) - 1); the hull one of circumradius sqrt(2), 4 sqrt(2).
  const RotatedBox<double> square = {0, 0, 2, 2, 0}, turned = {0, 0, 2, 2, std::acos(-1.0) / 4};
  const Eps<double> eps = make_eps<double>(0, EpsMode::kAdd);
  const double root = std::sqrt(2.0), inter = 8 * (root - 1), uni = 8 - inter, hull = 4 * root;
  const auto near = [](double a, double b) { return std::fabs(a - b) <= 1e-15; };
  CHECK(near(rotated::Iou::loss(square, turned, eps), 1 - inter / uni));
  CHECK(near(rotated::Giou::loss(square, turned, eps), 2 - inter / uni - uni / hull));
  // The same Gaussian, a circle.
  for (const auto& other : {square, turned}) {
    CHECK(rotated::Probiou::loss(square, other, rotated_constants<double>(RotatedLoss::kProbiou)) <=
          1e-15);
    CHECK(rotated::Kld::loss(square, other, rotated_constants<double>(RotatedLoss::kKld)) <= 1e-15);
    CHECK(rotated::Gwd::loss(square, other, rotated_constants<double>(RotatedLoss::kGwd)) <= 1e-15);
    CHECK(near(rotated::Kfiou::loss(square, other, rotated_constants<double>(RotatedLoss::kKfiou)),
               2. / 3));
  }
  // Moved by 3 along the width of 2. Variances are 1/3: D = 9 / (4 * 2/3); divergence 9 / 2;
  // squared distance 9 over sqrt(2 * 2 * 2 * 2).
  const RotatedBox<double> moved = {3, 0, 2, 2, 0};
  const auto distance_loss = [](double square_of, double tau) {
    return 1 - 1 / (tau + std::log1p(std::sqrt(square_of)));
  };
  CHECK(
      near(rotated::Probiou::loss(square, moved, rotated_constants<double>(RotatedLoss::kProbiou)),
           std::sqrt(1 - std::exp(-27. / 8))));
  for (const double tau : {1.0, 2.5}) {
    CHECK(near(
        rotated::Kld::loss(square, moved, rotated_constants<double>(RotatedLoss::kKld, 0, 0, tau)),
        distance_loss(4.5, tau)));
    CHECK(near(
        rotated::Gwd::loss(square, moved, rotated_constants<double>(RotatedLoss::kGwd, 0, 0, tau)),
        distance_loss(2.25, tau)));
  }
}

TEST_CASE("degrees turn against radians, and so do derivatives by them") {
  const RotatedBox<double> box = {1, 2, 3, 4, 90};
  const double turned = -90 * std::acos(-1.0) / 180;
  for (const auto& each :
       {in_radians(box, AngleUnit::kDegrees), from_radians_gradient(box, AngleUnit::kDegrees)}) {
    CHECK((each.cx == 1 && each.cy == 2 && each.w == 3 && each.h == 4));
    CHECK(std::fabs(each.angle - turned) <= 1e-15);
  }
  CHECK(in_radians(box, AngleUnit::kRadians).angle == 90);
  CHECK(from_radians_gradient(box, AngleUnit::kRadians).angle == 90);
}

TEST_CASE("a floor is added to the variances of rotated boxes") {
  RotatedPairs source(1);
  for (int i = 0; i < 500; ++i) {
    const RotatedPair pair = source.pixel_random();
    const auto p = as<double>(pair.pred), t = as<double>(pair.target);
    kRotatedLosses.for_each([&](RotatedLoss loss) {
      if (kLossesByArea.contains(loss)) return;
      INFO(name_of(loss) << ": " << text_of(pair));
      for (const double tau : {1.0, 3.0}) {
        const double got = loss_of(loss, p, t, rotated_constants<double>(loss, 0, 20, tau));
        const auto expected =
            oracle_loss(loss, rotated_oracle::exactly(p), rotated_oracle::exactly(t), 20, tau);
        CHECK(std::fabs(got - static_cast<double>(expected)) <= 1e-14);
      }
    });
  }
}

template <class T>
void check_identical() {
  RotatedPairs source(3);
  for (int i = 0; i < 4000; ++i) {
    const auto box = as<T>(source.identical().pred);
    kRotatedLosses.for_each([&](RotatedLoss loss) {
      INFO(name_of(loss) << ": " << text_of({as<float>(box), as<float>(box)}));
      const auto c = rotated_constants<T>(loss);
      const RotatedPairGradient<T> d = derivatives_of(loss, box, box, c);
      const double rounding = 8 * std::numeric_limits<T>::epsilon();
      const bool is_kfiou = loss == RotatedLoss::kKfiou, is_area = kLossesByArea.contains(loss);
      for (const T value : {loss_of(loss, box, box, c), d.loss}) {
        REQUIRE(std::fabs(value - (is_kfiou ? 2. / 3 : 0)) <= (is_kfiou ? rounding : 0));
      }
      for (const RotatedBox<T>& by : {d.pred, d.target}) {
        REQUIRE(by.cx == 0);
        REQUIRE(by.cy == 0);
        REQUIRE(by.angle == 0);
        REQUIRE(std::fabs(by.w * box.w) <= (is_area ? rounding : 0));
        REQUIRE(std::fabs(by.h * box.h) <= (is_area ? rounding : 0));
      }
    });
  }
}

TEST_CASE("identical rotated boxes have loss and gradient 0") {
  check_identical<float>();
  check_identical<double>();
}

TEST_CASE("areas of rotated boxes are right at every scale whose squares double has") {
  RotatedPairs source(9);
  const auto scaled = [](const FloatBox& b, double by) {
    const auto d = as<double>(b);
    return RotatedBox<double>{by * d.cx, by * d.cy, by * d.w, by * d.h, d.angle};
  };
  for (int i = 0; i < 300; ++i) {
    const RotatedPair pair = source.pixel_random();
    kLossesByArea.for_each([&](RotatedLoss loss) {
      const auto derivatives = [&](double by) {
        return derivatives_of(loss, scaled(pair.pred, by), scaled(pair.target, by),
                              rotated_constants<double>(loss));
      };
      const auto wanted = derivatives(1);
      for (const double by : {0x1p-400, 0x1p-130, 0x1p400}) {  // exact
        INFO(name_of(loss) << ": " << text_of(pair) << " by " << by);
        const auto got = derivatives(by);
        REQUIRE(got.loss == wanted.loss);
        REQUIRE(got.pred.w * by == wanted.pred.w);
        REQUIRE(got.pred.angle == wanted.pred.angle);
      }
    });
  }
}

template <class T>
void check_nan() {
  for (std::size_t i = 0; i < 10; ++i) {
    for (const T x : {T(1), T(1000)}) {  // overlapping, and far apart
      std::array<T, 10> v = {x, T(2), T(5), T(4), T(0.5), T(1), T(1), T(4), T(6), T(-0.25)};
      v[i] = std::numeric_limits<T>::quiet_NaN();
      const RotatedBox<T> p = {v[0], v[1], v[2], v[3], v[4]}, t = {v[5], v[6], v[7], v[8], v[9]};
      kRotatedLosses.for_each([&](RotatedLoss loss) {
        INFO(name_of(loss) << ", number " << i << ", x " << x);
        const auto c = rotated_constants<T>(loss, 1e-7);
        const RotatedPairGradient<T> d = derivatives_of(loss, p, t, c);
        CHECK(std::isnan(loss_of(loss, p, t, c)));
        CHECK(std::isnan(d.loss));
        for (const T number : numbers_of(d)) CHECK(std::isnan(number));
      });
    }
  }
}

TEST_CASE("NaN in a rotated box is in its loss and in all derivatives") {
  check_nan<float>();
  check_nan<double>();
}

/// Between where exp(-D) is next to 0 and where D itself overflows, its derivatives do.
TEST_CASE("far thin boxes have the whole probiou, and no gradient") {
  for (const float distance : {1e-8f, 1e-4f, 1.0f, 1e4f}) {
    const FloatBox p = {distance, 0, 1e-18f, 1, 0}, t = {0, 0, 1e-18f, 1, 0};
    const auto d =
        rotated::Probiou::derivatives(p, t, rotated_constants<float>(RotatedLoss::kProbiou, 0, 0));
    REQUIRE(d.loss == 1);
    for (const float number : numbers_of(d)) REQUIRE(number == 0);
  }
}

TEST_CASE("rotated boxes that are apart along a side of the target have no rounding left") {
  const Eps<float> eps = make_eps<float>(1e-7, EpsMode::kAdd);
  RotatedPairs source(8);
  for (int i = 0; i < 2000; ++i) {
    RotatedPair pair = source.pixel_random();
    const FloatBox& t = pair.target;
    const float along = i % 2 == 0 ? 300.0f : 0.0f, across = i % 3 == 0 ? -300.0f : 300.0f - along;
    const float cos = std::cos(t.angle), sin = std::sin(t.angle);
    pair.pred.cx = t.cx + along * cos - across * sin;
    pair.pred.cy = t.cy + along * sin + across * cos;
    INFO(text_of(pair));
    const auto d = rotated::Iou::derivatives(pair.pred, t, eps);
    REQUIRE(rotated::Iou::loss(pair.pred, t, eps) == 1);
    REQUIRE(d.loss == 1);
    for (const float number : numbers_of(d)) REQUIRE(number == 0);
  }
}

TEST_CASE("rotated boxes that only touch, or are apart, have an IoU of exactly 0 and no gradient") {
  const Eps<float> eps = make_eps<float>(1e-7, EpsMode::kAdd);
  const FloatBox box = {1, 1, 2, 2, 0};
  // An edge, a part of one, a corner; a corner on an edge; in one axis or both; without an area.
  const FloatBox others[] = {{3, 1, 2, 2, 0},   {1, 3.5f, 4, 3, 0},    {3, 3, 2, 2, 0},
                             {1, -1, 2, 2, 0},  {9, 1, 2, 2, 0.7f},    {1, 9, 2, 2, 0.7f},
                             {9, 9, 2, 2, 2},   {-9, -7, 3, 2, -0.4f}, {1, 1, 0, 2, 0},
                             {1, 1, 2, 0, 0.7f}};
  for (const FloatBox& other : others) {
    for (const bool is_pred : {true, false}) {
      const FloatBox &p = is_pred ? other : box, &t = is_pred ? box : other;
      INFO(text_of({p, t}));
      REQUIRE(rotated::Iou::loss(p, t, eps) == 1);
      const auto d = rotated::Iou::derivatives(p, t, eps);
      for (const float number : numbers_of(d)) REQUIRE(number == 0);
    }
  }
}

}  // namespace
}  // namespace boxloss
