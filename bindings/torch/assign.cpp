// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "operation.hpp"

/// The assignment. For a device whose implementation does not have it, it runs on the host.
namespace boxloss::torch_binding {
namespace {

using Operator = OperatorOf<binding::Assign>;
using Tensors = Operator::Tensors;

bool is_served(const at::Device& device) {
  const Implementation* const chosen = find_implementation(device);
  return chosen != nullptr && chosen->assign.run != nullptr;
}

/// The one in use on the host, or else the best there that serves the assignment.
const Implementation& serving_on_host(const at::Device&) {
  if (!is_served(at::kCPU)) {
    for (const Implementation* each : implementations()) {
      if (each->device == Device::kCpu && each->assign.run != nullptr) return *each;
    }
  }
  return implementation_on(at::kCPU);
}

/// One wait, for both copies to the host.
Operator::Result run_on_host(const Tensors& tensors) {
  Operator::meta(tensors);  // checks the arguments before they are copied
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Device device = tensors.cost.device();
  const bool is_pinned = tensors.cost.is_cuda();
  const auto there = [&](const at::Tensor& each) {
    const auto options = each.options().device(at::kCPU).pinned_memory(is_pinned);
    return at::empty(each.sizes(), options).copy_(each, /*non_blocking=*/is_pinned);
  };
  const Tensors host = {there(tensors.cost), there(tensors.offsets), tensors.groups};
  if (is_pinned) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
  const Operator::Way way = {.checks_values = false, .is_pinned = is_pinned};
  const auto [pred_index, target_index, target_of_query] =
      Operator::run_by(serving_on_host, way, host);
  const auto back = [&](const at::Tensor& each) { return each.to(device, at::kLong, is_pinned); };
  return {back(pred_index), back(target_index), back(target_of_query)};
}

Operator::Result run(const Tensors& tensors) {
  if (tensors.cost.is_cpu()) return Operator::run_by(serving_on_host, {}, tensors);
  return is_served(tensors.cost.device()) ? Operator::run(tensors) : run_on_host(tensors);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  Operator::define<run>(m, {at::Tag::pt2_compliant_tag});
  Operator::refuse_transforms(m);
}
