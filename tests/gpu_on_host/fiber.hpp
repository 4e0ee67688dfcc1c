// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace boxloss::gpu_on_host {

/// Where execution is: a stack, and what AddressSanitizer has to know of it.
struct Stack {
  ucontext_t context;
  void* place[5];
  bool is_entered = false;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* asan_frames = nullptr;
};

/// A function on a stack of its own, run a piece at a time. It never returns. Destroyed, it is
/// simply not resumed any more.
class Fiber {
 public:
  explicit Fiber(void (*function)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the function until it pauses.
  void resume();
  /// Called by the function: goes on behind resume().
  static void pause();

 private:
  static void enter();

  void (*function_)();
  std::unique_ptr<std::byte[]> memory_;
  Stack stack_;
};

}  // namespace boxloss::gpu_on_host
