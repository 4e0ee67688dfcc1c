// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/assign.hpp"
#include "math/bits.hpp"
#include "math/ceil_div.hpp"
#include "offsets.hpp"
#include "operations.hpp"
#include "threads.hpp"

/// The assignment: a block of threads for each task, by shortest augmenting paths as in cpu/native.
/// The block takes the rows one after the other; at each step of a row's search its threads relax
/// all places and find the nearest. The paths' state is in shared memory if it fits there,
/// otherwise in the workspace. The costs are copied to shared memory if there is room left,
/// otherwise read from where they are.
namespace boxloss::BOXLOSS_GPU {

constexpr unsigned kAssignThreads = kThreads;
constexpr unsigned kAssignGroups = kAssignThreads / kLanes;

/// Calls use(i) for this thread's part of [0, count).
template <class Use>
__device__ void for_own(unsigned count, const Use& use) {
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < count; i += kAssignThreads) use(i);
}

/// A place that may be the nearest. Of equally near places, the one with the lowest rank is.
template <class Number>
struct Candidate {
  Number distance;
  unsigned long long key;  ///< its rank, which no other place has, in the high half

  __device__ unsigned rank() const { return static_cast<unsigned>(key >> 32); }
  __device__ unsigned place() const { return static_cast<unsigned>(key); }
  __device__ bool operator<(const Candidate& other) const {
    return distance < other.distance || (distance == other.distance && key < other.key);
  }
};

template <class Number>
__device__ Candidate<Number> no_candidate() {
  return {unreached<Number>(), ~0ull};
}

/// Whether the thread's value is the least among those of its kLanes threads that are in. It may be
/// so for several threads.
__device__ inline bool has_least(bool is_in, unsigned value) {
  const unsigned own = is_in ? value : ~0u;
  return least_of_lanes(own) == own && is_in;
}

__device__ inline bool has_least(bool is_in, unsigned long long value) {
  const bool is_high_least = has_least(is_in, static_cast<unsigned>(value >> 32));
  return has_least(is_high_least, static_cast<unsigned>(value));
}

constexpr unsigned long long kSignBit = 1ull << 63;

/// For distances. They are sums that begin with +0, so none of them is -0.
__device__ inline bool has_least(bool is_in, double value) {
  const auto bits = bit_cast<unsigned long long>(value);
  return has_least(is_in, (bits & kSignBit) != 0 ? ~bits : bits | kSignBit);
}

/// `nonfinite` is below 0 only if sums overflow. It is compared as a signed number even then, as in
/// other implementations.
__device__ inline bool has_least(bool is_in, Extended value) {
  const unsigned long long nonfinite = static_cast<unsigned long long>(value.nonfinite) ^ kSignBit;
  return has_least(has_least(is_in, nonfinite), value.finite);
}

/// Which of kLanes threads has the least, the first if several have.
template <class Number>
__device__ unsigned lane_of_least(const Candidate<Number>& own) {
  const bool is_least = has_least(has_least(true, own.distance), own.rank());
  return least_of_lanes(is_least ? threadIdx.x % kLanes : kLanes);
}

/// The least of the block's, for all its threads. `turn` alternates between 0 and 1, so that one
/// barrier is enough.
template <class Number>
__device__ Candidate<Number> least_of_block(const Candidate<Number>& own, int turn) {
  __shared__ Candidate<Number> of_groups[2][kAssignGroups];
  const unsigned lane = threadIdx.x % kLanes;
  if (lane == lane_of_least(own)) of_groups[turn][threadIdx.x / kLanes] = own;
  __syncthreads();
  return of_groups[turn][lane_of_least(of_groups[turn][lane % kAssignGroups])];
}

/// A task's costs by row and place, wherever they are.
template <class E>
struct Costs {
  const E* data;
  std::int64_t row_stride, place_stride;
};

/// The paths of one task; all threads call its functions together. A place belongs to one thread,
/// which alone reads and writes its distance and rank.
///
/// SciPy keeps the remaining places in a list, which is reversed at first. When a place is chosen,
/// the last of the list moves to its position. Of equally near places SciPy takes the last free one
/// in the list or, if none is free, the first. Here each place knows its position in that list, as
/// a rank, of which the lowest wins. Free places have lower ranks than the others. Among free
/// places, a later position is a lower rank; among the others, a higher one.
template <class Number, class E>
class BlockPaths {
 public:
  /// `state` has kAssignState bytes for each row and place.
  __device__ BlockPaths(const Costs<E>& costs, unsigned rows, unsigned places, std::byte* state)
      : costs_(costs), rows_(rows), places_(places) {
    dual_of_row_ = reinterpret_cast<Number*>(state);
    dual_of_place_ = dual_of_row_ + rows;
    shortest_ = dual_of_place_ + places;
    row_of_place_ = reinterpret_cast<int*>(shortest_ + places);
    from_row_ = row_of_place_ + places;
    place_of_row_ = from_row_ + places;
    rank_ = reinterpret_cast<unsigned*>(place_of_row_ + rows);
  }

