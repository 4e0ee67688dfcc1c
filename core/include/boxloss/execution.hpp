// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace boxloss {

/// Runs task(0) … task(tasks - 1), in any order, on any threads, and returns when all are done.
/// Tasks do not throw.
using ParallelFor =
    std::function<void(std::int64_t tasks, const std::function<void(std::int64_t)>& task)>;

/// The default: as many threads as the machine has, which are kept for the next call. A call from
/// within a task, or while another thread's runs, takes its caller's thread alone. A process that
/// was forked starts threads of its own. One that a task forks should end within that task: what
/// other threads were at is not done there, and on a thread of the pool there is no caller to
/// return to, so that the process ends with status 1.
BOXLOSS_API void parallel_for(std::int64_t tasks, const std::function<void(std::int64_t)>& task);

/// Where and with what one call runs. Nothing here is kept after the call; on a GPU the memory must
/// stay valid until the stream has passed the call.
struct Execution {
  /// Device ordinal of a GPU implementation; ignored on the CPU.
  int device_index = 0;
  /// cudaStream_t or hipStream_t; ignored on the CPU. The Kokkos implementations know a stream from
  /// its first call on: for them it must live until Kokkos is finalised.
  void* stream = nullptr;
  /// Scratch memory on the device, 16-byte aligned, at least workspace_bytes(...) long. Its
  /// contents mean nothing before and after; calls that may run at the same time must not share it.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  /// How CPU implementations use threads; but Kokkos has its own.
  ParallelFor parallel_for = boxloss::parallel_for;
};

}  // namespace boxloss
