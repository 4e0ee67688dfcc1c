// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <boxloss/giou_loss.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

/// The operators' arguments as one struct, and the functions between it and the dispatcher. The
/// long parameter list stands here and in schema.cpp, nowhere else.
namespace boxloss::torch_binding {

struct GiouLossArgs {
  const at::Tensor& pred;
  const at::Tensor& target;
  const std::optional<at::Tensor>& weight;
  const std::optional<at::Tensor>& normalizer;
  const std::optional<at::Tensor>& lengths;
  const std::optional<at::Tensor>& mask;
  const std::optional<at::Tensor>& offsets;
  bool zero_padded;
  std::string_view pred_format;
  std::string_view target_format;
  std::string_view reduction;
  double eps;
  std::string_view eps_mode;
};

/// pred, target, weight: which gradients backward computes.
using Wanted = std::array<bool, 3>;

/// What the dispatcher calls for giou_loss and _giou_loss_forward: `kernel` takes the struct.
template <auto kernel>
auto giou_loss_entry(const at::Tensor& pred, const at::Tensor& target,
                     const std::optional<at::Tensor>& weight,
                     const std::optional<at::Tensor>& normalizer,
                     const std::optional<at::Tensor>& lengths,
                     const std::optional<at::Tensor>& mask,
                     const std::optional<at::Tensor>& offsets, bool zero_padded,
                     std::string_view pred_format, std::string_view target_format,
                     std::string_view reduction, double eps, std::string_view eps_mode) {
  return kernel(GiouLossArgs{pred, target, weight, normalizer, lengths, mask, offsets, zero_padded,
                             pred_format, target_format, reduction, eps, eps_mode});
}

/// The same for _giou_loss_backward.
template <auto kernel>
std::vector<at::Tensor> giou_loss_backward_entry(
    const at::Tensor& grad_loss, const at::Tensor& scale, const at::Tensor& pred,
    const at::Tensor& target, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& normalizer, const std::optional<at::Tensor>& lengths,
    const std::optional<at::Tensor>& mask, const std::optional<at::Tensor>& offsets,
    bool zero_padded, std::string_view pred_format, std::string_view target_format,
    std::string_view reduction, double eps, std::string_view eps_mode, Wanted wanted) {
  return kernel(grad_loss, scale,
                GiouLossArgs{pred, target, weight, normalizer, lengths, mask, offsets, zero_padded,
                             pred_format, target_format, reduction, eps, eps_mode},
                wanted);
}

/// Through the dispatcher.
at::Tensor call_giou_loss(const GiouLossArgs& args);
std::tuple<at::Tensor, at::Tensor> call_giou_loss_forward(const GiouLossArgs& args);
std::vector<at::Tensor> call_giou_loss_backward(const at::Tensor& grad_loss,
                                                const at::Tensor& scale, const GiouLossArgs& args,
                                                const Wanted& wanted);

/// The string and bool arguments, as core wants them.
struct GiouLossOptions {
  BoxFormat pred_format, target_format;
  Pairing::Kind pairing;
  Reduction reduction;
  EpsMode eps_mode;
};

/// Checks everything but strides; works on symbolic shapes. A bad value or shape is a ValueError, a
/// bad dtype a TypeError, mixed devices a RuntimeError; each names the argument.
GiouLossOptions check_args(const GiouLossArgs& args);

/// The last dimension of pred and target must be contiguous: a ValueError where it is not.
void check_strides(const GiouLossArgs& args);

/// Checks what backward takes besides: it is an operator that anybody may call.
void check_backward_args(const at::Tensor& grad_loss, const at::Tensor& scale,
                         const GiouLossArgs& args, const GiouLossOptions& options,
                         const Wanted& wanted);

/// float64 when either box tensor is, else float32.
at::ScalarType compute_type(const GiouLossArgs& args);

/// Shape of the unreduced loss, of weight, and, with a 4 behind it, of the target's gradient.
std::vector<c10::SymInt> loss_shape(const GiouLossArgs& args);

/// The loss written in differentiable ATen operators, with the same rules: what double backward,
/// forward-mode AD and function transforms go through.
at::Tensor giou_loss_composite(const GiouLossArgs& args);

}  // namespace boxloss::torch_binding