  __device__ void solve() {
    for_own(rows_, [this](unsigned row) { dual_of_row_[row] = Number{}; });
    for_own(places_, [this](unsigned place) {
      dual_of_place_[place] = Number{};
      row_of_place_[place] = -1;
    });
    __syncthreads();
#pragma unroll 1
    for (unsigned row = 0; row < rows_; ++row) add(static_cast<int>(row));
  }

  /// -1: none
  __device__ int row_of(unsigned place) const { return row_of_place_[place]; }

 private:
  static constexpr unsigned kVisited = ~0u;

  /// Where the search is.
  struct Step {
    int row;
    Number length;      ///< of the path to it
    unsigned left;      ///< remaining places, without the one that was visited last
    unsigned visited;   ///< that one,
    unsigned position;  ///< and where it was in the list
  };

  __device__ void add(int row) {
    Step step{row, Number{}, places_, kVisited, 0};
    if (visit<true>(step)) return take_free_place(step);
    bool is_free = false;
#pragma unroll 1
    while (!is_free) is_free = visit<false>(step);
    update(row, step);
    __syncthreads();
    if (threadIdx.x == 0) assign_path(row, step);
    __syncthreads();
  }

  /// Goes on to the nearest place. Returns true if it is free, which ends the search. The first
  /// step reaches every free place, since its dual is 0, so a search ends even if sums overflow
  /// later.
  template <bool kIsFirst>
  __device__ bool visit(Step& step) {
    turn_ = 1 - turn_;
    const Candidate<Number> nearest = least_of_block(relax<kIsFirst>(step), turn_);
    step.length = nearest.distance;
    step.visited = nearest.place();
    --step.left;
    if (nearest.rank() < places_) return true;
    step.position = nearest.rank() - places_;
    step.row = row_of_place_[step.visited];
    return false;
  }

  /// The most common case, without a barrier of its own: other threads read what is written here
  /// only after the next step's barrier.
  __device__ void take_free_place(const Step& step) {
    if (threadIdx.x != step.visited % kAssignThreads) return;
    dual_of_row_[step.row] = step.length;
    row_of_place_[step.visited] = step.row;
    place_of_row_[step.row] = static_cast<int>(step.visited);
  }

  /// Returns the nearest of the thread's remaining places. The first step also initializes the
  /// search's arrays.
  template <bool kIsFirst>
  __device__ Candidate<Number> relax(const Step& step) {
    constexpr unsigned kAtOnce = 2;
    Candidate<Number> nearest = no_candidate<Number>();
    const E* const costs = costs_.data + step.row * costs_.row_stride;
    const Number dual = dual_of_row_[step.row];
#pragma unroll 1
    for (unsigned first = threadIdx.x; first < places_; first += kAtOnce * kAssignThreads) {
      Place known[kAtOnce];  // all loads first, so that they are in flight together
#pragma unroll
      for (unsigned i = 0; i < kAtOnce; ++i) {
        known[i] = place_at<kIsFirst>(first + i * kAssignThreads, costs);
      }
#pragma unroll
      for (unsigned i = 0; i < kAtOnce; ++i) {
        const Candidate<Number> own =
            relax_place<kIsFirst>(first + i * kAssignThreads, known[i], dual, step);
        if (own < nearest) nearest = own;
      }
    }
    return nearest;
  }

  struct Place {
    unsigned rank;
    E cost;
    Number dual, distance;
  };

  template <bool kIsFirst>
  __device__ Place place_at(unsigned place, const E* costs) const {
    if (place >= places_) return {kVisited, E(0), Number{}, Number{}};
    Place known{0, costs[place * costs_.place_stride], dual_of_place_[place], unreached<Number>()};
    if constexpr (kIsFirst) {
      known.rank = row_of_place_[place] < 0 ? place : 2 * places_ - 1 - place;
    } else {
      known.rank = rank_[place];
      known.distance = shortest_[place];
    }
    return known;
  }

