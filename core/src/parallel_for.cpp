// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <boxloss/execution.hpp>
#include <system_error>
#include <thread>
#include <vector>

namespace boxloss {

void parallel_for(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < tasks; i = next++) task(i);
  };
  const std::int64_t threads = std::min<std::int64_t>(tasks, std::thread::hardware_concurrency());
  std::vector<std::thread> others;
  try {
    for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The system gives no more threads: those that run share the work.
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace boxloss
