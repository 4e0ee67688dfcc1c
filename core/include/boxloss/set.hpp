// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace boxloss {

/// A set of enumerators with values below 64; empty at first.
template <class Enum>
class Set {
 public:
  constexpr Set() = default;
  constexpr Set(std::initializer_list<Enum> members) {
    for (const Enum member : members) bits_ |= bit(member);
  }

  constexpr bool contains(Enum member) const { return (bits_ & bit(member)) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }

  /// Calls visit(member) for each, in the order of their values.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (unsigned value = 0; value < 64; ++value) {
      if (contains(static_cast<Enum>(value))) visit(static_cast<Enum>(value));
    }
  }

 private:
  static constexpr std::uint64_t bit(Enum member) {
    const auto value = static_cast<std::uint64_t>(member);
    return value < 64 ? std::uint64_t{1} << value : 0;
  }

  std::uint64_t bits_ = 0;
};

}  // namespace boxloss
