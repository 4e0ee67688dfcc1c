// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "assign_teams.hpp"
#include "dispatch/assign.hpp"
#include "kernels/assign_steps.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"

/// The assignment: a team of threads for each task, by core/kernels/assign_steps.hpp.
namespace boxloss::BOXLOSS_GPU {

/// Threads of a block of teams that have so many.
template <unsigned kThreadsOfTeam>
constexpr unsigned kBlockOfTeams = kThreadsOfTeam < kThreads ? kThreads : kThreadsOfTeam;

/// With more of them there are too few registers.
constexpr int kTeamBlocks = std::min(kFloatBlocks, 3);

/// `shared_bytes` are each team's, and a multiple of 16.
template <class E, unsigned kThreadsOfTeam>
__global__ void __launch_bounds__(kBlockOfTeams<kThreadsOfTeam>,
                                  kThreadsOfTeam == kLanes ? kTeamBlocks : 1)
    assign_tasks(const BOXLOSS_GRID_CONSTANT AssignArgs<E> a, std::byte* const workspace,
                 const int shared_bytes) {
  constexpr unsigned kTeams = kBlockOfTeams<kThreadsOfTeam> / kThreadsOfTeam;
  __shared__ bool are_all_finite[kTeams];
  AssignTeam<kThreadsOfTeam> team(kThreadsOfTeam);
  const unsigned number = threadIdx.x / kThreadsOfTeam;
  std::byte* const shared = dynamic_shared_memory() + number * static_cast<unsigned>(shared_bytes);
  const bool are_offsets_right =
      a.offsets.data == nullptr || block_are_in_order(a.offsets, a.images, a.columns);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x * std::int64_t{kTeams} + number; i < a.tasks();
       i += gridDim.x * std::int64_t{kTeams}) {
    assign_at(team, a, i, are_offsets_right, shared, shared_bytes, workspace,
              are_all_finite[number]);
  }
}

#if defined(BOXLOSS_HAS_CLUSTERS)
/// A cluster for each task.
template <class E, unsigned kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    assign_large_tasks([[maybe_unused]] const BOXLOSS_GRID_CONSTANT AssignArgs<E> a,
                       [[maybe_unused]] std::byte* const workspace,
                       [[maybe_unused]] const int shared_bytes) {
#if __CUDA_ARCH__ >= 900
  __shared__ Mailbox<kThreadsOfBlock> mailbox;
  __shared__ bool are_right, are_all_finite;
  ClusterTeam<kThreadsOfBlock> team(mailbox);
  const bool are_offsets_right =
      a.offsets.data == nullptr || are_in_order(team, are_right, a.offsets, a.images, a.columns);
  assign_at(team, a, blockIdx.x / kBlocksOfCluster, are_offsets_right, dynamic_shared_memory(),
            shared_bytes, workspace, are_all_finite);
#endif
}
#endif

/// Bytes of a block's shared memory that tasks cannot use: the kernel's own variables, and what
/// CUDA keeps for itself.
constexpr int kBeside = 3072;

/// A team's bytes of shared memory. A block has its part where all blocks are resident at once, but
/// enough for problems of the usual size.
template <class E>
int shared_bytes(const AssignProblem& p, std::int64_t blocks, unsigned teams, int device) {
  constexpr std::int64_t kUsual = 48 << 10;
  const std::int64_t most = most_shared_bytes(device), at_once = processor_count(device);
  const std::int64_t bytes = std::max(most / ceil_div(blocks, at_once), std::min(most, kUsual));
  return assign_shared_bytes<E>(p, (bytes - kBeside) / teams / 16 * 16);
}

/// Whether costs have 8 or 16 bits, and they and the limit are exact as floats. They are converted
/// first, since a search reads them several times.
bool is_narrow(const AssignProblem& p) {
  return size_of(p.cost.dtype) < sizeof(float) &&
         stored_as(DType::kF32, p.cost_limit) == p.cost_limit;
}

std::size_t Operations::workspace_bytes(const AssignProblem& p) {
  const auto costs = static_cast<std::size_t>(p.layers * p.queries * p.columns);
  return assign_states_bytes(p) + (is_narrow(p) ? costs * sizeof(float) : 0);
}

/// Writes all costs, one layer's rows after the other.
__global__ void __launch_bounds__(kThreads)
    widen_costs(const BOXLOSS_GRID_CONSTANT AssignArgs<Any> a, float* const to) {
  const std::int64_t count = a.layers * a.queries * a.columns;
  const std::int64_t first = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  for (std::int64_t i = first; i < count; i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t row = i / a.columns;
    to[i] = a.cost.template get<float>(row / a.queries * a.layer_stride +
                                       row % a.queries * a.query_stride +
                                       i % a.columns * a.column_stride);
  }
}

