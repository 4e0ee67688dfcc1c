// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <boxloss/target_faults.hpp>

#include "adapter.hpp"
#include "checks.hpp"
#include "operators.hpp"

/// Faults in ground truth, for boxloss.torch.compat. It has no gradient, and bypasses autograd;
/// function transforms are refused. What does not serve a device is a TypeError or, without any
/// implementation for it, a RuntimeError.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "_target_faults";
constexpr char kOperator[] = "boxloss::_target_faults";

void check_answer(const at::Tensor& boxes, const at::Tensor& answer) {
  check_dense(kFunction, "answer", answer);
  TORCH_CHECK(answer.is_cpu() || boxes.is_meta(), kFunction, ": answer is on ", answer.device(),
              "; it must be on the CPU");
  TORCH_CHECK_TYPE(answer.scalar_type() == at::kFloat, kFunction, ": answer is ",
                   dtype_name(answer.scalar_type()), "; it must be float32");
  TORCH_CHECK_VALUE(answer.sym_numel() == 1, kFunction, ": answer has shape ", answer.sym_sizes(),
                    "; it must be one number");
}

void check_arguments(const at::Tensor& boxes, const at::Tensor& labels, const OptionalTensor& image,
                     const OptionalTensor& answer) {
  check_dense(kFunction, "boxes", boxes);
  check_device(kFunction, "boxes", boxes, "labels", OptionalTensor(labels));
  check_device(kFunction, "boxes", boxes, "image", image);
  check_boxes_shape(kFunction, "boxes", boxes);
  TORCH_CHECK_VALUE(boxes.dim() == 2, kFunction, ": boxes has shape ", boxes.sym_sizes(),
                    "; it must be (rows, 4)");
  check_shape(kFunction, "labels", labels, {boxes.sym_size(0)}, "a label for each box");
  if (image) check_shape(kFunction, "image", *image, {boxes.sym_size(0)}, "an image for each box");
  if (answer) check_answer(boxes, *answer);
}

TargetProblem describe(const at::Tensor& boxes, const at::Tensor& labels,
                       const OptionalTensor& image, std::int64_t classes, std::int64_t images,
                       bool has_sizes, const OptionalTensor& answer) {
  TargetProblem p;
  p.boxes.dtype = dtype_of(kFunction, "boxes", boxes);
  check_indices(kFunction, "labels", labels);
  p.labels.dtype = dtype_of(kFunction, "labels", labels, kIndexDTypes);
  if (image) p.image.dtype = dtype_of(kFunction, "image", *image);
  p.classes = classes;
  p.images = images;
  p.has_sizes = has_sizes;
  check_arguments(boxes, labels, image, answer);
  return p;
}

at::Tensor empty_factor(const at::Tensor& boxes) {
  return at::empty({}, boxes.options().dtype(at::kFloat));
}

at::Tensor meta(const at::Tensor& boxes, const at::Tensor& labels, const OptionalTensor& image,
                std::int64_t classes, std::int64_t images, bool has_sizes,
                const OptionalTensor& answer) {
  describe(boxes, labels, image, classes, images, has_sizes, answer);
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
  TargetProblem p = describe(boxes, labels, image, classes, images, has_sizes, answer);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return with_torch_errors(kFunction, [&] {
    const Implementation& implementation = implementation_on(boxes.device());
    const c10::OptionalDeviceGuard guard(boxes.device());
    const at::Tensor own_boxes = boxes.contiguous(), own_labels = labels.contiguous();
    const at::Tensor own_image = image ? image->contiguous() : at::Tensor();
    p.device = implementation.device;
    p.rows = boxes.size(0);
    p.boxes.data = own_boxes.const_data_ptr();
    p.labels.data = own_labels.const_data_ptr();
    if (image) p.image.data = own_image.const_data_ptr();
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
}

// Every device of torch: the registry says what serves it, or an error does.
TORCH_LIBRARY_IMPL(boxloss, CompositeExplicitAutograd, m) {
  m.impl("_target_faults", boxloss::torch_binding::found);
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
