// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <boxloss/box_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Checks of the operators' arguments, symbolic shapes included. A bad value or shape is a
/// ValueError, a bad dtype a TypeError, mixed devices a RuntimeError; each names the called
/// function and the argument.
namespace boxloss::torch_binding {

using OptionalTensor = std::optional<at::Tensor>;

template <class Enum>
Enum parse(const char* function, const char* argument, std::string_view given,
           std::initializer_list<Enum> allowed) {
  for (const Enum value : allowed) {
    if (name_of(value) == given) return value;
  }
  std::string words;
  for (const Enum value : allowed) {
    words += (words.empty() ? "'" : ", '") + std::string(name_of(value)) + "'";
  }
  TORCH_CHECK_VALUE(false, function, ": ", argument, " is '", given, "'; allowed: ", words);
}

Loss parse_loss(const char* function, std::string_view given);
BoxFormat parse_format(const char* function, const char* argument, std::string_view given);
EpsMode parse_eps_mode(const char* function, std::string_view given);

bool is_in(at::ScalarType type, std::initializer_list<at::ScalarType> types);

void check_floating(const char* function, const char* argument, const at::Tensor& tensor);
void check_target_dtype(const char* function, const at::Tensor& target);
void check_indices_dtype(const char* function, const char* argument, const at::Tensor& indices);

/// (..., 4)
void check_boxes_shape(const char* function, const char* argument, const at::Tensor& boxes);
void check_shape(const char* function, const char* argument, const at::Tensor& tensor,
                 const std::vector<c10::SymInt>& wanted, const char* why);

/// Refuses sparse tensors and all layouts but strided.
void check_dense(const char* function, const char* argument, const at::Tensor& tensor);

/// The tensor must be dense, and on pred's device.
void check_device(const char* function, const at::Tensor& pred, const char* argument,
                  const OptionalTensor& tensor);
void check_eps(const char* function, double eps, at::ScalarType compute);

}  // namespace boxloss::torch_binding
