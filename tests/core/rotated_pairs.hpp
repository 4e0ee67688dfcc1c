// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "math/rotated_box.hpp"

/// Families of pairs of rotated boxes, in float32, on which one or another algorithm is wrong.
namespace boxloss {

using FloatBox = RotatedBox<float>;

struct RotatedPair {
  FloatBox pred, target;
};

class RotatedPairs {
 public:
  explicit RotatedPairs(std::uint32_t seed) : random_(seed) {}

  RotatedPair pixel_random() { return {pixel(), pixel()}; }
  RotatedPair pixel_jitter(double by) { return jittered(pixel(), by, by); }
  RotatedPair thin(double ratio, double by) {
    const FloatBox box = thin_box(ratio);
    return jittered(box, by, by / ratio);
  }
  /// As far as one lies along the other, at almost the same angle.
  RotatedPair thin_slid() {
    const FloatBox box = thin_box(1000);
    const double along = box.w * between(-1, 1);
    return {box, rounded(box.cx + along * std::cos(box.angle), box.cy + along * std::sin(box.angle),
                         box.w, box.h, box.angle + 1e-4 * between(-1, 1))};
  }
  RotatedPair thin_cross() {
    FloatBox a = thin_box(1000), b = thin_box(1000);
    b.cx = static_cast<float>(a.cx + 0.3 * a.w * between(-1, 1));
    b.cy = static_cast<float>(a.cy + 0.3 * a.w * between(-1, 1));
    return {a, b};
  }
  RotatedPair normalised(double side) {
    return jittered(rounded(between(0.1, 0.9), between(0.1, 0.9), side * between(0.1, 1),
                            side * between(0.1, 1), turn()),
                    0.1, 0.1);
  }
  RotatedPair identical() {
    const FloatBox box = pixel();
    return {box, box};
  }
  /// On a grid, by quarter turns, so that many edges are shared.
  RotatedPair shared_edges() { return {grid_box(), grid_box()}; }
  RotatedPair quarter_turned() {
    const FloatBox b = pixel();
    return {b, rounded(b.cx, b.cy, b.h, b.w, b.angle + kQuarter)};
  }
  RotatedPair half_turned() {
    const FloatBox b = pixel();
    return {b, rounded(b.cx, b.cy, b.w, b.h, b.angle + 2 * kQuarter)};
  }
  RotatedPair scaled(double by) {
    const FloatBox b = pixel();
    return jittered(rounded(by * b.cx, by * b.cy, by * b.w, by * b.h, b.angle), 0.1, 0.1);
  }
  RotatedPair far_from_origin() {
    return jittered(rounded(1e4 + between(0, 10), 1e4 + between(0, 10), between(0.5, 2),
                            between(0.5, 2), turn()),
                    0.1, 0.1);
  }
  RotatedPair contained() {
    const FloatBox b = pixel();
    const double side = b.w < b.h ? b.w : b.h;
    return {rounded(b.cx + 0.1 * side * between(-1, 1), b.cy + 0.1 * side * between(-1, 1),
                    side * between(0.1, 0.5), side * between(0.1, 0.5), turn()),
            b};
  }
  /// A thousandth of the size, on an edge.
  RotatedPair small_on_edge() {
    const FloatBox b = pixel();
    const double u = between(-0.5, 0.5) * b.w, v = 0.5 * b.h;
    const double c = std::cos(b.angle), s = std::sin(b.angle);
    return {rounded(b.cx + u * c - v * s, b.cy + u * s + v * c, 1e-3 * b.w * between(0.5, 1),
                    1e-3 * b.h * between(0.5, 1), turn()),
            b};
  }

  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

 private:
  static constexpr double kQuarter = 1.5707963267948966;

