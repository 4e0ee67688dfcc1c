// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "dispatch/task_aligned_match.hpp"
#include "formula_bounds.hpp"
#include "index_arrays.hpp"
#include "task_aligned_match.hpp"

/// What rounding may decide in a task-aligned match. Which points lie in a box, it may not: that is
/// the loops' own function here, and the oracle has another. Overlaps and metrics are ranges, by
/// running error analysis of the overlap's loss and from there on, since powers grow with their
/// operand, of their ends. Two whose ranges meet may be in either order; but the same inputs give
/// the same numbers, so among those the first is first.
namespace boxloss::conformance {
namespace {

/// A number of the oracle's and, from low to high, an implementation's, not negative. NaN is 0.
struct Range {
  double value, low, high;
};

constexpr Range kZero = {0, 0, 0};

/// Rounded once more, by at most that much of it.
Range widened(const Range& x, double relative, double absolute) {
  if (x.high == 0 || std::isinf(x.low)) return x;  // exactly
  return {x.value, std::max(x.low * (1 - relative) - absolute, 0.0),
          x.high * (1 + relative) + absolute};
}

/// As the outputs have it, and as it is decided on.
Range as_float(const Range& x) { return widened(x, 0x1.01p-24, 0x1p-150); }

template <class C>
Range range_of(const Bounded<C>& x) {
  if (std::isnan(x.value)) return x.error == 0 ? kZero : Range{0, 0, kInfinity};
  if (!(x.error < kUnbounded)) return {x.value, 0, kInfinity};
  return {x.value, std::max(x.value - x.error, 0.0), std::max(x.value + x.error, 0.0)};
}

/// Units in the last place that a platform's pow may be off, of which OpenCL allows the most.
constexpr double kPowUlps = 16;

/// x^exponent, in C by one side, in double by the other. A power that is a product has no more
/// roundings than factors behind the first; a root has one.
template <class C>
Range power(const Range& x, double exponent) {
  const auto of = [exponent](double base) { return std::pow(base, exponent); };
  const bool is_product = exponent <= 16 && exponent == std::floor(exponent);
  const double products = std::max(exponent - 1, 0.0);
  const double roundings = is_product ? products : exponent == 0.5 ? 1 : 2 * kPowUlps;
  const double sides = sizeof(C) == sizeof(double) ? 2 : 1;
  const double subnormal =
      static_cast<double>(std::numeric_limits<C>::denorm_min()) * std::max(roundings, 1.0);
  return widened({of(x.value), of(x.low), of(x.high)}, 1.01 * sides * roundings * kUnitRoundoff<C>,
                 roundings == 0 ? 0 : subnormal);
}

double rounded_to(DType dtype, double value) {
  if (dtype == DType::kF16) return to_float(to_half(static_cast<float>(value)));
  if (dtype == DType::kBF16) return to_float(to_bfloat16(static_cast<float>(value)));
  return value;
}

/// What a box has with an anchor that is a candidate of it.
struct Pair {
  bool is_inside = false;
  Range overlap = kZero, metric = kZero;
  std::array<double, 6> inputs = {};  ///< score and prediction

  bool has_inputs_of(const Pair& other) const { return inputs == other.inputs; }
};

/// Is a, which comes first in a list or not, surely before b?
bool is_surely_before(const Range& a, const Range& b, bool are_same_inputs, bool is_first) {
  if (are_same_inputs) return is_first;
  return a.low > b.high || (is_first && a.low >= b.high);
}

/// Whether something is so whatever is rounded, and whether it can be so.
struct Chance {
  bool is_sure = false, can_be = false;
};

class ImageJudge {
 public:
  /// `rows` are its boxes.
  template <class B>
  ImageJudge(const TaskAlignedProblem& p, std::int64_t image, const RowRange& rows, B)
      : p_(p), image_(image), first_(rows.begin) {
    const TaskAlignedArgs<B> args = task_aligned_args<B>(p, {});
    for (std::int64_t row = rows.begin; row < rows.end; ++row) add_box(args, row);
    for (auto& box : pairs_) choices_.push_back(best(box, candidates(box), p.topk));
    for (std::size_t a = 0; a < anchors(); ++a) owners_.push_back(owners_of(a));
    if (p.topk2.value_or(p.topk) != p.topk) keep_best();
  }

  /// The rows that an anchor may have, -1 for none.
  std::vector<std::int64_t> rows_of(std::size_t anchor) const {
    std::vector<std::int64_t> rows;
    for (const std::int64_t owner : owners_[anchor])
      rows.push_back(owner < 0 ? -1 : first_ + owner);
    return rows;
  }

