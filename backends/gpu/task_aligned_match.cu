// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "atomics.hpp"
#include "dispatch/task_aligned_match.hpp"
#include "kernels/task_aligned_match_steps.hpp"
#include "math/ceil_div.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// The launches of core/kernels/task_aligned_match_steps.hpp.
namespace boxloss::BOXLOSS_GPU {

template <class B>
__global__ void __launch_bounds__(kThreads)
    choose(const TaskAlignedArgs<B> a, const MatchWork work) {
  __shared__ Choosing shared;
  choose_anchors<Atomics>(Block(), shared, a, work);
}

template <class B>
__global__ void __launch_bounds__(kThreads)
    find_owners(const TaskAlignedArgs<B> a, const MatchWork work) {
  const std::int64_t further = static_cast<std::int64_t>(gridDim.x) * kThreads;
#pragma unroll 1
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       at < a.images * a.anchors; at += further) {
    find_owner<Atomics>(a, work, at);
  }
}

template <class B>
__global__ void __launch_bounds__(kThreads) drop(const TaskAlignedArgs<B> a, const MatchWork work) {
  __shared__ RankCollection highest;
  drop_others<Atomics>(Block(), highest, a, work);
}

template <class B>
__global__ void __launch_bounds__(kThreads)
    write_scores(const TaskAlignedArgs<B> a, const MatchWork work) {
  const std::int64_t further = static_cast<std::int64_t>(gridDim.x) * kThreads;
#pragma unroll 1
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       at < a.images * a.anchors; at += further) {
    write_score(a, work, at);
  }
}

unsigned blocks_of(std::int64_t count) {
  constexpr std::int64_t kMostBlocks = 1 << 20;
  return static_cast<unsigned>(std::min(count, kMostBlocks));
}

std::size_t Operations::workspace_bytes(const TaskAlignedProblem& p) { return match_work_bytes(p); }

void Operations::task_aligned_match(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs,
                                    const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, int byte, std::size_t bytes) {
    fill_async(data, byte, bytes, stream);
  };
  dispatch(p, outputs, fill, [&](auto box) {
    using B = decltype(box);
    const TaskAlignedArgs<B> args = task_aligned_args<B>(p, outputs);
    const MatchWork work = match_work(p, execution.workspace);
    const unsigned of_boxes = blocks_of(args.rows);
    const unsigned of_anchors = blocks_of(ceil_div(args.images * args.anchors, kThreads));
    zero_async(execution.workspace, match_work_bytes(p), stream);
    launch(choose<B>, "task_aligned_match", of_boxes, kThreads, stream, args, work);
    launch(find_owners<B>, "task_aligned_match", of_anchors, kThreads, stream, args, work);
    if (args.topk2 > 0) {
      launch(drop<B>, "task_aligned_match", of_boxes, kThreads, stream, args, work);
    }
    launch(write_scores<B>, "task_aligned_match", of_anchors, kThreads, stream, args, work);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
