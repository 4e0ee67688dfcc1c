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

#include "operators.hpp"

/// Checks of the operators' arguments, symbolic shapes included. A bad value or shape is a
/// ValueError, a bad dtype a TypeError, mixed devices a RuntimeError; each names the called
/// function and the argument.
namespace boxloss::torch_binding {

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

constexpr const char* kFloatingDTypes = "float64, float32, float16 or bfloat16";
constexpr const char* kIndexDTypes = "int32 or int64";
constexpr const char* kNormalizerDTypes = "float64, float32, int64 or int32";
constexpr const char* kDTypes = "float64, float32, float16, bfloat16, uint8, int16, int32 or int64";

/// As Python says it: "bool", "complex64".
std::string dtype_name(at::ScalarType type);

/// A tensor's dtype as core's. A TypeError for one that core has not, `allowed` being what it may
/// be.
DType dtype_of(const char* function, const char* argument, const at::Tensor& tensor,
               const char* allowed = kDTypes);

/// A view of an array that is given, or not.
ArrayView later(const char* function, const char* argument, const OptionalTensor& tensor,
                const char* allowed);

void check_floating(const char* function, const char* argument, DType dtype);
void check_indices(const char* function, const char* argument, const OptionalTensor& indices);

/// Of a list of so many rows, on the host: only there can they be looked at without a wait.
void check_offsets(const char* function, const at::Tensor& offsets, std::int64_t rows);

/// (..., 4)
void check_boxes_shape(const char* function, const char* argument, const at::Tensor& boxes);
void check_shape(const char* function, const char* argument, const at::Tensor& tensor,
                 const std::vector<c10::SymInt>& wanted, const char* why);

/// Refuses sparse tensors and all layouts but strided.
void check_dense(const char* function, const char* argument, const at::Tensor& tensor);

/// The tensor must be dense, and on the device of another argument.
void check_device(const char* function, const char* other, const at::Tensor& others,
                  const char* argument, const OptionalTensor& tensor);

/// Options that are not tensors are on no device.
inline void check_device(const char*, const char*, const at::Tensor&, const char*, Flag) {}
inline void check_device(const char*, const char*, const at::Tensor&, const char*, Word) {}
inline void check_device(const char*, const char*, const at::Tensor&, const char*, Number) {}
inline void check_device(const char*, const char*, const at::Tensor&, const char*, OptionalNumber) {
}

/// Of a list of options, in a function with arguments `a`.
#define BOXLOSS_CHECK_DEVICE(Kind, name, standard) \
  check_device(a.function, "pred", a.pred, #name, a.name);

}  // namespace boxloss::torch_binding
