// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <gpu_runtime.hpp>

#include <algorithm>

#include "dispatch/class_loss.hpp"
#include "dtypes/packs.hpp"
#include "math/ceil_div.hpp"
#include "operations.hpp"
#include "set_sums.hpp"
#include "threads.hpp"

/// The class losses. Three ways through the logits: packed, where all of a set are neighbours, a
/// thread takes 32 bytes of them; by queries, where those are neighbours, a thread takes a query;
/// else by rows, a group of lanes takes a query's classes. All logits are computed as another
/// class', and few, their query's own, once more. The last block adds all blocks' sums.
namespace boxloss::BOXLOSS_GPU {

constexpr int kRowsOfBlock = kThreads / kLanes;

/// Numbers of which kernels that do most of the work know what they can at compile time.
enum class Known : std::uint8_t { kNothing, kOne, kHeldSquare, kSquare };

template <Known known, class C>
__device__ ClassNumbers<C> with_known(ClassNumbers<C> numbers) {
  if (known == Known::kNothing) return numbers;
  numbers.focus = known == Known::kOne ? Focus::kOne : Focus::kSquare;
  numbers.derives_focus = known == Known::kSquare;
  return numbers;
}

template <class C>
using ClassReducer = SetReducer<ClassSum, ReducedClassLoss<C>>;

/// Logits that a thread takes at once: 32 bytes of them.
template <class E>
constexpr int kPack = 32 / sizeof(E);

/// Divides by a number that is the same for a whole launch, of 31 bits as its dividends, by a
/// multiplication: with 2^(shift - 31) >= value, magic exceeds 2^shift / value by less than 1, and
/// dividends are too small to see it.
struct Divisor {
  explicit Divisor(std::int64_t of) : value(static_cast<std::uint32_t>(of)) {
    while ((std::int64_t{1} << (shift - 31)) < of) ++shift;
    magic = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + value - 1) / value);
  }

  __device__ std::uint32_t quotient(std::uint32_t dividend) const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(dividend) * magic) >> shift);
  }

  std::uint32_t value, magic;
  int shift = 31;
};

constexpr std::int64_t kMostOf31Bits = 0x7fffffff;

/// Of the packs of a set, and of all; each a number of 31 bits.
struct PackPlan {
  Divisor classes, packs;
};

template <class E, class C>
PackPlan pack_plan(const ClassArgs<C>& a) {
  return {Divisor(a.classes), Divisor(a.rows_of_set() * a.classes / kPack<E>)};
}

/// Where a pack lies that begins with logit `first` of a set, whose first row is `row`. Rows have
/// at least as many classes as a pack elements, so that it has at most two.
template <class E>
struct PackPlace {
  std::int64_t row;
  int c;      ///< the first element's class
  int split;  ///< where the second row begins

  __device__ PackPlace(const Divisor& classes, std::int64_t row_of_set, std::uint32_t first) {
    const std::uint32_t of_set = classes.quotient(first);
    row = row_of_set + of_set;
    c = static_cast<int>(first - of_set * classes.value);
    const int left = static_cast<int>(classes.value) - c;
    split = left < kPack<E> ? left : kPack<E>;
  }

  /// Calls use(row, begin, end, zero) for each row: its elements, and where its class 0 would be.
  template <class Use>
  __device__ void for_each_row(const Use& use) const {
    use(row, 0, split, -c);
    if (split < kPack<E>) use(row + 1, split, kPack<E>, split);
  }
};

/// of(first) + ... of kCount terms, by halves: each goes through few sums.
template <int kCount, class Of>
__device__ auto sum_of(const Of& of, int first = 0) {
  if constexpr (kCount == 1) {
    return of(first);
  } else {
    return sum_of<kCount / 2>(of, first) + sum_of<kCount / 2>(of, first + kCount / 2);
  }
}

/// whole + log(1 + rest), a sum of log(1 + exp(x)): log(1 + a) + log(1 + b) is log(1 + ab + a + b).
struct SoftplusSum {
  float whole, rest;

