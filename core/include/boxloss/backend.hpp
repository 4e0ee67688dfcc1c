// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <cstddef>
#include <string>
#include <vector>

/// The door for backends that are not in this library: docs/backends.md.
namespace boxloss {

/// The number of the interface that a backend is compiled against: the structs of these headers,
/// and those under boxloss/backend. It is raised when they change, and another number is refused.
constexpr int kBackendAbi = 6;

/// Adds an implementation, at any time, from any thread. It is copied, and its device is read from
/// its name. Throws InvalidArgument if the name is taken or no path device/variant, if an operation
/// has some of its functions only, or if `abi`, which is the caller's, is not the library's.
BOXLOSS_API void register_implementation(const Implementation& implementation,
                                         int abi = kBackendAbi);

/// How the conformance tests use memory that is not the host's.
struct DeviceMemory {
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* data);
  void (*copy_in)(void* device, const void* host, std::size_t bytes);
  /// Waits for what the device still has to do.
  void (*copy_out)(void* host, const void* device, std::size_t bytes);
};

/// What a shared library exports to be loaded, by BOXLOSS_BACKEND.
struct Backend {
  int abi;
  std::vector<Implementation> (*implementations)();
  const DeviceMemory* memory = nullptr;  ///< null for a device that the tests know
};

/// Exports a backend: BOXLOSS_BACKEND(implementations), or with its memory behind that, at
/// namespace scope.
#define BOXLOSS_BACKEND(...)                        \
  extern "C" __attribute__((visibility("default"))) \
  const boxloss::Backend boxloss_backend = {boxloss::kBackendAbi, __VA_ARGS__}

/// Loads a shared library that exports a backend, which it returns, and registers all its
/// implementations or, if one cannot be, none. It stays loaded. Throws InvalidArgument as
/// register_implementation does, for a file that is no library or exports no backend, and for a
/// symbol that it lacks.
BOXLOSS_API const Backend& load_backend(const std::string& path);

}  // namespace boxloss

/// load_backend for other languages: null, or what is wrong, until this thread's next call.
extern "C" BOXLOSS_API const char* boxloss_load_backend(const char* path);
