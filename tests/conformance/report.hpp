// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "array.hpp"

namespace boxloss::conformance {

/// What comparing an implementation with the oracle has found.
class Report {
 public:
  /// Each element: NaN where NaN is expected, the same infinity where infinity is, else no further
  /// from the expected value than its bound. An infinite bound says that nothing is determined.
  void compare(const char* what, const Array& got, const Array& expected,
               const std::vector<double>& bounds);
  void expect(bool ok, const std::string& failure);

  bool ok() const { return failed_ == 0; }
  std::int64_t compared() const { return compared_; }
  std::int64_t undetermined() const { return undetermined_; }
  /// The first failures, one a line.
  const std::string& text() const { return text_; }

 private:
  std::int64_t compared_ = 0, undetermined_ = 0, failed_ = 0;
  std::string text_;
};

}  // namespace boxloss::conformance
