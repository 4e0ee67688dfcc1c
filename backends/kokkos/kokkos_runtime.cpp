// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "kokkos_runtime.hpp"

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

// The host's only calls of a vendor: Kokkos makes an instance only from the vendor's stream.
#if defined(KOKKOS_ENABLE_CUDA)
#define BOXLOSS_VENDOR(name) cuda##name
#elif defined(KOKKOS_ENABLE_HIP)
#define BOXLOSS_VENDOR(name) hip##name
#endif

namespace boxloss::kokkos {
namespace {

void throw_if_finalized() {
  if (Kokkos::is_finalized()) {
    throw DeviceError("kokkos: the program has finalised Kokkos, after which it cannot be used");
  }
}

void finalize() {
  if (!Kokkos::is_finalized()) Kokkos::finalize();
}

}  // namespace

#if defined(BOXLOSS_VENDOR)
namespace {

void check(BOXLOSS_VENDOR(Error_t) error, const char* what) {
  if (error == BOXLOSS_VENDOR(Success)) return;
  (void)BOXLOSS_VENDOR(GetLastError)();  // reported here, not by the next call
  throw DeviceError(message("kokkos: ", what, " failed: ", BOXLOSS_VENDOR(GetErrorString)(error),
                            " (", BOXLOSS_VENDOR(GetErrorName)(error), ")"));
}

void require_device() {
  int devices = 0;
  const auto error = BOXLOSS_VENDOR(GetDeviceCount)(&devices);
  if (error == BOXLOSS_VENDOR(Success) && devices > 0) return;
  (void)BOXLOSS_VENDOR(GetLastError)();  // reported here, not by the next call
  throw NoDevice(message("kokkos: this Kokkos is built for a GPU, and none is found (",
                         BOXLOSS_VENDOR(GetErrorString)(error),
                         "); without one not even its host space can be initialised"));
}

using Stream = BOXLOSS_VENDOR(Stream_t);

bool is_capturing(Stream stream) {
  auto status = BOXLOSS_VENDOR(StreamCaptureStatusNone);
  check(BOXLOSS_VENDOR(StreamIsCapturing)(stream, &status), "asking whether a stream is captured");
  return status != BOXLOSS_VENDOR(StreamCaptureStatusNone);
}

/// Kept for a stream, and for a device.
struct OfStream {
  DeviceSpace space;
  Counter* counter;
};
struct OfDevice {
  static constexpr int kCounters = 1 << 16;
  using Counters = Kokkos::View<Counter*, DeviceSpace>;

  std::map<Stream, OfStream> streams;
  Counters counters;
  int taken = 0;

  Counter* take_counter() { return taken < kCounters ? &counters.data()[taken++] : nullptr; }
};

/// Never destroyed: Kokkos may be finalized by whatever runs last in the process.
std::map<int, OfDevice>& devices() {
  static std::map<int, OfDevice>& all = *new std::map<int, OfDevice>;
  return all;
}

std::mutex devices_mutex;

void release_instances() {
  const std::lock_guard lock(devices_mutex);
  devices().clear();
}

DeviceSpace instance_for(const Execution& execution) {
  ensure_initialized();
  check(BOXLOSS_VENDOR(SetDevice)(execution.device_index), "setting the current device");
  const Stream stream = static_cast<Stream>(execution.stream);
  const std::lock_guard lock(devices_mutex);
  OfDevice& device = devices()[execution.device_index];
  const auto found = device.streams.find(stream);
  if (found != device.streams.end()) return found->second.space;
  if (is_capturing(stream)) {
    throw DeviceError(
        "kokkos: the first call on a stream sets up Kokkos for it, which cannot be "
        "captured; call once on this stream before the capture");
  }
  const DeviceSpace space(stream);
  warm_up_losses(space);
  warm_up_assign(space);
  warm_up_max_iou_match(space);
  warm_up_task_aligned_match(space);
  warm_up_class_loss(space);
  warm_up_distribution_loss(space);
  warm_up_collate_targets(space);
  if (device.counters.data() == nullptr) {
    device.counters =
        OfDevice::Counters(Kokkos::view_alloc(space, "boxloss::counters"), OfDevice::kCounters);
    space.fence("boxloss::counters");  // other streams use them, too
  }
  device.streams.emplace(stream, OfStream{space, device.take_counter()});
  return space;
}

}  // namespace

KeepDevice::KeepDevice() { (void)BOXLOSS_VENDOR(GetDevice)(&device_); }
KeepDevice::~KeepDevice() { (void)BOXLOSS_VENDOR(SetDevice)(device_); }

DeviceCall::DeviceCall(const Execution& execution) : space(instance_for(execution)) {}

Counter* take_counter(const Execution& execution) {
  const Stream stream = static_cast<Stream>(execution.stream);
  if (stream == BOXLOSS_VENDOR(StreamPerThread)) return nullptr;
  const std::lock_guard lock(devices_mutex);
  OfDevice& device = devices().at(execution.device_index);
  return is_capturing(stream) ? device.take_counter() : device.streams.at(stream).counter;
}

void check_launch() { check(BOXLOSS_VENDOR(GetLastError)(), "a launch"); }

#else

namespace {
void require_device() {}
void release_instances() {}
}  // namespace

KeepDevice::KeepDevice() = default;
KeepDevice::~KeepDevice() {}

#endif

void ensure_initialized() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  throw_if_finalized();
  if (!Kokkos::is_initialized()) {
    require_device();
    const KeepDevice keep;
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
    std::atexit(finalize);
  }
  static const bool hooked = [] {
    Kokkos::push_finalize_hook(release_instances);
    return true;
  }();
  (void)hooked;
}

}  // namespace boxloss::kokkos
