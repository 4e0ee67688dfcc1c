// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <boxloss/assign.hpp>

#include "adapter.hpp"
#include "checks.hpp"
#include "operators.hpp"

/// The assignment. It has no gradient, and bypasses autograd; function transforms are refused.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "hungarian_match";
constexpr char kOperator[] = "boxloss::assign";

/// pred_index, target_index, target_of_query.
using Assigned = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

void check_arguments(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  check_dense(kFunction, "cost", cost);
  check_device(kFunction, "cost", cost, "offsets", OptionalTensor(offsets));
  TORCH_CHECK_VALUE(cost.dim() == 2 || cost.dim() == 3, kFunction, ": cost has shape ",
                    cost.sym_sizes(), "; it must be (queries, T) or (layers, queries, T)");
  TORCH_CHECK_VALUE(offsets.dim() == 1 && offsets.sym_size(0) >= 1, kFunction,
                    ": offsets has shape ", offsets.sym_sizes(), "; it must be (images + 1)");
  TORCH_CHECK_VALUE(groups >= 1 && cost.sym_size(-2) % groups == 0, kFunction, ": groups is ",
                    groups, "; it must be at least 1, and divide the ", cost.sym_size(-2),
                    " queries");
}

AssignProblem describe(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  AssignProblem p;
  p.cost.dtype = dtype_of(kFunction, "cost", cost, "float32 or float64");
  p.offsets = later(kFunction, "offsets", offsets, kIndexDTypes);
  p.groups = groups;
  with_torch_errors(kFunction, [&] { check_options(p); });
  check_arguments(cost, offsets, groups);
  return p;
}

Assigned empty_outputs(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups,
                       bool pinned = false) {
  const auto options = cost.options().dtype(at::kLong).pinned_memory(pinned);
  std::vector<c10::SymInt> pairs, queries;
  if (cost.dim() == 3) {
    pairs.push_back(cost.sym_size(0));
    queries.push_back(cost.sym_size(0));
  }
  pairs.push_back(groups * cost.sym_size(-1));
  queries.push_back(offsets.sym_size(0) - 1);
  queries.push_back(cost.sym_size(-2));
  return {at::empty_symint(pairs, options), at::empty_symint(pairs, options),
          at::empty_symint(queries, options)};
}

Assigned meta(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  describe(cost, offsets, groups);
  return empty_outputs(cost, offsets, groups);
}

/// The implementation in use for a device or, if it does not serve the assignment, null.
const Implementation* serving(const at::Device& device) {
  try {
    const Implementation& chosen = implementation_on(device);
    return chosen.assign.run != nullptr ? &chosen : nullptr;
  } catch (const NotCompiled&) {
    return nullptr;
  }
}

/// The one in use on the host, or else the best there that serves the assignment.
const Implementation& serving_on_host() {
  if (const Implementation* chosen = serving(at::kCPU)) return *chosen;
  for (const Implementation* each : implementations()) {
    if (each->device == Device::kCpu && each->assign.run != nullptr) return *each;
  }
  return implementation_on(at::kCPU);  // whose plan refuses in its name
}

/// Of a problem as `describe` has it.
Assigned solved(const Implementation& implementation, AssignProblem p, const at::Tensor& cost,
                const at::Tensor& offsets, bool pinned = false) {
  const c10::OptionalDeviceGuard guard(cost.device());
  const at::Tensor own_offsets = offsets.contiguous();
  p.device = implementation.device;
  p.layers = cost.dim() == 3 ? cost.size(0) : 1;
  p.images = offsets.size(0) - 1;
  p.queries = cost.size(-2);
  p.columns = cost.size(-1);
  p.cost.data = cost.const_data_ptr();
  p.cost.layer_stride = cost.dim() == 3 ? cost.stride(0) : 0;
  p.cost.query_stride = cost.stride(-2);
  p.cost.column_stride = cost.stride(-1);
  p.offsets.data = own_offsets.const_data_ptr();
  const AssignPlan plan(implementation, p);
  const Assigned outputs = empty_outputs(cost, offsets, p.groups, pinned);
  const auto& [pred_index, target_index, target_of_query] = outputs;
  const Scratch scratch(plan.workspace_bytes(), cost);
  Execution execution = execution_on(cost.device());
  execution.workspace = scratch.data();
  execution.workspace_bytes = plan.workspace_bytes();
  plan.run(arrays_of(p),
           {pred_index.mutable_data_ptr(), target_index.mutable_data_ptr(),
            target_of_query.mutable_data_ptr()},
           execution);
  return outputs;
}

/// On the host for a device without the assignment: one wait, for both copies there.
Assigned solved_on_host(const AssignProblem& p, const at::Tensor& cost, const at::Tensor& offsets) {
  const at::Device device = cost.device();
  const bool is_pinned = cost.is_cuda();
  const auto there = [&](const at::Tensor& each) {
    const auto options = each.options().device(at::kCPU).pinned_memory(is_pinned);
    return at::empty(each.sizes(), options).copy_(each, /*non_blocking=*/is_pinned);
  };
  const at::Tensor host_cost = there(cost), host_offsets = there(offsets);
  if (is_pinned) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
  }
  const auto [pred_index, target_index, target_of_query] =
      solved(serving_on_host(), p, host_cost, host_offsets, is_pinned);
  const auto back = [&](const at::Tensor& each) { return each.to(device, at::kLong, is_pinned); };
  return {back(pred_index), back(target_index), back(target_of_query)};
}

Assigned assigned(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  const AssignProblem p = describe(cost, offsets, groups);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_torch_errors(kFunction, [&] {
    if (cost.is_cpu()) {
      check_offsets(kFunction, offsets, cost.size(-1));
      return solved(serving_on_host(), p, cost, offsets);
    }
    const Implementation* implementation = serving(cost.device());
    return implementation != nullptr ? solved(*implementation, p, cost, offsets)
                                     : solved_on_host(p, cost, offsets);
  });
}

using Operator = WithoutGradient<Assigned(const at::Tensor&, const at::Tensor&, std::int64_t)>;

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  m.def(
      "assign(Tensor cost, Tensor offsets, int groups=1) -> "
      "(Tensor pred_index, Tensor target_index, Tensor target_of_query)",
      {at::Tag::pt2_compliant_tag});
}

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  m.impl("assign", boxloss::torch_binding::assigned);
}

TORCH_LIBRARY_IMPL(boxloss, Meta, m) { m.impl("assign", boxloss::torch_binding::meta); }

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("assign", Operator::past_autograd<kFunction, kOperator>);
}

TORCH_LIBRARY_IMPL(boxloss, FuncTorchBatched, m) {
  using namespace boxloss::torch_binding;
  m.impl("assign", Operator::refuse_vmap<kFunction>);
}
