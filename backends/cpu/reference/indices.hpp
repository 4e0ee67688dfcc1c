// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boxloss/view.hpp>

/// How the references read indices: by their own code, not core's.
namespace boxloss::reference {

inline std::int64_t index_at(const ArrayView& indices, std::int64_t i) {
  return indices.dtype == DType::kI64 ? static_cast<const std::int64_t*>(indices.data)[i]
                                      : static_cast<const std::int32_t*>(indices.data)[i];
}

/// The rows of a ragged list of `count` that an image owns.
struct OwnRows {
  std::int64_t begin, end;
};

inline OwnRows own_rows(const ArrayView& offsets, std::int64_t image, std::int64_t count) {
  const std::int64_t begin = std::clamp<std::int64_t>(index_at(offsets, image), 0, count);
  return {begin, std::clamp<std::int64_t>(index_at(offsets, image + 1), begin, count)};
}

}  // namespace boxloss::reference
