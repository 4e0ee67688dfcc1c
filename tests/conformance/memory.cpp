// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace boxloss::conformance {
namespace {

// A multiple of every alignment that an implementation may ask of its outputs.
constexpr std::size_t kFenceBytes = 256;
constexpr std::byte kSentinel{0xa5};

const DeviceMemory* loaded_memory = nullptr;

void* allocate(std::size_t bytes) {
  void* data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

constexpr DeviceMemory kOfHost = {allocate, std::free, copy, copy};

bool all_sentinels(const DeviceMemory& memory, const std::byte* device, std::size_t bytes) {
  std::vector<std::byte> host(bytes);
  memory.copy_out(host.data(), device, bytes);
  return std::all_of(host.begin(), host.end(), [](std::byte b) { return b == kSentinel; });
}

}  // namespace

void use_memory(const DeviceMemory* memory) { loaded_memory = memory; }

const DeviceMemory* device_memory(Device device) {
  const std::string_view word = name_of(device);
  if (word == "cpu") return &kOfHost;
#if defined(BOXLOSS_HAS_CUDA)
  if (word == "cuda") return cuda_memory();
#endif
#if defined(BOXLOSS_HAS_HIP)
  if (word == "hip") return hip_memory();
#endif
  return loaded_memory;
}

Input::Input(const DeviceMemory& memory, const Array& values) : memory_(memory) {
  if (values.size_bytes() == 0) return;
  data_ = memory_.allocate(values.size_bytes());
  memory_.copy_in(data_, values.data(), values.size_bytes());
}

Input::~Input() {
  if (data_ != nullptr) memory_.release(data_);
}

std::byte poison_of(DType dtype) { return is_floating(dtype) ? std::byte{0xff} : std::byte{0x5b}; }

Output::Output(const DeviceMemory& memory, std::size_t bytes, std::size_t shift, std::byte poison)
    : memory_(memory),
      bytes_(bytes),
      before_(kFenceBytes + shift),
      data_(static_cast<std::byte*>(memory.allocate(before_ + bytes + kFenceBytes))) {
  std::vector<std::byte> host(before_ + bytes + kFenceBytes, kSentinel);
  std::fill_n(host.begin() + static_cast<std::ptrdiff_t>(before_), bytes, poison);
  memory_.copy_in(data_, host.data(), host.size());
}

Output::~Output() { memory_.release(data_); }

void* Output::data() const { return data_ + before_; }

void Output::read(Array& values) const {
  if (bytes_ > 0) memory_.copy_out(values.data(), data(), bytes_);
}

bool Output::sentinels_intact() const {
  return all_sentinels(memory_, data_, before_) &&
         all_sentinels(memory_, data_ + before_ + bytes_, kFenceBytes);
}

}  // namespace boxloss::conformance