  /// The score and overlap of anchors whose rows are those.
  void numbers_of(const std::vector<std::int64_t>& rows, std::vector<Range>& scores,
                  std::vector<Range>& overlaps) const {
    std::vector<Range> most_metric(pairs_.size(), kZero), most_overlap(pairs_.size(), kZero);
    const auto add = [](Range& most, const Range& x) {
      most = {std::max(most.value, x.value), std::max(most.low, x.low),
              std::max(most.high, x.high)};
    };
    for (std::size_t a = 0; a < anchors(); ++a) {
      if (rows[a] < 0) continue;
      add(most_metric[box_of(rows[a])], pair_of(rows[a], a).metric);
      add(most_overlap[box_of(rows[a])], pair_of(rows[a], a).overlap);
    }
    for (std::size_t a = 0; a < anchors(); ++a) {
      if (rows[a] < 0) {
        scores.push_back(kZero);
        overlaps.push_back(kZero);
        continue;
      }
      const Pair& pair = pair_of(rows[a], a);
      const Range &metric = most_metric[box_of(rows[a])], &overlap = most_overlap[box_of(rows[a])];
      constexpr double kEps = 1e-9;
      const Range score = {pair.metric.value * overlap.value / (metric.value + kEps),
                           pair.metric.low * overlap.low / (metric.high + kEps),
                           pair.metric.high * overlap.high / (metric.low + kEps)};
      // Four roundings in float32, one of them eps'; the product, which is divided, and the
      // quotient may be subnormal.
      scores.push_back(widened(score, 4.1 * 0x1p-24, 0x1p-149 + 0x1p-149 / (metric.low + kEps)));
      overlaps.push_back(pair.overlap);
    }
  }

 private:
  using Pairs = std::vector<Pair>;  ///< of a box, for each anchor

  std::size_t anchors() const { return static_cast<std::size_t>(p_.anchors); }
  std::size_t box_of(std::int64_t row) const { return static_cast<std::size_t>(row - first_); }
  const Pair& pair_of(std::int64_t row, std::size_t anchor) const {
    return pairs_[box_of(row)][anchor];
  }

  template <class B>
  void add_box(const TaskAlignedArgs<B>& args, std::int64_t row) {
    Pairs& pairs = pairs_.emplace_back(anchors());
    const TargetBox<B> target = target_box(args, row);
    boxes_.push_back(numbers_of(target.box));
    for (std::size_t a = 0; a < anchors(); ++a) {
      const auto anchor = static_cast<std::int64_t>(a);
      if (!is_inside(point_at(args, image_, anchor), target)) continue;
      pairs[a] = pair_with(args, target, anchor);
    }
  }

  template <class C>
  static std::array<double, 5> numbers_of(const Box<C>& b) {
    return {b.x1, b.y1, b.x2, b.y2};
  }
  template <class C>
  static std::array<double, 5> numbers_of(const RotatedBox<C>& b) {
    return {b.cx, b.cy, b.w, b.h, b.angle};
  }

  template <class C>
  static Bounded<C> overlap_loss(const Box<C>& pred, const Box<C>& target, const Constants<C>& c) {
    return bounded_loss(Loss::kCiou, PairBoxes<C>{exact(pred), exact(target)},
                        converted<Bounded<C>>(c));
  }
  template <class C>
  static Bounded<C> overlap_loss(const RotatedBox<C>& pred, const RotatedBox<C>& target,
                                 const Constants<C>& c) {
    const auto as_bounded = [](const RotatedBox<C>& box) {
      return converted<Bounded<C>>(converted<double>(box));
    };
    return bounded_loss(RotatedLoss::kProbiou, RotatedPair<C>{as_bounded(pred), as_bounded(target)},
                        converted<Bounded<C>>(c));
  }

