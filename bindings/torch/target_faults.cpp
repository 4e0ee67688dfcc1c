// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/target_faults.hpp"

#include "operation.hpp"

/// Faults in ground truth, for boxloss.torch.compat. It has no gradient, and bypasses autograd;
/// function transforms are refused. What does not serve a device is a TypeError or, without any
/// implementation for it, a RuntimeError.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "_target_faults";
constexpr char kOperator[] = "boxloss::_target_faults";

using Tensors = TensorsOf<binding::TargetFaults>;

void check_answer(const at::Tensor& boxes, const OptionalTensor& given) {
  if (!given) return;
  const at::Tensor& answer = *given;
  check_placed(kFunction, "answer", answer, nullptr, nullptr);
  TORCH_CHECK(answer.is_cpu() || boxes.is_meta(), kFunction, ": answer is on ", answer.device(),
              "; it must be on the CPU");
  TORCH_CHECK_TYPE(answer.scalar_type() == at::kFloat, kFunction, ": answer is ",
                   c10::getDtypeNames(answer.scalar_type()).first, "; it must be float32");
  TORCH_CHECK_VALUE(answer.sym_numel() == 1, kFunction, ": answer has shape ", answer.sym_sizes(),
                    "; it must be one number");
}

at::Tensor empty_factor(const at::Tensor& boxes) {
  return at::empty({}, boxes.options().dtype(at::kFloat));
}

at::Tensor meta(const at::Tensor& boxes, const at::Tensor& labels, const OptionalTensor& image,
                std::int64_t classes, std::int64_t images, bool has_sizes,
                const OptionalTensor& answer) {
  with_torch_errors(kFunction, [&] {
    const Tensors tensors = {boxes, labels, image, classes, images, has_sizes};
    const Converted<binding::TargetFaults, c10::SymInt> converted(kFunction, tensors);
    binding::TargetFaults::describe(converted.arguments());
    check_answer(boxes, answer);
  });
  return empty_factor(boxes);
}

/// Where the host sees what the device writes: a GPU can address pinned memory only.
float* answer_memory(const at::Tensor& boxes, const at::Tensor& answer) {
  TORCH_CHECK_VALUE(boxes.is_cpu() || answer.is_pinned(), kFunction,
                    ": answer is not in pinned memory, which it must be for boxes on ",
                    boxes.device());
  return answer.mutable_data_ptr<float>();
}

at::Tensor found(const at::Tensor& boxes, const at::Tensor& labels, const OptionalTensor& image,
                 std::int64_t classes, std::int64_t images, bool has_sizes,
                 const OptionalTensor& answer) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_torch_errors(kFunction, [&] {
    const Tensors tensors = {boxes, labels, image, classes, images, has_sizes};
    const Implementation& implementation = implementation_on(boxes.device());
    const Converted<binding::TargetFaults, std::int64_t> converted(kFunction, tensors);
    TargetProblem p = binding::TargetFaults::describe(converted.arguments());
    check_answer(boxes, answer);
    const c10::OptionalDeviceGuard guard(boxes.device());
    p.device = implementation.device;
    const at::Tensor factor = empty_factor(boxes);
    TargetOutputs outputs = {factor.mutable_data_ptr<float>()};
    if (answer) outputs.answer = answer_memory(boxes, *answer);
    target_faults(implementation, p, outputs, execution_on(boxes.device()));
    return factor;
  });
}

using Operator =
    WithoutGradient<at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                               std::int64_t, std::int64_t, bool, const OptionalTensor&)>;

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  m.def(
      "_target_faults(Tensor boxes, Tensor labels, Tensor? image, int classes, int images, "
      "bool has_sizes, Tensor(a!)? answer) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  boxloss::torch_binding::implement_on_devices(m, "_target_faults", boxloss::torch_binding::found);
}

TORCH_LIBRARY_IMPL(boxloss, Meta, m) { m.impl("_target_faults", boxloss::torch_binding::meta); }

TORCH_LIBRARY_IMPL(boxloss, Autograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("_target_faults", Operator::past_autograd<kFunction, kOperator>);
}

TORCH_LIBRARY_IMPL(boxloss, FuncTorchBatched, m) {
  using namespace boxloss::torch_binding;
  m.impl("_target_faults", Operator::refuse_vmap<kFunction>);
}
