// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "array.hpp"
#include "random.hpp"

/// Arrays of int32 or int64 that say which.
namespace boxloss::conformance {

constexpr std::int64_t kMin32 = std::numeric_limits<std::int32_t>::min(),
                       kMax32 = std::numeric_limits<std::int32_t>::max(),
                       kMin64 = std::numeric_limits<std::int64_t>::min(),
                       kMax64 = std::numeric_limits<std::int64_t>::max(), kTwo32 = 1ll << 32;

using IndexLists = std::vector<std::vector<std::int64_t>>;

/// Offsets of three images in twenty rows that are to be clamped.
inline const IndexLists kOffsetsOutOfRange = {
    {-1, 4, 6, 21}, {-5, 3, 9, 1000}, {-7, -6, -5, -4},      {50, 60, 70, 80},
    {0, 0, 20, 20}, {2, 4, 6, 8},     {kMin32, 4, 6, kMax32}};

/// Offsets that decrease: what they give means nothing, but they must not lead outside.
inline const IndexLists kWildOffsets32 = {{0, 12, 11, 20},
                                          {0, 21, 21, 20},
                                          {20, 0, 20, 0},
                                          {5, 3, 1, -1},
                                          {kMax32, kMin32, kMax32, kMin32},
                                          {kMin32, kMax32, 3, 1000}};
inline const IndexLists kWildOffsets64 = {
    {kMax64, kMin64, kMax64, kMin64}, {kMin64, kMax64, 7, kMin64}, {19, kMax64, 0, 5}};

/// All of these for operations that give no row to an image where any offset is wrong.
IndexLists wrong_offsets(DType dtype);

/// Unlike Array::set, with no double in between to round the largest ones.
Array exactly(const std::vector<std::int64_t>& indices, DType dtype);

/// Monotonic; the first and the last rows may belong to nobody, and images may have no rows or more
/// than they have slots.
Array random_offsets(DType dtype, std::int64_t images, std::int64_t rows, Random& random);

/// The rows from the first image's to the last one's; none where offsets decrease or lead outside.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};
RowRange owned_rows(const ArrayView& offsets, std::int64_t images, std::int64_t rows);

/// Which row each of `count` pairs reads, or the class of a label. One in ten leads outside the
/// list, where most errors are made: next to its ends, at the ends of the dtype, and by 2^32, where
/// 32 bits see a row.
std::vector<std::int64_t> random_rows(DType dtype, std::int64_t count, std::int64_t list_rows,
                                      Random& random);

}  // namespace boxloss::conformance
