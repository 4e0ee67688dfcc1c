// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cmath>
#include <limits>
#include <sstream>

namespace boxloss::conformance {
namespace {

bool agrees(double got, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= bound;
}

}  // namespace

void Report::expect(bool ok, const std::string& failure) {
  constexpr std::int64_t kShown = 5;
  if (ok) return;
  if (++failed_ <= kShown) text_ += failure + "\n";
}

void Report::compare(const char* what, const Array& got, const Array& expected,
                     const std::vector<double>& bounds) {
  const auto count = static_cast<std::int64_t>(bounds.size());
  expect(got.count() == count && expected.count() == count, std::string(what) + ": wrong size");
  if (got.count() != count || expected.count() != count) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const double bound = bounds[static_cast<std::size_t>(i)];
    if (std::isinf(bound)) {
      ++undetermined_;
      continue;
    }
    ++compared_;
    if (agrees(got.get(i), expected.get(i), bound)) continue;
    std::ostringstream line;
    line.precision(std::numeric_limits<double>::max_digits10);
    line << what << "[" << i << "] is " << got.get(i) << ", expected " << expected.get(i)
         << ", bound " << bound;
    expect(false, line.str());
  }
}

}  // namespace boxloss::conformance