  template <class B, class C = typename B::Value>
  Pair pair_with(const TaskAlignedArgs<B>& args, const TargetBox<B>& target,
                 std::int64_t anchor) const {
    const B pred = pred_at(args, image_, anchor);
    const std::array<double, 5> numbers = numbers_of(pred);
    // NaN in a box is NaN in its loss.
    const auto has_nan = [](const auto& list) {
      return std::any_of(list.begin(), list.end(), [](double x) { return std::isnan(x); });
    };
    if (has_nan(numbers) || has_nan(numbers_of(target.box))) return {};
    const Bounded<C> loss = overlap_loss(pred, target.box, args.constants);
    const Range overlap = range_of(at_least(Bounded<C>(1.0) - loss, Bounded<C>(0.0)));
    const double score = score_at(args, image_, anchor, target.label);
    Pair pair{true, as_float(overlap), kZero, {score}};
    std::copy(numbers.begin(), numbers.end(), pair.inputs.begin() + 1);
    const Range raised = power<C>({score, score, score}, p_.alpha);
    // What is NaN is no candidate.
    if (std::isnan(raised.value) || (std::isnan(loss.value) && loss.error == 0)) return {};
    const auto of_score = [&](double x) { return rounded_to(p_.scores.dtype, x); };
    const Range stored = {of_score(raised.value), of_score(raised.low), of_score(raised.high)};
    const Range of_overlap = power<C>(overlap, p_.beta);
    const Range product = {stored.value * of_overlap.value, stored.low * of_overlap.low,
                           stored.high * of_overlap.high};
    const bool is_score = p_.beta == 0 && stored.low == stored.high &&
                          static_cast<float>(stored.value) == stored.value;
    pair.metric = is_score ? stored : as_float(widened(product, 2 * kUnitRoundoff<C>, 0x1p-149));
    return pair;
  }

  static std::vector<Chance> candidates(const Pairs& pairs) {
    std::vector<Chance> chances;
    for (const Pair& pair : pairs) chances.push_back({pair.is_inside, pair.is_inside});
    return chances;
  }

  /// Which of those that may take part have metrics above 0, and are among the `count` highest.
  static std::vector<Chance> best(const Pairs& pairs, const std::vector<Chance>& takes_part,
                                  std::int64_t count) {
    std::vector<std::size_t> some;
    for (std::size_t a = 0; a < pairs.size(); ++a) {
      if (takes_part[a].can_be && pairs[a].metric.high > 0) some.push_back(a);
    }
    std::vector<Chance> result(pairs.size());
    for (const std::size_t a : some) {
      std::int64_t surely_before = 0, not_behind = 0;
      for (const std::size_t other : some) {
        if (other == a) continue;
        const bool are_same = pairs[a].has_inputs_of(pairs[other]);
        const auto before = [&](std::size_t i, std::size_t j) {
          return is_surely_before(pairs[i].metric, pairs[j].metric, are_same, i < j);
        };
        if (takes_part[other].is_sure && before(other, a)) ++surely_before;
        if (!before(a, other)) ++not_behind;
      }
      result[a].can_be = surely_before < count;
      result[a].is_sure = takes_part[a].is_sure && pairs[a].metric.low > 0 && not_behind < count;
    }
    return result;
  }

  /// The boxes that may overlap most with an anchor, of those that have an overlap or a metric.
  std::vector<std::int64_t> most_overlapping(std::size_t anchor) const {
    std::vector<std::int64_t> result;
    const auto is_one = [&](std::size_t j, double Range::* end) {
      const Pair& pair = pairs_[j][anchor];
      return pair.overlap.*end > 0 || pair.metric.*end > 0;
    };
    for (std::size_t j = 0; j < pairs_.size(); ++j) {
      bool can_be = is_one(j, &Range::high);
      for (std::size_t other = 0; other < pairs_.size(); ++other) {
        const bool are_same = pairs_[j][anchor].is_inside && pairs_[other][anchor].is_inside &&
                              boxes_[j] == boxes_[other];
        can_be = can_be && (other == j || !is_one(other, &Range::low) ||
                            !is_surely_before(pairs_[other][anchor].overlap,
                                              pairs_[j][anchor].overlap, are_same, other < j));
      }
      if (can_be) result.push_back(static_cast<std::int64_t>(j));
    }
    return result;
  }

  std::vector<std::int64_t> owners_of(std::size_t anchor) const {
    std::vector<std::int64_t> sure, all;
    for (std::size_t j = 0; j < pairs_.size(); ++j) {
      if (choices_[j][anchor].is_sure) sure.push_back(static_cast<std::int64_t>(j));
      if (choices_[j][anchor].can_be) all.push_back(static_cast<std::int64_t>(j));
    }
    std::vector<std::int64_t> owners;
    if (sure.empty()) owners = all;
    if (sure.size() == 1) owners = sure;
    if (all.size() > 1) {
      const std::vector<std::int64_t> most = most_overlapping(anchor);
      owners.insert(owners.end(), most.begin(), most.end());
    }
    std::vector<std::int64_t> with_metric;
    bool can_be_none = sure.empty();
    for (const std::int64_t j : owners) {
      const Range& metric = pairs_[static_cast<std::size_t>(j)][anchor].metric;
      if (metric.high > 0) with_metric.push_back(j);
      can_be_none = can_be_none || metric.low == 0;
    }
    if (can_be_none) with_metric.push_back(-1);
    return unique(with_metric);
  }

