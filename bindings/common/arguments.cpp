// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

namespace boxloss::binding {

BoxFormat parse_format(const char* argument, std::string_view word) {
  return parse(argument, word, {BoxFormat::kXyxy, BoxFormat::kXywh, BoxFormat::kCxcywh});
}

AngleUnit parse_angle_unit(std::string_view word) {
  return parse("angle_unit", word, {AngleUnit::kRadians, AngleUnit::kDegrees});
}

EpsMode parse_eps_mode(std::string_view word) {
  return parse("eps_mode", word, {EpsMode::kAdd, EpsMode::kClamp});
}

void refuse_dtype(const char* argument, const std::string& dtype, const char* allowed) {
  throw Unsupported(message(argument, " is ", dtype, "; it must be ", allowed));
}

std::int64_t stride_of(const Array<std::int64_t>& array, std::size_t from_end) {
  if (from_end > array.rank) return 0;
  if (array.strides != nullptr) return array.strides[array.rank - from_end];
  std::int64_t stride = 1;
  for (std::size_t d = 1; d < from_end; ++d) stride *= array.shape[array.rank - d];
  return stride;
}

std::int64_t leading(const Array<std::int64_t>& array, std::size_t dropped) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d + dropped < array.rank; ++d) product *= array.shape[d];
  return product;
}

std::int64_t leading_stride(const Array<std::int64_t>& array, std::size_t dropped) {
  for (std::size_t d = dropped + 1; d <= array.rank; ++d) {
    if (array.shape[array.rank - d] != 1) return stride_of(array, d);
  }
  return 0;
}

std::optional<Grid> grid_of(const Array<std::int64_t>* const* arrays, std::size_t count) {
  struct Dimension {
    std::int64_t size;
    std::array<std::int64_t, 4> strides;  ///< of each array
  };
  const Array<std::int64_t>& first = *arrays[0];
  Dimension merged[2] =
      {};  // those of size 1 left out, neighbours merged where all arrays allow it
  std::size_t dimensions = 0;
  for (std::size_t d = 0; d + 1 < first.rank; ++d) {
    if (first.shape[d] == 0) return Grid{1, 0, {}};
    if (first.shape[d] == 1) continue;
    Dimension next = {first.shape[d], {}};
    bool joins = dimensions > 0;
    for (std::size_t i = 0; i < count; ++i) {
      next.strides[i] = stride_of(*arrays[i], arrays[i]->rank - d);
      joins = joins && merged[dimensions - 1].strides[i] == next.size * next.strides[i];
    }
    if (joins) next.size *= merged[--dimensions].size;
    if (dimensions == 2) return std::nullopt;
    merged[dimensions++] = next;
  }
  Grid grid;
  if (dimensions > 0) grid.slots = merged[dimensions - 1].size;
  if (dimensions > 1) grid.images = merged[0].size;
  for (std::size_t i = 0; i < count; ++i) {
    if (dimensions > 0) grid.strides[i].slot = merged[dimensions - 1].strides[i];
    if (dimensions > 1) grid.strides[i].image = merged[0].strides[i];
  }
  return grid;
}

bool leads_as_one(const Array<std::int64_t>& array, std::size_t dropped) {
  if (array.strides == nullptr) return true;
  std::optional<std::int64_t> wanted;
  for (std::size_t d = dropped + 1; d <= array.rank; ++d) {
    const std::int64_t size = array.shape[array.rank - d];
    if (size == 1) continue;
    if (wanted && stride_of(array, d) != *wanted) return false;
    wanted = stride_of(array, d) * size;
  }
  return true;
}

bool has_neighbours(const Array<std::int64_t>& array) {
  return array.rank == 0 || stride_of(array, 1) == 1 || array.size(-1) <= 1;
}

bool lies_transposed(const Array<std::int64_t>& array) {
  return array.rank >= 2 && stride_of(array, 2) == 1 && stride_of(array, 1) != 1;
}

void set_boxes(BoxView& view, const Array<std::int64_t>& boxes) {
  view.data = boxes.data;
  view.images = leading(boxes, 2);
  view.slots = boxes.size(-2);
  view.image_stride = leading_stride(boxes, 2);
  view.slot_stride = stride_of(boxes, 2);
  view.coordinate_stride = stride_of(boxes, 1);
}

std::int64_t integer_at(const PackedArray<std::int64_t>& array, std::int64_t i) {
  return array.dtype == DType::kI32 ? static_cast<const std::int32_t*>(array.data)[i]
                                    : static_cast<const std::int64_t*>(array.data)[i];
}

void check_offsets_values(const PackedArray<std::int64_t>& offsets, std::int64_t rows) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < offsets.size(0); ++i) {
    const std::int64_t value = integer_at(offsets, i);
    check(value >= 0 && value <= rows, offsets.name, "[", i, "] is ", value,
          "; it must lie in [0, ", rows, "]");
    check(value >= before, offsets.name, "[", i, "] is ", value, ", less than ", offsets.name, "[",
          i - 1, "], which is ", before, "; offsets must not decrease");
    before = value;
  }
}

void check_lengths_values(const PackedArray<std::int64_t>& lengths, std::int64_t rows,
                          std::int64_t columns) {
  const std::int64_t count = lengths.rank == 2 ? 2 * lengths.size(0) : 2;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_of_rows = i % 2 == 0;
    const std::int64_t value = integer_at(lengths, i), most = is_of_rows ? rows : columns;
    if (value >= 0 && value <= most) continue;
    const std::string matrix = lengths.rank == 2 ? std::to_string(i / 2) + ", " : "";
    check(false, lengths.name, "[", matrix, i % 2, "] is ", value, "; it must lie in [0, ", most,
          "], the ", is_of_rows ? "rows" : "columns", " of cost");
  }
}

}  // namespace boxloss::binding
