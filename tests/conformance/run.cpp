// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include "pairings/indexed.hpp"

namespace boxloss::conformance {
namespace {

/// The problem with its arrays on an implementation's device.
class DeviceProblem {
 public:
  DeviceProblem(const DeviceMemory& memory, Device device, const HostProblem& host)
      : problem(host.problem),
        pred_(memory, host.pred),
        target_(memory, host.target),
        indices_(memory, host.indices),
        pred_rows_(memory, host.pred_rows),
        target_rows_(memory, host.target_rows),
        weight_(memory, host.weight),
        normalizer_(memory, host.normalizer) {
    problem.device = device;
    move_to(problem.pred.data, host.pred, pred_);
    move_to(problem.target.data, host.target, target_);
    move_to(problem.pairing.data.data, host.indices, indices_);
    move_to(problem.pred.rows.data, host.pred_rows, pred_rows_);
    move_to(problem.target.rows.data, host.target_rows, target_rows_);
    move_to(problem.weight.data, host.weight, weight_);
    move_to(problem.normalizer.data, host.normalizer, normalizer_);
  }

  LossProblem problem;

 private:
  Input pred_, target_, indices_, pred_rows_, target_rows_, weight_, normalizer_;
};

/// An output to be written, or nothing where it is not wanted. It begins `shift` bytes behind an
/// address that suits every access.
class OptionalOutput {
 public:
  OptionalOutput(const DeviceMemory& memory, bool wanted, DType dtype, std::int64_t count,
                 std::size_t shift = 0)
      : wanted_(wanted),
        values_(dtype, wanted ? count : 0),
        output_(memory, values_.size_bytes(), shift) {}

  void* data() const { return wanted_ ? output_.data() : nullptr; }
  bool sentinels_intact() const { return output_.sentinels_intact(); }
  Array read() {
    output_.read(values_);
    return values_;
  }

 private:
  bool wanted_;
  Array values_;
  Output output_;
};

/// Of the gradient of boxes.
std::size_t shift_of(Alignment alignment, const BoxView& boxes) {
  if (alignment == Alignment::kWide) return 0;
  const bool is_added_by_words = boxes.rows.data != nullptr && size_of(boxes.dtype) == 2;
  return is_added_by_words ? 8 : size_of(boxes.dtype);
}

std::int64_t values_of(const BoxView& boxes) { return 4 * boxes.images * boxes.slots; }

/// Of boxes at all, in any of the table's layouts.
bool has_no_gaps(const BoxView& boxes) {
  return (boxes.images - 1) * boxes.image_stride + (boxes.slots - 1) * boxes.slot_stride +
             3 * boxes.coordinate_stride + 1 ==
         values_of(boxes);
}

bool are_rows(const BoxView& boxes) {
  return boxes.coordinate_stride == 1 && boxes.slot_stride == 4 &&
         (boxes.images <= 1 || boxes.image_stride == 4 * boxes.slots);
}

bool can_keep_strides(const LossProblem& p, const BoxView& boxes) {
  return !is_indexed(p) && values_of(boxes) > 0 && has_no_gaps(boxes) && !are_rows(boxes);
}

/// A gradient that has the strides of its boxes, row by row.
Array in_rows(const Array& gradient, const BoxView& boxes) {
  Array rows(gradient.dtype(), gradient.count());
  std::int64_t next = 0;
  for (std::int64_t b = 0; b < boxes.images; ++b) {
    for (std::int64_t j = 0; j < boxes.slots; ++j) {
      for (std::int64_t i = 0; i < 4; ++i) {
        rows.set(next++, gradient.get(b * boxes.image_stride + j * boxes.slot_stride +
                                      i * boxes.coordinate_stride));
      }
    }
  }
  return rows;
}

/// An incoming gradient on a device, or none.
class DeviceUpstream {
 public:
  DeviceUpstream(const DeviceMemory& memory, const std::optional<Upstream>& upstream)
      : values_(memory, upstream ? upstream->values : Array()) {
    if (upstream) view_ = {values_.data(), upstream->image_stride, upstream->slot_stride};
  }

