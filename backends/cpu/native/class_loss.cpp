// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/registry.hpp>
#include <cmath>
#include <limits>

#include "cpu/native/rows.hpp"
#include "cpu/native/set_tasks.hpp"
#include "cpu/operations.hpp"
#include "dispatch/class_loss.hpp"

/// The class losses in vector loops over neighbouring logits: the classes of a query, or, where
/// queries are neighbours, the queries of a class. All classes count as another's first; then a
/// query's own is put in its place.
namespace boxloss::native {
namespace {

SetTasks tasks_of(const ClassLossProblem& p) { return SetTasks(p.images * p.queries, p.classes); }

template <class C>
class Walker {
 public:
  explicit Walker(const ClassArgs<C>& args) : a_(args), code_(vector_code<C>()) {}

  /// Calls use(row, loss) for each row.
  template <class Use>
  void losses(std::int64_t begin, std::int64_t end, const Use& use) {
    if (a_.numbers.mode == ClassLoss::kSoftmax) {
      for (std::int64_t row = begin; row < end; ++row) use(row, softmax_loss(row));
    } else if (a_.class_stride == 1) {
      for_each_tile(begin, end, rows_at_once(),
                    [&](std::int64_t row, int rows) { row_losses(row, rows, use); });
    } else {
      for_each_tile(begin, end, kTilePairs,
                    [&](std::int64_t row, int count) { tile_losses(row, count, use); });
    }
  }

  /// Calls put(row, first class, is a row, count, values) for all slopes times by(row): those of
  /// `count` classes of a row, or of rows that are neighbours there, too, if `joins_rows`; or of
  /// one class of `count` rows.
  template <class By, class Put>
  void slopes(std::int64_t begin, std::int64_t end, bool joins_rows, const By& by, const Put& put) {
    if (a_.numbers.mode == ClassLoss::kSoftmax) {
      for (std::int64_t row = begin; row < end; ++row) softmax_slopes(row, by(row), put);
    } else if (a_.class_stride == 1) {
      for_each_tile(begin, end, joins_rows ? rows_at_once() : 1,
                    [&](std::int64_t row, int rows) { row_slopes(row, rows, by, put); });
    } else {
      for_each_tile(begin, end, kTilePairs,
                    [&](std::int64_t row, int count) { tile_slopes(row, count, by, put); });
    }
  }

 private:
  /// Whole rows of neighbouring logits that fit in a tile; 1 where there are none.
  std::int64_t rows_at_once() const {
    const bool are_neighbours = a_.query_stride == a_.classes && a_.classes > 0;
    return are_neighbours ? std::max<std::int64_t>(kTilePairs / a_.classes, 1) : 1;
  }

  /// Calls use(first row, count) for up to `most` queries of one image.
  template <class Use>
  void for_each_tile(std::int64_t begin, std::int64_t end, std::int64_t most, const Use& use) {
    while (begin < end) {
      const std::int64_t left = a_.queries - begin % a_.queries;
      const std::int64_t count = std::min({left, end - begin, most});
      use(begin, static_cast<int>(count));
      begin += count;
    }
  }

  /// Calls use(first class, count) for parts of a row.
  template <class Use>
  void for_each_part(const Use& use) {
    for (std::int64_t first = 0; first < a_.classes; first += kTilePairs) {
      use(first, static_cast<int>(std::min<std::int64_t>(kTilePairs, a_.classes - first)));
    }
  }

  const C* read(std::int64_t element, std::int64_t stride, int count) {
    if (stride == 1) {
      const auto* const data = static_cast<const std::byte*>(a_.logits.data);
      const std::byte* const from =
          data + element * static_cast<std::int64_t>(size_of(a_.logits.dtype));
      code_.read(from, a_.logits.dtype, count, logits_.values);
    } else {
      for (int i = 0; i < count; ++i) {
        logits_.values[i] = a_.logits.template get<C>(element + i * stride);
      }
    }
    end_rows(logits_.values, 1, count);
    return logits_.values;
  }

  /// Row r of a tile's rows, with `count` of their classes from `first` on: calls use(r, its own
  /// class' place, which is outside if it has none here, its values), then weighs these.
  template <class Use>
  void for_each_row(std::int64_t first, int rows, int count, const Use& use) {
    for (int r = 0; r < rows; ++r) {
      C* const values = values_.values + r * count;
      const std::int64_t own = targets_[r].own < 0 ? -1 : targets_[r].own - first;
      use(r, own < count ? own : -1, values);
      for (int i = 0; i < count && a_.weight.data != nullptr; ++i) {
        values[i] *= weight_of(a_, first + i);
      }
    }
  }

