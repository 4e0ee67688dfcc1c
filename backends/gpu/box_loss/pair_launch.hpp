// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "box_loss/indexed_kernels.hpp"
#include "box_loss/pair_kernels.hpp"
#include "box_loss/rotated_kernels.hpp"
#include "box_loss/workspace.hpp"
#include "dispatch/box_loss.hpp"
#include "operations.hpp"

/// Launches a problem as one kernel.
namespace boxloss::BOXLOSS_GPU {

/// Blocks of a forward launch, whose partial sums the last one adds.
constexpr std::int64_t kBlocksPerProcessor = 4;

inline unsigned forward_blocks(std::int64_t wanted, int device,
                               std::int64_t per_processor = kBlocksPerProcessor) {
  const std::int64_t most =
      std::min<std::int64_t>(per_processor * processor_count(device), kMaxBlocks);
  return static_cast<unsigned>(std::min(wanted, most));
}

/// A grid may have 2^31 - 1 blocks in x.
inline unsigned backward_blocks(std::int64_t wanted) {
  return static_cast<unsigned>(std::min<std::int64_t>(wanted, 0x7fffffff));
}

template <class Problem>
std::int64_t strided_blocks(const Problem& p) {
  return ceil_div(parts_of(p), kThreads / kLanes);
}

/// Only blocks that share their sums need a counter.
template <class C>
Reducer<C> make_reducer(const PairProblem& p, const LossOutputs& outputs,
                        const Execution& execution, Stream stream, bool shares_sums = true) {
  double* const partials = static_cast<double*>(execution.workspace);
  Reducer<C> reducer{partials, nullptr, reduced_loss<C>(p, outputs)};
  if (p.reduction == Reduction::kNone || !shares_sums) return reducer;
  reducer.counter = take_counter(execution.device_index, stream);
  if (reducer.counter == nullptr) {
    reducer.counter = reinterpret_cast<Counter*>(partials + kPartials);
    zero_async(reducer.counter, sizeof(Counter), stream);
  }
  return reducer;
}

/// Whether each formula has kernels of its own: of rotated boxes, which are not many.
template <class Problem, class P, class T>
constexpr bool kOwnForEach = std::is_same_v<Problem, RotatedLossProblem> &&
                             std::is_same_v<P, float> && std::is_same_v<T, float>;

/// Calls run(formula), where the formula is one if it has such kernels, otherwise selected at run
/// time.
template <class P, class T, class Problem, class Run>
void with_strided_formula(const Problem& p, const Run& run) {
  if constexpr (kOwnForEach<Problem, P, T>) {
    with_formula(p.loss, [&](auto formula) {
      run(RotatedFormula<OneFormula<decltype(formula)>>{{}, p.angle_unit});
    });
  } else {
    run(any_formula(p));
  }
}

template <class P, class T, class C, class Problem, class Pairing>
void launch_forward(const Problem& p, const Pairing& pairing, const LossOutputs& outputs,
                    const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  const Reducer<C> reducer = make_reducer<C>(p, outputs, execution, stream);

  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    if (is_flat_forward<P, T>(p, outputs)) {
      constexpr int kBoxes = kGroup<P, T>;
      const std::int64_t tiles =
          ceil_div(p.pred.slots, kBoxes * kUnroll<kBoxes, Pairing> * kThreads);
      const unsigned blocks = forward_blocks(tiles, execution.device_index);
      return with_flat_formula<P, T>(p.loss, is_plain(p), [&](auto formula, auto plain) {
        launch(forward_flat<decltype(formula), P, T, C, Pairing, plain>, "forward_flat", blocks,
               kThreads, stream, forward_args<C>(formula, p, outputs), flat_boxes<P, T>(p), pairing,
               reducer);
      });
    }
  }
  with_strided_formula<P, T>(p, [&](auto formula) {
    using F = decltype(formula);
    const auto args = forward_args<C>(formula, p, outputs);
    if constexpr (kOwnForEach<Problem, P, T>) {
      if (are_rows(p, outputs)) {
        constexpr std::int64_t kBlocks = std::max<std::int64_t>(kRowBlocks, kBlocksPerProcessor);
        const unsigned blocks =
            forward_blocks(ceil_div(p.pred.slots, kThreads), execution.device_index, kBlocks);
        return launch(forward_rows<F, C>, "forward_rows", blocks, kThreads, stream, args,
                      rotated_rows<C>(p), reducer);
      }
    }
    const unsigned blocks = forward_blocks(strided_blocks(p), execution.device_index);
    launch(forward_strided<F, P, T, C, Pairing>, "forward_strided", blocks, kThreads, stream, args,
           strided_pair<P, T>(p), pairing, reducer);
  });
}

