// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "broken.hpp"
#include "memory.hpp"

namespace boxloss::conformance {
namespace {

const DeviceMemory& memory() { return *device_memory(whole().device); }

// --- Other rows

/// A problem with other rows: each row of each side becomes edit(row, k, rows of the list).
class OtherRows {
 public:
  using RowEdit = std::function<std::int64_t(std::int64_t row, std::int64_t k, std::int64_t rows)>;

  OtherRows(const LossProblem& p, const RowEdit& edit)
      : problem(p),
        pred_(memory(), edited(p, p.pred, edit)),
        target_(memory(), edited(p, p.target, edit)) {
    problem.pred.rows.data = pred_.data();
    problem.target.rows.data = target_.data();
  }

  LossProblem problem;

 private:
  static Array edited(const LossProblem& p, const BoxView& list, const RowEdit& edit) {
    if (list.rows.data == nullptr) return {};
    Array rows = read_on_device(list.rows.data, list.rows.dtype, loss_rows(p));
    for (std::int64_t k = 0; k < rows.count(); ++k) {
      const auto row = static_cast<std::int64_t>(rows.get(k));
      rows.set(k, static_cast<double>(edit(row, k, list.images * list.slots)));
    }
    return rows;
  }

  Input pred_, target_;
};

template <std::int64_t (*kEdit)(std::int64_t row, std::int64_t k, std::int64_t rows)>
void forward_of_rows(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  const OtherRows other(p, kEdit);
  whole().forward(other.problem, outputs, execution);
}

std::int64_t own_row(std::int64_t, std::int64_t k, std::int64_t) { return k; }

std::int64_t counted_from_the_end(std::int64_t row, std::int64_t, std::int64_t rows) {
  return row < 0 ? row + rows : row;
}

std::int64_t clamped(std::int64_t row, std::int64_t, std::int64_t rows) {
  return std::min(row, rows - 1);
}

std::int64_t in_32_bits(std::int64_t row, std::int64_t, std::int64_t) {
  return static_cast<std::int32_t>(row);
}

void rows_of_32_bits(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  LossProblem narrow = p;
  narrow.pred.rows.dtype = narrow.target.rows.dtype = DType::kI32;
  whole().forward(narrow, outputs, execution);
}

void list_without_gaps(const LossProblem& p, const LossOutputs& outputs,
                       const Execution& execution) {
  LossProblem packed = p;
  packed.pred.image_stride = p.pred.slots * p.pred.slot_stride;
  whole().forward(packed, outputs, execution);
}

// --- Sums of sets

void count_of_next_set(const LossProblem& p, const LossOutputs& outputs,
                       const Execution& execution) {
  whole().forward(p, outputs, execution);
  const std::int64_t sets = loss_sets(p);
  const Array scale = read_on_device(outputs.scale, compute_dtype(p), sets);
  edit_on_device(outputs.loss, compute_dtype(p), sets, [&](Array& losses) {
    for (std::int64_t s = 0; s < sets; ++s) {
      losses.set(s, losses.get(s) / scale.get(s) * scale.get((s + 1) % sets));
    }
  });
}

void first_normalizer(const LossProblem& p, const LossOutputs& outputs,
                      const Execution& execution) {
  LossProblem common = p;
  common.normalizer_stride = 0;
  whole().forward(common, outputs, execution);
}

void first_upstream(const LossProblem& p, const GradOutputs& grads, const void* scale,
                    const LossGradients& gradients, const Execution& execution) {
  GradOutputs first = grads;
  first.loss.image_stride = 0;
  whole().backward(p, first, scale, gradients, execution);
}

// --- Rows of several pairs, and of none

/// Calls edit(row of pred's gradient, rows of the pairs) for each row of four values.
void edit_pred_rows(const LossProblem& p, const LossGradients& gradients,
                    const std::function<void(Array&, std::int64_t, bool has_pair)>& edit) {
  if (gradients.pred == nullptr) return;
  const std::int64_t list_rows = p.pred.images * p.pred.slots;
  const Array rows = read_on_device(p.pred.rows.data, p.pred.rows.dtype, loss_rows(p));
  std::vector<bool> has_pair(static_cast<std::size_t>(list_rows));
  for (std::int64_t k = 0; k < rows.count(); ++k) {
    const auto row = static_cast<std::int64_t>(rows.get(k));
    if (row >= 0 && row < list_rows) has_pair[static_cast<std::size_t>(row)] = true;
  }
  edit_on_device(gradients.pred, p.pred.dtype, 4 * list_rows, [&](Array& values) {
    for (std::int64_t row = 0; row < list_rows; ++row) {
      edit(values, row, has_pair[static_cast<std::size_t>(row)]);
    }
  });
}

void rows_left_as_they_were(const LossProblem& p, const GradOutputs& grads, const void* scale,
                            const LossGradients& gradients, const Execution& execution) {
  whole().backward(p, grads, scale, gradients, execution);
  edit_pred_rows(p, gradients, [](Array& values, std::int64_t row, bool has_pair) {
    if (!has_pair) values.set(4 * row, std::numeric_limits<double>::quiet_NaN());
  });
}

/// Only the last pair of each row reaches it: pred's gradient comes from a problem in which the
/// others do not count.
void overwritten_rows(const LossProblem& p, const GradOutputs& grads, const void* scale,
                      const LossGradients& gradients, const Execution& execution) {
  whole().backward(p, grads, scale, gradients, execution);
  const Array rows = read_on_device(p.pred.rows.data, p.pred.rows.dtype, loss_rows(p));
  const OtherRows last(p, [&](std::int64_t row, std::int64_t k, std::int64_t) {
    for (std::int64_t later = k + 1; later < rows.count(); ++later) {
      if (rows.get(later) == rows.get(k)) return std::int64_t{-1};
    }
    return row;
  });
  LossProblem problem = last.problem;
  problem.target.rows = p.target.rows;
  whole().backward(problem, grads, scale, {gradients.pred, nullptr, nullptr}, execution);
}

// --- l1

void unweighted_l1(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  LossProblem unweighted = p;
  unweighted.weight.data = nullptr;
  whole().forward(unweighted, outputs, execution);
  LossOutputs others = outputs;
  others.l1 = nullptr;
  whole().forward(p, others, execution);
}

void negative_l1_gradient(const LossProblem& p, const GradOutputs& grads, const void* scale,
                          const LossGradients& gradients, const Execution& execution) {
  if (grads.l1.data == nullptr) return whole().backward(p, grads, scale, gradients, execution);
  Array values = read_on_device(grads.l1.data, compute_dtype(p),
                                (p.pairing.sets - 1) * grads.l1.image_stride +
                                    (p.pairing.pairs - 1) * grads.l1.slot_stride + 1);
  for (std::int64_t i = 0; i < values.count(); ++i) values.set(i, -values.get(i));
  const Input negative(memory(), values);
  GradOutputs negated = grads;
  negated.l1.data = negative.data();
  whole().backward(p, negated, scale, gradients, execution);
}

void loss_alone(const LossProblem& p, const GradOutputs& grads, const void* scale,
                const LossGradients& gradients, const Execution& execution) {
  const bool has_loss = grads.loss.data != nullptr;
  whole().backward(p, has_loss ? GradOutputs{grads.loss, {}} : grads, scale, gradients, execution);
}

void one_upstream_for_both(const LossProblem& p, const GradOutputs& grads, const void* scale,
                           const LossGradients& gradients, const Execution& execution) {
  const bool has_both = grads.loss.data != nullptr && grads.l1.data != nullptr;
  whole().backward(p, has_both ? GradOutputs{grads.loss, grads.loss} : grads, scale, gradients,
                   execution);
}

void weight_gradient_of_loss_alone(const LossProblem& p, const GradOutputs& grads,
                                   const void* scale, const LossGradients& gradients,
                                   const Execution& execution) {
  whole().backward(p, grads, scale, gradients, execution);
  if (gradients.weight == nullptr) return;
  loss_alone(p, grads, scale, {nullptr, nullptr, gradients.weight}, execution);
}

// --- iou

void edit_iou(const LossProblem& p, const LossOutputs& outputs, const Execution& execution,
              const Edit& edit) {
  whole().forward(p, outputs, execution);
  if (outputs.iou != nullptr) edit_on_device(outputs.iou, compute_dtype(p), loss_rows(p), edit);
}

void scaled_iou(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  edit_iou(p, outputs, execution, [&](Array& ious) {
    const Array scale = read_on_device(outputs.scale, compute_dtype(p), loss_sets(p));
    for (std::int64_t i = 0; i < ious.count(); ++i) ious.set(i, ious.get(i) * scale.get(0));
  });
}

void weighted_iou(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  edit_iou(p, outputs, execution, [&](Array& ious) {
    const Array weight = read_on_device(p.weight.data, p.weight.dtype, loss_rows(p));
    for (std::int64_t i = 0; i < ious.count(); ++i) {
      // Those of excluded pairs, whose weights are NaN, stay 0.
      if (ious.get(i) != 0) ious.set(i, ious.get(i) * weight.get(i));
    }
  });
}

void excluded_iou(const LossProblem& p, const LossOutputs& outputs, const Execution& execution) {
  edit_iou(p, outputs, execution, [](Array& ious) {
    for (std::int64_t i = 0; i < ious.count(); ++i) {
      if (ious.get(i) == 0) ious.set(i, 0x1p-140);
    }
  });
}

}  // namespace

std::vector<Breakage> breakages_of_pairs() {
  return {
      {"the rows are ignored", "rows of one pair", forward_of_rows<own_row>, nullptr},
      {"-1 is the last row", "rows of one pair", forward_of_rows<counted_from_the_end>, nullptr},
      {"a row behind the list is the last", "rows of one pair", forward_of_rows<clamped>, nullptr},
      {"rows lose their upper halves", "indexed, mean by f64", forward_of_rows<in_32_bits>,
       nullptr},
      {"int64 rows are read as int32", "both by index, int64", rows_of_32_bits, nullptr},
      {"a list's images have no gaps", "indexed, images with gaps", list_without_gaps, nullptr},
      {"a set is divided by another's count", "both by index, sets", count_of_next_set, nullptr},
      {"normalizer_stride is ignored", "indexed, mean by f32 of each set", first_normalizer,
       nullptr},
      {"each set has the first's incoming gradient", "both by index, sets", nullptr,
       first_upstream},
      {"repeated rows are overwritten", "many pairs on few rows", nullptr, overwritten_rows},
      {"rows of no pair are left as they were", "rows of one pair", nullptr,
       rows_left_as_they_were},
      {"l1 is not weighted", "both by index", unweighted_l1, nullptr},
      {"l1 is not weighted, nor summed so", "indexed, sum", unweighted_l1, nullptr},
      {"l1's gradient has the wrong sign", "both by index", nullptr, negative_l1_gradient},
      {"l1's gradient is left out", "both by index", nullptr, loss_alone},
      {"l1's incoming gradient is the loss's", "both by index", nullptr, one_upstream_for_both},
      {"the weight's gradient lacks l1's part", "both by index", nullptr,
       weight_gradient_of_loss_alone},
      {"iou is reduced", "both by index, sets", scaled_iou, nullptr},
      {"iou is weighted", "both by index, sets", weighted_iou, nullptr},
      {"excluded pairs have an iou", "both by index", excluded_iou, nullptr},
      {"padding has an iou", "f16 f16", excluded_iou, nullptr},
  };
}

}  // namespace boxloss::conformance