  template <class Use>
  void row_losses(std::int64_t row, int rows, const Use& use) {
    read_targets(row, rows);
    double sums[kTilePairs];
    std::fill_n(sums, rows, 0.0);
    for_each_part([&](std::int64_t first, int count) {
      const C* const x = read(a_.first_logit(row) + first, 1, rows * count);
      code_.other_losses(a_.numbers, x, rows * count, values_.values);
      for_each_row(first, rows, count, [&](int r, std::int64_t own, C* values) {
        if (own >= 0) {
          values[own] = own_loss(a_.numbers, x[r * count + own], targets_[r].quality);
        }
      });
      for (int r = 0; r < rows; ++r) sums[r] += code_.sum(values_.values + r * count, count);
    });
    for (int r = 0; r < rows; ++r) use(row + r, targets_[r].own == kIgnored ? 0 : sums[r]);
  }

  template <class By, class Put>
  void row_slopes(std::int64_t row, int rows, const By& by, const Put& put) {
    read_targets(row, rows);
    for_each_part([&](std::int64_t first, int count) {
      const C* const x = read(a_.first_logit(row) + first, 1, rows * count);
      code_.other_slopes(a_.numbers, x, rows * count, values_.values);
      for_each_row(first, rows, count, [&](int r, std::int64_t own, C* values) {
        if (own >= 0) {
          values[own] = own_slope(a_.numbers, x[r * count + own], targets_[r].quality);
        }
      });
      for (int r = 0; r < rows; ++r) {
        const bool is_left_out = targets_[r].own == kIgnored;
        const C factor = is_left_out ? C(0) : by(row + r);
        C* const values = values_.values + r * count;
        for (int i = 0; i < count; ++i) values[i] = is_left_out ? C(0) : values[i] * factor;
      }
      put(row, first, true, rows * count, values_.values);
    });
  }

  template <class Use>
  void tile_losses(std::int64_t row, int count, const Use& use) {
    read_targets(row, count);
    double sums[kTilePairs] = {};
    for (std::int64_t c = 0; c < a_.classes; ++c) {
      const C* const x = read(a_.first_logit(row) + c * a_.class_stride, a_.query_stride, count);
      code_.other_losses(a_.numbers, x, count, values_.values);
      const C weight = weight_of(a_, c);
      for (int i = 0; i < count; ++i) {
        if (targets_[i].own == c) {
          values_.values[i] = own_loss(a_.numbers, x[i], targets_[i].quality);
        }
        sums[i] += static_cast<double>(weight * values_.values[i]);
      }
    }
    for (int i = 0; i < count; ++i) use(row + i, targets_[i].own == kIgnored ? 0 : sums[i]);
  }

  template <class By, class Put>
  void tile_slopes(std::int64_t row, int count, const By& by, const Put& put) {
    read_targets(row, count);
    C factors[kTilePairs];
    for (int i = 0; i < count; ++i) factors[i] = by(row + i);
    for (std::int64_t c = 0; c < a_.classes; ++c) {
      const C* const x = read(a_.first_logit(row) + c * a_.class_stride, a_.query_stride, count);
      code_.other_slopes(a_.numbers, x, count, values_.values);
      const C weight = weight_of(a_, c);
      for (int i = 0; i < count; ++i) {
        const RowTarget<C>& target = targets_[i];
        C slope = values_.values[i];
        if (target.own == c) slope = own_slope(a_.numbers, x[i], target.quality);
        values_.values[i] = target.own == kIgnored ? C(0) : weight * slope * factors[i];
      }
      put(row, c, false, count, values_.values);
    }
  }

  void read_targets(std::int64_t row, int count) {
    for (int i = 0; i < count; ++i) targets_[i] = row_target(a_, row + i);
  }

  /// The largest logit, NaN if there is one, and the sum of exp(x - largest).
  struct Exps {
    C largest;
    double sum;
  };
  Exps exps_of(std::int64_t row) {
    Exps found = {-std::numeric_limits<C>::infinity(), 0};
    for_each_part([&](std::int64_t first, int count) {
      const C* const x = softmax_part(row, first, count);
      for (int i = 0; i < count; ++i) {
        const bool is_larger = x[i] > found.largest || x[i] != x[i];
        found.largest = is_larger ? x[i] : found.largest;
      }
    });
    for_each_part([&](std::int64_t first, int count) {
      code_.exps(softmax_part(row, first, count), found.largest, count, values_.values);
      found.sum += code_.sum(values_.values, count);
    });
    return found;
  }
  const C* softmax_part(std::int64_t row, std::int64_t first, int count) {
    return read(a_.first_logit(row) + first * a_.class_stride, a_.class_stride, count);
  }

  double softmax_loss(std::int64_t row) {
    const SoftmaxTarget<C> target = softmax_target(a_, row);
    if (row_target(a_, row).own == kIgnored) return 0;
    const Exps exps = exps_of(row);
    const C own = *softmax_part(row, target.wanted, 1);
    const double distance = static_cast<double>(exps.largest) - static_cast<double>(own);
    return static_cast<double>(target.weight) * (std::log(exps.sum) + distance);
  }

