// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/backend.hpp>
#include <cstddef>
#include <vector>

#include "array.hpp"

/// All that the conformance tests know about where a device's memory is.
namespace boxloss::conformance {

/// Null where this machine lacks the device. Any but ours has what `use_memory` was given.
const DeviceMemory* device_memory(Device device);
void use_memory(const DeviceMemory* memory);

/// One for each memory_*.cpp; null as above.
const DeviceMemory* cuda_memory();
const DeviceMemory* hip_memory();

/// Host values copied to a device, into an allocation of exactly their size: there AddressSanitizer
/// and its kin see a read too far. Null when there are none.
class Input {
 public:
  Input(const DeviceMemory& memory, const Array& values);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const void* data() const { return data_; }

 private:
  const DeviceMemory& memory_;
  void* data_ = nullptr;
};

/// NaN in every floating dtype; an integer that is no likely result.
std::byte poison_of(DType dtype);

/// Device memory to be written: poison inside, sentinels on both sides. It begins `shift` bytes
/// behind an address that suits every access.
class Output {
 public:
  Output(const DeviceMemory& memory, std::size_t bytes, std::size_t shift = 0,
         std::byte poison = poison_of(DType::kF32));
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void* data() const;
  void read(Array& values) const;
  bool sentinels_intact() const;

 private:
  const DeviceMemory& memory_;
  std::size_t bytes_, before_;
  std::byte* data_;
};

}  // namespace boxloss::conformance
