// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/matching_cost.hpp>
#include <cmath>

#include "adapter.hpp"
#include "checks.hpp"

/// matching_cost and pairwise_iou, which is a cost of the loss only. Neither has a gradient: they
/// bypass autograd.
namespace boxloss::torch_binding {
namespace {

struct CostArgs {
  at::Tensor pred;
  at::Tensor target;
  at::Tensor offsets;
  OptionalTensor logits;
  OptionalTensor labels;
  OptionalTensor class_cost;
  std::string_view loss;
  double iou_weight;
  double l1_weight;
  double class_weight;
  std::string_view class_mode;
  double focal_alpha;
  double focal_gamma;
  std::string_view pred_format;
  std::string_view target_format;
  double eps;
  std::string_view eps_mode;
  std::optional<double> nonfinite;

  /// The called function's name, for errors.
  const char* function = "matching_cost";
};

/// The string arguments as core's types.
struct CostOptions {
  Loss loss;
  BoxFormat pred_format, target_format;
  EpsMode eps_mode;
  ClassTerm class_term;
};

/// float64 when either box tensor is, else float32.
at::ScalarType compute_type(const CostArgs& a) {
  const bool is_double =
      a.pred.scalar_type() == at::kDouble || a.target.scalar_type() == at::kDouble;
  return is_double ? at::kDouble : at::kFloat;
}

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
  check_floating(a.function, "logits", logits);
  TORCH_CHECK_VALUE(logits.dim() == a.pred.dim(), a.function, ": logits has shape ",
                    logits.sym_sizes(), "; it must be (..., classes), with pred's shape ",
                    a.pred.sym_sizes(), " in front");
  check_shape(a.function, "logits", logits, like_pred(a, 1, {logits.sym_size(-1)}),
              "pred's with classes in place of the 4");
  check_indices_dtype(a.function, "labels", *a.labels);
  check_shape(a.function, "labels", *a.labels, {a.target.sym_size(0)}, "one for each target");
}

/// From the last dimension backwards, each must be the result's, 1, or missing.
void check_class_cost(const CostArgs& a) {
  check_floating(a.function, "class_cost", *a.class_cost);
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

void check_factor(const CostArgs& a, const char* argument, double factor) {
  const bool is_finite = compute_type(a) == at::kDouble ? std::isfinite(factor)
                                                        : std::isfinite(static_cast<float>(factor));
  TORCH_CHECK_VALUE(is_finite, a.function, ": ", argument, " is ", factor,
                    "; it must be finite, as a ", compute_type(a));
}

/// Checks the arguments; works on symbolic shapes.
CostOptions check_args(const CostArgs& a) {
  const CostOptions options{parse_loss(a.function, a.loss),
                            parse_format(a.function, "pred_format", a.pred_format),
                            parse_format(a.function, "target_format", a.target_format),
                            parse_eps_mode(a.function, a.eps_mode), parse_class_term(a)};
  check_eps(a.function, a.eps, compute_type(a));
  check_dense(a.function, "pred", a.pred);
  check_device(a.function, a.pred, "target", a.target);
  check_device(a.function, a.pred, "offsets", a.offsets);
  check_device(a.function, a.pred, "logits", a.logits);
  check_device(a.function, a.pred, "labels", a.labels);
  check_device(a.function, a.pred, "class_cost", a.class_cost);
  check_floating(a.function, "pred", a.pred);
  check_target_dtype(a.function, a.target);
  check_boxes_shape(a.function, "pred", a.pred);
  check_boxes_shape(a.function, "target", a.target);
  TORCH_CHECK_VALUE(a.pred.dim() >= 3, a.function, ": pred has shape ", a.pred.sym_sizes(),
                    "; it must be (..., images, queries, 4)");
  TORCH_CHECK_VALUE(a.target.dim() == 2, a.function, ": target has shape ", a.target.sym_sizes(),
                    "; it must be (boxes of all images, 4)");
  check_indices_dtype(a.function, "offsets", a.offsets);
  check_shape(a.function, "offsets", a.offsets, {a.pred.sym_size(-3) + 1},
              "one more than pred has images");
  if (a.logits) check_logits(a);
  if (a.class_cost) check_class_cost(a);
  check_factor(a, "iou_weight", a.iou_weight);
  check_factor(a, "l1_weight", a.l1_weight);
  check_factor(a, "class_weight", a.class_weight);
  check_factor(a, "focal_alpha", a.focal_alpha);
  check_factor(a, "focal_gamma", a.focal_gamma);
  TORCH_CHECK_VALUE(a.focal_gamma >= 0, a.function, ": focal_gamma is ", a.focal_gamma,
                    "; it must not be negative");
  TORCH_CHECK_VALUE(a.l1_weight == 0 || options.pred_format == options.target_format, a.function,
                    ": the L1 distance is of values in one format, but pred_format is '",
                    a.pred_format, "' and target_format is '", a.target_format,
                    "'; make them equal, or l1_weight 0");
  return options;
}

/// A problem with the tensors that it points to.
struct CostCall {
  const Implementation& implementation;
  CostProblem problem;
  std::vector<at::Tensor> kept_alive;

  const at::Tensor& keep(at::Tensor tensor) { return kept_alive.emplace_back(std::move(tensor)); }

  BoxView boxes(const at::Tensor& tensor, BoxFormat format) {
    const at::Tensor& boxes = keep(tensor);
    return {boxes.const_data_ptr(), dtype_of(boxes), format,          boxes.size(0),
            boxes.size(1),          boxes.stride(0), boxes.stride(1), boxes.stride(2)};
  }
  ScoreView scores(const at::Tensor& tensor) {
    const bool has_neighbours = tensor.stride(2) == 1 || tensor.size(2) <= 1;
    const at::Tensor& scores = keep(has_neighbours ? tensor : tensor.contiguous());
    return {scores.const_data_ptr(), dtype_of(scores), scores.stride(0), scores.stride(1)};
  }
};

CostCall make_call(const CostArgs& a, const CostOptions& options) {
  CostCall call{implementation_on(a.pred.device()), {}, {}};
  CostProblem& p = call.problem;
  const auto leading = a.pred.sizes().slice(0, a.pred.dim() - 3);
  const std::int64_t images = a.pred.size(-3), queries = a.pred.size(-2);
  const std::int64_t columns = a.target.size(0);
  p.layers = c10::multiply_integers(leading);
  p.device = call.implementation.device;
  p.loss = options.loss;
  p.pred = call.boxes(a.pred.reshape({p.layers * images, queries, 4}), options.pred_format);
  p.target = call.boxes(a.target.unsqueeze(0), options.target_format);
  p.offsets = array_view(call.keep(a.offsets.contiguous()));
  p.class_term = options.class_term;
  if (a.logits) {
    p.classes = a.logits->size(-1);
    // torch's log-softmax is one kernel, its log-sum-exp eight.
    const at::Tensor logits = p.class_term == ClassTerm::kSoftmax
                                  ? at::log_softmax(*a.logits, -1, compute_type(a))
                                  : *a.logits;
    p.scores = call.scores(logits.reshape({p.layers * images, queries, p.classes}));
    p.labels = array_view(call.keep(a.labels->contiguous()));
  }
  if (a.class_cost) {
    at::DimVector shape(leading);
    shape.append({queries, columns});
    p.scores = call.scores(a.class_cost->expand(shape).reshape({p.layers, queries, columns}));
  }
  p.focal_alpha = a.focal_alpha;
  p.focal_gamma = a.focal_gamma;
  p.iou_weight = a.iou_weight;
  p.l1_weight = a.l1_weight;
  p.class_weight = a.class_weight;
  p.eps = a.eps;
  p.eps_mode = options.eps_mode;
  if (a.nonfinite) p.nonfinite = static_cast<float>(*a.nonfinite);
  return call;
}

at::Tensor meta(const CostArgs& a) {
  check_args(a);
  return at::empty_symint(cost_shape(a), a.pred.options().dtype(at::kFloat));
}

at::Tensor cost(const CostArgs& a) {
  const CostOptions options = check_args(a);
  TORCH_CHECK(!aten_is_chosen(), a.function, ": 'aten' has the losses only; ",
              "use_implementation('boxloss') goes back to what this boxloss holds: ",
              c10::Join(", ", implementation_names()));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::OptionalDeviceGuard guard(a.pred.device());
  const Execution execution = execution_on(a.pred.device());
  return with_torch_errors(a.function, [&] {
    implementation_on(a.pred.device());  // before torch is asked for anything there
    const at::Tensor result = at::empty_symint(cost_shape(a), a.pred.options().dtype(at::kFloat));
    if (result.numel() == 0) return result;
    const CostCall call = make_call(a, options);
    matching_cost(call.implementation, call.problem, result.mutable_data_ptr<float>(), execution);
    return result;
  });
}

template <auto kernel>
at::Tensor matching_cost_entry(const at::Tensor& pred, const at::Tensor& target,
                               const at::Tensor& offsets, const OptionalTensor& logits,
                               const OptionalTensor& labels, const OptionalTensor& class_cost,
                               std::string_view loss, double iou_weight, double l1_weight,
                               double class_weight, std::string_view class_mode, double focal_alpha,
                               double focal_gamma, std::string_view pred_format,
                               std::string_view target_format, double eps,
                               std::string_view eps_mode, std::optional<double> nonfinite) {
  return kernel({pred, target, offsets, logits, labels, class_cost, loss, iou_weight, l1_weight,
                 class_weight, class_mode, focal_alpha, focal_gamma, pred_format, target_format,
                 eps, eps_mode, nonfinite});
}

template <auto kernel>
at::Tensor pairwise_iou_entry(const at::Tensor& pred, const at::Tensor& target,
                              const at::Tensor& offsets, std::string_view loss,
                              std::string_view pred_format, std::string_view target_format,
                              double eps, std::string_view eps_mode) {
  constexpr double kOneMinusLoss = -1;
  return kernel({pred, target, offsets, std::nullopt, std::nullopt, std::nullopt, loss,
                 kOneMinusLoss, 0, 0, "softmax", 0, 0, pred_format, target_format, eps, eps_mode,
                 std::nullopt, "pairwise_iou"});
}

template <auto kernel>
void register_operators(torch::Library& m) {
  m.impl("matching_cost", matching_cost_entry<kernel>);
  m.impl("pairwise_iou", pairwise_iou_entry<kernel>);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  m.def(
      "matching_cost(Tensor pred, Tensor target, Tensor offsets, Tensor? logits=None, "
      "Tensor? labels=None, Tensor? class_cost=None, str loss='giou', float iou_weight=2.0, "
      "float l1_weight=5.0, float class_weight=1.0, str class_mode='softmax', "
      "float focal_alpha=0.25, float focal_gamma=2.0, str pred_format='cxcywh', "
      "str target_format='cxcywh', float eps=0.0, str eps_mode='add', float? nonfinite=None) "
      "-> Tensor",
      tags);
  m.def(
      "pairwise_iou(Tensor pred, Tensor target, Tensor offsets, str loss='ciou', "
      "str pred_format='xyxy', str target_format='xyxy', float eps=1e-7, str eps_mode='add') "
      "-> Tensor",
      tags);
}

TORCH_LIBRARY_IMPL(boxloss, CPU, m) {
  using namespace boxloss::torch_binding;
  register_operators<cost>(m);
}

TORCH_LIBRARY_IMPL(boxloss, CUDA, m) {
  using namespace boxloss::torch_binding;
  register_operators<cost>(m);
}

// All other devices, for an error that lists the supported ones.
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
