// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <limits>

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

bool is_in(at::ScalarType type, std::initializer_list<at::ScalarType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

void check_floating(const char* function, const char* argument, const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(is_in(tensor.scalar_type(), {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}),
                   function, ": ", argument, " is ", tensor.scalar_type(),
                   "; it must be float64, float32, float16 or bfloat16");
}

void check_target_dtype(const char* function, const at::Tensor& target) {
  TORCH_CHECK_TYPE(
      is_in(target.scalar_type(), {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kByte,
                                   at::kShort, at::kInt, at::kLong}),
      function, ": target is ", target.scalar_type(),
      "; it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64");
}

void check_indices_dtype(const char* function, const char* argument, const at::Tensor& indices) {
  TORCH_CHECK_TYPE(is_in(indices.scalar_type(), {at::kInt, at::kLong}), function, ": ", argument,
                   " is ", indices.scalar_type(), "; it must be int32 or int64");
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

void check_device(const char* function, const at::Tensor& pred, const char* argument,
                  const OptionalTensor& tensor) {
  if (tensor) check_dense(function, argument, *tensor);
  TORCH_CHECK(!tensor || tensor->device() == pred.device(), function, ": ", argument, " is on ",
              tensor->device(), ", pred is on ", pred.device(), "; all must be on one device");
}

void check_eps(const char* function, double eps, at::ScalarType compute) {
  const double most = compute == at::kDouble ? std::numeric_limits<double>::max()
                                             : std::numeric_limits<float>::max();
  TORCH_CHECK_VALUE(eps >= 0 && eps <= most, function, ": eps is ", eps,
                    "; it must be finite and not negative, as a ", compute);
}

}  // namespace boxloss::torch_binding
