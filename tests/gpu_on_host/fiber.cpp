// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include <cerrno>
#include <system_error>

#if defined(BOXLOSS_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace boxloss::gpu_on_host {
namespace {

// A kernel's frame takes up to 5 KiB with AddressSanitizer.
constexpr std::size_t kStackBytes = 64 * 1024;

Stack outside;
Fiber* running = nullptr;

// The compiler's own jumps, which set no more than the frame, the stack pointer and the place:
// documented for one stack, and enough to change it. swapcontext would make two system calls each
// time, and before it, longjmp and other calls that do not return AddressSanitizer forgets all it
// knows of the stack that is left, which takes longer than all else, and hides what overflows there
// later.
__attribute__((no_sanitize("address"), noinline, noreturn)) void go_to(Stack& to) {
  if (to.is_entered) __builtin_longjmp(to.place, 1);
  setcontext(&to.context);
  __builtin_unreachable();
}

/// Returns when somebody switches back.
__attribute__((no_sanitize("address"), noinline)) void switch_stack(Stack& from, Stack& to) {
#if defined(BOXLOSS_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&from.asan_frames, to.bottom, to.bytes);
#endif
  from.is_entered = true;
  if (__builtin_setjmp(from.place) == 0) go_to(to);
#if defined(BOXLOSS_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(from.asan_frames, nullptr, nullptr);
#endif
}

}  // namespace

Fiber::Fiber(void (*function)()) : function_(function), memory_(new std::byte[kStackBytes]) {
  if (getcontext(&stack_.context) != 0) {
    throw std::system_error(errno, std::generic_category(), "getcontext");
  }
  stack_.bottom = memory_.get();
  stack_.bytes = kStackBytes;
  stack_.context.uc_stack.ss_sp = memory_.get();
  stack_.context.uc_stack.ss_size = kStackBytes;
  stack_.context.uc_link = nullptr;
  makecontext(&stack_.context, enter, 0);
}

void Fiber::enter() {
#if defined(BOXLOSS_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &outside.bottom, &outside.bytes);
#endif
  running->function_();
}

void Fiber::resume() {
  running = this;
  switch_stack(outside, stack_);
}

void Fiber::pause() { switch_stack(running->stack_, outside); }

}  // namespace boxloss::gpu_on_host