  const GradView& view() const { return view_; }

 private:
  Input values_;
  GradView view_;
};

}  // namespace

Wanted all_gradients(const LossProblem& p) {
  return {true, is_floating(p.target.dtype), p.weight.data != nullptr};
}

Set<Extra> all_extras(const LossProblem& p) {
  return p.pred.format == p.target.format ? kExtras : Set<Extra>{Extra::kIou};
}

bool can_keep_strides(const LossProblem& p) {
  return can_keep_strides(p, p.pred) || can_keep_strides(p, p.target);
}

ForwardResult run_forward(const Implementation& implementation, const HostProblem& host,
                          const Set<Extra>& extras, const ParallelFor& parallel_for) {
  const DeviceMemory& memory = *device_memory(implementation.device);
  const DeviceProblem device(memory, implementation.device, host);
  const LossProblem& p = host.problem;
  const DType dtype = compute_dtype(p);
  const std::int64_t values = p.reduction == Reduction::kNone ? loss_rows(p) : loss_sets(p);
  OptionalOutput loss(memory, true, dtype, values);
  OptionalOutput scale(memory, true, dtype, loss_sets(p));
  OptionalOutput l1(memory, extras.contains(Extra::kL1), dtype, values);
  OptionalOutput iou(memory, extras.contains(Extra::kIou), dtype, loss_rows(p));
  const std::size_t workspace_bytes = loss_workspace_bytes(implementation, device.problem);
  const Output workspace(memory, workspace_bytes);

  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace_bytes;
  execution.parallel_for = parallel_for;
  loss_forward(implementation, device.problem, {loss.data(), scale.data(), l1.data(), iou.data()},
               execution);

  ForwardResult result{loss.read(), scale.read(), l1.read(), iou.read(), {}};
  result.sentinels_intact = loss.sentinels_intact() && scale.sentinels_intact() &&
                            l1.sentinels_intact() && iou.sentinels_intact() &&
                            workspace.sentinels_intact();
  return result;
}

BackwardResult run_backward(const Implementation& implementation, const HostProblem& host,
                            const Upstreams& upstreams, const Array& scale, const Wanted& wanted,
                            const ParallelFor& parallel_for, Alignment alignment,
                            GradientLayout layout) {
  const DeviceMemory& memory = *device_memory(implementation.device);
  const LossProblem& p = host.problem;
  const DeviceProblem device(memory, implementation.device, host);
  const DeviceUpstream loss(memory, upstreams.loss), l1(memory, upstreams.l1);
  const Input scale_value(memory, scale);
  const auto gradient_of = [&](bool is_wanted, const BoxView& boxes) {
    return OptionalOutput(memory, is_wanted, boxes.dtype, values_of(boxes),
                          shift_of(alignment, boxes));
  };
  OptionalOutput pred = gradient_of(wanted.pred, p.pred);
  OptionalOutput target = gradient_of(wanted.target, p.target);
  OptionalOutput weight(memory, wanted.weight, p.weight.dtype, loss_rows(p),
                        alignment == Alignment::kWide ? 0 : size_of(p.weight.dtype));

  Execution execution;
  execution.parallel_for = parallel_for;
  const auto keeps_strides = [&](bool is_wanted, const BoxView& boxes) {
    return is_wanted && layout == GradientLayout::kOfBoxes && can_keep_strides(p, boxes);
  };
  const LossGradients gradients{pred.data(), target.data(), weight.data(),
                                keeps_strides(wanted.pred, p.pred),
                                keeps_strides(wanted.target, p.target)};
  loss_backward(implementation, device.problem, {loss.view(), l1.view()}, scale_value.data(),
                gradients, execution);

  BackwardResult result{pred.read(), target.read(), weight.read(), {}};
  if (gradients.keeps_pred_strides) result.pred = in_rows(result.pred, p.pred);
  if (gradients.keeps_target_strides) result.target = in_rows(result.target, p.target);
  result.sentinels_intact =
      pred.sentinels_intact() && target.sentinels_intact() && weight.sentinels_intact();
  return result;
}

}  // namespace boxloss::conformance
