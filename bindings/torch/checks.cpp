// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <c10/core/SymIntArrayRef.h>

#include "adapter.hpp"

namespace boxloss::torch_binding {

Loss parse_loss(const char* function, std::string_view given) {
  return with_torch_errors(function, [&] { return loss_named(given); });
}

BoxFormat parse_format(const char* function, const char* argument, std::string_view given) {
  return parse<BoxFormat>(function, argument, given,
                          {BoxFormat::kXyxy, BoxFormat::kXywh, BoxFormat::kCxcywh});
}

EpsMode parse_eps_mode(const char* function, std::string_view given) {
  return parse<EpsMode>(function, "eps_mode", given, {EpsMode::kAdd, EpsMode::kClamp});
}

std::string dtype_name(at::ScalarType type) { return std::string(c10::getDtypeNames(type).first); }

DType dtype_of(const char* function, const char* argument, const at::Tensor& tensor,
               const char* allowed) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return DType::kF64;
    case at::kFloat: return DType::kF32;
    case at::kHalf: return DType::kF16;
    case at::kBFloat16: return DType::kBF16;
    case at::kByte: return DType::kU8;
    case at::kShort: return DType::kI16;
    case at::kInt: return DType::kI32;
    case at::kLong: return DType::kI64;
    default:
      TORCH_CHECK_TYPE(false, function, ": ", argument, " is ", dtype_name(tensor.scalar_type()),
                       "; it must be ", allowed);
  }
}

ArrayView later(const char* function, const char* argument, const OptionalTensor& tensor,
                const char* allowed) {
  if (!tensor) return {};
  return {kLater, dtype_of(function, argument, *tensor, allowed)};
}

void check_floating(const char* function, const char* argument, DType dtype) {
  TORCH_CHECK_TYPE(is_floating(dtype), function, ": ", argument, " is ", name_of(dtype),
                   "; it must be ", kFloatingDTypes);
}

void check_indices(const char* function, const char* argument, const OptionalTensor& indices) {
  if (!indices) return;
  const DType dtype = dtype_of(function, argument, *indices, kIndexDTypes);
  TORCH_CHECK_TYPE(dtype == DType::kI32 || dtype == DType::kI64, function, ": ", argument, " is ",
                   name_of(dtype), "; it must be ", kIndexDTypes);
}

void check_offsets(const char* function, const at::Tensor& offsets, std::int64_t rows) {
  const at::Tensor wide = offsets.to(at::kLong).contiguous();
  const auto* values = wide.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    TORCH_CHECK_VALUE(values[i] >= 0 && values[i] <= rows, function, ": offsets[", i, "] is ",
                      values[i], "; it must lie in [0, ", rows, "]");
    TORCH_CHECK_VALUE(i == 0 || values[i] >= values[i - 1], function, ": offsets[", i, "] is ",
                      values[i], ", less than offsets[", i - 1, "], which is ", values[i - 1],
                      "; offsets must not decrease");
  }
}

void check_boxes_shape(const char* function, const char* argument, const at::Tensor& boxes) {
  const auto shape = boxes.sym_sizes();
  TORCH_CHECK_VALUE(!shape.empty() && shape.back() == 4, function, ": ", argument, " has shape ",
                    shape, "; its last dimension must be 4");
}

void check_shape(const char* function, const char* argument, const at::Tensor& tensor,
                 const std::vector<c10::SymInt>& wanted, const char* why) {
  TORCH_CHECK_VALUE(tensor.sym_sizes() == c10::SymIntArrayRef(wanted), function, ": ", argument,
                    " has shape ", tensor.sym_sizes(), "; it must be ", c10::SymIntArrayRef(wanted),
                    ", ", why);
}

void check_dense(const char* function, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, function, ": ", argument, " is ",
                    tensor.layout(), "; it must be dense");
}

void check_device(const char* function, const char* other, const at::Tensor& others,
                  const char* argument, const OptionalTensor& tensor) {
  if (tensor) check_dense(function, argument, *tensor);
  TORCH_CHECK(!tensor || tensor->device() == others.device(), function, ": ", argument, " is on ",
              tensor->device(), ", ", other, " is on ", others.device(),
              "; all must be on one device");
}

}  // namespace boxloss::torch_binding