  __device__ SoftplusSum operator+(const SoftplusSum& other) const {
    return {whole + other.whole, rest * other.rest + (rest + other.rest)};
  }
};

/// A logit whose loss as another class' is 0, of double as well.
constexpr int kNoLoss = -10000;

template <Known known, int kCount, class C>
__device__ C loss_of_others(const ClassNumbers<C>& n, const C (&x)[kCount]) {
  if constexpr (known == Known::kOne) {
    const SoftplusSum sum = sum_of<kCount>(
        [&x](int k) { return SoftplusSum{larger(x[k], 0.0f), exp(-magnitude(x[k]))}; });
    return n.of_others * (sum.whole + log1p_in_range(sum.rest));
  } else {
    return sum_of<kCount>([&n, &x](int k) { return other_loss(n, x[k]); });
  }
}

/// First row by row the own classes, then pack by pack all others.
template <Known known, class E, class C>
__global__ void __launch_bounds__(kThreads, kMinBlocks<C>)
    class_loss_packed(const ClassArgs<C> a, const PackPlan plan, const ClassReducer<C> reducer) {
  constexpr int kCount = kPack<E>;
  const SetPart at = set_part(reducer.blocks_of_set);
  const std::uint32_t thread = at.part * kThreads + threadIdx.x;
  const std::uint32_t threads = reducer.blocks_of_set * kThreads;
  const E* const logits = static_cast<const E*>(a.logits.data) + at.set * a.set_stride;
  const std::int64_t first_row = at.set * a.rows_of_set();
  const ClassNumbers<C> numbers = with_known<known>(a.numbers);
  ClassSum own = {};
#pragma unroll 1
  for (std::uint32_t i = thread; i < a.rows_of_set(); i += threads) {
    const RowTarget<C> target = row_target(a, first_row + i);
    if (target.own < 0) continue;
    const C x = convert_to<C>(logits[i * a.classes + target.own]);
    own += {static_cast<double>(own_loss(numbers, x, target.quality)), 1};
  }
#pragma unroll 1
  for (std::uint32_t i = thread; i < plan.packs.value; i += threads) {
    const auto pack = load_pack<E, kCount>(logits + std::int64_t{i} * kCount);
    const PackPlace<E> place(plan.classes, first_row, i * kCount);
    C x[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) x[k] = convert_to<C>(pack.values[k]);
    unsigned skipped = 0;  // a bit for each logit that is not another class'
    place.for_each_row([&](std::int64_t row, int begin, int end, int zero) {
      const std::int64_t own_class = class_of_target(a, a.target_index[row]);
      const int k = zero + static_cast<int>(own_class);
      if (own_class == kIgnored) skipped |= (1u << end) - (1u << begin);
      if (k >= begin && k < end) skipped |= 1u << k;  // not without a class, which is below 0
    });
    if (skipped != 0) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) x[k] = (skipped >> k & 1) != 0 ? C(kNoLoss) : x[k];
    }
    own.loss += static_cast<double>(loss_of_others<known>(numbers, x));
  }
  reduce<kRowsOfBlock>(reducer, own);
}

template <Known known, class E, class C>
__global__ void __launch_bounds__(kThreads)
    class_slopes_packed(const ClassArgs<C> a, const PackPlan plan, const ClassGrad<C> grad,
                        E* gradient) {
  constexpr int kCount = kPack<E>;
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  const std::uint32_t set = plan.packs.quotient(i), first = (i - set * plan.packs.value) * kCount;
  if (set >= a.sets) return;
  const E* const logits = static_cast<const E*>(a.logits.data) + set * a.set_stride + first;
  E* const written = gradient + std::int64_t{i} * kCount;
  const auto pack = load_pack<E, kCount>(logits);
  const PackPlace<E> place(plan.classes, set * a.rows_of_set(), first);
  const ClassNumbers<C> numbers = with_known<known>(a.numbers);
  const C by = grad.grad[set] * grad.scale[set];
  Pack<E, kCount> result;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const C slope = other_slope(numbers, convert_to<C>(pack.values[k]));
    boxloss::assign(result.values[k], by * slope);
  }
  store_pack(written, result);
  place.for_each_row([&](std::int64_t row, int begin, int end, int zero) {
    const RowTarget<C> target = row_target(a, row);
    const int k = zero + static_cast<int>(target.own);
    if (target.own == kIgnored) {
      for (int j = begin; j < end; ++j) boxloss::assign(written[j], C(0));
    }
    if (target.own < 0 || k < begin || k >= end) return;
    const C slope = own_slope(a.numbers, convert_to<C>(logits[k]), target.quality);
    boxloss::assign(written[k], by * slope);
  });
}