  template <class Put>
  void softmax_slopes(std::int64_t row, C by, const Put& put) {
    const SoftmaxTarget<C> target = softmax_target(a_, row);
    const bool is_left_out = row_target(a_, row).own == kIgnored;
    const Exps exps = exps_of(row);
    const C scale = static_cast<C>(1 / exps.sum), factor = target.weight * by;
    for_each_part([&](std::int64_t first, int count) {
      code_.exps(softmax_part(row, first, count), exps.largest, count, values_.values);
      for (int i = 0; i < count; ++i) {
        const C wanted = first + i == target.wanted ? C(1) : C(0);
        const C slope = factor * (values_.values[i] * scale - wanted);
        values_.values[i] = is_left_out ? C(0) : slope;
      }
      put(row, first, true, count, values_.values);
    });
  }

  const ClassArgs<C>& a_;
  const VectorCode<C>& code_;
  Rows<C, 1> logits_, values_;
  RowTarget<C> targets_[kTilePairs];
};

template <class C>
void write_losses(const ClassLossProblem& p, const ClassLossOutputs& outputs,
                  const Execution& execution) {
  const ClassArgs<C> a = class_args<C>(p);
  const SetTasks tasks = tasks_of(p);
  C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
  auto* const sums = static_cast<ClassSum*>(execution.workspace);
  const std::int64_t count = a.rows() > 0 ? p.sets * tasks.of_set : 0;
  execution.parallel_for(count, [&](std::int64_t task) {
    ClassSum own = {};
    Walker<C> walker(a);
    walker.losses(tasks.begin(task), tasks.end(task), [&](std::int64_t row, double loss) {
      if (losses != nullptr) losses[row] = static_cast<C>(loss);
      own += {loss, share_of(a, row)};
    });
    sums[task] = own;
  });
  const auto reduced = reduced_class_loss<C>(p, outputs);
  for (std::int64_t set = 0; set < p.sets; ++set) {
    ClassSum total = {};
    for (std::int64_t i = 0; i < tasks.of_set && count > 0; ++i) {
      total += sums[set * tasks.of_set + i];
    }
    reduced.write(total, set);
  }
}

template <class C>
void write_gradients(const ClassLossGradProblem& p, const ClassLossGradOutputs& outputs,
                     const Execution& execution) {
  const ClassArgs<C> a = class_args<C>(p);
  const SetTasks tasks = tasks_of(p);
  const auto* const grads = static_cast<const C*>(p.grad);
  const auto* const scales = static_cast<const C*>(p.scale);
  const bool is_reduced = p.reduction != Reduction::kNone;
  const auto by = [&](std::int64_t row) {
    const std::int64_t set = row / tasks.rows_of_set;
    return grads[is_reduced ? set : row] * scales[set];
  };
  const auto element = [&](std::int64_t row, std::int64_t c) {
    const std::int64_t block = row / p.queries;
    return p.is_transposed ? (block * p.classes + c) * p.queries + row % p.queries
                           : row * p.classes + c;
  };
  const auto put = [&](std::int64_t row, std::int64_t c, bool is_row, int count, const C* values) {
    const Outputs<Any> written = {outputs.logits, p.logits.dtype};
    if (is_row != p.is_transposed) {
      auto* const to = static_cast<std::byte*>(outputs.logits) +
                       element(row, c) * static_cast<std::int64_t>(size_of(p.logits.dtype));
      return vector_code<C>().write(values, count, to, p.logits.dtype);
    }
    for (int i = 0; i < count; ++i) {
      written.set(is_row ? element(row, c + i) : element(row + i, c), values[i]);
    }
  };
  execution.parallel_for(p.sets * tasks.of_set, [&](std::int64_t task) {
    Walker<C> walker(a);
    walker.slopes(tasks.begin(task), tasks.end(task), !p.is_transposed, by, put);
  });
}

}  // namespace

std::size_t Operations::workspace_bytes(const ClassLossProblem& p) {
  return static_cast<std::size_t>(p.sets * tasks_of(p).of_set) * sizeof(ClassSum);
}

void Operations::class_loss(const ClassLossProblem& p, const ClassLossOutputs& outputs,
                            const Execution& execution) {
  cpu_capability();  // throws here, not in a thread
  with_compute_type(p,
                    [&](auto compute) { write_losses<decltype(compute)>(p, outputs, execution); });
}

void Operations::class_loss_backward(const ClassLossGradProblem& p,
                                     const ClassLossGradOutputs& outputs,
                                     const Execution& execution) {
  cpu_capability();
  with_compute_type(
      p, [&](auto compute) { write_gradients<decltype(compute)>(p, outputs, execution); });
}

}  // namespace boxloss::native