/// Pairs that one block takes before a set gets another. It is more than one for each thread, since
/// several blocks of a set must wait for each other.
constexpr std::int64_t kPairsOfBlock = 2 * kThreads;

template <class P, class T, class C, class Problem>
void launch_forward(const Problem& p, const Indexed& pairing, const LossOutputs& outputs,
                    const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  const std::int64_t most =
      std::max<std::int64_t>(forward_blocks(kMaxBlocks, execution.device_index) / pairing.sets, 1);
  const std::int64_t wanted = ceil_div(pairing.pairs, kPairsOfBlock);
  const auto blocks_of_set = static_cast<unsigned>(std::min(wanted, most));
  const auto blocks = static_cast<unsigned>(blocks_of_set * pairing.sets);
  launch(forward_indexed<decltype(any_formula(p)), P, T, C>, "forward_indexed", blocks, kThreads,
         stream, forward_args<C>(any_formula(p), p, outputs), indexed_pairs<P, T>(p, pairing),
         make_reducer<C>(p, outputs, execution, stream, blocks_of_set > 1), blocks_of_set);
}

template <class P, class T, class C, class Problem, class Pairing>
void launch_backward(const Problem& p, const Pairing& pairing, const GradOutputs& grads,
                     const void* scale, const LossGradients& gradients,
                     const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  const auto args = [&](auto formula) {
    return backward_args<P, T, C>(formula, p, grads, scale, gradients);
  };
  if constexpr (kIsFlat<Pairing> && !std::is_same_v<P, Any>) {
    if (is_flat_backward<P, T>(p, grads, gradients)) {
      const unsigned blocks =
          backward_blocks(ceil_div(p.pred.slots, kBackwardGroup<P, T> * kThreads));
      return with_flat_formula<P, T>(p.loss, is_plain(p, gradients), [&](auto formula, auto plain) {
        launch(backward_flat<decltype(formula), P, T, C, Pairing, plain>, "backward_flat", blocks,
               kThreads, stream, args(formula), flat_boxes<P, T>(p), pairing);
      });
    }
  }
  with_strided_formula<P, T>(p, [&](auto formula) {
    using F = decltype(formula);
    if constexpr (kOwnForEach<Problem, P, T>) {
      if (are_rows(p, grads, gradients)) {
        const unsigned blocks = backward_blocks(ceil_div(p.pred.slots, kThreads));
        const auto kernel =
            gradients.target == nullptr ? backward_rows<F, C, false> : backward_rows<F, C, true>;
        return launch(kernel, "backward_rows", blocks, kThreads, stream, args(formula),
                      rotated_rows<C>(p));
      }
    }
    const unsigned blocks = backward_blocks(strided_blocks(p));
    launch(backward_strided<F, P, T, C, Pairing>, "backward_strided", blocks, kThreads, stream,
           args(formula), strided_pair<P, T>(p), pairing);
  });
}

template <class P, class T, class C, class Problem>
void launch_backward(const Problem& p, const Indexed& pairing, const GradOutputs& grads,
                     const void* scale, const LossGradients& gradients,
                     const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  zero_shared_rows(p, gradients,
                   [&](void* data, std::size_t bytes) { zero_async(data, bytes, stream); });
  const unsigned blocks = backward_blocks(ceil_div(pairing.sets * pairing.pairs, kThreads));
  launch(backward_indexed<decltype(any_formula(p)), P, T, C>, "backward_indexed", blocks, kThreads,
         stream, backward_args<P, T, C>(any_formula(p), p, grads, scale, gradients),
         indexed_pairs<P, T>(p, pairing));
}

/// Dispatches on the execution's device.
template <class Problem, class Written, class Launch>
void run(const Problem& p, const Written& outputs, const Execution& execution,
         const Launch& launch) {
  const DeviceScope scope(execution.device_index);
  const auto zero = [&](void* data, std::size_t bytes) {
    zero_async(data, bytes, static_cast<Stream>(execution.stream));
  };
  dispatch(p, outputs, zero, launch);
}

template <class Problem>
void Operations::forward(const Problem& p, const LossOutputs& outputs, const Execution& execution) {
  run(p, outputs, execution, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_forward<typename D::Pred, typename D::Target, typename D::Compute>(p, pairing, outputs,
                                                                              execution);
  });
}

template <class Problem>
void Operations::backward(const Problem& p, const GradOutputs& grads, const void* scale,
                          const LossGradients& gradients, const Execution& execution) {
  run(p, gradients, execution, [&](auto dtypes, const auto& pairing) {
    using D = decltype(dtypes);
    launch_backward<typename D::Pred, typename D::Target, typename D::Compute>(
        p, pairing, grads, scale, gradients, execution);
  });
}

}  // namespace boxloss::BOXLOSS_GPU
