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

void check_given(const char* name, const ArrayView& array, bool is_needed, const char* what) {
  check(is_given(array) || !is_needed, name, ".dtype is not set; it must be that of ", what);
}

void check_pointer(const char* name, const ArrayView& array, bool is_read) {
  const bool has_data = array.data != nullptr;
  check(is_given(array) || !has_data, name, ".dtype is not set; it must be, where ", name,
        ".data is");
  check(has_data || !is_given(array) || !is_read, name, ".data is null; where ", name,
        ".dtype is set it must not be");
  check_aligned(name, array.data, array.dtype);
}

void mark_if_given(ArrayView& array) {
  static constexpr double kNoElement = 0;
  if (!is_given(array)) array.data = nullptr;
  if (is_given(array) && array.data == nullptr) array.data = &kNoElement;
}

void check_boxes(const char* name, const BoxView& boxes, int numbers) {
  check_enumerator<Unsupported>(name, ".dtype", boxes.dtype);
  check(boxes.slots != kUnsetSize, name,
        ".slots is not set; it must be the number of boxes of each image");
  check(boxes.images >= 0 && boxes.slots >= 0, name, " has a negative shape: ", boxes.images,
        " images, ", boxes.slots, " slots");
  check(boxes.slots == 0 || boxes.images <= kMostBoxes / boxes.slots, name, " has ", boxes.images,
        " images of ", boxes.slots, " slots, which is more than 64 bits can count");
  check_stride(name, "image", boxes.image_stride, boxes.images);
  check(may_be_stride(boxes.image_stride) && boxes.slot_stride >= 0 && boxes.coordinate_stride >= 0,
        name, " has a negative stride: ", boxes.image_stride, " by image, ", boxes.slot_stride,
        " by slot, ", boxes.coordinate_stride, " by coordinate");
  // What a view of boxes along the axes has where nobody sets it.
  check(numbers == 4 || boxes.slots <= 1 || boxes.slot_stride != 4 || boxes.coordinate_stride != 1,
        name, ".slot_stride is 4, but a rotated box has ", numbers, " numbers");
}

void check_pointers(const char* name, const char* rows, const BoxView& boxes, bool is_read) {
  check(boxes.data != nullptr || boxes.images * boxes.slots == 0, name, ".data is null");
  check_aligned(name, boxes.data, boxes.dtype);
  check_pointer(rows, boxes.rows, is_read);
}

void check_floating(const char* name, DType dtype) {
  if (is_floating(dtype)) return;
  throw Unsupported(
      message(name, " is ", shown(dtype), "; it must be float64, float32, float16 or bfloat16"));
}

void check_indices(const char* name, DType dtype) {
  if (dtype == DType::kI32 || dtype == DType::kI64) return;
  throw Unsupported(message(name, " is ", shown(dtype), "; it must be int32 or int64"));
}

void check_indices(const char* name, const ArrayView& array) {
  if (is_given(array)) check_indices(name, array.dtype);
}

void check_data(const char* name, const void* data, DType dtype, bool is_needed) {
  check(data != nullptr || !is_needed, name, " is null");
  check_aligned(name, data, dtype);
}

void check_normalizer(const ArrayView& normalizer, std::int64_t stride, Reduction reduction) {
  if (is_given(normalizer)) {
    check(reduction == Reduction::kMean, "normalizer needs reduction 'mean', which it redefines");
    const DType d = normalizer.dtype;
    check_dtype(d == DType::kF64 || d == DType::kF32 || d == DType::kI64 || d == DType::kI32,
                "normalizer is ", shown(d), "; it must be float64, float32, int64 or int32");
  }
  check(stride == 0 || stride == 1, "normalizer_stride is ", stride, "; it must be 0 or 1");
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
  check_enumerator("device", "", device);
  check(implementation.device == device, "the problem is on ", name_of(device), ", but ",
        implementation.name, " was asked to run it");
}

namespace {

constexpr Set<Loss> all_of(Loss) { return kLosses; }
constexpr Set<RotatedLoss> all_of(RotatedLoss) { return kRotatedLosses; }

}  // namespace

template <class Enum>
void check_served(const Implementation& implementation, const char* operation, bool has_operation,
                  Device device, Enum loss, Set<Enum> losses) {
  check_served(implementation, operation, has_operation, device);
  // Names are listed only if the check fails.
  if (loss == Enum::kUnset) {
    throw InvalidArgument(message("loss is not set; it must be one of ", names_of(all_of(loss))));
  }
  if (!all_of(loss).contains(loss)) {
    throw InvalidArgument(
        message("loss is ", shown(loss), "; it must be one of ", names_of(all_of(loss))));
  }
  if (!losses.contains(loss)) {
    throw Unsupported(message(implementation.name, " does not serve the loss '", name_of(loss),
                              "', only ", names_of(losses)));
  }
}

template void check_served(const Implementation&, const char*, bool, Device, Loss, Set<Loss>);
template void check_served(const Implementation&, const char*, bool, Device, RotatedLoss,
                           Set<RotatedLoss>);

void check_execution(const Execution& execution, Device device, std::size_t workspace_bytes) {
  const bool is_gpu = device == Device::kCuda || device == Device::kHip;  // which runs no tasks
  check(is_gpu || execution.parallel_for != nullptr,
        "parallel_for is empty; it must run tasks, as boxloss::parallel_for does");
  if (workspace_bytes == 0) return;
  check(execution.workspace_bytes >= workspace_bytes, "workspace has ", execution.workspace_bytes,
        " bytes; this problem needs ", workspace_bytes);
  check(execution.workspace != nullptr, "workspace is null; this problem needs ", workspace_bytes,
        " bytes");
  check(reinterpret_cast<std::uintptr_t>(execution.workspace) % 16 == 0,
        "workspace does not lie on a multiple of 16 bytes");
}

}  // namespace boxloss
