// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/assign.hpp>

#include "call.hpp"

/// The assignment.
namespace boxloss::jax_binding {
namespace {

struct AssignArgs {
  explicit AssignArgs(const Arguments& arguments)
      : cost(given(arguments, "cost")), offsets(given(arguments, "offsets")) {
    arguments.read("groups", groups);
    arguments.read("index", index);
  }

  const Operand& cost;
  const Operand& offsets;
  Whole groups;
  Word index;  ///< the results' dtype
};

/// Memory comes with the run.
AssignProblem describe_on(const Implementation& implementation, const AssignArgs& a) {
  AssignProblem p;
  p.device = implementation.device;
  p.cost.dtype = dtype_of(a.cost, "float32 or float64");
  p.offsets = later(&a.offsets, kIndexDTypes);
  p.groups = a.groups;
  p.index = parse("index", a.index, {DType::kI32, DType::kI64});
  check_options(p);

  const std::vector<std::int64_t>&cost = a.cost.shape, &offsets = a.offsets.shape;
  check(cost.size() == 2 || cost.size() == 3, "cost has shape ", text_of(cost),
        "; it must be (queries, T) or (layers, queries, T)");
  check(offsets.size() == 1 && offsets[0] >= 1, "offsets has shape ", text_of(offsets),
        "; it must be (images + 1)");
  p.layers = leading(cost, 2);
  p.images = offsets[0] - 1;
  p.queries = cost.end()[-2];
  p.columns = cost.end()[-1];
  p.cost.data = kLater;
  p.cost.layer_stride = p.queries * p.columns;
  p.cost.query_stride = p.columns;
  return p;
}

std::size_t workspace(const Arguments& arguments, const Implementation& implementation) {
  const AssignProblem problem = describe_on(implementation, AssignArgs(arguments));
  return if_served([&] { return AssignPlan(implementation, problem).workspace_bytes(); });
}

void assign(const Call& call) {
  const AssignArgs args(call.arguments);
  AssignPlan(call.implementation, describe_on(call.implementation, args))
      .run({args.cost.data, args.offsets.data},
           {call.result("pred_index"), call.result("target_index"), call.result("target_of_query")},
           call.execution);
}

}  // namespace
}  // namespace boxloss::jax_binding

BOXLOSS_JAX_CHECK(boxloss_jax_assign, boxloss::jax_binding::workspace);
BOXLOSS_JAX_HANDLERS(boxloss_jax_assign, boxloss::jax_binding::assign);
