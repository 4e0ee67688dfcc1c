// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <boxloss/error.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "subject.hpp"

namespace boxloss::conformance {
namespace {

bool agrees(double got, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= bound;
}

/// In words that name it?
bool is_refused(const Implementation& implementation, const Way& way) {
  try {
    way.run(implementation, boxloss::parallel_for);
    return false;
  } catch (const Unsupported& refusal) {
    return std::string(refusal.what()).rfind(implementation.name, 0) == 0;
  }
}

/// Nothing where it is refused.
std::optional<Results> run(const Implementation& implementation, const Call& call, const Way& way,
                           const ParallelFor& parallel_for, Report& report) {
  if (!way.is_served(implementation)) {
    report.expect(is_refused(implementation, way), call.name + " is neither served nor refused");
    report.count_refusal();
    return {};
  }
  Results got = way.run(implementation, parallel_for);
  report.count_run();
  report.expect(got.sentinels_intact, call.name + " wrote outside its outputs and workspace");
  return got;
}

using Task = std::function<void(std::int64_t)>;

void in_order(std::int64_t tasks, const Task& task) {
  for (std::int64_t i = 0; i < tasks; ++i) task(i);
}

void in_reverse(std::int64_t tasks, const Task& task) {
  for (std::int64_t i = tasks; i > 0; --i) task(i - 1);
}

template <int kThreads>
void on_threads(std::int64_t tasks, const Task& task) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([=, &task] {
      for (std::int64_t i = t; i < tasks; i += kThreads) task(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Schedules only matter on the CPU; elsewhere they repeat the run.
const std::vector<ParallelFor> kSchedules = {boxloss::parallel_for, in_order, in_reverse,
                                             on_threads<2>, on_threads<7>};

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

void require_ok(const Report& report) {
  INFO(report.text());
  REQUIRE(report.ok());
  REQUIRE(report.runs() + report.refusals() > 0);
  REQUIRE(100 * report.undetermined() <= report.compared());
}

Judge within_bounds(Results expected, Bounds bounds) {
  return [expected = std::move(expected), bounds = std::move(bounds)](const Results& got,
                                                                      Report& report) {
    for (std::size_t i = 0; i < got.outputs.size(); ++i) {
      const auto& [name, values] = got.outputs[i];
      if (values) report.compare(name, *values, expected.outputs[i].values.value(), bounds[i]);
    }
  };
}

Judge equals(const Results& right) {
  Bounds bounds;
  for (const Result& output : right.outputs) {
    bounds.emplace_back(static_cast<std::size_t>(output.values->count()), 0.0);
  }
  return within_bounds(right, bounds);
}

std::vector<OutputArray> Ask::of(std::vector<OutputArray> outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].is_wanted = !only || *only == i;
    outputs[i].shift = alignment == Alignment::kWide ? 0 : size_of(outputs[i].dtype);
  }
  return outputs;
}

Call call_of(const char* name, const RunAs& run,
             const std::function<bool(const Implementation&)>& is_served,
             const std::function<Judge(const Results& right)>& judge_of,
             const std::vector<Ask>& further) {
  const auto way = [&](const Ask& ask, bool is_typical) {
    const auto run_as = [=](const auto& implementation, const auto& parallel_for) {
      return run(implementation, parallel_for, ask);
    };
    return Way{run_as, is_served, is_typical};
  };
  Call call{
      name, {way({}, true)}, [=] { return judge_of(run(oracle(), boxloss::parallel_for, {})); }};
  for (const Ask& ask : further) call.ways.push_back(way(ask, false));
  return call;
}

void require_giou(Pairing::Kind pairing) {
  const LossFunctions& served = subject().box_loss;
  if (!served.losses.contains(Loss::kGiou) || !served.pairings.contains(pairing)) {
    SKIP(subject_name() << " does not serve giou with the pairing " << name_of(pairing));
  }
}

const Implementation& oracle() { return implementation("cpu/reference"); }

Report check(const Implementation& implementation, const std::vector<Call>& calls) {
  Report report;
  for (const Call& call : calls) {
    const Judge judge = call.judge();
    for (const Way& way : call.ways) {
      const auto got = run(implementation, call, way, boxloss::parallel_for, report);
      if (got) judge(*got, report);
    }
  }
  return report;
}

Report check_memory(const Implementation& implementation, const std::vector<Call>& calls) {
  Report report;
  for (const Call& call : calls) {
    for (const Way& way : call.ways) {
      if (way.is_typical) run(implementation, call, way, boxloss::parallel_for, report);
    }
  }
  return report;
}

Report check_bits(const Implementation& implementation, const std::vector<Call>& calls) {
  Report report;
  for (const Call& call : calls) {
    for (const Way& way : call.ways) {
      if (!way.is_typical) continue;
      const auto first = run(implementation, call, way, boxloss::parallel_for, report);
      if (!first) continue;
      for (const ParallelFor& schedule : kSchedules) {
        const auto again = run(implementation, call, way, schedule, report);
        report.expect(same_bits(*again, *first), call.name + " has other bits the next time");
      }
    }
  }
  return report;
}

}  // namespace boxloss::conformance
