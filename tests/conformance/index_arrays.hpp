// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "array.hpp"
#include "random.hpp"

/// Arrays of int32 or int64 that say which.
namespace boxloss::conformance {

/// Unlike Array::set, with no double in between to round the largest ones.
Array exactly(const std::vector<std::int64_t>& indices, DType dtype);

/// Monotonic; the first and the last rows may belong to nobody, and images may have no rows or more
/// than they have slots.
Array random_offsets(DType dtype, std::int64_t images, std::int64_t rows, Random& random);

/// Which row each of `count` pairs reads. One in ten leads outside the list, where most errors are
/// made: next to its ends, and by 2^32, where 32 bits see a row.
std::vector<std::int64_t> random_rows(DType dtype, std::int64_t count, std::int64_t list_rows,
                                      Random& random);

}  // namespace boxloss::conformance
