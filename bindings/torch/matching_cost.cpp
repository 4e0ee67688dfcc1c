// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/matching_cost.hpp>

#include "adapter.hpp"
#include "checks.hpp"
#include "operators.hpp"

/// matching_cost and pairwise_iou, which is a cost of the loss only. Neither has a gradient: they
/// bypass autograd.
namespace boxloss::torch_binding {
namespace {

struct CostArgs {
  at::Tensor pred;
  at::Tensor target;
  at::Tensor offsets;
  BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_MEMBER)

  /// The called function's name, for errors.
  const char* function = "matching_cost";

  auto fields() const {
    return std::tie(pred, target, offsets BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_OPTION_NAME));
  }
};

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

/// pred's shape with `last` in place of its last `dropped` dimensions.
std::vector<c10::SymInt> like_pred(const CostArgs& a, std::size_t dropped,
                                   std::initializer_list<c10::SymInt> last) {
  const auto pred = a.pred.sym_sizes();
  std::vector<c10::SymInt> shape(pred.begin(), pred.end() - static_cast<std::ptrdiff_t>(dropped));
  shape.insert(shape.end(), last);
  return shape;
}

/// (..., queries, T)
std::vector<c10::SymInt> cost_shape(const CostArgs& a) {
  return like_pred(a, 3, {a.pred.sym_size(-2), a.target.sym_size(0)});
}

ClassTerm parse_class_term(const CostArgs& a) {
  const auto mode = parse<ClassTerm>(a.function, "class_mode", a.class_mode,
                                     {ClassTerm::kSoftmax, ClassTerm::kSigmoid, ClassTerm::kFocal});
  TORCH_CHECK_VALUE(!a.logits || !a.class_cost, a.function,
                    ": give logits or class_cost, not both");
  TORCH_CHECK_VALUE(a.logits.has_value() == a.labels.has_value(), a.function, ": ",
                    a.logits ? "logits" : "labels", " is given without ",
                    a.logits ? "labels" : "logits");
  return a.class_cost ? ClassTerm::kGiven : a.logits ? mode : ClassTerm::kNone;
}

void check_logits(const CostArgs& a) {
  const at::Tensor& logits = *a.logits;
  TORCH_CHECK_VALUE(logits.dim() == a.pred.dim(), a.function, ": logits has shape ",
                    logits.sym_sizes(), "; it must be (..., classes), with pred's shape ",
                    a.pred.sym_sizes(), " in front");
  check_shape(a.function, "logits", logits, like_pred(a, 1, {logits.sym_size(-1)}),
              "pred's with classes in place of the 4");
  check_shape(a.function, "labels", *a.labels, {a.target.sym_size(0)}, "one for each target");
}

/// From the last dimension backwards, each must be the result's, 1, or missing.
void check_class_cost(const CostArgs& a) {
  const auto given = a.class_cost->sym_sizes();
  const std::vector<c10::SymInt> wanted = cost_shape(a);
  bool fits = given.size() >= 2 && given.size() <= wanted.size();
  for (std::size_t i = 1; fits && i <= given.size(); ++i) {
    const c10::SymInt& size = given[given.size() - i];
    fits = size == wanted[wanted.size() - i] || (i > 2 && size == 1);
  }
  TORCH_CHECK_VALUE(fits, a.function, ": class_cost has shape ", given, "; it must be ",
                    c10::SymIntArrayRef(wanted),
                    ", the result's; but leading dimensions may be 1 or missing");
}

/// The problem that the arguments describe, without sizes, strides and pointers, as for a loss.
CostProblem describe(const CostArgs& a) {
  CostProblem p;
  p.loss = parse_loss(a.function, a.loss);
  p.pred.format = parse_format(a.function, "pred_format", a.pred_format);
  p.target.format = parse_format(a.function, "target_format", a.target_format);
  p.eps_mode = parse_eps_mode(a.function, a.eps_mode);
  p.class_term = parse_class_term(a);
  p.focal_alpha = a.focal_alpha;
  p.focal_gamma = a.focal_gamma;
  p.iou_weight = a.iou_weight;
  p.l1_weight = a.l1_weight;
  p.class_weight = a.class_weight;
  p.eps = a.eps;
  p.nonfinite = a.nonfinite;

  check_dense(a.function, "pred", a.pred);
  check_device(a.function, a.pred, "target", OptionalTensor(a.target));
  check_device(a.function, a.pred, "offsets", OptionalTensor(a.offsets));
  BOXLOSS_MATCHING_COST_OPTIONS(BOXLOSS_CHECK_DEVICE)

  p.pred.dtype = dtype_of(a.function, "pred", a.pred, kFloatingDTypes);
  p.target.dtype = dtype_of(a.function, "target", a.target);
  p.offsets = later(a.function, "offsets", a.offsets, kIndexDTypes);
  p.labels = later(a.function, "labels", a.labels, kIndexDTypes);
  const auto set_scores = [&](const char* argument, const at::Tensor& scores) {
    p.scores.data = kLater;
    p.scores.dtype = dtype_of(a.function, argument, scores, kFloatingDTypes);
    check_floating(a.function, argument, p.scores.dtype);
  };
  if (a.logits) set_scores("logits", *a.logits);
  if (a.class_cost) set_scores("class_cost", *a.class_cost);

  check_boxes_shape(a.function, "pred", a.pred);
  check_boxes_shape(a.function, "target", a.target);
  TORCH_CHECK_VALUE(a.pred.dim() >= 3, a.function, ": pred has shape ", a.pred.sym_sizes(),
                    "; it must be (..., images, queries, 4)");
  TORCH_CHECK_VALUE(a.target.dim() == 2, a.function, ": target has shape ", a.target.sym_sizes(),
                    "; it must be (boxes of all images, 4)");
  check_shape(a.function, "offsets", a.offsets, {a.pred.sym_size(-3) + 1},
              "one more than pred has images");
  if (a.logits) check_logits(a);
  if (a.class_cost) check_class_cost(a);
  return p;
}

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
      const bool is_f64 = compute_dtype(p) == DType::kF64;
      scores = at::log_softmax(scores, -1, is_f64 ? at::kDouble : at::kFloat);
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
  TORCH_CHECK(!aten_is_chosen(), a.function, ": 'aten' has the losses only; ",
              "use_implementation('boxloss') goes back to what this boxloss holds: ",
              c10::Join(", ", implementation_names()));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
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
  m.impl("matching_cost", torch::CppFunction::makeFallthrough());
  m.impl("pairwise_iou", torch::CppFunction::makeFallthrough());
}
