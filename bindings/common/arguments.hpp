// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <boxloss/dtype.hpp>
#include <boxloss/error.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/registry.hpp>
#include <boxloss/view.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../options.hpp"
#include "src/checks.hpp"

/// What every framework says of an operation's arguments, and checks of them. Errors are core's and
/// name the argument; the framework puts the function's name in front.
///
/// `Size` is std::int64_t or, while a framework traces, its symbolic integer.
namespace boxloss::binding {

/// An array as an operation's description sees it.
template <class Size>
struct Array {
  const char* name = "";
  bool is_given = false;
  std::optional<DType> dtype = {};  ///< none if core does not have it
  std::string other_dtype = {};     ///< then its name
  const Size* shape = nullptr;
  std::size_t rank = 0;
  const std::int64_t* strides = nullptr;  ///< null: row-major
  const void* data = nullptr;             ///< null while a framework traces
  const void* source = nullptr;           ///< the framework's own array
  /// Dense, but not row-major, so that its gradient has its strides; told where sizes are numbers.
  bool is_permuted = false;

  explicit operator bool() const { return is_given; }
  /// Dimension i, counted from the end if it is negative.
  const Size& size(std::ptrdiff_t i) const {
    return shape[i < 0 ? static_cast<std::ptrdiff_t>(rank) + i : i];
  }
};

/// One that lies row-major: the framework copies it if it does not.
template <class Size>
struct PackedArray : Array<Size> {};

/// One that may be missing.
template <class Base>
struct OptionalArray : Base {};

/// A float32 that the operation writes, and the host reads; null if not given.
struct HostNumber {
  float* data = nullptr;
};

/// The kinds of options.hpp that are not arrays.
struct PlainKinds {
  using Flag = bool;
  using Word = std::string_view;
  using Number = double;
  using OptionalNumber = std::optional<double>;
  using Numbers = std::vector<double>;
  using Whole = std::int64_t;
  using OptionalWhole = std::optional<std::int64_t>;
  using Answer = HostNumber;
};

template <class Size>
struct Described : PlainKinds {
  using Strided = Array<Size>;
  using Packed = PackedArray<Size>;
  using OptionalStrided = OptionalArray<Array<Size>>;
  using OptionalPacked = OptionalArray<PackedArray<Size>>;
  using PackedList = std::vector<PackedArray<Size>>;
};

template <class... Field>
std::tuple<Field&...> tie_all(int, Field&... fields) {
  return {fields...};
}

#define BOXLOSS_ARGUMENT(Kind, name, standard) typename Kinds::Kind name;
#define BOXLOSS_ARGUMENT_FIELD(Kind, name, standard) , this->name
#define BOXLOSS_ARGUMENT_ROW(Kind, name, standard) binding::Parameter{#Kind, #name, #standard},

struct Parameter {
  const char *kind, *name, *standard;  ///< "" if it has no default
};

/// An operation's arguments as one struct, with a framework's types or those of `Described`, and
/// their names and defaults, in the order of the list.
#define BOXLOSS_ARGUMENTS(LIST)                 \
  template <class Kinds>                        \
  struct Arguments {                            \
    LIST(BOXLOSS_ARGUMENT) BOXLOSS_FIELDS(LIST) \
  };                                            \
  static constexpr std::array kParameters = {LIST(BOXLOSS_ARGUMENT_ROW)}
#define BOXLOSS_FIELDS(LIST) \
  auto fields() { return binding::tie_all(0 LIST(BOXLOSS_ARGUMENT_FIELD)); }

/// The same, of a struct that has them, and maybe others.
#define BOXLOSS_ARGUMENTS_IN(Struct, LIST) \
  template <class Kinds>                   \
  struct Arguments : Struct<Kinds> {       \
    BOXLOSS_FIELDS(LIST)                   \
  };                                       \
  static constexpr std::array kParameters = {LIST(BOXLOSS_ARGUMENT_ROW)}

/// Those of a loss' gradient: the list's, and behind them the loss'.
#define BOXLOSS_GRADIENT_ARGUMENTS(LIST, Loss)                                           \
  template <class Kinds>                                                                 \
  struct Arguments : Loss::Arguments<Kinds> {                                            \
    LIST(BOXLOSS_ARGUMENT)                                                               \
    auto fields() {                                                                      \
      return std::tuple_cat(binding::tie_all(0 LIST(BOXLOSS_ARGUMENT_FIELD)),            \
                            Loss::Arguments<Kinds>::fields());                           \
    }                                                                                    \
  };                                                                                     \
  static constexpr std::size_t kInFront = std::array{LIST(BOXLOSS_ARGUMENT_ROW)}.size(); \
  static constexpr auto kParameters =                                                    \
      binding::joined(std::array{LIST(BOXLOSS_ARGUMENT_ROW)}, Loss::kParameters)

template <std::size_t m, std::size_t n>
constexpr std::array<Parameter, m + n> joined(const std::array<Parameter, m>& a,
                                              const std::array<Parameter, n>& b) {
  std::array<Parameter, m + n> both = {};
  for (std::size_t i = 0; i < m; ++i) both[i] = a[i];
  for (std::size_t i = 0; i < n; ++i) both[m + i] = b[i];
  return both;
}

/// An array that an operation writes.
template <class Size>
struct Output {
  DType dtype;
  std::vector<Size> shape;
  bool is_wanted = true;                  ///< else it has no memory
  const Array<Size>* like = nullptr;      ///< has its strides, if these are dense
  const Array<Size>* order_of = nullptr;  ///< lies transposed where that array does
};

/// Comparisons of sizes. A framework's symbolic integer has its own, which also take a size that is
/// not known before the program runs.
template <class Size>
struct Compare {
  static bool equal(const Size& a, const Size& b) { return a == b; }
  static bool at_least(const Size& a, const Size& b) { return a >= b; }
  /// Not of a size that is not known.
  static bool is(const Size& a, std::int64_t size) { return a == size; }
};

/// "[2, 3]". It is written only when it is streamed, so that checks that pass make no text.
template <class Sizes>
struct ShapeText {
  const Sizes& sizes;

