// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "operator.hpp"

/// An operator with a gradient. It calls two private ones, which compiled graphs keep whole:
/// forward, whose results are the loss, scale and maybe l1 and iou, and backward, which takes the
/// incoming gradients, scale, if there are several what is wanted, and the loss' arguments.
namespace boxloss::torch_binding {

using torch::autograd::variable_list;

struct LossOperator {
  Operator forward, backward;
  /// The public operator: forward without scale.
  Operator own;
  /// Forward's results in differentiable ATen operators, with the same rules. They serve double
  /// backward, forward-mode AD, function transforms and "aten".
  variable_list (*composite)(const Operator& forward, Stack& arguments);
  /// Calls the autograd function: results with a gradient are returned, others are on the stack.
  variable_list (*record)(at::TensorList inputs, Stack& stack);
  /// Whether autograd must take the composite.
  bool (*needs_composite)(const c10::IValue* arguments) = nullptr;
};

/// From descriptions, of a node of autograd's graph.
template <class Node, class Forward, class Backward>
LossOperator loss_operator_of(const char* name,
                              variable_list (*composite)(const Operator&, Stack&)) {
  return {.forward = operator_of<Forward>(),
          .backward = operator_of<Backward>(),
          .own = operator_of<Forward>(name),
          .composite = composite,
          .record = Node::record};
}

/// The rows of a list, of which the one after the last is `none`; for composites.
at::Tensor rows_or_none(const at::Tensor& list, double none, const at::Tensor& row);

/// Of losses of logits: the sum of each set, which is the first of four dimensions, or of all.
at::Tensor sums_of_sets(const at::Tensor& logits, const at::Tensor& values);

/// What autograd's functions do, whatever the loss is.
variable_list run_forward(torch::autograd::AutogradContext* context, const LossOperator& loss,
                          Stack& stack);
variable_list run_backward(torch::autograd::AutogradContext* context, const LossOperator& loss,
                           const variable_list& grads);

/// The one autograd function. Autograd, the profiler and anomaly mode show the name of `Node`.
template <class Node>
struct NodeOf : torch::autograd::Function<Node> {
  static constexpr bool is_traceable = true;

  /// `inputs` are in the argument list because autograd looks for them there.
  static variable_list forward(torch::autograd::AutogradContext* context, at::TensorList /*inputs*/,
                               Stack& stack) {
    return run_forward(context, Node::loss(), stack);
  }
  static variable_list backward(torch::autograd::AutogradContext* context,
                                const variable_list& grads) {
    return run_backward(context, Node::loss(), grads);
  }
  static variable_list record(at::TensorList inputs, Stack& stack);
};

struct BoxLoss : NodeOf<BoxLoss> {
  static LossOperator& loss();
};
struct BoxLosses : NodeOf<BoxLosses> {
  static LossOperator& loss();
};
struct RotatedBoxLoss : NodeOf<RotatedBoxLoss> {
  static LossOperator& loss();
};
struct ClassLoss : NodeOf<ClassLoss> {
  static LossOperator& loss();
};
struct DistributionLoss : NodeOf<DistributionLoss> {
  static LossOperator& loss();
};

}  // namespace boxloss::torch_binding
