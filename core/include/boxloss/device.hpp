// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <cstdint>
#include <string_view>

namespace boxloss {

/// The kind of memory that pointers are in: a number for a word, "cpu", "cuda", "hip", or any
/// other, for which device_named has the number. An implementation's name begins with the word:
/// "cpu/native".
enum class Device : std::uint8_t { kCpu, kCuda, kHip };

/// How many different devices a process can name: as many as there are numbers.
constexpr int kMostDevices = 256;

/// The device of that word, which has the same number until the process ends, but perhaps another
/// in the next one. Throws InvalidArgument for a word that is not of letters, digits and
/// underscores, or one too many.
BOXLOSS_API Device device_named(std::string_view word);

/// Its word.
BOXLOSS_API const char* name_of(Device device);

}  // namespace boxloss
