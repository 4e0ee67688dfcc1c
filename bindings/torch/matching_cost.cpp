// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "adapter.hpp"
#include "matching_cost_args.hpp"

/// matching_cost and pairwise_iou, which is a cost of the loss only. Neither has a gradient: they
/// bypass autograd, and function transforms that differentiate them are refused.
namespace boxloss::torch_binding {
namespace {

/// pairwise_iou is a cost of the loss alone.
struct IouArgs {
  at::Tensor pred;
  at::Tensor target;
  at::Tensor offsets;
  BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_OPTION_MEMBER)

  auto fields() const {
    return std::tie(pred, target, offsets BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_OPTION_NAME));
  }
  CostArgs as_cost() const {
    CostArgs cost = {};
    cost.pred = pred;
    cost.target = target;
    cost.offsets = offsets;
    cost.loss = loss;
    cost.iou_weight = -1;  // 1 - loss
    cost.class_mode = name_of(ClassTerm::kSoftmax);
    cost.pred_format = pred_format;
    cost.target_format = target_format;
    cost.eps = eps;
    cost.eps_mode = eps_mode;
    cost.function = "pairwise_iou";
    return cost;
  }
};

/// A problem with the tensors that it points to.
struct CostCall {
  const Implementation& implementation;
  CostProblem problem;
  c10::SmallVector<at::Tensor, 5> kept_alive = {};

  const at::Tensor& keep(at::Tensor tensor) { return kept_alive.emplace_back(std::move(tensor)); }

  void set_boxes(BoxView& view, at::Tensor tensor) {
    const at::Tensor& boxes = keep(std::move(tensor));
    view.data = boxes.const_data_ptr();
    view.images = boxes.size(0);
    view.slots = boxes.size(1);
    view.image_stride = boxes.stride(0);
    view.slot_stride = boxes.stride(1);
    view.coordinate_stride = boxes.stride(2);
  }
  void set_scores(at::Tensor tensor) {
    const bool has_neighbours = tensor.stride(2) == 1 || tensor.size(2) <= 1;
    const at::Tensor& scores = keep(has_neighbours ? std::move(tensor) : tensor.contiguous());
    problem.scores.data = scores.const_data_ptr();
    problem.scores.block_stride = scores.stride(0);
    problem.scores.query_stride = scores.stride(1);
  }
};

/// With sizes, strides and pointers.
CostCall make_call(const CostArgs& a, const CostProblem& described) {
  CostCall call{implementation_on(a.pred.device()), described};
  CostProblem& p = call.problem;
  const auto leading = a.pred.sizes().slice(0, a.pred.dim() - 3);
  const std::int64_t images = a.pred.size(-3), queries = a.pred.size(-2);
  const std::int64_t columns = a.target.size(0);
  p.layers = c10::multiply_integers(leading);
  p.device = call.implementation.device;
  call.set_boxes(p.pred, a.pred.reshape({p.layers * images, queries, 4}));
  call.set_boxes(p.target, a.target.unsqueeze(0));
  p.offsets.data = call.keep(a.offsets.contiguous()).const_data_ptr();
  if (a.logits) {
    p.classes = a.logits->size(-1);
    at::Tensor scores = *a.logits;
    if (p.class_term == ClassTerm::kSoftmax) {
      scores = at::log_softmax(scores, -1, compute_type(p));
      p.scores.dtype = compute_dtype(p);
    }
    call.set_scores(scores.reshape({p.layers * images, queries, p.classes}));
    p.labels.data = call.keep(a.labels->contiguous()).const_data_ptr();
  }
  if (a.class_cost) {
    at::DimVector shape(leading);
    shape.append({queries, columns});
    call.set_scores(a.class_cost->expand(shape).reshape({p.layers, queries, columns}));
  }
  return call;
}

at::Tensor meta(const CostArgs& a) {
  const CostProblem described = describe(a);
  with_torch_errors(a.function, [&] { check_options(described); });
  return at::empty_symint(cost_shape(a), a.pred.options().dtype(at::kFloat));
}

at::Tensor cost(const CostArgs& a) {
  const CostProblem described = describe(a);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (aten_is_chosen()) return composite_cost(a, described);
  return with_torch_errors(a.function, [&] {
    implementation_on(a.pred.device());  // before torch is asked for its guard and memory there
    const c10::OptionalDeviceGuard guard(a.pred.device());
    const at::Tensor result = at::empty_symint(cost_shape(a), a.pred.options().dtype(at::kFloat));
    if (result.numel() == 0) {
      check_options(described);
      return result;
    }
    const CostCall call = make_call(a, described);
    matching_cost(call.implementation, call.problem, result.mutable_data_ptr<float>(),
                  execution_on(a.pred.device()));
    return result;
  });
}

template <at::Tensor (*kernel)(const CostArgs&)>
at::Tensor of_iou(const IouArgs& a) {
  return kernel(a.as_cost());
}

template <at::Tensor (*kernel)(const CostArgs&)>
void register_operators(torch::Library& m) {
  m.impl("matching_cost", EntryOf<CostArgs>::call<kernel>);
  m.impl("pairwise_iou", EntryOf<IouArgs>::call<of_iou<kernel>>);
}

template <class Args>
using Operator = WithoutGradient<
    Signature<at::Tensor, std::tuple<>, decltype(std::declval<const Args&>().fields())>>;

constexpr char kCost[] = "matching_cost", kCostOperator[] = "boxloss::matching_cost";
constexpr char kIou[] = "pairwise_iou", kIouOperator[] = "boxloss::pairwise_iou";

constexpr Option kCostOptions[] = {BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_ROW)};
constexpr Option kIouOptions[] = {BOXLOSS_PAIRWISE_IOU_OPTIONS(BOXLOSS_OPTION_ROW)};

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  const std::string boxes = "(Tensor pred, Tensor target, Tensor offsets";
  m.def(("matching_cost" + boxes + parameters(kCostOptions) + ") -> Tensor").c_str(), tags);
  m.def(("pairwise_iou" + boxes + parameters(kIouOptions) + ") -> Tensor").c_str(), tags);
}

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  using namespace boxloss::torch_binding;
  register_operators<cost>(m);
}

TORCH_LIBRARY_IMPL(boxloss, Meta, m) {
  using namespace boxloss::torch_binding;
  register_operators<meta>(m);
}

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("matching_cost", Operator<CostArgs>::past_autograd_as_constant<kCost, kCostOperator>);
  m.impl("pairwise_iou", Operator<IouArgs>::past_autograd_as_constant<kIou, kIouOperator>);
}