  template <bool kIsFirst>
  __device__ Candidate<Number> relax_place(unsigned place, Place known, Number dual,
                                           const Step& step) {
    if (known.rank == kVisited) return no_candidate<Number>();
    if (!kIsFirst && place == step.visited) {
      rank_[place] = kVisited;
      return no_candidate<Number>();
    }
    const bool is_free = known.rank < places_;
    const bool is_last = known.rank == (is_free ? places_ - 1 - step.left : places_ + step.left);
    if (is_last) known.rank = is_free ? places_ - 1 - step.position : places_ + step.position;
    if (kIsFirst || is_last) rank_[place] = known.rank;
    const Number distance = step.length + number_of<Number>(known.cost) - dual - known.dual;
    const bool is_nearer = distance < known.distance;
    if (is_nearer) known.distance = distance;
    if (kIsFirst || is_nearer) shortest_[place] = known.distance;
    if (is_nearer) from_row_[place] = step.row;
    return {known.distance, static_cast<unsigned long long>(known.rank) << 32 | place};
  }

  /// Changes the duals of each visited place, and of its row, by how much nearer it is than the
  /// end.
  __device__ void update(int row, const Step& end) {
    if (threadIdx.x == 0) dual_of_row_[row] = dual_of_row_[row] + end.length;
    for_own(places_, [&](unsigned place) {
      if (rank_[place] != kVisited && place != end.visited) return;
      const Number nearer = end.length - shortest_[place];
      const int its_row = row_of_place_[place];
      if (its_row >= 0) dual_of_row_[its_row] = dual_of_row_[its_row] + nearer;
      dual_of_place_[place] = dual_of_place_[place] - nearer;
    });
  }

  /// Each row on the path takes the place that it reached; called by one thread.
  __device__ void assign_path(int row, const Step& end) {
    int place = static_cast<int>(end.visited);
    for (int from = -1; from != row;) {
      from = from_row_[place];
      row_of_place_[place] = from;
      const int before = place_of_row_[from];  // of `row` none, and not used
      place_of_row_[from] = place;
      place = before;
    }
  }

  const Costs<E> costs_;
  const unsigned rows_, places_;
  Number *dual_of_row_, *dual_of_place_, *shortest_;
  int *row_of_place_, *from_row_, *place_of_row_;
  unsigned* rank_;
  int turn_ = 0;
};

/// Writes all of a task's outputs.
template <class Number, class E>
__device__ void assign_task(const AssignArgs<E>& a, const AssignTask& task, const Costs<E>& costs,
                            std::byte* state) {
  BlockPaths<Number, E> paths(costs, static_cast<unsigned>(task.rows()),
                              static_cast<unsigned>(task.places()), state);
  paths.solve();
  for_own(static_cast<unsigned>(task.places()), [&](unsigned i) {
    const int row = paths.row_of(i), place = static_cast<int>(i);
    if (row >= 0) {
      set_pair(a, task, task.is_wide() ? row : place, task.is_wide() ? place : row);
    } else if (task.is_wide()) {
      set_no_query(a, task, task.first_column + place);
    } else {
      set_no_column(a, task, place);
    }
  });
}

