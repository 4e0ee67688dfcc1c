// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/registry.hpp>
#include <cstring>

#include "cpu/native/box_reader.hpp"
#include "cpu/operations.hpp"
#include "dispatch/matching_cost.hpp"

/// The matcher's cost in vector loops over queries, which are always many: a tile of them is read
/// once, then compared with the columns of its image in turn.
namespace boxloss::native {
namespace {

/// The approximate number of entries of a task.
constexpr std::int64_t kEntriesOfTask = 8192;

template <class C, class Problem, class Args>
class QueryTile {
 public:
  QueryTile(const Problem& p, const Args& args)
      : a_(args),
        queries_(reader_of<C>(p, p.pred)),
        columns_(reader_of<C>(p, p.target)),
        scores_(p.scores.data, p.scores.dtype) {
    // For terms that are left out.
    std::fill_n(losses_.values, kTilePairs, C(1));
    std::fill_n(l1_.values, kTilePairs, C(0));
  }

  /// The entries of tile `index` of all blocks' tiles.
  void write(std::int64_t index) {
    const std::int64_t tiles_of_block = ceil_div(a_.queries, kTilePairs);
    block_ = index / tiles_of_block;
    begin_ = (index - block_ * tiles_of_block) * kTilePairs;
    count_ = static_cast<int>(std::min<std::int64_t>(kTilePairs, a_.queries - begin_));
    const Boxes<Any>& pred = a_.pred;
    const std::int64_t first = block_ * pred.image_stride + begin_ * pred.slot_stride;
    values_ = queries_.read({first, pred.slot_stride, nullptr}, count_);
    boxes_ = queries_.for_formula(values_, count_);
    const std::int64_t b = a_.image_of(block_);
    const ImageSlots own = a_.owners.image(b);
    const RowRange all = a_.owners.rows(b);
    const std::int64_t own_end = own.row + own.count;
    for (std::int64_t column = own.row; column < own_end; ++column) write_column(column);
    for (int i = 0; i < count_; ++i) {
      float* const row = a_.row(block_, begin_ + i);
      std::fill(row + all.begin, row + own.row, 0.0f);
      std::fill(row + own_end, row + all.end, 0.0f);
    }
  }

 private:
  void write_column(std::int64_t column) {
    const auto& code = box_code<C, Problem>();
    const std::int64_t at = column * a_.target.slot_stride;
    const C* const values = columns_.read({at, a_.target.slot_stride, nullptr}, 1);
    const C* const box = columns_.for_formula(values, 1);
    if (a_.wants_loss) {
      code.losses_with(box, a_.formula.which, boxes_, a_.constants, count_, losses_.values);
    }
    if (a_.wants_l1) {
      if constexpr (Problem::kNumbers == 4) {
        code.l1_with(values, values_, count_, l1_.values);
      } else {
        code.distances_with(a_, box, boxes_, count_, l1_.values);
      }
    }
    const C* const class_terms = class_terms_of(column);
    code.cost_entries(a_, losses_.values, l1_.values, class_terms, count_, entries_.values);
    float* const rows = a_.row(block_, begin_) + column;
    for (int i = 0; i < count_; ++i) rows[i * a_.columns] = entries_.values[i];
  }

  const C* class_terms_of(std::int64_t column) {
    const std::int64_t score = score_of_column(a_, column);
    C* const terms = class_terms_.values;
    if (score == kNoScore) {
      std::fill_n(terms, whole_blocks(count_), C(0));
      return terms;
    }
    const std::int64_t first = first_score(a_, block_, begin_) + score;
    const C* const scores = scores_.read({first, a_.score_query_stride, nullptr}, count_);
    if (a_.class_term == ClassTerm::kGiven) return scores;
    vector_code<C>().class_costs(a_.class_term, a_.focal, scores, count_, terms);
    return terms;
  }

  const Args& a_;
  std::int64_t block_ = 0, begin_ = 0;
  int count_ = 0;
  ReaderOf<C, Problem> queries_, columns_;
  RowReader<C, 1> scores_;
  const C *values_ = nullptr, *boxes_ = nullptr;
  Rows<C, 1> losses_, l1_, class_terms_;
  Rows<float, 1> entries_;
};

template <class C, class Problem>
void write_all(const Problem& p, float* cost, const Execution& execution) {
  const auto a = cost_args<C>(p, cost);
  const std::int64_t tiles = a.blocks * ceil_div(a.queries, kTilePairs);
  const std::int64_t entries = a.blocks / a.owners.images * a.queries * a.columns;
  const std::int64_t tasks = std::clamp<std::int64_t>(entries / kEntriesOfTask, 1, tiles);
  const std::int64_t tiles_of_task = ceil_div(tiles, tasks);
  execution.parallel_for(ceil_div(tiles, tiles_of_task), [&](std::int64_t task) {
    QueryTile<C, Problem, decltype(a)> tile(p, a);
    const std::int64_t end = std::min((task + 1) * tiles_of_task, tiles);
    for (std::int64_t i = task * tiles_of_task; i < end; ++i) tile.write(i);
  });
}

}  // namespace

template <class Problem>
void Operations::matching_cost(const Problem& p, float* cost, const Execution& execution) {
  cpu_capability();  // throws here, not in a thread
  const auto zero = [](void* data, std::size_t bytes) { std::memset(data, 0, bytes); };
  dispatch(p, cost, zero, [&](auto compute) { write_all<decltype(compute)>(p, cost, execution); });
}

template void Operations::matching_cost(const CostProblem&, float*, const Execution&);
template void Operations::matching_cost(const RotatedCostProblem&, float*, const Execution&);

}  // namespace boxloss::native
