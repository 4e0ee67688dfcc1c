// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/assign.hpp>

#include "adapter.hpp"
#include "checks.hpp"

/// The assignment. It has no gradient, and bypasses autograd.
namespace boxloss::torch_binding {
namespace {

constexpr const char* kFunction = "hungarian_match";

/// pred_index, target_index, target_of_query.
using Assigned = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

void check_arguments(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  check_dense(kFunction, "cost", cost);
  check_dense(kFunction, "offsets", offsets);
  TORCH_CHECK(offsets.device() == cost.device(), kFunction, ": offsets is on ", offsets.device(),
              ", cost is on ", cost.device(), "; both must be on one device");
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

Assigned empty_outputs(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  const auto options = cost.options().dtype(at::kLong);
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

Assigned assigned(const at::Tensor& cost, const at::Tensor& offsets, std::int64_t groups) {
  AssignProblem p = describe(cost, offsets, groups);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_torch_errors(kFunction, [&] {
    const Implementation& implementation = implementation_on(cost.device());
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
    const Assigned outputs = empty_outputs(cost, offsets, groups);
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
  });
}

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
  m.impl("assign", torch::CppFunction::makeFallthrough());
}