/// Reads all costs of a task; gives whether this thread's are finite. Unless `to` is null, it has
/// room for all, which are copied there, row by row.
template <class E>
__device__ bool read_costs(const AssignArgs<E>& a, const AssignTask& task, E* to) {
  constexpr int kAtOnce = 8;
  const auto queries = static_cast<unsigned>(task.queries);
  const auto columns = static_cast<unsigned>(task.columns);
  const std::int64_t by_query = task.is_wide() ? columns : 1;
  const std::int64_t by_column = task.is_wide() ? 1 : queries;
  const unsigned queries_further = kAssignThreads / columns;
  const unsigned columns_further = kAssignThreads % columns;
  unsigned query = threadIdx.x / columns, column = threadIdx.x % columns;
  bool are_finite = true;
#pragma unroll 1
  while (query < queries) {
    E values[kAtOnce];  // all loads first, so that they are in flight together
    std::int64_t places[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_in = query < queries;
      values[i] =
          is_in ? cost_at(a, task, static_cast<int>(query), static_cast<int>(column)) : E(0);
      places[i] = is_in ? query * by_query + column * by_column : -1;
      query += queries_further;
      column += columns_further;
      if (column >= columns) {
        column -= columns;
        ++query;
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      are_finite = are_finite && is_finite(values[i]);
      if (to != nullptr && places[i] >= 0) to[places[i]] = values[i];
    }
  }
  return are_finite;
}

/// Where a task has its state and its costs.
template <class E>
struct TaskMemory {
  std::byte* state;
  E* costs;  ///< null: they stay where they are
};

template <class E>
__device__ TaskMemory<E> memory_of(const AssignArgs<E>& a, const AssignTask& task,
                                   std::byte* workspace, std::int64_t shared_bytes) {
  const std::int64_t rows = task.rows(), places = task.places();
  const std::int64_t state_bytes = (rows + places) * static_cast<std::int64_t>(kAssignState);
  std::byte* const shared = dynamic_shared_memory();
  if (state_bytes > shared_bytes) {
    return {workspace + first_state(a, task) * static_cast<std::int64_t>(kAssignState), nullptr};
  }
  const std::int64_t left = (shared_bytes - state_bytes) / static_cast<std::int64_t>(sizeof(E));
  const bool have_room = rows == 0 || places <= left / rows;
  return {shared, have_room ? reinterpret_cast<E*>(shared + state_bytes) : nullptr};
}

template <class E>
__global__ void __launch_bounds__(kAssignThreads)
    assign_tasks(const AssignArgs<E> a, std::byte* const workspace, const int shared_bytes) {
  __shared__ bool are_all_finite;
  const bool are_offsets_right = block_are_in_order(a.offsets, a.images, a.columns);
#pragma unroll 1
  for (std::int64_t i = blockIdx.x; i < a.tasks(); i += gridDim.x) {
    if (threadIdx.x == 0) are_all_finite = true;
    __syncthreads();
    const AssignTask task = task_of(a, i, are_offsets_right);
#pragma unroll 1
    for (std::int64_t t = task.columns_begin + threadIdx.x; t < task.columns_end;
         t += kAssignThreads) {
      const bool is_own = t >= task.first_column && t < task.first_column + task.columns;
      if (!is_own) set_no_query(a, task, t);
    }
    const TaskMemory<E> memory = memory_of(a, task, workspace, shared_bytes);
    if (task.columns > 0 && !read_costs(a, task, memory.costs)) are_all_finite = false;
    __syncthreads();
    Costs<E> costs = {memory.costs, task.places(), 1};
    if (memory.costs == nullptr) {
      costs.data = a.cost.data + first_cost(a, task);
      costs.row_stride = task.is_wide() ? a.query_stride : a.column_stride;
      costs.place_stride = task.is_wide() ? a.column_stride : a.query_stride;
    }
    if (are_all_finite && memory.state == dynamic_shared_memory()) {
      assign_task<double>(a, task, costs, dynamic_shared_memory());  // a known address space
    } else if (are_all_finite) {
      assign_task<double>(a, task, costs, memory.state);
    } else {
      assign_task<Extended>(a, task, costs, memory.state);
    }
  }
}

/// Bytes of a block's shared memory that tasks cannot use: the kernel's own variables, and what
/// CUDA keeps for itself.
constexpr int kBeside = 2048;

/// The rest, in which tasks have their state and costs: a block's part where all blocks are
/// resident at once, but enough for problems of the usual size, and no more than any task needs.
template <class E>
int shared_bytes(const AssignProblem& p, std::int64_t tasks, int device) {
  constexpr std::int64_t kUsual = 46 << 10;
  const std::int64_t most = most_shared_bytes(device);
  const std::int64_t at_once = ceil_div(tasks, processor_count(device));
  const std::int64_t of_group = p.queries / p.groups, columns = p.columns;
  const auto element = static_cast<std::int64_t>(sizeof(E));
  const std::int64_t state = (of_group + columns) * static_cast<std::int64_t>(kAssignState);
  std::int64_t bytes = std::max(most / at_once, std::min(most, kUsual)) - kBeside;
  if (of_group <= bytes / columns) bytes = std::min(bytes, state + of_group * columns * element);
  return static_cast<int>(bytes);
}

std::size_t workspace_bytes(const AssignProblem& p) {
  const std::int64_t states = states_of_block(p.images, p.queries / p.groups, p.columns);
  return static_cast<std::size_t>(p.layers * p.groups * states) * kAssignState;
}

void assign(const AssignProblem& p, const AssignOutputs& outputs, const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto fill = [&](void* data, std::size_t bytes) { fill_async(data, 0xff, bytes, stream); };
  dispatch(p, outputs, fill, [&](auto element) {
    using E = decltype(element);
    const AssignArgs<E> args = assign_args<E>(p, outputs);
    const int device = execution.device_index;
    const std::int64_t most_blocks = 64 * processor_count(device);
    const auto blocks = static_cast<unsigned>(std::min(args.tasks(), most_blocks));
    const int bytes = shared_bytes<E>(p, args.tasks(), device);
    allow_shared(assign_tasks<E>, most_shared_bytes(device) - kBeside);
    launch_with_shared(assign_tasks<E>, "assign", blocks, kAssignThreads, bytes, stream, args,
                       static_cast<std::byte*>(execution.workspace), bytes);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
