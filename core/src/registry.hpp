// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/registry.hpp>
#include <string_view>
#include <vector>

namespace boxloss {

/// The first word of a path device/variant; all of a bare device.
inline std::string_view device_word(std::string_view name) {
  return name.substr(0, name.find('/'));
}

/// Adds implementations that were checked; none if the name of one is taken: throws
/// InvalidArgument.
void add_to_registry(const std::vector<Implementation>& added);

}  // namespace boxloss
