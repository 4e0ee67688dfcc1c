// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "index_arrays.hpp"

#include <algorithm>

namespace boxloss::conformance {

IndexLists wrong_offsets(DType dtype) {
  IndexLists lists = kOffsetsOutOfRange;
  lists.insert(lists.end(), kWildOffsets32.begin(), kWildOffsets32.end());
  if (dtype != DType::kI64) return lists;
  lists.insert(lists.end(), kWildOffsets64.begin(), kWildOffsets64.end());
  // Whose lower halves would be in range.
  lists.push_back({kTwo32, kTwo32 + 7, kTwo32 + 11, kTwo32 + 20});
  lists.push_back({0, 7, kTwo32 + 11, kTwo32 + 20});
  return lists;
}

Array exactly(const std::vector<std::int64_t>& indices, DType dtype) {
  Array array(dtype, static_cast<std::int64_t>(indices.size()));
  if (dtype == DType::kI64) {
    std::copy(indices.begin(), indices.end(), static_cast<std::int64_t*>(array.data()));
  } else {
    std::transform(indices.begin(), indices.end(), static_cast<std::int32_t*>(array.data()),
                   [](std::int64_t i) { return static_cast<std::int32_t>(i); });
  }
  return array;
}

Array random_offsets(DType dtype, std::int64_t images, std::int64_t rows, Random& random) {
  std::vector<std::int64_t> cuts(static_cast<std::size_t>(images) + 1);
  for (std::int64_t& cut : cuts) cut = random.below(rows + 1);
  std::sort(cuts.begin(), cuts.end());
  return exactly(cuts, dtype);
}

RowRange owned_rows(const ArrayView& view, std::int64_t images, std::int64_t rows) {
  const Elements<Any> offsets{view.data, view.dtype};
  std::int64_t last = 0;
  for (std::int64_t b = 0; b <= images; ++b) {
    const auto offset = offsets.get<std::int64_t>(b);
    if (offset < last || offset > rows) return {};
    last = offset;
  }
  return {offsets.get<std::int64_t>(0), last};
}

std::vector<std::int64_t> random_rows(DType dtype, std::int64_t count, std::int64_t list_rows,
                                      Random& random) {
  std::vector<std::int64_t> outside = {-1,     list_rows, list_rows + 1, -1 - list_rows,
                                       kMax32, kMin32};
  if (dtype == DType::kI64) {
    outside.insert(outside.end(), {kTwo32, kTwo32 + 1, 2 - kTwo32, kMin64, kMax64});
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  for (std::int64_t& row : rows) {
    const bool is_outside = list_rows == 0 || random.chance(0.1);
    row = is_outside ? random.pick(outside) : random.below(list_rows);
  }
  return rows;
}

}  // namespace boxloss::conformance
