// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/registry.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

/// Adapts torch's tensors, devices, streams, threads and errors to core's.
namespace boxloss::torch_binding {

/// Whether "aten" is chosen, by which torch's own operators compute on every device. Core does not
/// know it.
bool aten_is_chosen();

/// The implementation for a torch device. torch's cuda is an NVIDIA GPU, or an AMD one in ROCm
/// builds of torch; any other device has the word that torch has for it, PrivateUse1 the one that
/// it was renamed to. One without an implementation is an error that lists those that there are.
const Implementation& implementation_on(at::Device device);

/// The same, or null where there is none.
const Implementation* find_implementation(at::Device device);

/// A tensor's dtype as core's or, if core does not have it, its name.
void set_dtype(std::optional<DType>& dtype, std::string& other_dtype, at::ScalarType type);
at::ScalarType scalar_type(DType dtype);

/// Checks that a tensor is dense, and on the device of the first of a call's, if that is not null.
void check_placed(const char* function, const char* argument, const at::Tensor& tensor,
                  const char* first_argument, const at::Tensor* first);

/// An Execution on torch's current stream of the device, which its guard has, or on the CPU torch's
/// threads; without a workspace.
Execution execution_on(at::Device device);

/// Whether a function transform (vmap, grad, …) is active, which refuses a C++ autograd Function.
bool inside_function_transform();

/// Memory for the time of a call, 16-byte aligned. On the host that is over when the call returns,
/// so that plain memory serves.
class Scratch {
 public:
  Scratch(std::size_t bytes, const at::Tensor& like);

  std::byte* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> host_;
  at::Tensor device_;
  std::byte* data_ = nullptr;
};

/// Raises, if torch's deterministic algorithms are asked for, and this is not on the CPU.
void alert_not_deterministic(const char* function, const at::Tensor& of);

/// An empty tensor (0) like another, for an output that is not wanted. torch's own way to make it
/// takes longer than all our checks of a call.
at::Tensor no_elements(const at::Tensor& like, at::ScalarType type);

/// Runs `call`; boxloss' exceptions become torch's ValueError, TypeError and RuntimeError, with the
/// name of the called function.
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
