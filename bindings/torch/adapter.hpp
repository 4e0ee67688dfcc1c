// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/registry.hpp>
#include <string>
#include <string_view>
#include <vector>

/// What stands between torch's tensors, devices, streams, threads and errors, and core's.
namespace boxloss::torch_binding {

DType dtype_of(const at::Tensor& tensor);

/// A contiguous view of a tensor; a null one for none.
ArrayView array_view(const std::optional<at::Tensor>& tensor);

/// Is "aten" chosen, by which torch's own operators compute on every device? Core does not know it.
bool aten_is_chosen();

/// Core's use_implementation, with "aten" besides; "boxloss" takes it back.
std::string choose_implementation(std::string_view name);

/// Core's.
std::vector<std::string> implementation_names();

/// torch's cuda device is an NVIDIA GPU, or an AMD one in ROCm builds of torch. No other device has
/// one: an error that says what there is.
const Implementation& implementation_on(const at::Device& device);

/// torch's current stream of the device and, on the CPU, torch's threads. No workspace yet.
Execution execution_on(const at::Device& device);

/// A tensor (0) like another, for an output that is not wanted. torch's own way to it takes longer
/// than all our checks of a call.
at::Tensor no_elements(const at::Tensor& like, at::ScalarType type);

/// The leading dimensions of several tensors of equal leading shape as (images, slots), each tensor
/// with its own two strides.
struct Grid {
  struct Strides {
    std::int64_t image = 0;
    std::int64_t slot = 0;
  };
  std::int64_t images = 1;
  std::int64_t slots = 1;
  std::vector<Strides> strides;
};

/// Views where possible: a tensor is replaced by a contiguous copy only where the strides of its
/// `leading` dimensions cannot be told by two numbers.
Grid make_grid(at::IntArrayRef leading, std::vector<at::Tensor>& tensors);

/// Runs `call`; boxloss' errors leave it as torch's, ValueError, TypeError and RuntimeError, and
/// say which function was called.
template <class Call>
auto with_torch_errors(const char* function, const Call& call) {
  try {
    return call();
  } catch (const InvalidArgument& error) {
    TORCH_CHECK_VALUE(false, function, ": ", error.what());
  } catch (const Unsupported& error) {
    TORCH_CHECK_TYPE(false, function, ": ", error.what());
  } catch (const Error& error) {
    TORCH_CHECK(false, function, ": ", error.what());
  }
}

}  // namespace boxloss::torch_binding
