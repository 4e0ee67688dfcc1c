// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#include "cluster.hpp"
#include "kernels/assign_paths.hpp"
#include "math/bits.hpp"
#include "threads.hpp"

/// The teams of core/kernels/assign_paths.hpp.
namespace boxloss::BOXLOSS_GPU {

constexpr unsigned kMostThreads = 512;

/// The least value of the lanes that are in; those that have another are no longer in.
__device__ inline unsigned keep_least(bool& is_in, unsigned value) {
  const unsigned own = is_in ? value : ~0u, least = least_of_lanes(own);
  is_in = is_in && own == least;
  return least;
}

__device__ inline unsigned long long keep_least(bool& is_in, unsigned long long value) {
  const unsigned long long high = keep_least(is_in, static_cast<unsigned>(value >> 32));
  return high << 32 | keep_least(is_in, static_cast<unsigned>(value));
}

constexpr unsigned long long kSignBit = 1ull << 63;

/// A distance as a number in the same order. It is a sum that begins with +0, so it is not -0.
__device__ inline unsigned long long bits_of(double distance) {
  const auto bits = bit_cast<unsigned long long>(distance);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}
__device__ inline double distance_of(unsigned long long bits) {
  return bit_cast<double>((bits & kSignBit) != 0 ? bits ^ kSignBit : ~bits);
}

__device__ inline double keep_least(bool& is_in, double distance) {
  return distance_of(keep_least(is_in, bits_of(distance)));
}

/// `nonfinite` is below 0 only if sums overflow. It is compared as a signed number even then, as in
/// other implementations.
__device__ inline Extended keep_least(bool& is_in, Extended value) {
  const auto bits = static_cast<unsigned long long>(value.nonfinite) ^ kSignBit;
  const auto least = static_cast<std::int64_t>(keep_least(is_in, bits) ^ kSignBit);
  return {least, keep_least(is_in, value.finite)};
}

/// The least of the group, in each of its lanes.
template <class Number>
__device__ Candidate<Number> least_of_lanes(const Candidate<Number>& own) {
  bool is_in = true;
  Candidate<Number> least;
  least.distance = keep_least(is_in, own.distance);
  least.rank = keep_least(is_in, own.rank);
  least.place = keep_least(is_in, own.place);
  return least;
}

/// Whether the lane has it.
template <class Number>
__device__ bool has_least_of_lanes(const Candidate<Number>& own) {
  bool is_in = true;
  keep_least(is_in, own.distance);
  keep_least(is_in, own.rank);
  return is_in;
}

/// The least of a block's, for all its threads. What they wrote before is visible to them after.
/// `turn` alternates between 0 and 1, so that one barrier is enough.
template <class Number>
__device__ Candidate<Number> least_of_block(const Candidate<Number>& own, unsigned threads,
                                            int turn) {
  __shared__ Candidate<Number> of_groups[2][kMostThreads / kLanes];
  if (has_least_of_lanes(own)) of_groups[turn][threadIdx.x / kLanes] = own;
  __syncthreads();
  return least_of_lanes(of_groups[turn][threadIdx.x % kLanes % (threads / kLanes)]);
}

/// The threads of a block that solve a task together: a group of kLanes, of which a block has
/// several, or the whole block. kThreadsOfTeam is how many they are, or 0 where that is known at
/// run time only.
template <unsigned kThreadsOfTeam>
class AssignTeam {
 public:
  static constexpr bool kIsCluster = false;
  static constexpr unsigned kAtOnce = kThreadsOfTeam > kThreads ? 4 : 2;

  __device__ explicit AssignTeam(unsigned threads) : threads_(threads) {}

  __device__ unsigned thread() const { return threadIdx.x & (threads() - 1); }
  __device__ unsigned threads() const { return kThreadsOfTeam == 0 ? threads_ : kThreadsOfTeam; }
  __device__ unsigned first() const { return thread(); }
  __device__ unsigned further() const { return threads(); }
  __device__ static bool all(bool is_so) { return is_so; }
  __device__ AssignTeam<0> of_any_size() const { return AssignTeam<0>(threads()); }