/// Thread by thread a query: its classes in turn.
template <Known known, class E, class C>
__global__ void __launch_bounds__(kThreads)
    class_loss_queries(const ClassArgs<C> a, C* losses, const ClassReducer<C> reducer) {
  const SetPart at = set_part(reducer.blocks_of_set);
  const ClassNumbers<C> numbers = with_known<known>(a.numbers);
  ClassSum own = {};
#pragma unroll 1
  for (std::int64_t i = static_cast<std::int64_t>(at.part) * kThreads + threadIdx.x;
       i < a.rows_of_set(); i += static_cast<std::int64_t>(reducer.blocks_of_set) * kThreads) {
    const std::int64_t row = at.set * a.rows_of_set() + i;
    const RowTarget<C> target = row_target(a, row);
    const RowLogits<E, C> x(a, row);
    double sum = 0;
#pragma unroll 8
    for (std::int64_t c = 0; c < a.classes; ++c) {
      const C value = other_loss(numbers, x[c]) * weight_of(a, c);
      sum += c == target.own ? 0 : static_cast<double>(value);
    }
    if (target.own == kIgnored) sum = 0;
    if (target.own >= 0) {
      const C value = own_loss(numbers, x[target.own], target.quality);
      sum += static_cast<double>(value * weight_of(a, target.own));
    }
    if (losses != nullptr) losses[row] = static_cast<C>(sum);
    own.loss += sum;
    own.divisor += target.own >= 0 ? 1 : 0;
  }
  reduce<kRowsOfBlock>(reducer, own);
}

template <Known known, class E, class C>
__global__ void __launch_bounds__(kThreads)
    class_slopes_queries(const ClassArgs<C> a, const ClassGrad<C> grad, E* gradient) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= a.rows()) return;
  const ClassNumbers<C> numbers = with_known<known>(a.numbers);
  const RowTarget<C> target = row_target(a, row);
  const RowLogits<E, C> x(a, row);
  const C by = grad.by(row / a.rows_of_set(), row, target);
  const RowGradient<E> written(a, row, grad.is_transposed, gradient);
  if (target.own == kIgnored) {
    for (std::int64_t c = 0; c < a.classes; ++c) written.set(c, C(0));
    return;
  }
#pragma unroll 8
  for (std::int64_t c = 0; c < a.classes; ++c) {
    written.set(c, by * (other_slope(numbers, x[c]) * weight_of(a, c)));
  }
  if (target.own < 0) return;
  const C own = own_slope(numbers, x[target.own], target.quality) * weight_of(a, target.own);
  written.set(target.own, by * own);
}

/// kLanes neighbouring threads, as lanes of core/kernels/team.hpp. They wait for their whole block.
template <class C>
struct RowLanes {
  int lane;
  bool writes;                   ///< else for_each does nothing
  C *largest_place, *sum_place;  ///< shared by the lanes

  template <class T, class Of>
  __device__ T largest(std::int64_t count, const Of& of) const {
    T own = -T(INFINITY);
#pragma unroll 4
    for (std::int64_t i = lane; i < count; i += kLanes) own = larger(own, of(i));
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) own = larger(own, shuffle_down(own, lanes));
    return share(own, largest_place);
  }
  template <class T, class Of>
  __device__ T sum(std::int64_t count, const Of& of) const {
    T own = 0;
#pragma unroll 1
    for (std::int64_t i = lane; i < count; i += kLanes) own += of(i);
#pragma unroll
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) own += shuffle_down(own, lanes);
    return own;
  }
  __device__ C share(C value) const { return share(value, sum_place); }
  template <class Use>
  __device__ void for_each(std::int64_t count, const Use& use) const {
    if (!writes) return;
#pragma unroll 1
    for (std::int64_t i = lane; i < count; i += kLanes) use(i);
  }

 private:
  __device__ C share(C value, C* place) const {
    if (lane == 0) *place = value;
    __syncthreads();
    return *place;
  }
};