/// The same problem with its costs as floats, which lie behind the states in the workspace.
AssignArgs<float> widened(const AssignProblem& p, const AssignOutputs& outputs,
                          const Execution& execution) {
  auto* const costs = reinterpret_cast<float*>(static_cast<std::byte*>(execution.workspace) +
                                               assign_states_bytes(p));
  const std::int64_t count = p.layers * p.queries * p.columns;
  const std::int64_t most_blocks = 8 * processor_count(execution.device_index);
  launch(widen_costs, "assign",
         static_cast<unsigned>(std::min(ceil_div(count, std::int64_t{kThreads}), most_blocks)),
         kThreads, static_cast<Stream>(execution.stream), assign_args<Any>(p, outputs), costs);
  AssignProblem of_floats = p;
  of_floats.cost = {costs, DType::kF32, p.queries * p.columns, p.columns, 1};
  AssignArgs<float> args = assign_args<float>(of_floats, outputs);
  args.rule.largest = stored_as(p.cost.dtype, p.cost_limit);
  return args;
}

template <unsigned kThreadsOfTeam, class E>
void launch_by(const AssignProblem& p, const AssignArgs<E>& args, const Execution& execution) {
  constexpr unsigned kBlock = kBlockOfTeams<kThreadsOfTeam>, kTeams = kBlock / kThreadsOfTeam;
  const int device = execution.device_index;
  const std::int64_t blocks = ceil_div(args.tasks(), std::int64_t{kTeams});
  const std::int64_t most_blocks = 64 * processor_count(device);
  const int bytes = shared_bytes<E>(p, blocks, kTeams, device);
  allow_shared(assign_tasks<E, kThreadsOfTeam>, most_shared_bytes(device) - kBeside);
  launch_with_shared(assign_tasks<E, kThreadsOfTeam>, "assign",
                     static_cast<unsigned>(std::min(blocks, most_blocks)), kBlock,
                     static_cast<int>(kTeams) * bytes, static_cast<Stream>(execution.stream), args,
                     static_cast<std::byte*>(execution.workspace), bytes);
}

#if defined(BOXLOSS_HAS_CLUSTERS)
/// Launches a cluster for each task, if all can run at once and have room for `state`.
template <unsigned kThreadsOfBlock, class E>
bool launch_clusters_by(const AssignArgs<E>& args, std::int64_t state, const Execution& execution) {
  const int device = execution.device_index;
  const std::int64_t blocks = args.tasks() * kBlocksOfCluster;
  const int bytes =
      most_shared_bytes(device) - kBeside - static_cast<int>(sizeof(Mailbox<kThreadsOfBlock>));
  if (!has_clusters(device) || blocks > processor_count(device) || state > bytes) return false;
  const auto kernel = assign_large_tasks<E, kThreadsOfBlock>;
  allow_shared(kernel, bytes);
  launch_clusters(kernel, "assign", static_cast<unsigned>(args.tasks()), kThreadsOfBlock, bytes,
                  static_cast<Stream>(execution.stream), args,
                  static_cast<std::byte*>(execution.workspace), bytes);
  return true;
}

/// Fewer threads have fewer messages to wait for; more have fewer places each.
template <class E>
bool launch_clusters_by(const AssignArgs<E>& args, std::int64_t places,
                        const Execution& execution) {
  constexpr std::int64_t kPlacesOfFew = 2560;
  const std::int64_t columns = ceil_div(args.columns, args.images);
  const std::int64_t rows = std::min(args.queries / args.groups, columns);
  const std::int64_t state = state_bytes<double>(rows, places);
  if (places <= kPlacesOfFew) return launch_clusters_by<128>(args, state, execution);
  return launch_clusters_by<512>(args, state, execution);
}
#endif

void Operations::assign(const AssignProblem& p, const AssignOutputs& outputs,
                        const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, std::size_t bytes) { fill_async(data, 0xff, bytes, stream); };
  const auto launch_with = [&](const auto& args) {
    const std::int64_t places = usual_places(p);
    if (places <= 2 * kLanes) return launch_by<kLanes>(p, args, execution);
    if (places <= 2 * kThreads) return launch_by<kThreads>(p, args, execution);
#if defined(BOXLOSS_HAS_CLUSTERS)
    if (launch_clusters_by(args, places, execution)) return;
#endif
    launch_by<kMostThreads>(p, args, execution);
  };
  dispatch(p, outputs, fill, [&](auto element) {
    using E = decltype(element);
    if (is_narrow(p)) return launch_with(widened(p, outputs, execution));
    launch_with(assign_args<E>(p, outputs));
  });
}

}  // namespace boxloss::BOXLOSS_GPU