  static FloatBox rounded(double cx, double cy, double w, double h, double angle) {
    return {static_cast<float>(cx), static_cast<float>(cy), static_cast<float>(w),
            static_cast<float>(h), static_cast<float>(angle)};
  }
  double turn() { return between(-2 * kQuarter, 2 * kQuarter); }
  FloatBox pixel() {
    return rounded(between(0, 100), between(0, 100), between(5, 80), between(5, 80), turn());
  }
  FloatBox thin_box(double ratio) {
    const double length = between(50, 500);
    return rounded(between(0, 500), between(0, 500), length, length / ratio, turn());
  }
  FloatBox grid_box() {
    const double w = 1 + below(6), h = 1 + below(6);
    return rounded(0.5 * below(12), 0.5 * below(12), w, h, below(2) * kQuarter);
  }
  /// The centre by shares of each side, along it.
  RotatedPair jittered(const FloatBox& b, double by, double by_angle) {
    const double u = by * b.w * between(-1, 1), v = by * b.h * between(-1, 1);
    const double c = std::cos(b.angle), s = std::sin(b.angle);
    return {b, rounded(b.cx + u * c - v * s, b.cy + u * s + v * c, b.w * (1 + by * between(-1, 1)),
                       b.h * (1 + by * between(-1, 1)), b.angle + by_angle * between(-1, 1))};
  }

  std::mt19937 random_;
};

struct RotatedFamily {
  const char* name;
  RotatedPair (*draw)(RotatedPairs&);
  /// By what any loss in float32 may be wrong. Of a million pairs the worst is half as far off.
  double most = 3e-6;
};

/// Where boxes of 1:1000 lie across or along each other: a roundoff of the length, as the distance
/// of their centres has some, is that much of the short side.
constexpr double kMostOfThin = 1000 * 0x1p-24;

constexpr RotatedFamily kRotatedFamilies[] = {
    {"pixel, random", [](RotatedPairs& p) { return p.pixel_random(); }},
    {"pixel, jitter 1e-6", [](RotatedPairs& p) { return p.pixel_jitter(1e-6); }},
    {"pixel, jitter 1e-3", [](RotatedPairs& p) { return p.pixel_jitter(1e-3); }},
    {"pixel, jitter 0.1", [](RotatedPairs& p) { return p.pixel_jitter(0.1); }},
    {"thin 1:100, jitter 1e-3", [](RotatedPairs& p) { return p.thin(100, 1e-3); }},
    {"thin 1:1000, jitter 1e-3", [](RotatedPairs& p) { return p.thin(1000, 1e-3); }},
    {"thin 1:1000, slid", [](RotatedPairs& p) { return p.thin_slid(); }, kMostOfThin},
    {"thin 1:1000, crosses", [](RotatedPairs& p) { return p.thin_cross(); }, kMostOfThin},
    {"normalised, jitter 0.1", [](RotatedPairs& p) { return p.normalised(1); }},
    {"normalised small, jitter 0.1", [](RotatedPairs& p) { return p.normalised(2e-3); }},
    {"identical", [](RotatedPairs& p) { return p.identical(); }},
    {"edges shared", [](RotatedPairs& p) { return p.shared_edges(); }},
    {"turned by a quarter", [](RotatedPairs& p) { return p.quarter_turned(); }},
    {"turned by half a turn", [](RotatedPairs& p) { return p.half_turned(); }},
    {"times 1e8, jitter 0.1", [](RotatedPairs& p) { return p.scaled(1e8); }},
    {"times 1e-8, jitter 0.1", [](RotatedPairs& p) { return p.scaled(1e-8); }},
    {"centres at 1e4, jitter 0.1", [](RotatedPairs& p) { return p.far_from_origin(); }},
    {"contained", [](RotatedPairs& p) { return p.contained(); }},
    {"1:1000 on an edge", [](RotatedPairs& p) { return p.small_on_edge(); }},
};

/// A pair of a file, with what is known of it.
struct KnownPair {
  RotatedPair pair;
  double iou, giou;
  std::string line;
};

/// Those of rotated_pairs.csv: as many as could be read.
inline std::vector<KnownPair> known_rotated_pairs(const char* path) {
  std::vector<KnownPair> pairs;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the columns' names
  while (std::getline(file, line)) {
    // Names are quoted, and have commas.
    std::istringstream numbers(
        line.substr(line[0] == '"' ? line.find('"', 1) + 1 : line.find(',')));
    double v[12];
    char comma;
    for (double& number : v) {
      if (!(numbers >> comma >> number)) return pairs;
    }
    const auto box = [&](int first) -> FloatBox {
      const auto at = [&](int i) { return static_cast<float>(v[first + i]); };
      return {at(0), at(1), at(2), at(3), at(4)};
    };
    pairs.push_back({{box(0), box(5)}, v[10], v[11], line});
  }
  return pairs;
}

}  // namespace boxloss
