// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <boxloss/device.hpp>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/view.hpp>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>

#include "src/message.hpp"

/// Checks of arguments; `name` is what error messages call them.
namespace boxloss {

struct Implementation;

template <class... Parts>
void check(bool ok, const Parts&... parts) {
  if (!ok) throw InvalidArgument(message(parts...));
}

template <class... Parts>
void check_dtype(bool ok, const Parts&... parts) {
  if (!ok) throw Unsupported(message(parts...));
}

/// What `name_of` gives for a number that is no enumerator: one address, so that a check compares
/// no text.
extern const char kUnknown[];

/// An enumerator's word; of a number that is none, the number. It is only streamed, so that checks
/// that pass make no text.
struct Shown {
  const char* word;
  int number;

  friend std::ostream& operator<<(std::ostream& text, const Shown& its) {
    return its.word == kUnknown ? text << its.number : text << its.word;
  }
};
template <class Enum>
Shown shown(Enum value) {
  return {name_of(value), static_cast<int>(value)};
}

/// Whether it is one of the enumerators, which are those that have a name.
template <class Enum>
bool is_one(Enum value) {
  return name_of(value) != kUnknown;
}

/// One that elements can have.
inline bool is_one(DType dtype) { return size_of(dtype) != 0; }

template <class Error = InvalidArgument, class Enum>
void check_enumerator(const char* name, const char* field, Enum value) {
  if (is_one(value)) return;
  std::string words;
  for (int i = 0; is_one(static_cast<Enum>(i)); ++i) {
    words += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Enum>(i)));
  }
  throw Error(message(name, field, " is ", shown(value), "; it must be one of ", words));
}

/// Checks that it was set to something that is not negative; `what` is what it is the number of.
inline void check_size(const char* name, std::int64_t size, const char* what) {
  check(size != kUnsetSize, name, " is not set; it must be the number of ", what);
  check(size >= 0, name, " is ", size, "; it must not be negative");
}

/// Whether it is a stride, or is not set.
inline bool may_be_stride(std::int64_t stride) { return stride >= 0 || stride == kUnsetStride; }

/// Checks that a stride was set if there are more than one of `what`.
inline void check_stride(const char* view, const char* what, std::int64_t stride,
                         std::int64_t size) {
  check(stride != kUnsetStride || size <= 1, view, ".", what,
        "_stride is not set; it must lead from each ", what, " to the next");
}

/// The largest number of boxes, or of values computed from them, whose size in bytes still fits.
constexpr std::int64_t kMostBoxes = std::numeric_limits<std::int64_t>::max() / 64;

void check_aligned(const char* name, const void* data, DType dtype);

/// Whether an optional array is given: its dtype says so before there are pointers.
inline bool is_given(const ArrayView& array) { return array.dtype != DType::kNone; }

/// Checks that an array is given where it is needed; `what` is what it has.
void check_given(const char* name, const ArrayView& array, bool is_needed, const char* what);

/// Checks the pointer of an array, of which a run reads anything or nothing.
void check_pointer(const char* name, const ArrayView& array, bool is_read);

/// For the workspace_bytes of backends: a pointer that is null exactly if the array is not given.
void mark_if_given(ArrayView& array);

/// All of boxes but their pointers; and these, of which those of boxes are always needed.
/// `numbers` are those of a box, 4 or 5.
void check_boxes(const char* name, const BoxView& boxes, int numbers = 4);
void check_pointers(const char* name, const char* rows, const BoxView& boxes, bool is_read);

void check_floating(const char* name, DType dtype);
void check_indices(const char* name, DType dtype);

/// The same, of an array that is given.
void check_indices(const char* name, const ArrayView& array);

/// An array without a view: a gradient, or an output.
void check_data(const char* name, const void* data, DType dtype, bool is_needed);

/// What reduction "mean" divides by.
void check_normalizer(const ArrayView& normalizer, std::int64_t stride, Reduction reduction);

/// For a compute type.
void check_eps(double eps, DType compute);

/// Checks that the implementation has the operation, and that the problem is on its device.
void check_served(const Implementation& implementation, const char* operation, bool has_operation,
                  Device device);

/// The same, and that the loss is among those it serves.
template <class Enum>
void check_served(const Implementation& implementation, const char* operation, bool has_operation,
                  Device device, Enum loss, Set<Enum> losses);

/// Bytes of workspace that an operation's functions ask for.
template <class Functions, class Problem>
std::size_t bytes_of(const Functions& served, const Problem& problem) {
  return served.workspace_bytes == nullptr ? 0 : served.workspace_bytes(problem);
}

void check_execution(const Execution& execution, Device device, std::size_t workspace_bytes = 0);

/// A run's checks of all but pointers and outputs. The problem's are those of the operation's
/// `_workspace_bytes`, unless the caller has asked it.
template <class Problem>
void check_call(std::size_t (*workspace_bytes)(const Implementation&, const Problem&),
                const Implementation& implementation, const Problem& p,
                const Execution& execution) {
  check_execution(execution, p.device,
                  execution.is_checked ? 0 : workspace_bytes(implementation, p));
}

}  // namespace boxloss
