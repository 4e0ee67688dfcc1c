// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>
#include <unordered_map>

#include "box_loss/workspace.hpp"

namespace boxloss::BOXLOSS_GPU {
namespace {

constexpr int kCounters = 1 << 16;  // 512 KiB on each device
__device__ Counter device_counters[kCounters];

struct Pool {
  Counter* counters = nullptr;
  int taken = 0;
  std::unordered_map<unsigned long long, Counter*> by_stream;

  Counter* take() { return taken < kCounters ? &counters[taken++] : nullptr; }
};

}  // namespace

Counter* take_counter(int device, Stream stream) {
  static std::mutex mutex;
  static std::map<int, Pool> pools;
  const std::lock_guard lock(mutex);
  Pool& pool = pools[device];
  if (pool.counters == nullptr) pool.counters = *address_of_symbol(device_counters);
  if (is_capturing(stream)) return pool.take();
  const unsigned long long id = stream_id(stream);
  const auto known = pool.by_stream.find(id);
  if (known != pool.by_stream.end()) return known->second;
  Counter* const counter = pool.take();
  if (counter != nullptr) pool.by_stream.emplace(id, counter);
  return counter;
}

}  // namespace boxloss::BOXLOSS_GPU
