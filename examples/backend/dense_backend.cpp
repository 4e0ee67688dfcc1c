// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// A first backend: box_loss of dense pairs alone, forward and backward, for the device "toy". Only
// loops over dense pairs are compiled. toy_backend.cpp serves images of different numbers of boxes.

// What the device's compiler wants in front of a function, such as `__host__ __device__`. The
// toy's compiler is the host's and wants nothing.
#define TOY_FUNCTION
#define BOXLOSS_HOST_DEVICE TOY_FUNCTION inline
#include <boxloss/backend.hpp>
#include <boxloss/backend/dispatch/box_loss/with_dtypes.hpp>
#include <boxloss/backend/dispatch/box_loss/zero_outputs.hpp>
#include <boxloss/backend/kernels/box_loss/image_parts.hpp>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace toy {
namespace {

using boxloss::Execution, boxloss::GradOutputs, boxloss::LossesPartial, boxloss::LossGradients,
    boxloss::LossOutputs, boxloss::LossProblem;

/// The device's allocator and its copies, for the conformance tests. The toy's memory is the
/// host's.
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

/// kernel(i) for each i below `threads`, in any order, on several threads. A real device would
/// start a kernel here, on `execution.stream`, and not wait for it.
template <class Kernel>
void launch(const Execution& execution, std::int64_t threads, const Kernel& kernel) {
  execution.parallel_for(threads, kernel);
}

/// A partial sum for each part of an image. boxloss asks only where losses are reduced: there is
/// no workspace for reduction "none", nor for backward.
std::size_t workspace_bytes(const LossProblem& p) {
  return boxloss::parts_of(p) * sizeof(LossesPartial);
}

template <class D>
void run_forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  using C = typename D::Compute;
  const auto args = boxloss::forward_args<C>(boxloss::AnyFormula{p.loss}, p, outputs);
  const auto boxes = boxloss::strided_pair<typename D::Pred, typename D::Target>(p);
  const boxloss::Dense slots{{p.pred.slots}};

  // 1. Each thread sums the losses of its part, and leaves the sum in the workspace.
  const bool is_reduced = p.reduction != boxloss::Reduction::kNone;
  const std::int64_t parts = boxloss::parts_of(p);
  auto* const sums = static_cast<LossesPartial*>(execution.workspace);
  launch(execution, parts, [=](std::int64_t i) {
    LossesPartial own{};
    boxloss::forward_part(args, boxes, slots, boxloss::image_part(args, i), 0, 1, own);
    if (is_reduced) sums[i] = own;
  });

  // 2. When all are done, one thread adds the sums in order, whoever was first.
  const auto result = boxloss::reduced_loss<C>(p, outputs);
  launch(execution, 1, [=](std::int64_t) {
    if (!is_reduced) {
      *result.scale = 1;  // the losses are written already
      return;
    }
    LossesPartial total{};
    for (std::int64_t i = 0; i < parts; ++i) total += sums[i];
    result.write(total);
  });
}

template <class D>
void run_backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
                  const LossGradients& gradients, const Execution& execution) {
  using P = typename D::Pred;
  using T = typename D::Target;
  const auto args = boxloss::backward_args<P, T, typename D::Compute>(boxloss::AnyFormula{p.loss},
                                                                      p, grads, scale, gradients);
  const auto boxes = boxloss::strided_pair<P, T>(p);
  const boxloss::Dense slots{{p.pred.slots}};
  launch(execution, boxloss::parts_of(p), [=](std::int64_t i) {
    const auto part = boxloss::image_part(args, i);
    boxloss::backward_part(args, boxes, slots, *args.scale, part, 0, 1);
  });
}

void forward(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  if (!boxloss::has_slots(p)) return boxloss::zero_outputs(p, outputs, zero);
  boxloss::with_dtypes(p,
                       [&](auto dtypes) { run_forward<decltype(dtypes)>(p, outputs, execution); });
}

void backward(const LossProblem& p, const GradOutputs& grads, const void* scale,
              const LossGradients& gradients, const Execution& execution) {
  if (!boxloss::has_slots(p)) return boxloss::zero_outputs(p, gradients, zero);
  boxloss::with_dtypes(p, [&](auto dtypes) {
    run_backward<decltype(dtypes)>(p, grads, scale, gradients, execution);
  });
}

std::vector<boxloss::Implementation> implementations() {
  boxloss::Implementation toy;
  toy.name = "toy/dense";
  toy.box_loss.losses = boxloss::kLosses;
  toy.box_loss.pairings = {boxloss::Pairing::Kind::kDense};
  toy.box_loss.workspace_bytes = workspace_bytes;
  toy.box_loss.forward = forward;
  toy.box_loss.backward = backward;
  return {toy};
}

}  // namespace
}  // namespace toy

BOXLOSS_BACKEND(toy::implementations, &toy::kMemory);
