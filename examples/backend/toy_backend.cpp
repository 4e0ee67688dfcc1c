// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// A backend for a device that boxloss has never heard of, "toy". It is compiled against an
// installed boxloss, and loaded by boxloss::load_backend or, in Python, boxloss.load_backend.
//
// What is computed for a pair of boxes, which pairs there are and how they are read is boxloss'
// (the headers under boxloss/backend); where and how it runs is the backend's. A real device's
// compiler may need its own words in front of a function: BOXLOSS_HOST_DEVICE, defined before these
// headers.
#include <boxloss/backend.hpp>
#include <boxloss/backend/dispatch/box_loss.hpp>
#include <boxloss/backend/kernels/box_loss/image_parts.hpp>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace toy {
namespace {

using boxloss::Execution, boxloss::GradOutputs, boxloss::LossGradients, boxloss::LossOutputs,
    boxloss::LossProblem, boxloss::Pairing;

// ---- the device: its memory and its launches ---------------------------------------------------

/// The device's allocator and its copies. The toy's memory is the host's. Only the conformance
/// tests call these: in a loss, all memory is the caller's.
constexpr boxloss::DeviceMemory kMemory = {
    [](std::size_t bytes) { return std::malloc(bytes); },
    [](void* data) { std::free(data); },
    [](void* device, const void* host, std::size_t bytes) { std::memcpy(device, host, bytes); },
    [](void* host, const void* device, std::size_t bytes) { std::memcpy(host, device, bytes); },
};

/// Fills the device's memory with zeros. An output that is not wanted is null.
void zero(void* data, std::size_t bytes) {
  if (data != nullptr) std::memset(data, 0, bytes);
}

/// kernel(i) for each i below `threads`. A real device would start a kernel here, on
/// `execution.stream` of `execution.device_index`, with arguments by value, and not wait for it.
template <class Kernel>
void launch([[maybe_unused]] const Execution& execution, std::int64_t threads,
            const Kernel& kernel) {
  for (std::int64_t i = 0; i < threads; ++i) kernel(i);
}

// ---- the loops ---------------------------------------------------------------------------------

/// For the boxes' dtypes and the pairing: D is a DTypes, Slots one of boxloss/backend/pairings.
template <class D, class Slots>
void run_forward(const LossProblem& p, const Slots& slots, const LossOutputs& outputs,
                 const Execution& execution) {
  using C = typename D::Compute;
  const auto args = boxloss::forward_args<C>(boxloss::AnyFormula{p.loss}, p, outputs);
  const auto boxes = boxloss::strided_pair<typename D::Pred, typename D::Target>(p);
  const auto result = boxloss::reduced_loss<C>(p, outputs);

  // Its threads run one after the other. dense_backend.cpp has threads that run at the same time.
  boxloss::LossesPartial sum{};
  launch(execution, boxloss::parts_of(p), [&](std::int64_t i) {
    boxloss::forward_part(args, boxes, slots, boxloss::image_part(args, i), 0, 1, sum);
  });
  launch(execution, 1, [&](std::int64_t) {
    if (p.reduction == boxloss::Reduction::kNone) {
      *result.scale = 1;  // the losses are written already
    } else {
      result.write(sum);
    }
  });
}

template <class D, class Slots>
void run_backward(const LossProblem& p, const Slots& slots, const GradOutputs& grads,
                  const void* scale, const LossGradients& gradients, const Execution& execution) {
  using P = typename D::Pred;
  using T = typename D::Target;
  const auto args = boxloss::backward_args<P, T, typename D::Compute>(boxloss::AnyFormula{p.loss},
                                                                      p, grads, scale, gradients);
  const auto boxes = boxloss::strided_pair<P, T>(p);
  launch(execution, boxloss::parts_of(p), [&](std::int64_t i) {
    // The scale lies in the device's memory, so that the kernel reads it.
    boxloss::backward_part(args, boxes, slots, *args.scale, boxloss::image_part(args, i), 0, 1);
  });
}

/// Calls loop(dtypes, slots) for what the problem has at run time.
template <class Written, class Loop>
void dispatch(const LossProblem& p, const Written& outputs, const Loop& loop) {
  boxloss::dispatch(p, outputs, zero, [&](auto dtypes, const auto& slots) {
    // Pairs by index have bodies of their own, in kernels/box_loss/indexed_pairs.hpp. This backend
    // does not list them, so that core refuses them before it comes here.
    using Slots = std::decay_t<decltype(slots)>;
    if constexpr (!std::is_same_v<Slots, boxloss::Indexed>) loop(dtypes, slots);
  });
}

// ---- what boxloss calls ------------------------------------------------------------------------

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  dispatch(p, outputs, [&](auto dtypes, const auto& slots) {
    run_forward<decltype(dtypes)>(p, slots, outputs, execution);
  });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  dispatch(p, gradients, [&](auto dtypes, const auto& slots) {
    run_backward<decltype(dtypes)>(p, slots, grads, scale, gradients, execution);
  });
}

/// What is not assigned is not served, and core says so: pairs by index, L1 and IoU beside the
/// loss, and the matcher's cost.
std::vector<boxloss::Implementation> implementations() {
  boxloss::Implementation toy;
  toy.name = "toy/example";
  toy.box_loss.losses = boxloss::kLosses;
  toy.box_loss.pairings = {Pairing::Kind::kDense, Pairing::Kind::kZeroPadded,
                           Pairing::Kind::kLengths, Pairing::Kind::kMask, Pairing::Kind::kOffsets};
  toy.box_loss.forward = forward;
  toy.box_loss.backward = backward;
  return {toy};
}

}  // namespace
}  // namespace toy

BOXLOSS_BACKEND(toy::implementations, &toy::kMemory);
