// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "src/checks.hpp"

#include <boxloss/registry.hpp>

namespace boxloss {

void check_aligned(const char* name, const void* data, DType dtype) {
  if (data == nullptr) return;  // its dtype may be none
  check(reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) == 0, name,
        " does not lie on a multiple of the ", size_of(dtype), " bytes of a ", name_of(dtype));
}

void check_boxes(const char* name, const BoxView& boxes) {
  check_dtype(size_of(boxes.dtype) != 0, name, ".dtype is not one of DType");
  check(boxes.images >= 0 && boxes.slots >= 0, name, " has a negative shape: ", boxes.images,
        " images, ", boxes.slots, " slots");
  check(boxes.slots == 0 || boxes.images <= kMostBoxes / boxes.slots, name, " has ", boxes.images,
        " images of ", boxes.slots, " slots, which is more than 64 bits can count");
  check(boxes.image_stride >= 0 && boxes.slot_stride >= 0 && boxes.coordinate_stride >= 0, name,
        " has a negative stride: ", boxes.image_stride, " by image, ", boxes.slot_stride,
        " by slot, ", boxes.coordinate_stride, " by coordinate");
  check(boxes.data != nullptr || boxes.images * boxes.slots == 0, name, ".data is null");
}

void check_floating(const char* name, DType dtype) {
  check_dtype(is_floating(dtype), name, " is ", name_of(dtype),
              "; it must be float64, float32, float16 or bfloat16");
}

void check_indices(const char* name, DType dtype) {
  check_dtype(dtype == DType::kI32 || dtype == DType::kI64, name, " is ", name_of(dtype),
              "; it must be int32 or int64");
}

void check_eps(double eps, DType compute) {
  const double most = compute == DType::kF64 ? std::numeric_limits<double>::max()
                                             : std::numeric_limits<float>::max();
  check(eps >= 0 && eps <= most, "eps is ", eps, "; it must be finite and not negative, as a ",
        name_of(compute));
}

void check_served(const Implementation& implementation, const char* operation, bool has_operation,
                  Device device) {
  check_dtype(has_operation, implementation.name, " does not serve ", operation);
  check(implementation.device == device, "the problem is on ", name_of(device), ", but ",
        implementation.name, " was asked to run it");
}

void check_served(const Implementation& implementation, const char* operation, bool has_operation,
                  Device device, Loss loss, Set<Loss> losses) {
  check_served(implementation, operation, has_operation, device);
  // Names are listed only if the check fails.
  if (loss == Loss::kUnset) {
    throw InvalidArgument(message("loss is not set; it must be one of ", names_of(kLosses)));
  }
  if (!losses.contains(loss)) {
    throw Unsupported(message(implementation.name, " does not serve the loss '", name_of(loss),
                              "', only ", names_of(losses)));
  }
}

void check_workspace(const Execution& execution, std::size_t needed) {
  check(execution.workspace_bytes >= needed, "workspace has ", execution.workspace_bytes,
        " bytes; this problem needs ", needed);
  check(execution.workspace != nullptr || needed == 0, "workspace is null; this problem needs ",
        needed, " bytes");
}

}  // namespace boxloss
