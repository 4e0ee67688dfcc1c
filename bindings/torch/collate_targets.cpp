// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <boxloss/collate_targets.hpp>

#include "operator.hpp"

/// A batch's ground truth, for boxloss.torch.compat. What does not serve a device is a TypeError
/// or, without any implementation for it, a RuntimeError.
namespace boxloss::torch_binding {
namespace {

constexpr char kFunction[] = "_collate_targets";
constexpr binding::Parameter kParameters[] = {
    {"Tensor[]", "boxes", ""},    {"Tensor[]", "labels", ""}, {"OptionalPacked", "image", ""},
    {"Whole", "classes", ""},     {"Whole", "images", ""},    {"Flag", "has_sizes", ""},
    {"Tensor(a!)?", "answer", ""}};

struct CollateTensors {
  CollateTensors(const c10::IValue* given)
      : boxes(given[0].toTensorVector()),
        labels(given[1].toTensorVector()),
        image(given[2].to<OptionalTensor>()),
        classes(given[3].toInt()),
        images(given[4].toInt()),
        has_sizes(given[5].toBool()),
        answer(given[6].to<OptionalTensor>()) {}

  std::vector<at::Tensor> boxes, labels;
  OptionalTensor image;
  std::int64_t classes, images;
  bool has_sizes;
  OptionalTensor answer;
};

DType dtype_of(const char* name, const at::Tensor& tensor) {
  std::optional<DType> dtype;
  std::string other;
  set_dtype(dtype, other, tensor.scalar_type());
  TORCH_CHECK_TYPE(dtype.has_value(), kFunction, ": ", name, " is ", other,
                   ", which boxloss does not have");
  return *dtype;
}

/// Each of a list must lie with the first boxes, and be of the first's dtype and so many
/// dimensions.
void check_list(const char* name, at::TensorList list, const at::Tensor& boxes, std::int64_t rank) {
  for (const at::Tensor& each : list) {
    check_placed(kFunction, name, each, "boxes", &boxes);
    TORCH_CHECK_TYPE(each.scalar_type() == list[0].scalar_type(), kFunction, ": ", name,
                     " differ in dtype");
    TORCH_CHECK_VALUE(each.dim() == rank, kFunction, ": ", name, " has shape ", each.sym_sizes(),
                      "; it must have ", rank, " dimensions");
  }
}

/// The number of all rows.
c10::SymInt check_given(at::TensorList boxes, at::TensorList labels, const OptionalTensor& image) {
  TORCH_CHECK_VALUE(!boxes.empty() && labels.size() == boxes.size(), kFunction, ": boxes are ",
                    boxes.size(), " tensors, labels ", labels.size(),
                    "; they must be as many, at least one");
  check_list("boxes", boxes, boxes[0], 2);
  check_list("labels", labels, boxes[0], 1);
  c10::SymInt rows = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const c10::SymInt count = boxes[i].sym_size(0);
    TORCH_CHECK_VALUE(boxes[i].sym_size(1) == 4, kFunction, ": boxes has shape ",
                      boxes[i].sym_sizes(), "; it must be (rows, 4)");
    TORCH_CHECK_VALUE(labels[i].sym_size(0) == count, kFunction, ": labels has shape ",
                      labels[i].sym_sizes(), "; it must be (", count, ",), a label for each box");
    rows += count;
  }
  if (!image) return rows;
  check_placed(kFunction, "image", *image, "boxes", &boxes[0]);
  TORCH_CHECK_VALUE(image->dim() == 1 && image->sym_size(0) == rows, kFunction,
                    ": image has shape ", image->sym_sizes(), "; it must be (", rows,
                    ",), an image for each box");
  return rows;
}

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

/// boxes, labels, offsets, factor, number: the results, in the place of the arguments.
void finish(const Operator& op, Stack& stack, std::array<at::Tensor, 5> results) {
  torch::jit::drop(stack, op.count);
  for (at::Tensor& each : results) stack.emplace_back(std::move(each));
}

std::array<at::Tensor, 5> empty_results(const at::Tensor& boxes, const c10::SymInt& rows,
                                        std::int64_t images) {
  const auto whole = boxes.options().dtype(at::kLong), real = boxes.options().dtype(at::kFloat);
  return {at::empty_symint({rows, 4}, boxes.options()), at::empty_symint({rows}, whole),
          at::empty({images + 1}, whole), at::empty({}, real), at::empty({}, real)};
}

void meta(const Operator& op, Stack& stack, const Way&) {
  const CollateTensors a(op.arguments(stack));
  const c10::SymInt rows = check_given(a.boxes, a.labels, a.image);
  check_answer(a.boxes[0], a.answer);
  finish(op, stack, empty_results(a.boxes[0], rows, a.images));
}

/// Where the host sees what the device writes: a GPU can address pinned memory only.
float* answer_memory(const at::Tensor& boxes, const at::Tensor& answer) {
  TORCH_CHECK_VALUE(boxes.is_cpu() || answer.is_pinned(), kFunction,
                    ": answer is not in pinned memory, which it must be for boxes on ",
                    boxes.device());
  return answer.mutable_data_ptr<float>();
}

void collate(const Operator& op, Stack& stack, const Way&) {
  const CollateTensors a(op.arguments(stack));
  const auto& [boxes, labels, image, classes, images, has_sizes, answer] = a;
  const c10::SymInt rows = check_given(boxes, labels, image);
  check_answer(boxes[0], answer);
  TORCH_CHECK_VALUE(images >= 0, kFunction, ": images is ", images, "; it must not be negative");
  const at::Device device = boxes[0].device();
  const Implementation& implementation = implementation_on(device);
  const c10::OptionalDeviceGuard guard(device);

  std::vector<at::Tensor> packed;  // views of those that were packed already
  std::vector<TargetList> lists;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const at::Tensor& its_boxes = packed.emplace_back(boxes[i].contiguous());
    lists.push_back({its_boxes.const_data_ptr(), nullptr, its_boxes.size(0)});
    lists.back().labels = packed.emplace_back(labels[i].contiguous()).const_data_ptr();
  }
  CollateProblem p;
  p.device = implementation.device;
  p.lists = lists.data();
  p.list_count = static_cast<std::int64_t>(lists.size());
  p.boxes_dtype = dtype_of("boxes", boxes[0]);
  p.labels_dtype = dtype_of("labels", labels[0]);
  if (image) {
    p.image.dtype = dtype_of("image", *image);
    p.image.data = packed.emplace_back(image->contiguous()).const_data_ptr();
  }
  p.images = images;
  p.classes = classes;
  p.has_sizes = has_sizes;

  const auto results = empty_results(boxes[0], rows, images);
  const auto& [all_boxes, all_labels, offsets, factor, number] = results;
  CollateOutputs outputs;
  outputs.boxes = all_boxes.mutable_data_ptr();
  outputs.labels = all_labels.mutable_data_ptr<std::int64_t>();
  outputs.offsets = offsets.mutable_data_ptr<std::int64_t>();
  outputs.factor = factor.mutable_data_ptr<float>();
  outputs.number = number.mutable_data_ptr<float>();
  if (answer) outputs.answer = answer_memory(boxes[0], *answer);
  collate_targets(implementation, p, outputs, execution_on(device));
  finish(op, stack, results);
}

}  // namespace
}  // namespace boxloss::torch_binding

TORCH_LIBRARY_FRAGMENT(boxloss, m) {
  using namespace boxloss::torch_binding;
  static Operator op = {.function = kFunction,
                        .name = "boxloss::_collate_targets",
                        .parameters = kParameters,
                        .count = std::size(kParameters),
                        .first = 0,
                        .differentiable = {},
                        .results = {"boxes", "labels", "offsets", "factor", "number"},
                        .run = collate,
                        .meta = meta};
  define(m, op);
  refuse_transforms(m, op);
}