  static std::vector<std::int64_t> unique(std::vector<std::int64_t> list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  /// Takes from each box all but its topk2 best.
  void keep_best() {
    auto kept = owners_;
    for (std::size_t j = 0; j < pairs_.size(); ++j) {
      const auto box = static_cast<std::int64_t>(j);
      std::vector<Chance> owned;
      for (const auto& owners : owners_) {
        const bool can_be = std::find(owners.begin(), owners.end(), box) != owners.end();
        owned.push_back({can_be && owners.size() == 1, can_be});
      }
      const std::vector<Chance> stays = best(pairs_[j], owned, *p_.topk2);
      for (std::size_t a = 0; a < anchors(); ++a) {
        if (!owned[a].can_be) continue;
        if (!stays[a].can_be) kept[a].erase(std::find(kept[a].begin(), kept[a].end(), box));
        if (!stays[a].is_sure) kept[a].push_back(-1);
      }
    }
    for (auto& owners : kept) owners = unique(owners);
    owners_ = kept;
  }

  const TaskAlignedProblem& p_;
  std::int64_t image_, first_;
  std::vector<std::array<double, 5>> boxes_;
  std::vector<Pairs> pairs_;                       ///< of each box
  std::vector<std::vector<Chance>> choices_;       ///< likewise, of each anchor
  std::vector<std::vector<std::int64_t>> owners_;  ///< that each anchor may have
};

/// The rows of an image; none where any offset is wrong.
RowRange rows_of(const TaskAlignedProblem& p, std::int64_t image) {
  const std::int64_t slots = p.target.slots;
  if (p.offsets.data == nullptr) return {image * slots, (image + 1) * slots};
  const RowRange owned = owned_rows(p.offsets, p.images, slots);
  if (owned.begin == owned.end) return {};
  const Elements<Any> offsets{p.offsets.data, p.offsets.dtype};
  return {offsets.get<std::int64_t>(image), offsets.get<std::int64_t>(image + 1)};
}

std::vector<ImageJudge> judges_of(const TaskAlignedProblem& p) {
  std::vector<ImageJudge> judges;
  for (std::int64_t b = 0; b < p.images; ++b) {
    with_boxes(p, [&](auto box) { judges.emplace_back(p, b, rows_of(p, b), box); });
  }
  return judges;
}

void compare(const char* name, const Array& got, const std::vector<Range>& ranges, Report& report) {
  Array expected(DType::kF64, got.count());
  std::vector<double> bounds;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    expected.set(static_cast<std::int64_t>(i), range.value);
    const bool is_exact = range.low == range.high || std::isnan(range.low);
    bounds.push_back(is_exact ? 0 : std::max(range.high - range.value, range.value - range.low));
  }
  report.compare(name, got, expected, bounds);
}

}  // namespace

Judge match_judge(const HostTaskAligned& host, const Results& right) {
  const TaskAlignedProblem& p = host.problem;
  return [p, judges = judges_of(p), right](const Results& got, Report& report) {
    const Array &index = *got.outputs[0].values, &right_index = *right.outputs[0].values;
    std::vector<double> bounds;
    std::vector<Range> scores, overlaps;
    for (std::int64_t b = 0; b < p.images; ++b) {
      const ImageJudge& judge = judges[static_cast<std::size_t>(b)];
      std::vector<std::int64_t> rows;
      for (std::int64_t a = 0; a < p.anchors; ++a) {
        const std::int64_t at = b * p.anchors + a;
        const auto row = static_cast<std::int64_t>(index.get(at));
        const std::vector<std::int64_t> allowed = judge.rows_of(static_cast<std::size_t>(a));
        const bool is_allowed = std::find(allowed.begin(), allowed.end(), row) != allowed.end();
        std::ostringstream text;
        text << "target_index[" << at << "] is " << row << ", allowed:";
        for (const std::int64_t each : allowed) text << " " << each;
        report.expect(is_allowed, text.str());
        bounds.push_back(allowed.size() == 1 ? 0 : kUnbounded);
        rows.push_back(is_allowed ? row : -1);
      }
      judge.numbers_of(rows, scores, overlaps);
    }
    report.compare("target_index", index, right_index, bounds);
    compare("score", *got.outputs[1].values, scores, report);
    compare("overlap", *got.outputs[2].values, overlaps, report);
  };
}

}  // namespace boxloss::conformance
