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

/// The default: as many threads as the machine has, kept for the next call. A call from within a
/// task, or while another thread's call runs, uses its caller's thread alone. A forked process
/// starts threads of its own. A process that a task forks should end within that task: the other
/// threads' tasks are not done in it, and on a thread of the pool it has no caller to return to and
/// ends with status 1.
BOXLOSS_API void parallel_for(std::int64_t tasks, const std::function<void(std::int64_t)>& task);

/// The resources of one call. Nothing here is kept after the call; on a GPU the memory must stay
/// valid until the stream has executed the call.
struct Execution {
  /// Which of several devices of a kind; ignored on the CPU.
  int device_index = 0;
  /// This operation's `_workspace_bytes` has been asked for the same problem and implementation,
  /// and so has checked all but pointers and outputs: they alone are looked at.
  bool is_checked = false;
  /// cudaStream_t, hipStream_t, or what another device's backend takes for a stream; ignored on the
  /// CPU. For the Kokkos implementations it must live until Kokkos is finalized, since they keep
  /// what they make for it at its first call.
  void* stream = nullptr;
  /// Scratch memory on the device, 16-byte aligned, at least workspace_bytes(...) long. Its
  /// contents need no initialization; calls that may run at the same time must not share it.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  /// Runs the tasks of CPU implementations, except Kokkos', which has its own threads.
  ParallelFor parallel_for = boxloss::parallel_for;
};

}  // namespace boxloss
