// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

#if defined(BOXLOSS_HAS_CLUSTERS)
#include <cooperative_groups.h>

#include <cstdint>
#include <cuda/ptx>

#include "threads.hpp"

/// A cluster of blocks that exchange messages: NVIDIA's GPUs from compute capability 9.0 on.
namespace boxloss::BOXLOSS_GPU {

namespace ptx = ::cuda::ptx;

constexpr unsigned kBlocksOfCluster = 8;

struct Message {
  std::uint64_t high, low;
};

/// In each block's shared memory: a message of each group of lanes of the cluster, in two turns,
/// and for each turn a barrier that counts the bytes that have come.
template <unsigned kThreadsOfBlock>
struct Mailbox {
  static constexpr unsigned kGroups = kBlocksOfCluster * kThreadsOfBlock / kLanes;
  Message messages[2][kGroups];
  std::uint64_t arrivals[2];
};

#if __CUDA_ARCH__ >= 900
/// Sends a group's message to all blocks, and waits for those of all groups. All threads of the
/// cluster call its functions together.
template <unsigned kThreadsOfBlock>
class Exchange {
 public:
  using Box = Mailbox<kThreadsOfBlock>;

  __device__ explicit Exchange(Box& box) : box_(box) {
    if (threadIdx.x == 0) {
      for (auto& arrival : box_.arrivals) {
        ptx::mbarrier_init(&arrival, 1);
        expect(arrival);
      }
      ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    sync();
  }
  /// Nobody leaves while others may still send to it.
  __device__ ~Exchange() { sync(); }

  __device__ static unsigned block() { return cooperative_groups::this_cluster().block_rank(); }

  /// Gives the messages of all groups to all threads. They may be read until the next exchange but
  /// one: it sends when all groups' messages of the next have come, and each group sends its own
  /// after it has read these.
  __device__ const Message* swap(const Message& own) {
    const auto cluster = cooperative_groups::this_cluster();
    const unsigned turn = turn_, lane = threadIdx.x % kLanes;
    if (lane < kBlocksOfCluster) {
      const unsigned group = (block() * kThreadsOfBlock + threadIdx.x) / kLanes;
      Message* const to = &box_.messages[turn][group];
      const std::uint64_t values[2] = {own.high, own.low};
      ptx::st_async(reinterpret_cast<std::uint64_t*>(cluster.map_shared_rank(to, lane)), values,
                    cluster.map_shared_rank(&box_.arrivals[turn], lane));
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster,
                                          &box_.arrivals[turn], parity_)) {
    }
    if (threadIdx.x == 0) expect(box_.arrivals[turn]);
    turn_ = 1 - turn;
    if (turn == 1) parity_ = 1 - parity_;
    return box_.messages[turn];
  }

 private:
  __device__ static void sync() { cooperative_groups::this_cluster().sync(); }

  /// All messages of the barrier's next turn. Some may come before this.
  __device__ static void expect(std::uint64_t& arrival) {
    const std::uint32_t bytes = sizeof(Box::messages[0]);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &arrival,
                                   bytes);
  }

  Box& box_;
  unsigned turn_ = 0, parity_ = 0;
};
#endif

/// Whether a device has clusters.
inline bool has_clusters(int device) {
  int has = 0;
  BOXLOSS_CALL(DeviceGetAttribute, &has, cudaDevAttrClusterLaunch, device);
  return has != 0;
}

/// Launches that many clusters with dynamic shared memory.
template <class... Params, class... Args>
void launch_clusters(void (*kernel)(Params...), const char* name, unsigned clusters,
                     unsigned threads, int shared_bytes, Stream stream, const Args&... args) {
  cudaLaunchAttribute of_cluster = {};
  of_cluster.id = cudaLaunchAttributeClusterDimension;
  of_cluster.val.clusterDim = {kBlocksOfCluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = clusters * kBlocksOfCluster;
  config.blockDim = threads;
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &of_cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...), name);
}

}  // namespace boxloss::BOXLOSS_GPU
#endif
