// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/dtype.hpp>
#include <boxloss/error.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/view.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../options.hpp"
#include "dispatch/message.hpp"

/// What the lists of options become here, and checks of arguments. Errors name the argument.
namespace boxloss::jax_binding {

/// An array as JAX has it, row-major: what is known while it traces, and in a call its memory.
struct Operand {
  std::string_view name;
  std::string_view dtype;  ///< as NumPy calls it
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
};

inline namespace kinds {
using Array = const Operand*;  ///< null if it is not given
using Flag = bool;
using Word = std::string_view;
using Number = double;
using OptionalNumber = std::optional<double>;
using Whole = std::int64_t;
using OptionalWhole = std::optional<std::int64_t>;
}  // namespace kinds

/// A call's arguments by name, while JAX traces it and when XLA makes it.
class Arguments {
 public:
  virtual ~Arguments() = default;

  void read(const char* name, Array& array) const;
  virtual void read(const char* name, Flag& flag) const = 0;
  virtual void read(const char* name, Word& word) const = 0;
  virtual void read(const char* name, Number& number) const = 0;
  virtual void read(const char* name, OptionalNumber& number) const = 0;
  /// They come as numbers, of less than 2^53.
  void read(const char* name, Whole& whole) const;
  void read(const char* name, OptionalWhole& whole) const;

 protected:
  std::vector<Operand> operands_;
};

/// One that must be given.
const Operand& given(const Arguments& arguments, const char* name);

/// Of a list of options, into a struct `options`.
#define BOXLOSS_READ_OPTION(Kind, name, standard) arguments.read(#name, options.name);

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) throw InvalidArgument(message(parts...));
}

template <class Enum>
Enum parse(const char* argument, std::string_view word, std::initializer_list<Enum> allowed) {
  std::string words;
  for (const Enum value : allowed) {
    if (name_of(value) == word) return value;
    words += (words.empty() ? "'" : ", '") + std::string(name_of(value)) + "'";
  }
  throw InvalidArgument(message(argument, " is '", word, "'; allowed: ", words));
}

BoxFormat parse_format(const char* argument, std::string_view word);
EpsMode parse_eps_mode(std::string_view word);

constexpr const char* kFloatingDTypes = "float64, float32, float16 or bfloat16";
constexpr const char* kIndexDTypes = "int32 or int64";
constexpr const char* kNormalizerDTypes = "float64, float32, int64 or int32";
constexpr const char* kDTypes = "float64, float32, float16, bfloat16, uint8, int16, int32 or int64";

/// An operand's dtype as core's. Unsupported for one that core has not, `allowed` being what it may
/// be.
DType dtype_of(const Operand& operand, const char* allowed = kDTypes);

void check_floating(const Operand& operand, DType dtype);
void check_indices(const Operand& operand, DType dtype);

/// A view whose memory is given with the run, or no array.
ArrayView later(Array array, const char* allowed);

const void* data_of(Array array);

/// "(2, 3)", as Python writes it.
std::string text_of(const std::vector<std::int64_t>& shape);

/// The product of a shape without its last `dropped` dimensions.
std::int64_t leading(const std::vector<std::int64_t>& shape, std::size_t dropped);

/// (..., 4)
void check_boxes_shape(const Operand& boxes);
void check_shape(const Operand& operand, const std::vector<std::int64_t>& wanted, const char* why);

}  // namespace boxloss::jax_binding
