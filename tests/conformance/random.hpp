// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace boxloss::conformance {

/// The same numbers with every standard library, which std's distributions do not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// One of 0 … n - 1.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  bool chance(double probability) { return uniform(0, 1) < probability; }

  template <class Values>
  auto pick(const Values& values) {
    return *(std::begin(values) + below(static_cast<std::int64_t>(std::size(values))));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace boxloss::conformance
