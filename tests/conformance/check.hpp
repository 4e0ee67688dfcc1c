// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run.hpp"

/// What is asked of an implementation, and how its answers are judged.
namespace boxloss::conformance {

/// What the checks have found.
class Report {
 public:
  /// Each element: NaN where NaN is expected, the same infinity where infinity is, else no further
  /// from the expected value than its bound. An infinite bound says that nothing is determined.
  void compare(const char* what, const Array& got, const Array& expected,
               const std::vector<double>& bounds);
  void expect(bool ok, const std::string& failure);
  void count_run() { ++runs_; }
  void count_refusal() { ++refusals_; }

  bool ok() const { return failed_ == 0; }
  std::int64_t runs() const { return runs_; }
  std::int64_t refusals() const { return refusals_; }
  std::int64_t compared() const { return compared_; }
  std::int64_t undetermined() const { return undetermined_; }
  /// The first failures, one a line.
  const std::string& text() const { return text_; }

 private:
  std::int64_t runs_ = 0, refusals_ = 0, compared_ = 0, undetermined_ = 0, failed_ = 0;
  std::string text_;
};

/// Passes, has run or been refused, and has left open no more than one element in a hundred: a
/// bound that excuses everything proves nothing.
void require_ok(const Report& report);

/// Judges what a run has written.
using Judge = std::function<void(const Results& got, Report& report)>;

/// Of each element of each output, how far it may be from what is expected: 0 where it must be that
/// number.
using Bounds = std::vector<std::vector<double>>;
Judge within_bounds(Results expected, Bounds bounds);
/// Each is that number.
Judge equals(const Results& right);

/// A way to ask for results: which outputs, how aligned.
struct Way {
  std::function<Results(const Implementation&, const ParallelFor&)> run;
  /// What an implementation does not say that it serves must be refused.
  std::function<bool(const Implementation&)> is_served;
  /// As most ask. Tests of other things than values take these ways alone.
  bool is_typical = false;
};

/// A function of an operation with all its inputs.
struct Call {
  std::string name;
  std::vector<Way> ways;
  std::function<Judge()> judge;  ///< what is common to all ways is computed here, once
};

/// How outputs are asked for: all of them, or one alone.
struct Ask {
  std::optional<std::size_t> only = {};
  Alignment alignment = Alignment::kWide;

  std::vector<OutputArray> of(std::vector<OutputArray> outputs) const;
};
const Ask kOnElements = {{}, Alignment::kElement};

using RunAs = std::function<Results(const Implementation&, const ParallelFor&, const Ask&)>;

/// Asks for all outputs, as most do, and in further ways; `judge_of` is given the oracle's results.
Call call_of(const char* name, const RunAs& run,
             const std::function<bool(const Implementation&)>& is_served,
             const std::function<Judge(const Results& right)>& judge_of,
             const std::vector<Ask>& further);

/// Skips the test, out loud, unless the subject serves GIoU with that pairing.
void require_giou(Pairing::Kind pairing);

/// The oracle, whose results the others' are compared with.
const Implementation& oracle();

/// Every way of every call.
Report check(const Implementation& implementation, const std::vector<Call>& calls);

/// Whatever the values are: nothing is written outside of outputs and workspace.
Report check_memory(const Implementation& implementation, const std::vector<Call>& calls);

/// Every run has the same bits, with any number of threads that take the tasks in any order.
Report check_bits(const Implementation& implementation, const std::vector<Call>& calls);

}  // namespace boxloss::conformance
