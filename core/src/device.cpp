// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <boxloss/device.hpp>
#include <boxloss/error.hpp>
#include <mutex>
#include <string>

#include "src/checks.hpp"
#include "src/message.hpp"

namespace boxloss {
namespace {

/// Words are only added, and counted when they are written: reading needs no lock.
struct Words {
  std::array<std::string, kMostDevices> all = {"cpu", "cuda", "hip"};
  std::atomic<int> count = 3;
  std::mutex adding;
};

/// Never destroyed: objects that outlive it may hold a device.
Words& words() {
  static Words& all = *new Words;
  return all;
}

/// Its index, or -1.
int find(const Words& known, std::string_view word) {
  const auto begin = known.all.begin(), end = begin + known.count.load();
  const auto found = std::find(begin, end, word);
  return found == end ? -1 : static_cast<int>(found - begin);
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int add(Words& known, std::string_view word) {
  if (word.empty() || !std::all_of(word.begin(), word.end(), is_word_character)) {
    throw InvalidArgument(message("'", word,
                                  "' names no device; it must be a word of letters, digits and "
                                  "underscores"));
  }
  const std::lock_guard lock(known.adding);
  const int added_before = find(known, word);
  if (added_before >= 0) return added_before;
  const int index = known.count;
  if (index == kMostDevices) {
    throw InvalidArgument(
        message("device '", word, "' is one too many; a process can name ", kMostDevices));
  }
  known.all[static_cast<std::size_t>(index)] = word;
  known.count = index + 1;
  return index;
}

}  // namespace

Device device_named(std::string_view word) {
  Words& known = words();
  const int index = find(known, word);
  return static_cast<Device>(index >= 0 ? index : add(known, word));
}

const char* name_of(Device device) {
  const Words& known = words();
  const auto index = static_cast<int>(device);
  return index < known.count ? known.all[static_cast<std::size_t>(index)].c_str() : kUnknown;
}

}  // namespace boxloss
