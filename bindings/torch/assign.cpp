// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/assign.hpp"
#include "../common/linear_sum_assignment.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "operation.hpp"

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
template <class Operation>
auto run_on_host(const TensorsOf<Operation>& tensors) {
  using Operator = OperatorOf<Operation>;
  Operator::meta(tensors);  // checks the arguments before they are copied
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Device device = tensors.cost.device();
  const bool is_pinned = tensors.cost.is_cuda();
  TensorsOf<Operation> host = tensors;
  const auto bring = [&](auto& each) {
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, at::Tensor>) {
      const auto options = each.options().device(at::kCPU).pinned_memory(is_pinned);
      each = at::empty(each.sizes(), options).copy_(each, /*non_blocking=*/is_pinned);
    }
  };
  const auto bring_given = [&](auto& each) {
    if constexpr (requires {
                    each.has_value();
                    *each;
                  }) {
      if (each) bring(*each);
    } else {
      bring(each);
    }
  };
  std::apply([&](auto&... each) { (bring_given(each), ...); }, host.fields());
  if (is_pinned) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
  const typename Operator::Way way = {.checks_values = false, .is_pinned = is_pinned};
  typename Operator::Result results = Operator::run_by(serving_on_host, way, host);
  const auto send = [&](at::Tensor& each) { each = each.to(device, at::kLong, is_pinned); };
  std::apply([&](auto&... each) { (send(each), ...); }, results);
  return results;
}

template <class Operation>
auto run(const TensorsOf<Operation>& tensors) {
  using Operator = OperatorOf<Operation>;
  if (tensors.cost.is_cpu()) return Operator::run_by(serving_on_host, {}, tensors);
  return is_served(tensors.cost.device()) ? Operator::run(tensors)
                                          : run_on_host<Operation>(tensors);
}

template <class Operation>
void define(torch::Library& m) {
  OperatorOf<Operation>::template define<run<Operation>>(m, {at::Tag::pt2_compliant_tag});
  OperatorOf<Operation>::refuse_transforms(m);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  define<boxloss::binding::Assign>(m);
  define<boxloss::binding::LinearSumAssignment>(m);
}
