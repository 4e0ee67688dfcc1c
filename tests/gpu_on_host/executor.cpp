// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "executor.hpp"

#include <algorithm>
#include <boxloss/error.hpp>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "fiber.hpp"
#include "src/message.hpp"

namespace boxloss::gpu_on_host {

Position threadIdx, blockIdx, gridDim;

namespace {

constexpr unsigned kMaxThreads = 1024;

enum class State { kReady, kInShuffle, kAtBarrier, kExited };

void run_threads();

struct Thread {
  Fiber fiber{run_threads};
  State state = State::kReady;
  Exchange wish{};
};

unsigned wavefront = 32;
std::mt19937 orders;
const char* kernel_name = nullptr;
const std::function<void()>* kernel = nullptr;
std::vector<std::unique_ptr<Thread>> threads;  // of the block, each with its fiber for good

Thread& this_thread() { return *threads[threadIdx.x]; }

/// What a fiber does: the same thread of one block after another.
void run_threads() {
  for (;;) {
    (*kernel)();
    this_thread().state = State::kExited;
    Fiber::pause();
  }
}

void wait_in(State state) {
  this_thread().state = state;
  Fiber::pause();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw DeviceError(message(kernel_name, ", block ", blockIdx.x, ": ", parts...));
}

/// As many as the last wavefront has lanes.
unsigned end_of_wavefront(unsigned begin) {
  return std::min(begin + wavefront, static_cast<unsigned>(threads.size()));
}

/// Runs each lane until it waits or exits.
void run_lanes(unsigned begin) {
  std::vector<unsigned> lanes(end_of_wavefront(begin) - begin);
  std::iota(lanes.begin(), lanes.end(), begin);
  std::shuffle(lanes.begin(), lanes.end(), orders);
  for (const unsigned lane : lanes) {
    if (threads[lane]->state != State::kReady) continue;
    threadIdx.x = lane;
    threads[lane]->fiber.resume();
  }
}

/// What another thread of the wavefront passes on to this one.
const Exchange& theirs(unsigned thread, const Exchange& wish, unsigned source) {
  if (source >= threads.size() || threads[source]->state != State::kInShuffle) {
    fail("thread ", thread, " shuffles from thread ", source, ", which takes no part");
  }
  const Exchange& other = threads[source]->wish;
  if (other.bytes != wish.bytes || other.lanes != wish.lanes || other.width != wish.width ||
      other.is_least != wish.is_least) {
    fail("thread ", thread, " shuffles from thread ", source, ", which is in another shuffle");
  }
  return other;
}

/// A thread's part in the least of its group, which the first thread finds for all.
void serve_least(unsigned thread, const Exchange& wish) {
  const unsigned first = thread - thread % wish.width;
  if (thread != first) return (void)theirs(thread, wish, first);
  unsigned least = ~0u;
  for (unsigned i = first; i < first + wish.width; ++i) {
    least = std::min(least, *static_cast<const unsigned*>(theirs(thread, wish, i).value));
  }
  for (unsigned i = first; i < first + wish.width; ++i) {
    *static_cast<unsigned*>(threads[i]->wish.result) = least;
  }
}

void serve_down(unsigned thread, const Exchange& wish) {
  const bool ends_before = wish.lanes >= wish.width - thread % wish.width;
  const unsigned source = ends_before ? thread : thread + wish.lanes;
  std::memcpy(wish.result, theirs(thread, wish, source).value, wish.bytes);
}

/// Serves the lanes that wait in a shuffle. False: there are none.
bool serve_shuffles(unsigned begin) {
  std::vector<Thread*> served;
  for (unsigned thread = begin; thread < end_of_wavefront(begin); ++thread) {
    if (threads[thread]->state != State::kInShuffle) continue;
    const Exchange& wish = threads[thread]->wish;
    if (wish.width == 0 || wavefront % wish.width != 0) {
      fail("a shuffle among ", wish.width, " lanes on wavefronts of ", wavefront);
    }
    wish.is_least ? serve_least(thread, wish) : serve_down(thread, wish);
    served.push_back(threads[thread].get());
  }
  for (Thread* const thread : served) thread->state = State::kReady;
  return !served.empty();
}

/// Runs all threads until each waits at a barrier or has exited.
void run_to_barrier() {
  std::vector<unsigned> wavefronts;
  for (unsigned begin = 0; begin < threads.size(); begin += wavefront) wavefronts.push_back(begin);
  std::shuffle(wavefronts.begin(), wavefronts.end(), orders);
  const bool one_by_one = orders() % 2 == 0;
  while (!wavefronts.empty()) {
    if (!one_by_one) std::swap(wavefronts[orders() % wavefronts.size()], wavefronts.back());
    run_lanes(wavefronts.back());
    if (!serve_shuffles(wavefronts.back())) wavefronts.pop_back();
  }
}

void run_block() {
  std::size_t exited = 0;
  while (exited == 0) {
    for (const auto& thread : threads) thread->state = State::kReady;
    run_to_barrier();
    exited = static_cast<std::size_t>(std::count_if(
        threads.begin(), threads.end(), [](auto& t) { return t->state == State::kExited; }));
  }
  if (exited < threads.size()) {
    fail(threads.size() - exited, " threads wait at __syncthreads for ", exited, " that exited");
  }
}

}  // namespace

void set_hardware(unsigned lanes, unsigned seed) {
  wavefront = lanes;
  orders.seed(seed);
}

void run_grid(const char* name, unsigned blocks, unsigned block_threads,
              const std::function<void()>& body) {
  kernel_name = name;
  kernel = &body;
  gridDim.x = blocks;
  if (blocks == 0 || block_threads == 0 || block_threads > kMaxThreads) {
    fail("a grid of ", blocks, " blocks of ", block_threads, " threads");
  }
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), orders);
  if (threads.size() > block_threads) threads.resize(block_threads);
  while (threads.size() < block_threads) threads.push_back(std::make_unique<Thread>());
  try {
    for (const unsigned block : order) {
      blockIdx.x = block;
      run_block();
    }
  } catch (...) {
    threads.clear();  // stopped in the middle
    throw;
  }
}

void __syncthreads() { wait_in(State::kAtBarrier); }

void exchange(const Exchange& wish) {
  this_thread().wish = wish;
  wait_in(State::kInShuffle);
}

}  // namespace boxloss::gpu_on_host