template <class E, class C>
__global__ void __launch_bounds__(kThreads)
    class_loss_rows(const ClassArgs<C> a, C* losses, const ClassReducer<C> reducer) {
  __shared__ C largest_of_rows[2][kRowsOfBlock];
  const SetPart at = set_part(reducer.blocks_of_set);
  const int lane = threadIdx.x % kLanes, in_block = threadIdx.x / kLanes;
  const std::int64_t step = static_cast<std::int64_t>(reducer.blocks_of_set) * kRowsOfBlock;
  ClassSum own = {};
  int turn = 0;
#pragma unroll 1
  for (std::int64_t first = static_cast<std::int64_t>(at.part) * kRowsOfBlock;
       first < a.rows_of_set(); first += step, turn ^= 1) {
    const std::int64_t i = first + in_block;
    const bool is_row = i < a.rows_of_set();  // all threads meet for the largest logit
    const std::int64_t row = at.set * a.rows_of_set() + (is_row ? i : first);
    const RowLanes<C> lanes = {lane, false, &largest_of_rows[turn][in_block], nullptr};
    const double loss = row_loss<E>(a, row, lanes);
    if (lane != 0 || !is_row) continue;
    if (losses != nullptr) losses[row] = static_cast<C>(loss);
    own += {loss, share_of(a, row)};
  }
  reduce<kRowsOfBlock>(reducer, own);
}

template <class E, class C>
__global__ void __launch_bounds__(kThreads)
    class_slopes_rows(const ClassArgs<C> a, const ClassGrad<C> grad, E* gradient) {
  __shared__ C largest_of_rows[kRowsOfBlock], sum_of_rows[kRowsOfBlock];
  const int lane = threadIdx.x % kLanes, own = threadIdx.x / kLanes;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kRowsOfBlock + own;
  const bool is_row = at < a.rows();
  const RowLanes<C> lanes = {lane, is_row, &largest_of_rows[own], &sum_of_rows[own]};
  write_row_slopes(a, is_row ? at : a.rows() - 1, grad, gradient, lanes);
}

template <Known known>
using KnownConstant = std::integral_constant<Known, known>;

/// Calls use(KnownConstant) by what is known of the mode's numbers.
template <class C, class Use>
void with_known_numbers(const ClassNumbers<C>& numbers, const Use& use) {
  if constexpr (sizeof(C) == sizeof(float)) {
    if (numbers.focus == Focus::kOne) return use(KnownConstant<Known::kOne>());
    if (numbers.focus == Focus::kSquare && numbers.derives_focus) {
      return use(KnownConstant<Known::kSquare>());
    }
    if (numbers.focus == Focus::kSquare) return use(KnownConstant<Known::kHeldSquare>());
  }
  use(KnownConstant<Known::kNothing>());
}

/// Whether a set's logits are neighbours, whole packs of them that 31 bits count, all of one
/// weight, and no loss is wanted by query.
template <class E>
bool is_packed(const ClassLossProblem& p) {
  const LogitView& x = p.logits;
  const std::int64_t of_set = p.images * p.queries * p.classes;
  return p.mode != ClassLoss::kSoftmax && p.reduction != Reduction::kNone &&
         p.weight.dtype == DType::kNone && p.classes >= kPack<E> && of_set > 0 &&
         of_set % kPack<E> == 0 && of_set <= kMostOf31Bits && p.sets <= kMostOf31Bits / of_set &&
         x.class_stride == 1 && (x.query_stride == p.classes || p.queries == 1) &&
         (x.image_stride == p.queries * p.classes || p.images == 1) &&
         (x.set_stride % kPack<E> == 0 || p.sets == 1) && is_aligned<E, kPack<E>>(x.data);
}

