// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/class_loss.hpp>
#include <boxloss/registry.hpp>
#include <cmath>
#include <string>

#include "src/checks.hpp"

namespace boxloss {
namespace {

bool takes_quality(ClassLoss mode) {
  return mode != ClassLoss::kFocal && mode != ClassLoss::kSoftmax;
}

bool takes_focus(ClassLoss mode) { return mode != ClassLoss::kBce && mode != ClassLoss::kSoftmax; }

void check_mode(ClassLoss mode) {
  if (is_one(mode) && mode != ClassLoss::kUnset) return;
  std::string words;
  for (int i = 1; is_one(static_cast<ClassLoss>(i)); ++i) {
    words += (i == 1 ? "" : ", ") + std::string(name_of(static_cast<ClassLoss>(i)));
  }
  throw InvalidArgument(message("mode is ", shown(mode), "; it must be one of ", words));
}

void check_number(const char* name, const ClassLossProblem& p, std::optional<double> number) {
  if (!number) return;
  check(takes_focus(p.mode), name, " is ", *number, "; mode '", name_of(p.mode), "' has none");
  check(std::isfinite(static_cast<float>(*number)), name, " is ", *number, "; it must be finite");
}

void check_sizes(const ClassLossProblem& p) {
  check_size("sets", p.sets, "sets of queries");
  check_size("images", p.images, "images");
  check_size("queries", p.queries, "queries of each image");
  check_size("classes", p.classes, "logits of each query");
  check_size("targets", p.targets, "labels");
  std::int64_t left = kMostBoxes;
  for (const std::int64_t size : {p.sets, p.images, p.queries, p.classes}) {
    if (size == 0) continue;
    check(size <= left, "logits has shape (", p.sets, ", ", p.images, ", ", p.queries, ", ",
          p.classes, "), which is more than 64 bits can count");
    left /= size;
  }
}

/// Whether queries are read.
bool has_queries(const ClassLossProblem& p) { return p.sets * p.images * p.queries > 0; }
bool has_logits(const ClassLossProblem& p) { return has_queries(p) && p.classes > 0; }
bool has_losses(const ClassLossProblem& p) {
  return p.reduction == Reduction::kNone ? has_queries(p) : p.sets > 0;
}

void check_problem(const Implementation& implementation, const char* operation, bool is_served,
                   const ClassLossProblem& p) {
  check_served(implementation, operation, is_served, p.device);
  check_options(p);
  check_sizes(p);
  const LogitView& x = p.logits;
  check_stride("logits", "set", x.set_stride, p.sets);
  check_stride("logits", "image", x.image_stride, p.images);
  check_stride("logits", "query", x.query_stride, p.queries);
  for (const std::int64_t stride : {x.set_stride, x.image_stride, x.query_stride, x.class_stride}) {
    check(may_be_stride(stride), "logits has a negative stride, ", stride);
  }
  check(p.mode != ClassLoss::kSoftmax || p.classes > 0 || !has_queries(p),
        "logits has no classes; mode 'softmax' needs that of queries without a box");
  check_given("target_index", p.target_index, has_queries(p), "(sets, images, queries) integers");
  check_given("labels", p.labels, has_queries(p) && p.targets > 0, "(targets) integers");
}

void check_pointers(const ClassLossProblem& p) {
  const bool is_read = has_queries(p);
  check_aligned("logits", p.logits.data, p.logits.dtype);
  check(p.logits.data != nullptr || !has_logits(p), "logits.data is null");
  check_pointer("target_index", p.target_index, is_read);
  check_pointer("labels", p.labels, is_read && p.targets > 0);
  check_pointer("quality", p.quality, is_read && p.targets > 0);
  check_pointer("query_quality", p.query_quality, is_read);
  check_pointer("weight", p.weight, is_read && p.classes > 0);
  check_pointer("normalizer", p.normalizer, p.sets > 0);
}

}  // namespace

DType compute_dtype(const ClassLossProblem& problem) {
  return problem.logits.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

void check_options(const ClassLossProblem& p) {
  check_mode(p.mode);
  check_enumerator("reduction", "", p.reduction);
  check_floating("logits", p.logits.dtype);
  check_indices("target_index", p.target_index);
  check_indices("labels", p.labels);
  const bool has_quality = is_given(p.quality), has_query_quality = is_given(p.query_quality);
  check(!has_quality || !has_query_quality, "give quality or query_quality, not both");
  check(takes_quality(p.mode) || !(has_quality || has_query_quality), "mode '", name_of(p.mode),
        "' has no quality");
  check(!takes_quality(p.mode) || p.mode == ClassLoss::kBce || has_quality || has_query_quality,
        "mode '", name_of(p.mode), "' needs quality or query_quality");
  for (const auto& [name, array] :
       {std::pair("quality", p.quality), std::pair("query_quality", p.query_quality),
        std::pair("weight", p.weight)}) {
    if (is_given(array)) check_floating(name, array.dtype);
  }
  check_number("alpha", p, p.alpha);
  check_number("gamma", p, p.gamma);
  check(p.mode != ClassLoss::kIaBce || !p.alpha || (*p.alpha >= 0 && *p.alpha <= 1), "alpha is ",
        p.alpha.value_or(0),
        "; mode 'ia_bce' has powers of alpha and 1 - alpha: it must be from 0 to 1");
  check(!p.gamma || *p.gamma >= 0, "gamma is ", p.gamma.value_or(0), "; it must not be negative");
  check(p.mode == ClassLoss::kSoftmax || p.no_object_weight == 1, "no_object_weight is ",
        p.no_object_weight, "; only mode 'softmax' has one");
  check(std::isfinite(static_cast<float>(p.no_object_weight)), "no_object_weight is ",
        p.no_object_weight, "; it must be finite");
  check_normalizer(p.normalizer, p.normalizer_stride, p.reduction);
}

std::size_t class_loss_workspace_bytes(const Implementation& implementation,
                                       const ClassLossProblem& p) {
  const auto& served = implementation.class_loss;
  check_problem(implementation, "class_loss", served.run != nullptr, p);
  return has_queries(p) ? bytes_of(served, p) : 0;
}

std::size_t class_loss_backward_workspace_bytes(const Implementation& implementation,
                                                const ClassLossGradProblem& p) {
  const auto& served = implementation.class_loss_backward;
  check_problem(implementation, "class_loss_backward", served.run != nullptr, p);
  return has_logits(p) ? bytes_of(served, p) : 0;
}

void class_loss(const Implementation& implementation, const ClassLossProblem& p,
                const ClassLossOutputs& outputs, const Execution& execution) {
  check_call(class_loss_workspace_bytes, implementation, p, execution);
  check_pointers(p);
  const DType compute = compute_dtype(p);
  check_data("outputs.loss", outputs.loss, compute, has_losses(p));
  check_data("outputs.scale", outputs.scale, compute, p.sets > 0);
  implementation.class_loss.run(p, outputs, execution);
}

void class_loss_backward(const Implementation& implementation, const ClassLossGradProblem& p,
                         const ClassLossGradOutputs& outputs, const Execution& execution) {
  check_call(class_loss_backward_workspace_bytes, implementation, p, execution);
  check_pointers(p);
  check_data("grad", p.grad, compute_dtype(p), has_logits(p));
  check_data("scale", p.scale, compute_dtype(p), has_logits(p));
  check_data("outputs.logits", outputs.logits, p.logits.dtype, has_logits(p));
  if (has_logits(p)) implementation.class_loss_backward.run(p, outputs, execution);
}

}  // namespace boxloss