  friend std::ostream& operator<<(std::ostream& text, const ShapeText& its) {
    const char* before = "[";
    for (const auto& size : its.sizes) {
      text << before << size;
      before = ", ";
    }
    return text << (*before == '[' ? "[]" : "]");
  }
};

/// An array's shape as a range.
template <class Size>
struct ShapeOf {
  explicit ShapeOf(const Array<Size>& array) : array_(array) {}
  const Size* begin() const { return array_.shape; }
  const Size* end() const { return array_.shape + array_.rank; }
  std::size_t size() const { return array_.rank; }

  friend std::ostream& operator<<(std::ostream& text, const ShapeOf& its) {
    return text << ShapeText<ShapeOf>{its};
  }

 private:
  const Array<Size>& array_;
};

template <class Size, class Wanted = std::initializer_list<Size>>
bool has_shape(const Array<Size>& array, const Wanted& wanted) {
  if (array.rank != wanted.size()) return false;
  const Size* size = array.shape;
  for (const Size& each : wanted) {
    if (!Compare<Size>::equal(*size++, each)) return false;
  }
  return true;
}

/// `why` stands behind the wanted shape.
template <class Size, class Wanted = std::initializer_list<Size>, class... Why>
void check_shape(const Array<Size>& array, const Wanted& wanted, const Why&... why) {
  if (has_shape<Size, Wanted>(array, wanted)) return;
  check(false, array.name, " has shape ", ShapeOf(array), "; it must be ",
        ShapeText<Wanted>{wanted}, ", ", why...);
}

/// `wanted` says in words what the shape must be.
template <class Size>
void check_shape_is(const Array<Size>& array, bool ok, const char* wanted) {
  check(ok, array.name, " has shape ", ShapeOf(array), "; it must be ", wanted);
}

/// (..., 4), or of another number of values
template <class Size>
void check_boxes_shape(const Array<Size>& boxes, int numbers = 4) {
  check(boxes.rank > 0 && Compare<Size>::equal(boxes.size(-1), numbers), boxes.name, " has shape ",
        ShapeOf(boxes), "; its last dimension must be ", numbers);
}

/// (images + 1), of any number of images.
template <class Size>
void check_offsets_shape(const Array<Size>& offsets) {
  check_shape_is(offsets, offsets.rank == 1 && Compare<Size>::at_least(offsets.size(0), 1),
                 "(images + 1)");
}

template <class Enum>
Enum parse(const char* argument, std::string_view word, std::initializer_list<Enum> allowed) {
  for (const Enum value : allowed) {
    if (name_of(value) == word) return value;
  }
  std::string words;
  for (const Enum value : allowed) {
    words += (words.empty() ? "'" : ", '") + std::string(name_of(value)) + "'";
  }
  throw InvalidArgument(message(argument, " is '", word, "'; allowed: ", words));
}

BoxFormat parse_format(const char* argument, std::string_view word);
EpsMode parse_eps_mode(std::string_view word);
AngleUnit parse_angle_unit(std::string_view word);

/// How many numbers a box has: 5 of rotated ones, (..., 5), else what must be 4.
template <class Size>
int numbers_of(const Array<Size>& boxes) {
  return boxes.rank > 0 && Compare<Size>::is(boxes.size(-1), 5) ? 5 : 4;
}

/// Checks an option that is for rotated boxes only, if it is set.
template <class Size, class Value>
void check_is_rotated(bool is_set, const char* option, const Value& value,
                      const Array<Size>& boxes) {
  check(!is_set || numbers_of(boxes) == 5, option, " is ", value,
        "; it is for rotated boxes, (..., 5), but ", boxes.name, " has shape ", ShapeOf(boxes));
}

/// The unit of angles, if boxes are rotated.
template <class Size>
std::optional<AngleUnit> angle_unit_of(std::string_view word, const Array<Size>& boxes) {
  const AngleUnit unit = parse_angle_unit(word);
  check_is_rotated(unit != AngleUnit::kRadians, "angle_unit", name_of(unit), boxes);
  return numbers_of(boxes) == 5 ? std::optional(unit) : std::nullopt;
}

/// Checks boxes that may be rotated, and others, which must be of the same kind.
template <class Size>
void check_boxes_shapes(const Array<Size>& boxes, const Array<Size>& others) {
  const int numbers = numbers_of(boxes);
  check(boxes.rank > 0 && Compare<Size>::equal(boxes.size(-1), numbers), boxes.name, " has shape ",
        ShapeOf(boxes), "; its last dimension must be 4, or 5 for rotated boxes");
  check(others.rank > 0 && Compare<Size>::equal(others.size(-1), numbers), others.name,
        " has shape ", ShapeOf(others), "; its last dimension must be ", numbers, ", as that of ",
        boxes.name);
}

/// A loss' own numbers, all of them.
template <class Loss>
LossParameters parameters_of(Loss loss, const std::vector<double>& numbers) {
  LossParameters given;
  given.count = static_cast<int>(numbers.size());
  const std::size_t most = std::min<std::size_t>(numbers.size(), kMostLossParameters);
  std::copy_n(numbers.begin(), most, given.values);
  return complete_parameters(loss, given);
}

constexpr const char* kFloatingDTypes = "float64, float32, float16 or bfloat16";
constexpr const char* kNormalizerDTypes = "float64, float32, int64 or int32";
constexpr const char* kIndexDTypes = "int32 or int64";
constexpr const char* kDTypes = "float64, float32, float16, bfloat16, uint8, int16, int32 or int64";

[[noreturn]] void refuse_dtype(const char* argument, const std::string& dtype, const char* allowed);

/// An array's dtype as core's. Unsupported for one that core does not have; `allowed` is what it
/// may be, in words.
template <class Size>
DType dtype_of(const Array<Size>& array, const char* allowed = kDTypes) {
  if (!array.dtype) refuse_dtype(array.name, array.other_dtype, allowed);
  return *array.dtype;
}

/// The same, where only a floating dtype, or only an index' is allowed and core does not check it.
template <class Size>
DType floating_dtype_of(const Array<Size>& array) {
  const DType dtype = dtype_of(array, kFloatingDTypes);
  if (!is_floating(dtype)) refuse_dtype(array.name, name_of(dtype), kFloatingDTypes);
  return dtype;
}
template <class Size>
DType index_dtype_of(const Array<Size>& array) {
  const DType dtype = dtype_of(array, kIndexDTypes);
  const bool is_index = dtype == DType::kI32 || dtype == DType::kI64;
  if (!is_index) refuse_dtype(array.name, name_of(dtype), kIndexDTypes);
  return dtype;
}

/// Of backward, an incoming gradient or scale must be as forward's output.
template <class Size>
void check_as(const Array<Size>& given, const Output<Size>& output, const char* why) {
  check_shape(given, output.shape, why);
  const DType dtype = dtype_of(given);
  check_dtype(dtype == output.dtype, given.name, " is ", name_of(dtype), "; it must be ",
              name_of(output.dtype), ", as the loss is");
}

/// Core's view of an array that may be missing.
template <class Size>
ArrayView view_of(const Array<Size>& array, const char* allowed) {
  if (!array) return {};
  return {array.data, dtype_of(array, allowed)};
}

/// Whether sizes are numbers, so that a description sets sizes and strides, too.
template <class Size>
constexpr bool kHasNumbers = std::is_same_v<Size, std::int64_t>;

/// An array's stride in a dimension, counted from the end; 0 if it does not have that many.
std::int64_t stride_of(const Array<std::int64_t>& array, std::size_t from_end);

/// The product of a shape without its last `dropped` dimensions.
std::int64_t leading(const Array<std::int64_t>& array, std::size_t dropped);

/// The stride of these leading dimensions, which are one by their strides. The stride of a
/// dimension of size 1 means nothing.
std::int64_t leading_stride(const Array<std::int64_t>& array, std::size_t dropped);

/// The leading dimensions that arrays share as (images, slots), each array with two strides.
struct Grid {
  struct Strides {
    std::int64_t image = 0, slot = 0;
  };
  std::int64_t images = 1, slots = 1;
  std::array<Strides, 4> strides = {};
};

/// Those before the last dimension of the first array; none if two strides cannot tell them.
std::optional<Grid> grid_of(const Array<std::int64_t>* const* arrays, std::size_t count);

/// Whether the leading dimensions are one by their strides.
bool leads_as_one(const Array<std::int64_t>& array, std::size_t dropped);

/// Whether the last dimension's values are neighbours.
bool has_neighbours(const Array<std::int64_t>& array);

/// Whether values are neighbours along the last dimension but one, and not along the last.
bool lies_transposed(const Array<std::int64_t>& array);

/// Boxes (images, slots, 4), or (slots, 4), which are one image; or of more leading dimensions that
/// are one by their strides.
void set_boxes(BoxView& view, const Array<std::int64_t>& boxes);

/// An element of an array of integers.
std::int64_t integer_at(const PackedArray<std::int64_t>& array, std::int64_t i);

/// Checks the values of offsets on the host, where they can be read without a wait.
void check_offsets_values(const PackedArray<std::int64_t>& offsets, std::int64_t rows);

/// The same for lengths of matrices: of each, how many rows and columns it has.
void check_lengths_values(const PackedArray<std::int64_t>& lengths, std::int64_t rows,
                          std::int64_t columns);

}  // namespace boxloss::binding
