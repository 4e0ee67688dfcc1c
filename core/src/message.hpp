// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>

namespace boxloss {

/// Its arguments, streamed one after the other. A character 0 in a word would end what is shown.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  std::string shown = text.str();
  for (std::size_t at; (at = shown.find('\0')) != std::string::npos;) shown.replace(at, 1, "\\0");
  return shown;
}

}  // namespace boxloss
