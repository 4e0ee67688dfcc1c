// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "broken.hpp"

#include <cmath>

#include "memory.hpp"

namespace boxloss::conformance {
namespace {

const Implementation* unbroken = nullptr;

void edit_losses(const LossProblem& p, const LossOutputs& outputs, const Execution& execution,
                 const Edit& edit) {
  whole().forward(p, outputs, execution);
  const std::int64_t count = p.reduction == Reduction::kNone ? loss_rows(p) : 1;
  edit_on_device(outputs.loss, compute_dtype(p), count, edit);
}

void edit_pred_gradient(const LossProblem& p, const GradOutputs& grads, const void* scale,
                        const LossGradients& gradients, const Execution& execution,
                        const Edit& edit) {
  whole().backward(p, grads, scale, gradients, execution);
  if (gradients.pred == nullptr) return;
  edit_on_device(gradients.pred, p.pred.dtype, 4 * p.pred.images * p.pred.slots, edit);
}

void wrong_last_loss(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  edit_losses(p, outputs, execution, [](Array& losses) {
    const std::int64_t last = losses.count() - 1;
    losses.set(last, losses.get(last) * (1 + 0x1p-18));
  });
}

void swallowed_nan(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  edit_losses(p, outputs, execution, [](Array& losses) {
    for (std::int64_t i = 0; i < losses.count(); ++i) {
      if (std::isnan(losses.get(i))) losses.set(i, 0);
    }
  });
}

void unwritten_loss(const LossProblem&, const LossOutputs&, const Execution&) {}

void write_past_losses(const LossProblem& p, const LossOutputs& outputs,
                       const Execution& execution) {
  whole().forward(p, outputs, execution);
  const std::int64_t count = p.reduction == Reduction::kNone ? loss_rows(p) : 1;
  const std::size_t size = size_of(compute_dtype(p));
  edit_on_device(static_cast<std::byte*>(outputs.loss) + static_cast<std::size_t>(count) * size,
                 compute_dtype(p), 1, [](Array& beyond) { beyond.set(0, 0); });
}

void sum_without_last_slot(const LossProblem& p, const LossOutputs& outputs,
                           const Execution& execution) {
  LossProblem shorter = p;
  --shorter.pred.slots;
  --shorter.target.slots;
  whole().forward(shorter, outputs, execution);
}

void counted_padding(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  LossProblem all = p;
  all.pairing = {};
  whole().forward(all, outputs, execution);
}

void ignored_eps_mode(const LossProblem& p, const LossOutputs& outputs,
                      const Execution& execution) {
  LossProblem other = p;
  other.eps_mode = EpsMode::kAdd;
  whole().forward(other, outputs, execution);
}

void neighbouring_coordinates(const LossProblem& p, const LossOutputs& outputs,
                              const Execution& execution) {
  LossProblem packed = p;
  packed.pred.coordinate_stride = 1;
  whole().forward(packed, outputs, execution);
}

void gradient_in_rows(const LossProblem& p, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution& execution) {
  LossGradients rows = gradients;
  rows.keeps_pred_strides = false;
  whole().backward(p, grads, scale, rows, execution);
}

void wrong_coordinate(const LossProblem& p, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution& execution) {
  edit_pred_gradient(p, grads, scale, gradients, execution, [](Array& gradient) {
    for (std::int64_t i = 2; i < gradient.count(); i += 4) {
      gradient.set(i, gradient.get(i) * (1 + 0x1p-16));
    }
  });
}

void leaking_padding(const LossProblem& p, const GradOutputs& grads, const void* scale,
                     const LossGradients& gradients, const Execution& execution) {
  edit_pred_gradient(p, grads, scale, gradients, execution, [](Array& gradient) {
    for (std::int64_t i = 0; i < gradient.count(); ++i) {
      if (gradient.get(i) == 0) gradient.set(i, 0x1p-140);
    }
  });
}

void ignored_upstream_stride(const LossProblem& p, const GradOutputs& grads, const void* scale,
                             const LossGradients& gradients, const Execution& execution) {
  GradOutputs first = grads;
  first.loss.slot_stride = 0;
  whole().backward(p, first, scale, gradients, execution);
}

void forgotten_weight(const LossProblem& p, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution& execution) {
  LossProblem unweighted = p;
  if (gradients.weight == nullptr) unweighted.weight.data = nullptr;
  whole().backward(unweighted, grads, scale, gradients, execution);
}

std::vector<Breakage> breakages_of_slots() {
  return {
      {"the last loss is off by 64 roundings", "f32 f32", wrong_last_loss, nullptr},
      {"losses are not written", "f32 f32", unwritten_loss, nullptr},
      {"a loss too many is written", "f32 f32", write_past_losses, nullptr},
      {"NaN is swallowed", "special", swallowed_nan, nullptr},
      {"the sum forgets the last slot", "31", sum_without_last_slot, nullptr},
      {"padding counts", "mean by f64", counted_padding, nullptr},
      {"eps_mode is ignored", "kinks at eps", ignored_eps_mode, nullptr},
      {"coordinates are taken to be neighbours", "preds in planes", neighbouring_coordinates,
       nullptr},
      {"pred's gradient does not keep strides", "preds in planes", nullptr, gradient_in_rows},
      {"the gradient of x2 is off by 256 roundings", "f32 f32", nullptr, wrong_coordinate},
      {"padding has a gradient", "gaps", nullptr, leaking_padding},
      {"the incoming gradient's stride is ignored", "f32 f32", nullptr, ignored_upstream_stride},
      {"the weight is forgotten", "one pred", nullptr, forgotten_weight},
  };
}

}  // namespace

const Implementation& whole() { return *unbroken; }

Array read_on_device(const void* data, DType dtype, std::int64_t count) {
  Array values(dtype, count);
  device_memory(whole().device)->copy_out(values.data(), data, values.size_bytes());
  return values;
}

void edit_on_device(void* data, DType dtype, std::int64_t count, const Edit& edit) {
  Array values = read_on_device(data, dtype, count);
  edit(values);
  device_memory(whole().device)->copy_in(data, values.data(), values.size_bytes());
}

const std::vector<Breakage>& breakages() {
  static const std::vector<Breakage> all = [] {
    std::vector<Breakage> list = breakages_of_slots();
    const std::vector<Breakage> more = breakages_of_pairs();
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

Implementation broken(const Implementation& inner, const Breakage& breakage) {
  unbroken = &inner;
  Implementation copy = inner;
  if (breakage.forward != nullptr) copy.forward = breakage.forward;
  if (breakage.backward != nullptr) copy.backward = breakage.backward;
  if (breakage.matching_cost != nullptr) copy.matching_cost = breakage.matching_cost;
  return copy;
}

}  // namespace boxloss::conformance
