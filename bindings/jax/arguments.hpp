// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "../common/arguments.hpp"

/// A call's arguments as descriptions see them.
namespace boxloss::jax_binding {

/// An array as JAX has it, row-major: what is known while it traces, and in a call its memory.
struct Operand {
  std::string_view name;
  std::string_view dtype;  ///< as NumPy calls it
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

using Array = binding::Array<std::int64_t>;

/// A call's arguments by name, while JAX traces it and when XLA makes it.
class Arguments : protected binding::PlainKinds {
 public:
  virtual ~Arguments() = default;

  /// One that must be given.
  void read(const char* name, Array& array) const;
  template <class Base>
  void read(const char* name, binding::OptionalArray<Base>& array) const {
    find(name, array);
  }
  virtual void read(const char* name, Flag& flag) const = 0;
  virtual void read(const char* name, Word& word) const = 0;
  virtual void read(const char* name, Number& number) const = 0;
  virtual void read(const char* name, OptionalNumber& number) const = 0;
  virtual void read(const char* name, Numbers& numbers) const = 0;
  /// They come as numbers, of less than 2^53.
  void read(const char* name, Whole& whole) const;
  void read(const char* name, OptionalWhole& whole) const;

 protected:
  void find(const char* name, Array& array) const;

  std::vector<Operand> operands_;
};

}  // namespace boxloss::jax_binding
