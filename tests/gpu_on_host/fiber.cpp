// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
// It would take a jump to another stack for an error.
#undef _FORTIFY_SOURCE
#include "fiber.hpp"

#include <cerrno>
#include <system_error>

#if defined(BOXLOSS_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace boxloss::gpu_on_host {
namespace {

// A kernel's frame takes up to 5 KiB with AddressSanitizer, which clears a stack's shadow at each
// switch: more would cost time.
constexpr std::size_t kStackBytes = 64 * 1024;

Stack outside;
Fiber* running = nullptr;

/// Returns when somebody switches back.
void switch_stack([[maybe_unused]] Stack& from, Stack& to) {
#if defined(BOXLOSS_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&from.asan_frames, to.bottom, to.bytes);
  if (swapcontext(&from.context, &to.context) != 0) {
    throw std::system_error(errno, std::generic_category(), "swapcontext");
  }
  __sanitizer_finish_switch_fiber(from.asan_frames, nullptr, nullptr);
#else
  // swapcontext would make two system calls each time; the sanitizer does not follow jumps.
  from.is_entered = true;
  if (_setjmp(from.place) != 0) return;
  if (to.is_entered) _longjmp(to.place, 1);
  setcontext(&to.context);
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