/// Whether queries are neighbours, or classes fewer than a pack's elements; not for softmax.
template <class E>
bool is_by_queries(const ClassLossProblem& p) {
  const bool are_neighbours = p.logits.query_stride == 1 && p.logits.class_stride != 1;
  return p.mode != ClassLoss::kSoftmax && (are_neighbours || p.classes < kPack<E>);
}

unsigned grid_of(std::int64_t blocks) {
  return static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff));
}

std::size_t Operations::workspace_bytes(const ClassLossProblem& p) {
  return sums_bytes<ClassSum>(p.sets);
}

void Operations::class_loss(const ClassLossProblem& p, const ClassLossOutputs& outputs,
                            const Execution& execution) {
  if (p.sets == 0) return;
  const DeviceScope scope(execution.device_index);
  const std::int64_t rows = p.images * p.queries;
  with_compute_type(p, [&](auto compute) {
    using C = decltype(compute);
    const ClassArgs<C> a = class_args<C>(p);
    C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
    // `blocks` of float: what a processor of NVIDIA's has registers for.
    const auto run = [&](const auto& kernel, int blocks, std::int64_t wanted, const auto&... args) {
      const auto reducer = make_reducer<ClassSum>(reduced_class_loss<C>(p, outputs), p.sets, wanted,
                                                  blocks, execution);
      launch(kernel, "class_loss", reducer.blocks(), kThreads,
             static_cast<Stream>(execution.stream), args..., reducer);
    };
    with_floating_type<C>(p.logits.dtype, [&](auto element) {
      using E = decltype(element);
      if (!is_packed<E>(p) && !is_by_queries<E>(p)) {
        return run(class_loss_rows<E, C>, 5, ceil_div(rows, kRowsOfBlock), a, losses);
      }
      with_known_numbers(a.numbers, [&](auto known) {
        constexpr Known kKnown = decltype(known)::value;
        if (is_packed<E>(p)) {
          return run(class_loss_packed<kKnown, E, C>, 4,
                     ceil_div(rows * p.classes, kPack<E> * kThreads), a, pack_plan<E>(a));
        }
        run(class_loss_queries<kKnown, E, C>, 4, ceil_div(rows, kThreads), a, losses);
      });
    });
  });
}

void Operations::class_loss_backward(const ClassLossGradProblem& p,
                                     const ClassLossGradOutputs& outputs,
                                     const Execution& execution) {
  const DeviceScope scope(execution.device_index);
  const std::int64_t rows = p.sets * p.images * p.queries;
  with_compute_type(p, [&](auto compute) {
    using C = decltype(compute);
    const ClassArgs<C> a = class_args<C>(p);
    const ClassGrad<C> grad = class_grad<C>(p);
    with_floating_type<C>(p.logits.dtype, [&](auto element) {
      using E = decltype(element);
      auto* const gradient = static_cast<E*>(outputs.logits);
      const auto run = [&](const auto& kernel, std::int64_t blocks, const auto&... plan) {
        launch(kernel, "class_loss_backward", grid_of(blocks), kThreads,
               static_cast<Stream>(execution.stream), a, plan..., grad, gradient);
      };
      const bool packs = is_packed<E>(p) && is_aligned<E, kPack<E>>(gradient) && !p.is_transposed;
      if (!packs && !is_by_queries<E>(p)) {
        return run(class_slopes_rows<E, C>, ceil_div(rows, kRowsOfBlock));
      }
      with_known_numbers(a.numbers, [&](auto known) {
        constexpr Known kKnown = decltype(known)::value;
        if (packs) {
          return run(class_slopes_packed<kKnown, E, C>,
                     ceil_div(rows * p.classes, kPack<E> * kThreads), pack_plan<E>(a));
        }
        run(class_slopes_queries<kKnown, E, C>, ceil_div(rows, kThreads));
      });
    });
  });
}

}  // namespace boxloss::BOXLOSS_GPU
