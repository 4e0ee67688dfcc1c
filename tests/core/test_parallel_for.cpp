// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boxloss/execution.hpp>
#include <catch2/catch_test_macros.hpp>
#include <thread>
#include <vector>

namespace boxloss {
namespace {

/// Does each of so many tasks run once?
bool runs_each_once(std::int64_t tasks) {
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
  parallel_for(tasks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
  for (const std::atomic<int>& each : runs) {
    if (each != 1) return false;
  }
  return true;
}

TEST_CASE("parallel_for runs each task once") {
  for (const std::int64_t tasks : {0, 1, 2, 3, 1000}) {
    CAPTURE(tasks);
    for (int again = 0; again < 100; ++again) REQUIRE(runs_each_once(tasks));
  }
}

TEST_CASE("parallel_for works from within its tasks") {
  std::atomic<int> good = 0;
  parallel_for(20, [&](std::int64_t) { good += runs_each_once(50); });
  REQUIRE(good == 20);
}

TEST_CASE("parallel_for works for several callers at once") {
  std::atomic<int> good = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int again = 0; again < 100; ++again) good += runs_each_once(100);
    });
  }
  for (std::thread& caller : callers) caller.join();
  REQUIRE(good == 400);
}

// As a data loader's workers do; the child has none of the threads.
TEST_CASE("parallel_for works in a process that was forked") {
  REQUIRE(runs_each_once(100));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // ends a child that waits for ever
    _exit(runs_each_once(100) ? 0 : 1);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

}  // namespace
}  // namespace boxloss
