// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/max_iou_match.hpp>

#include "box_loss.hpp"
#include "index_arrays.hpp"
#include "placed_boxes.hpp"

/// What losses of queries' logits have in common.
namespace boxloss::conformance {

/// Queries lie as boxes' slots do, those of all sets as images.
struct CaseLogits {
  DType dtype;
  Layout layout = Layout::kPacked;
  bool is_one_set = false;  ///< the same for all sets: set stride 0

  // Implicit: most lines of the tables need no more.
  constexpr CaseLogits(DType d = DType::kF32,  // NOLINT(google-explicit-constructor)
                       Layout l = Layout::kPacked, bool one_set = false)
      : dtype(d), layout(l), is_one_set(one_set) {}
};

/// These cases with all kinds of indices, for target_index and, since they are rows and classes,
/// too, for labels: nine rows, nine classes. Of those whose losses are divided, and that are not.
template <class Case>
std::vector<Case> with_indices(const std::vector<Case>& table,
                               const std::vector<const char*>& names) {
  const IndexLists ends32 = {{-1, 0, 8, 9, -3, kMax32, kMin32}, {-2, 4, 5, -2, 3}, {-2}, {-1}};
  const IndexLists ends64 = {{kMax64, 3, kMin64, kTwo32, 2, kTwo32 + 1},
                             {-kTwo32, 1, -kTwo32 - 2, 0, -2, kTwo32 - 1}};
  std::vector<Case> list;
  for (const char* name : names) {
    add_changed(list, table, {name}, {2, 3, 24, 9, 9}, ends32);
    if (list.back().index == DType::kI64) {
      add_changed(list, table, {name}, {2, 3, 24, 9, 9}, ends64);
    }
  }
  for (std::size_t i = 0; i < list.size(); i += 2) list[i].reduction = Reduction::kMean;
  return list;
}

Array nans(DType dtype, std::int64_t count);

/// A quality, or another weight of a query.
double random_quality(Values values, Random& random);

/// Over and over.
Array repeated(const std::vector<std::int64_t>& indices, std::int64_t count, DType dtype);

/// Of random rows four in ten have no box, and one in ten is ignored.
Array random_targets(DType dtype, std::int64_t rows, std::int64_t targets, Random& random);

template <class Problem>
std::int64_t query_rows(const Problem& p) {
  return p.sets * p.images * p.queries;
}

/// Of the first logit of a row, from that of the first.
template <class Problem, class View>
std::int64_t first_logit(const Problem& p, const View& view, std::int64_t row) {
  const std::int64_t image = row / p.queries;
  return image / p.images * view.set_stride + image % p.images * view.image_stride +
         row % p.queries * view.query_stride;
}

/// The incoming gradient; of rows that do not count, NaN.
template <class Problem, class Counts>
Array random_upstream(const Problem& p, Values values, const Counts& counts, Random& random) {
  const bool is_reduced = p.reduction != Reduction::kNone;
  Array grad = nans(compute_dtype(p), is_reduced ? p.sets : query_rows(p));
  for (std::int64_t i = 0; i < grad.count(); ++i) {
    if (!is_reduced && !counts(i)) continue;
    grad.set(i, values == Values::kPlain ? random.uniform(-1.25, -0.5) : -2.5);
  }
  return grad;
}

/// A normalizer for all sets, or for each.
template <class Problem>
void add_normalizer(const std::optional<CaseNormalizer>& normalizer, Problem& p, Array& array) {
  if (!normalizer) return;
  const auto [dtype, stride] = *normalizer;
  array = Array(dtype, stride == 0 ? 1 : p.sets);
  for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, 3.3 + static_cast<double>(i));
  p.normalizer = {array.data(), dtype};
  p.normalizer_stride = stride;
}

}  // namespace boxloss::conformance
