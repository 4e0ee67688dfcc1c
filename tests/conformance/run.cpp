// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

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
        weight_(memory, host.weight),
        normalizer_(memory, host.normalizer) {
    problem.device = device;
    move_to(problem.pred.data, host.pred, pred_);
    move_to(problem.target.data, host.target, target_);
    move_to(problem.pairing.data.data, host.indices, indices_);
    move_to(problem.weight.data, host.weight, weight_);
    move_to(problem.normalizer.data, host.normalizer, normalizer_);
  }

  LossProblem problem;

 private:
  static void move_to(const void*& pointer, const Array& host, const Input& input) {
    if (pointer == nullptr) return;
    const auto offset =
        static_cast<const std::byte*>(pointer) - static_cast<const std::byte*>(host.data());
    pointer = static_cast<const std::byte*>(input.data()) + offset;
  }

  Input pred_, target_, indices_, weight_, normalizer_;
};

/// A gradient to be written, or nothing where it is not wanted.
class OptionalOutput {
 public:
  OptionalOutput(const DeviceMemory& memory, bool wanted, DType dtype, std::int64_t count,
                 Alignment alignment)
      : wanted_(wanted),
        values_(dtype, wanted ? count : 0),
        output_(memory, values_.size_bytes(), alignment == Alignment::kWide ? 0 : size_of(dtype)) {}

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

}  // namespace

Wanted all_gradients(const LossProblem& p) {
  return {true, is_floating(p.target.dtype), p.weight.data != nullptr};
}

ForwardResult run_forward(const Implementation& implementation, const HostProblem& host,
                          const ParallelFor& parallel_for) {
  const DeviceMemory& memory = *device_memory(implementation.device);
  const DeviceProblem device(memory, implementation.device, host);
  const DType dtype = compute_dtype(host.problem);
  const bool is_reduced = host.problem.reduction != Reduction::kNone;
  ForwardResult result{Array(dtype, is_reduced ? 1 : loss_rows(host.problem)), Array(dtype, 1), {}};
  const Output loss(memory, result.loss.size_bytes());
  const Output scale(memory, result.scale.size_bytes());
  const std::size_t workspace_bytes = loss_workspace_bytes(implementation, device.problem);
  const Output workspace(memory, workspace_bytes);

  Execution execution;
  execution.workspace = workspace.data();
  execution.workspace_bytes = workspace_bytes;
  execution.parallel_for = parallel_for;
  loss_forward(implementation, device.problem, {loss.data(), scale.data()}, execution);

  loss.read(result.loss);
  scale.read(result.scale);
  result.sentinels_intact =
      loss.sentinels_intact() && scale.sentinels_intact() && workspace.sentinels_intact();
  return result;
}

BackwardResult run_backward(const Implementation& implementation, const HostProblem& host,
                            const Upstream& upstream, const Array& scale, const Wanted& wanted,
                            const ParallelFor& parallel_for, Alignment alignment) {
  const DeviceMemory& memory = *device_memory(implementation.device);
  const LossProblem& p = host.problem;
  const DeviceProblem device(memory, implementation.device, host);
  const Input upstream_values(memory, upstream.values);
  const Input scale_value(memory, scale);
  const std::int64_t rows = loss_rows(p);
  OptionalOutput pred(memory, wanted.pred, p.pred.dtype, 4 * p.pred.images * p.pred.slots,
                      alignment);
  OptionalOutput target(memory, wanted.target, p.target.dtype, 4 * rows, alignment);
  OptionalOutput weight(memory, wanted.weight, p.weight.dtype, rows, alignment);

  Execution execution;
  execution.parallel_for = parallel_for;
  loss_backward(implementation, device.problem,
                {upstream_values.data(), upstream.image_stride, upstream.slot_stride},
                scale_value.data(), {pred.data(), target.data(), weight.data()}, execution);

  BackwardResult result{pred.read(), target.read(), weight.read(), {}};
  result.sentinels_intact =
      pred.sentinels_intact() && target.sentinels_intact() && weight.sentinels_intact();
  return result;
}

}  // namespace boxloss::conformance
