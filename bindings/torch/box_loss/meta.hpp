// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "args.hpp"

/// The operators' shapes and dtypes, symbolic ones included.
namespace boxloss::torch_binding::meta {

template <class Own>
ForwardTensors forward(const LossArgs<Own>& args, bool extras) {
  return with_torch_errors(args.function, [&] {
    const TracedLoss<Own> converted(args.function, args);
    const auto problem = Own::describe(converted.arguments(), extras);
    const auto outputs = outputs_of<Own>(converted.arguments(), problem, extras);
    const auto empty = [&](bool is_wanted, const binding::Output<c10::SymInt>& output) {
      const auto type = scalar_type(output.dtype);
      return is_wanted ? at::empty_symint(output.shape, args.pred.options().dtype(type))
                       : no_elements(args.pred, type);
    };
    const at::Tensor loss = empty(true, outputs[0]), scale = empty(true, outputs[1]);
    if constexpr (kHasExtras<Own>) {
      return ForwardTensors(loss, scale, empty(extras, outputs[2]), empty(extras, outputs[3]));
    } else {
      return ForwardTensors(loss, scale, {}, {});
    }
  });
}

template <class Own>
at::Tensor loss_only(const LossArgs<Own>& args) {
  return std::get<0>(forward(args, false));
}

template <class Own>
LossesTensors losses(const LossArgs<Own>& args) {
  const auto [loss, scale, l1, iou] = forward(args, true);
  return {loss, l1, iou};
}

template <class Own>
LossGradientTensors backward(const IncomingTensors& grads, const at::Tensor& scale,
                             const LossArgs<Own>& args, const Wanted& wanted) {
  checked_backward(grads, scale, args, wanted);
  return empty_gradients(args, wanted);
}

}  // namespace boxloss::torch_binding::meta
