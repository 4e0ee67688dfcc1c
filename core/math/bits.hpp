// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host_device.hpp"

namespace boxloss {

template <class To, class From>
BOXLOSS_HOST_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  // Not memcpy, here and elsewhere: HIP's is a loop over bytes.
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace boxloss