  __device__ void sync() const {
    if (is_group()) {
      sync_lanes();
    } else {
      __syncthreads();
    }
  }

  template <class Number>
  __device__ Candidate<Number> least(const Candidate<Number>& own, int turn) const {
    if (!is_group()) return least_of_block(own, threads(), turn);
    sync();
    return least_of_lanes(own);
  }

 private:
  __device__ bool is_group() const { return threads() == kLanes; }

  unsigned threads_;  ///< a power of two
};

#if defined(__CUDA_ARCH__) && defined(BOXLOSS_HAS_CLUSTERS) && __CUDA_ARCH__ >= 900
/// A cluster of blocks as one team. Each block has the whole state, and changes it as all others
/// do; the distances of a search alone are divided among the threads of all blocks.
template <unsigned kThreadsOfBlock>
class ClusterTeam {
 public:
  static constexpr bool kIsCluster = true;
  static constexpr unsigned kAtOnce = 2;

  __device__ explicit ClusterTeam(Mailbox<kThreadsOfBlock>& box) : exchange_(box) {}

  static __device__ unsigned thread() { return threadIdx.x; }
  static constexpr __device__ unsigned threads() { return kThreadsOfBlock; }
  __device__ unsigned first() const {
    return Exchange<kThreadsOfBlock>::block() * threads() + thread();
  }
  __device__ unsigned further() const { return kBlocksOfCluster * threads(); }
  __device__ void sync() const { __syncthreads(); }
  __device__ AssignTeam<0> of_any_size() const { return AssignTeam<0>(threads()); }

  struct Reached {
    Candidate<double> nearest;
    int from;  ///< the row by way of which it is
  };

  /// The nearest place of all threads, each with its own. Rows and places are numbers of 21 bits.
  __device__ Reached least(const Candidate<double>& own, const int* from_row) {
    const unsigned from = own.place == ~0u ? 0 : static_cast<unsigned>(from_row[own.place]);
    const std::uint64_t rest = static_cast<std::uint64_t>(own.rank) << 42 |
                               static_cast<std::uint64_t>(own.place & kMask) << 21 | from;
    const Message* const all = exchange_.swap(least_of_lanes({bits_of(own.distance), rest}));
    Message nearest = all[thread() % kLanes];
#pragma unroll
    for (unsigned i = kLanes; i < Mailbox<kThreadsOfBlock>::kGroups; i += kLanes) {
      const Message other = all[i + thread() % kLanes];
      const bool is_nearer =
          other.high < nearest.high || (other.high == nearest.high && other.low < nearest.low);
      if (is_nearer) nearest = other;
    }
    nearest = least_of_lanes(nearest);
    return {{distance_of(nearest.high), static_cast<unsigned>(nearest.low >> 42),
             static_cast<unsigned>(nearest.low >> 21) & kMask},
            static_cast<int>(nearest.low & kMask)};
  }

  /// Whether all blocks say so.
  __device__ bool all(bool is_so) {
    const Message* const said = exchange_.swap({is_so ? 1u : 0u, 0});
    bool are_so = true;
    for (unsigned i = 0; i < Mailbox<kThreadsOfBlock>::kGroups; ++i) {
      are_so = are_so && said[i].high != 0;
    }
    return are_so;
  }

 private:
  static constexpr unsigned kMask = (1u << 21) - 1;

  static __device__ Message least_of_lanes(const Message& own) {
    bool is_in = true;
    const auto high = keep_least(is_in, static_cast<unsigned long long>(own.high));
    return {high, keep_least(is_in, static_cast<unsigned long long>(own.low))};
  }

  Exchange<kThreadsOfBlock> exchange_;
};
#endif

}  // namespace boxloss::BOXLOSS_GPU
