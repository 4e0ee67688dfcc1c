// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/distribution_loss.hpp>
#include <boxloss/registry.hpp>
#include <cmath>

#include "src/checks.hpp"

namespace boxloss {
namespace {

void check_positive(const char* name, double number) {
  const auto square = static_cast<float>(number * number);
  check(number > 0 && square > 0 && std::isfinite(square), name, " is ", number,
        "; it must be positive and finite, and so must its square in float32");
}

/// What the other mode has is not given.
void check_arrays(const DistributionLossProblem& p) {
  const bool is_fgl = p.mode == DistributionLoss::kFgl;
  const ArrayView teacher = {p.teacher.data, p.teacher.dtype};
  const auto check_array = [&](const char* name, const ArrayView& array, bool is_of_fgl) {
    check(is_given(array) == (is_of_fgl == is_fgl), "mode '", name_of(p.mode), "' ",
          is_given(array) ? "has no " : "needs ", name);
    if (is_given(array)) check_floating(name, array.dtype);
  };
  check_array("reference", p.reference, true);
  check_array("target", p.target, true);
  check_array("edges", p.edges, true);
  check_array("teacher", teacher, false);
  check_array("confidence", p.confidence, false);
  check(is_fgl || !is_given(p.normalizer), "normalizer is given; mode 'ddf' has a mean of its own");
  check_normalizer(p.normalizer, p.normalizer_stride, p.reduction);
  if (is_given(p.quality)) check_floating("quality", p.quality.dtype);
}

void check_numbers(const DistributionLossProblem& p) {
  const bool is_fgl = p.mode == DistributionLoss::kFgl;
  check_positive("reg_scale", p.reg_scale);
  check_positive("temperature", p.temperature);
  check(is_fgl || p.reg_scale == 4, "reg_scale is ", p.reg_scale, "; only mode 'fgl' has one");
  check(!is_fgl || p.temperature == 5, "temperature is ", p.temperature,
        "; only mode 'ddf' has one");
}

void check_sizes(const DistributionLossProblem& p) {
  check_size("sets", p.sets, "sets of queries");
  check_size("images", p.images, "images");
  check_size("queries", p.queries, "queries of each image");
  check_size("bins", p.bins, "logits of each side");
  if (p.mode == DistributionLoss::kFgl) {
    check_size("targets", p.targets, "boxes of target");
    check(p.targets <= kMostBoxes, "targets is ", p.targets, ", more than 64 bits can count");
    check(p.bins >= 2, "bins is ", p.bins, "; mode 'fgl' needs at least 2, to lie between");
  }
  check(p.bins >= 1, "bins is ", p.bins, "; it must be at least 1");
  std::int64_t left = kMostBoxes / 4;
  for (const std::int64_t size : {p.sets, p.images, p.queries, p.bins}) {
    if (size == 0) continue;
    check(size <= left, "logits has shape (", p.sets, ", ", p.images, ", ", p.queries, ", 4 * ",
          p.bins, "), which is more than 64 bits can count");
    left /= size;
  }
}

bool has_queries(const DistributionLossProblem& p) { return p.sets * p.images * p.queries > 0; }
bool has_losses(const DistributionLossProblem& p) {
  return p.reduction == Reduction::kNone ? has_queries(p) : p.sets > 0;
}

void check_problem(const Implementation& implementation, const char* operation, bool is_served,
                   const DistributionLossProblem& p) {
  check_served(implementation, operation, is_served, p.device);
  check_options(p);
  check_sizes(p);
  for (const auto& [name, view] :
       {std::pair("logits", p.logits), std::pair("teacher", p.teacher)}) {
    for (const std::int64_t stride : {view.set_stride, view.image_stride, view.query_stride}) {
      check(may_be_stride(stride), name, " has a negative stride, ", stride);
    }
    if (view.dtype == DType::kNone) continue;
    check_stride(name, "set", view.set_stride, p.sets);
    check_stride(name, "image", view.image_stride, p.images);
    check_stride(name, "query", view.query_stride, p.queries);
  }
  check_given("target_index", p.target_index, has_queries(p), "(sets, images, queries) integers");
}

void check_pointers(const DistributionLossProblem& p) {
  const bool is_read = has_queries(p);
  check_pointer("logits", {p.logits.data, p.logits.dtype}, is_read);
  check_pointer("target_index", p.target_index, is_read);
  check_pointer("quality", p.quality, is_read);
  check_pointer("reference", p.reference, is_read);
  check_pointer("target", p.target, is_read && p.targets > 0);
  check_pointer("edges", p.edges, is_read);
  check_pointer("teacher", {p.teacher.data, p.teacher.dtype}, is_read);
  check_pointer("confidence", p.confidence, is_read);
  check_pointer("normalizer", p.normalizer, p.sets > 0);
}

}  // namespace

DType compute_dtype(const DistributionLossProblem& problem) {
  return problem.logits.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

void check_options(const DistributionLossProblem& p) {
  check(p.mode == DistributionLoss::kFgl || p.mode == DistributionLoss::kDdf, "mode is ",
        shown(p.mode), "; it must be one of fgl, ddf");
  check_enumerator("reduction", "", p.reduction);
  check_floating("logits", p.logits.dtype);
  check_indices("target_index", p.target_index);
  check_arrays(p);
  check_numbers(p);
}

std::size_t distribution_loss_workspace_bytes(const Implementation& implementation,
                                              const DistributionLossProblem& p) {
  const auto& served = implementation.distribution_loss;
  check_problem(implementation, "distribution_loss", served.run != nullptr, p);
  return has_queries(p) ? bytes_of(served, p) : 0;
}

std::size_t distribution_loss_backward_workspace_bytes(const Implementation& implementation,
                                                       const DistributionLossGradProblem& p) {
  const auto& served = implementation.distribution_loss_backward;
  check_problem(implementation, "distribution_loss_backward", served.run != nullptr, p);
  return has_queries(p) ? bytes_of(served, p) : 0;
}

void distribution_loss(const Implementation& implementation, const DistributionLossProblem& p,
                       const DistributionLossOutputs& outputs, const Execution& execution) {
  check_call(distribution_loss_workspace_bytes, implementation, p, execution);
  check_pointers(p);
  check_data("outputs.loss", outputs.loss, compute_dtype(p), has_losses(p));
  check_data("outputs.scale", outputs.scale, compute_dtype(p), p.sets > 0);
  implementation.distribution_loss.run(p, outputs, execution);
}

void distribution_loss_backward(const Implementation& implementation,
                                const DistributionLossGradProblem& p,
                                const DistributionLossGradOutputs& outputs,
                                const Execution& execution) {
  check_call(distribution_loss_backward_workspace_bytes, implementation, p, execution);
  check_pointers(p);
  check_data("grad", p.grad, compute_dtype(p), has_queries(p));
  check_data("scale", p.scale, compute_dtype(p), has_queries(p));
  check_data("outputs.logits", outputs.logits, p.logits.dtype, has_queries(p));
  if (has_queries(p)) implementation.distribution_loss_backward.run(p, outputs, execution);
}

}  // namespace boxloss
