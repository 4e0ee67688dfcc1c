// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"
#include "../common/linear_sum_assignment.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "operator.hpp"

/// The assignment. For a device whose implementation does not have it, it runs on the host.
namespace boxloss::torch_binding {
namespace {

bool is_served(at::Device device) {
  const Implementation* const chosen = find_implementation(device);
  return chosen != nullptr && chosen->assign.run != nullptr;
}

/// The one in use on the host, or else the best there that serves the assignment.
const Implementation& serving_on_host(at::Device) {
  if (!is_served(at::kCPU)) {
    for (const Implementation* each : implementations()) {
      if (each->device == Device::kCpu && each->assign.run != nullptr) return *each;
    }
  }
  return implementation_on(at::kCPU);
}

/// One wait, for all copies to the host.
void run_on_host(const Operator& op, Stack& stack) {
  Stack checked(stack.end() - op.count, stack.end());
  op.meta(op, checked);  // before the arguments are copied
  c10::IValue* const arguments = op.arguments(stack);
  const at::Tensor cost = op.first_of(stack);
  const at::Device device = cost.device();
  const bool is_pinned = cost.is_cuda();
  for (c10::IValue* each = arguments; each != arguments + op.count; ++each) {
    if (!each->isTensor()) continue;
    const at::Tensor& tensor = each->toTensor();
    const auto options = tensor.options().device(at::kCPU).pinned_memory(is_pinned);
    *each = at::empty(tensor.sizes(), options).copy_(tensor, /*non_blocking=*/is_pinned);
  }
  if (is_pinned) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
  op.run(op, stack, {.choose = serving_on_host, .checks_values = false, .is_pinned = is_pinned});
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    c10::IValue& each = torch::jit::peek(stack, i, op.results.size());
    each = each.toTensor().to(device, at::kLong, is_pinned);
  }
}

void run_where_served(const Operator& op, Stack& stack) {
  const at::Device device = op.first_of(stack).device();
  if (device.is_cpu()) return op.run(op, stack, {.choose = serving_on_host});
  return is_served(device) ? op.run(op, stack, {}) : run_on_host(op, stack);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss;
  using namespace boxloss::torch_binding;
  static Operator assign = operator_of<binding::Assign>();
  static Operator linear_sum_assignment = operator_of<binding::LinearSumAssignment>();
  for (Operator* const each : {&assign, &linear_sum_assignment}) {
    each->kernel = run_where_served;
    define(m, *each);
    refuse_transforms(m, *each);
  }
}
