// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "adapter.hpp"

#include <ATen/Context.h>
#include <ATen/FuncTorchTLS.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/library.h>

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

namespace boxloss::torch_binding {
namespace {

constexpr const char *kAten = "aten", *kNotAten = "boxloss";
std::atomic<bool> is_aten_chosen = false;

constexpr std::pair<DType, at::ScalarType> kDTypes[] = {
    {DType::kF64, at::kDouble},    {DType::kF32, at::kFloat}, {DType::kF16, at::kHalf},
    {DType::kBF16, at::kBFloat16}, {DType::kU8, at::kByte},   {DType::kI16, at::kShort},
    {DType::kI32, at::kInt},       {DType::kI64, at::kLong}};

/// parallel_for on torch's own thread pool. Its C function is in libtorch_cpu, so that the binding
/// needs no OpenMP of its own, which could differ from torch's. torch gives each thread a fixed
/// share; since tasks may differ much, a thread takes the next task when it is free.
void torch_parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  if (tasks == 1) return task(0);
  std::atomic<std::int64_t> next = 0;
  std::function<void()> work = [&] {
    for (std::int64_t i = next++; i < tasks; i = next++) task(i);
  };
  const auto run = [](std::int64_t, std::int64_t, void* context) {
    (*static_cast<std::function<void()>*>(context))();
  };
  const AOTITorchError error = torch_parallel_for(0, tasks, 1, run, &work);
  TORCH_CHECK(error == AOTI_TORCH_SUCCESS, "box_loss: torch could not run its threads");
}

/// Core's.
std::vector<std::string> implementation_names() {
  std::vector<std::string> names;
  for (const Implementation* each : implementations()) names.emplace_back(each->name);
  return names;
}

/// Core's use_implementation, plus "aten"; "boxloss" undoes that choice.
std::string choose(std::string_view name) {
  if (name == kAten || name == kNotAten) {
    return is_aten_chosen.exchange(name == kAten) ? kAten : kNotAten;
  }
  return with_torch_errors("use_implementation", [&] {
    try {
      return use_implementation(name);
    } catch (const NotCompiled& error) {
      throw NotCompiled(std::string(error.what()) + " 'aten' names torch's own operators.");
    }
  });
}

}  // namespace

bool aten_is_chosen() { return is_aten_chosen; }

const Implementation* find_implementation(at::Device device) {
  if (device.is_cpu()) return boxloss::find_implementation({Device::kCpu});
  if (device.is_cuda()) return boxloss::find_implementation({Device::kCuda, Device::kHip});
  const Device word = device_named(c10::DeviceTypeName(device.type(), /*lower_case=*/true));
  return boxloss::find_implementation({word});
}

const Implementation& implementation_on(at::Device device) {
  if (const Implementation* const found = find_implementation(device)) return *found;
  if (device.is_cpu()) return implementation_for({Device::kCpu});  // whose error says how to get it
  if (device.is_cuda()) return implementation_for({Device::kCuda, Device::kHip});
  throw NotCompiled("no implementation computes on " + device.str() + "; this boxloss holds " +
                    c10::Join(", ", implementation_names()) +
                    ". boxloss.load_backend loads another device's. Losses and a matcher's cost "
                    "can be computed there by torch's own operators: "
                    "use_implementation('aten').");
}

void set_dtype(std::optional<DType>& dtype, std::string& other_dtype, at::ScalarType type) {
  for (const auto& [own, torchs] : kDTypes) {
    if (torchs == type) dtype = own;
  }
  if (!dtype) other_dtype = c10::getDtypeNames(type).first;
}

at::ScalarType scalar_type(DType dtype) {
  for (const auto& [own, torchs] : kDTypes) {
    if (own == dtype) return torchs;
  }
  return at::kLong;  // core has no other
}

void check_placed(const char* function, const char* argument, const at::Tensor& tensor,
                  const char* first_argument, const at::Tensor* first) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, function, ": ", argument, " is ",
                    tensor.layout(), "; it must be dense");
  TORCH_CHECK(first == nullptr || tensor.device() == first->device(), function, ": ", argument,
              " is on ", tensor.device(), ", ", first_argument, " is on ", first->device(),
              "; all must be on one device");
}

Execution execution_on(at::Device device) {
  Execution execution;
  if (device.is_cpu()) {
    execution.parallel_for = torch_parallel;
  } else {
    const c10::impl::VirtualGuardImpl guard(device.type());
    execution.device_index = device.index();
    execution.stream = guard.getStreamNativeHandle(guard.getStream(device));
  }
  return execution;
}

Scratch::Scratch(std::size_t bytes, const at::Tensor& like) {
  if (bytes == 0) return;
  if (like.is_cpu()) {
    host_.reset(new std::byte[bytes]);
    data_ = host_.get();
  } else {
    device_ = at::empty({static_cast<std::int64_t>(bytes)}, like.options().dtype(at::kByte));
    data_ = static_cast<std::byte*>(device_.mutable_data_ptr());
  }
}

bool inside_function_transform() {
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (!functorch) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

at::Tensor no_elements(const at::Tensor& like, at::ScalarType type) {
  const auto key = c10::computeDispatchKey(type, like.layout(), like.device());
  return at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, like.device())),
      c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(type));
}

void alert_not_deterministic(const char* function, const at::Tensor& of) {
  if (of.is_cpu()) return;
  at::globalContext().alertNotDeterministic(std::string(function) + " backward with indices");
}

}  // namespace boxloss::torch_binding

TORCH_LIBRARY(boxloss, m) {
  using namespace boxloss::torch_binding;
  m.def("implementations() -> str[]", [] {
    std::vector<std::string> names = implementation_names();
    names.emplace_back(kAten);
    return names;
  });
  m.def("cpu_capability() -> str", [] {
    return with_torch_errors("cpu_capability",
                             [] { return std::string(boxloss::cpu_capability()); });
  });
  m.def("use_implementation(str name) -> str", choose);
}
