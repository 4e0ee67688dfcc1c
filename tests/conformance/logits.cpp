// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "logits.hpp"

namespace boxloss::conformance {

Array nans(DType dtype, std::int64_t count) {
  Array array(dtype, count);
  for (std::int64_t i = 0; i < count; ++i) array.set(i, kNan);
  return array;
}

double random_quality(Values values, Random& random) {
  if (values == Values::kPlain) return random.uniform(0, 1);
  if (values == Values::kSpecial && random.chance(0.1)) return kNan;
  return random.pick(std::vector<double>{0, 0.25, 0.5, 0.75, 1});
}

Array repeated(const std::vector<std::int64_t>& indices, std::int64_t count, DType dtype) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(indices[static_cast<std::size_t>(i) % indices.size()]);
  }
  return exactly(all, dtype);
}

Array random_targets(DType dtype, std::int64_t rows, std::int64_t targets, Random& random) {
  std::vector<std::int64_t> list = random_rows(dtype, rows, targets, random);
  for (std::int64_t& target : list) {
    if (random.chance(0.4)) target = kNoBox;
    if (random.chance(0.1)) target = kIgnored;
  }
  return exactly(list, dtype);
}

}  // namespace boxloss::conformance
