// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
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

TEST_CASE("parallel_for refuses an empty task") {
  REQUIRE_THROWS_AS(parallel_for(1, nullptr), InvalidArgument);
}

TEST_CASE("parallel_for works from within its tasks") {
  std::atomic<int> good = 0;
  parallel_for(20, [&](std::int64_t) { good += runs_each_once(50); });
  REQUIRE(good == 20);
}

/// The child has none of the threads, and their locks as they were.
pid_t fork_with_time_limit() {
  const pid_t child = fork();
  if (child == 0) alarm(20);  // ends a child that waits for ever
  return child;
}

[[noreturn]] void end_child() {
  bool is_good = true;
  for (int again = 0; again < 10; ++again) is_good = runs_each_once(100) && is_good;
  _exit(is_good ? 0 : 1);
}

bool ends_well(pid_t child) {
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/// As a data loader's workers do.
bool runs_each_once_when_forked() {
  const pid_t child = fork_with_time_limit();
  if (child == 0) end_child();
  return ends_well(child);
}

TEST_CASE("parallel_for works in a process that was forked") {
  for (int again = 0; again < 300; ++again) {
    CAPTURE(again);
    REQUIRE(runs_each_once(100));
    REQUIRE(runs_each_once_when_forked());
  }
}

TEST_CASE("parallel_for works in a process that one of its tasks forked") {
  std::atomic<int> good = 0;
  parallel_for(4, [&](std::int64_t) { good += runs_each_once_when_forked(); });
  REQUIRE(good == 4);
}

TEST_CASE("parallel_for returns in a process that one of its caller's tasks forked") {
  const auto caller = std::this_thread::get_id();
  for (int again = 0; again < 20; ++again) {
    CAPTURE(again);
    std::atomic<pid_t> child = -1;
    // More than the pool has threads: each of them waits in a task, and one is left for the caller.
    parallel_for(std::thread::hardware_concurrency() + 2, [&](std::int64_t) {
      const bool is_caller = std::this_thread::get_id() == caller;
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } while (!is_caller && child == -1);
      if (is_caller && child == -1) child = fork_with_time_limit();
    });
    if (child == 0) end_child();
    REQUIRE(ends_well(child));
  }
}

/// There is no caller that it could return to.
TEST_CASE("a process that a thread of the pool forked ends with its task") {
  const auto caller = std::this_thread::get_id();
  std::atomic<pid_t> child = -1;
  for (int again = 0; again < 100 && child == -1; ++again) {
    parallel_for(4, [&](std::int64_t) {
      pid_t none = -1;
      if (std::this_thread::get_id() == caller) {  // leaves tasks to the others
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else if (child.compare_exchange_strong(none, 0)) {
        child = fork_with_time_limit();
      }
    });
  }
  if (child == -1) SKIP("the pool has no threads here");
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 1);
}

}  // namespace
}  // namespace boxloss
