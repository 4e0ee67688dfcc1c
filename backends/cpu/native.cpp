// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/native_loops.hpp"
#include "src/backends.hpp"

namespace boxloss {

Implementation cpu::native() {
  return {"cpu/native",    Device::kCpu,    100, kLosses, kPairings, native::workspace_bytes,
          native::forward, native::backward};
}

}  // namespace boxloss
