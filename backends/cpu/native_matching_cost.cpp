// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/matching_cost.hpp"
#include "lanes/matching_cost.hpp"
#include "math/ceil_div.hpp"

/// The matcher's cost in loops that the compiler makes vector loops of. They run over queries, of
/// which there are always many: a tile of them is taken from memory once, coordinate by coordinate,
/// and then compared with one column of its image after the other.
namespace boxloss::native {
namespace {

constexpr std::int64_t kTileQueries = 256;

/// About so many entries make a task.
constexpr std::int64_t kEntriesOfTask = 8192;

template <class C>
struct Coordinates {
  C x1[kTileQueries], y1[kTileQueries], x2[kTileQueries], y2[kTileQueries];

  void set(std::int64_t i, const Box<C>& box) {
    x1[i] = box.x1;
    y1[i] = box.y1;
    x2[i] = box.x2;
    y2[i] = box.y2;
  }
  Box<C> get(std::int64_t i) const { return {x1[i], y1[i], x2[i], y2[i]}; }
};

/// Queries [begin, begin + count) of a block, and the terms of their entries in one column.
template <class C>
struct QueryTile {
  std::int64_t block, begin, count;
  Coordinates<C> values, corners;
  C log_sum_exps[kTileQueries];
  C losses[kTileQueries], l1s[kTileQueries], class_terms[kTileQueries];
};

template <class F, class C>
void load(const CostArgs<F, C>& a, std::int64_t index, QueryTile<C>& tile) {
  const std::int64_t tiles_of_block = ceil_div(a.queries, kTileQueries);
  tile.block = index / tiles_of_block;
  tile.begin = (index - tile.block * tiles_of_block) * kTileQueries;
  tile.count = std::min(kTileQueries, a.queries - tile.begin);
  for (std::int64_t i = 0; i < tile.count; ++i) {
    const CostBox<C> box = cost_box<C>(a.pred, tile.block, tile.begin + i);
    tile.values.set(i, box.values);
    tile.corners.set(i, box.corners);
    tile.log_sum_exps[i] = log_sum_exp_of(a, tile.block, tile.begin + i);
  }
}

/// Each loop is apart from the choice of what it does, or the compiler makes no vector loop of it.
template <class C, class ValueOf>
void fill(C (&values)[kTileQueries], std::int64_t count, const ValueOf& value_of) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value_of(i);
}

/// Scores, which are given terms or the logits of the column's class.
template <class F, class C>
void fill_scores(const CostArgs<F, C>& a, std::int64_t score, QueryTile<C>& tile) {
  const std::int64_t first = first_score(a, tile.block, tile.begin) + score;
  const std::int64_t stride = a.score_query_stride;
  with_elements(a.scores.data, a.scores.dtype, [&](auto scores) {
    fill(tile.class_terms, tile.count,
         [&](auto i) { return scores.template get<C>(first + i * stride); });
  });
}

/// From the logits that are there. Two loops: of one that is longer the compiler makes branches.
template <class C, class Focus>
void fill_focal(C alpha, const Focus& focus, QueryTile<C>& tile) {
  C(&terms)[kTileQueries] = tile.class_terms;
  C p[kTileQueries], rest[kTileQueries];
  for (std::int64_t i = 0; i < tile.count; ++i) {
    const Odds<C> o = odds(terms[i]);
    p[i] = o.p;
    rest[i] = o.rest;
  }
  fill(terms, tile.count, [&](auto i) { return focal_cost(Odds<C>{p[i], rest[i]}, alpha, focus); });
}

template <class F, class C>
void fill_class_terms(const CostArgs<F, C>& a, std::int64_t column, QueryTile<C>& tile) {
  C(&terms)[kTileQueries] = tile.class_terms;
  const std::int64_t count = tile.count;
  const std::int64_t score = score_of_column(a, column);
  if (score == kNoScore) return fill(terms, count, [](auto) { return C(0); });
  fill_scores(a, score, tile);
  switch (a.class_term) {
    case ClassTerm::kSoftmax:
      return fill(terms, count,
                  [&](auto i) { return softmax_cost(terms[i], tile.log_sum_exps[i]); });
    case ClassTerm::kSigmoid:
      return fill(terms, count, [&](auto i) { return sigmoid_cost(terms[i]); });
    case ClassTerm::kFocal:
      if (a.focal.squares) return fill_focal(a.focal.alpha, Square(), tile);
      return fill_focal(a.focal.alpha, Power<C>{a.focal.gamma}, tile);
    default: return;
  }
}

template <class F, class C>
void write_column(const CostArgs<F, C>& a, std::int64_t column, QueryTile<C>& tile) {
  const std::int64_t count = tile.count;
  const CostBox<C> target = cost_box<C>(a.target, 0, column);
  const Eps<C> eps = a.eps;
  if (a.wants_loss) {
    fill(tile.losses, count,
         [&](auto i) { return a.formula.loss(tile.corners.get(i), target.corners, eps); });
  }
  if (a.wants_l1) {
    fill(tile.l1s, count, [&](auto i) { return l1_value(tile.values.get(i), target.values); });
  }
  fill_class_terms(a, column, tile);
  float entries[kTileQueries];
  fill(entries, count,
       [&](auto i) { return entry_of(a, tile.losses[i], tile.l1s[i], tile.class_terms[i]); });
  float* const rows = a.row(tile.block, tile.begin) + column;
  for (std::int64_t i = 0; i < count; ++i) rows[i * a.columns] = entries[i];
}

template <class F, class C>
void write_tile(const CostArgs<F, C>& a, std::int64_t index) {
  QueryTile<C> tile;
  load(a, index, tile);
  fill(tile.losses, tile.count, [](auto) { return C(1); });  // of terms that are left out
  fill(tile.l1s, tile.count, [](auto) { return C(0); });
  const std::int64_t b = a.image_of(tile.block);
  const ImageSlots own = a.owners.image(b);
  const RowRange all = a.owners.rows(b);
  const std::int64_t own_end = own.row + own.count;
  for (std::int64_t t = own.row; t < own_end; ++t) write_column(a, t, tile);
  for (std::int64_t i = 0; i < tile.count; ++i) {
    float* const row = a.row(tile.block, tile.begin + i);
    std::fill(row + all.begin, row + own.row, 0.0f);
    std::fill(row + own_end, row + all.end, 0.0f);
  }
}

template <class F, class C>
void write_all(const CostArgs<F, C>& a, const Execution& execution) {
  const std::int64_t tiles = a.blocks * ceil_div(a.queries, kTileQueries);
  const std::int64_t entries = a.blocks / a.owners.images * a.queries * a.columns;
  const std::int64_t tasks = std::clamp<std::int64_t>(entries / kEntriesOfTask, 1, tiles);
  const std::int64_t tiles_of_task = ceil_div(tiles, tasks);
  execution.parallel_for(ceil_div(tiles, tiles_of_task), [&](std::int64_t task) {
    const std::int64_t end = std::min((task + 1) * tiles_of_task, tiles);
    for (std::int64_t tile = task * tiles_of_task; tile < end; ++tile) write_tile(a, tile);
  });
}

}  // namespace

void matching_cost(const CostProblem& p, float* cost, const Execution& execution) {
  const auto zero = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  dispatch(p, cost, zero, [&](auto compute) {
    with_formula(p.loss, [&](auto formula) {
      write_all(cost_args<decltype(compute)>(formula, p, cost), execution);
    });
  });
}

}  // namespace boxloss::native
