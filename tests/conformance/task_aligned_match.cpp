// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "task_aligned_match.hpp"

#include <cmath>

#include "index_arrays.hpp"
#include "placed_boxes.hpp"

namespace boxloss::conformance {
namespace {

constexpr double kSide = 100;  ///< of an image

/// The draw of a case's values.
class Maker {
 public:
  Maker(const TaskAlignedCase& c, Random& random, HostTaskAligned& host)
      : c_(c), random_(random), host_(host), p_(host.problem) {}

  void make() {
    set_options();
    add_targets();
    add_points();
    add_preds();
    add_scores();
  }

 private:
  bool is(Anchors values) const { return c_.values == values; }
  std::int64_t rows() const { return p_.target.images * p_.target.slots; }

  void set_options() {
    p_.images = c_.shape.images;
    p_.anchors = c_.shape.anchors;
    p_.classes = c_.shape.classes;
    p_.topk = c_.rule.topk;
    p_.topk2 = c_.rule.topk2;
    p_.alpha = c_.rule.alpha;
    p_.beta = c_.rule.beta;
    p_.min_side = c_.rule.min_side;
    p_.small_side = c_.rule.small_side;
    p_.index = c_.dtypes.index;
    p_.angle_unit = c_.angle_unit;
  }

  int numbers() const { return p_.angle_unit.has_value() ? 5 : 4; }

  double angle() {
    if (is(Anchors::kWild)) return wild();
    const double radians =
        is(Anchors::kAlike) ? static_cast<double>(random_.below(2)) : random_.uniform(-2, 5);
    return c_.angle_unit == AngleUnit::kDegrees ? -60 * radians : radians;
  }

  double wild() {
    return random_.pick(
        std::vector<double>{kNan, kInfinity, -kInfinity, 1e30, -1e30, 0, 50, 1e-30});
  }

  Box<double> true_box() {
    if (is(Anchors::kWild)) return {wild(), wild(), wild(), wild()};
    if (is(Anchors::kAlike)) {
      const auto kind = static_cast<double>(random_.below(4));
      return {10 + 10 * kind, 5, 50 + 10 * kind, 60};
    }
    const double w = random_.uniform(5, 60), h = random_.uniform(5, 60);
    const double x = random_.uniform(0, kSide - w), y = random_.uniform(0, kSide - h);
    return {x, y, x + w, y + h};
  }

  void add_targets() {
    const MatchShape& shape = c_.shape;
    const PlacedBoxes targets = lay_out(c_.target, shape.is_padded ? shape.images : 1, shape.boxes,
                                        p_.target, host_.target, numbers());
    std::vector<std::int64_t> labels = random_rows(c_.dtypes.labels, rows(), p_.classes, random_);
    if (!c_.labels.empty()) {
      for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = c_.labels[i % c_.labels.size()];
    }
    if (!shape.is_padded) {
      host_.offsets = c_.indices.empty()
                          ? random_offsets(c_.dtypes.offsets, shape.images, shape.boxes, random_)
                          : exactly(c_.indices, c_.dtypes.offsets);
      p_.offsets = {host_.offsets.data(), c_.dtypes.offsets};
    }
    boxes_.resize(static_cast<std::size_t>(shape.images));
    for_each_place(p_.target, [&](std::int64_t image, std::int64_t slot) {
      const std::int64_t row = image * shape.boxes + slot;
      Box<double> box = true_box();
      const bool is_padding = shape.is_padded && random_.chance(0.3);
      if (is_padding) {
        const double below = random_.chance(0.5) ? -1 : 0;
        box = random_.chance(0.2) ? Box<double>{10, below, -20, 10} : Box<double>{0, 0, 0, 0};
        labels[static_cast<std::size_t>(row)] = random_.below(3) - 1;
      } else if (is(Anchors::kWithNan) && random_.chance(0.1)) {
        box.y2 = kNan;
      }
      const double turn = is_padding ? 0 : angle();
      if (is_padding) {
        targets.set_all(image, slot, 0);  // the angle, too
        targets.set_numbers(image, slot, {box.x1, box.y1, box.x2, box.y2});
      } else {
        targets.set_turned(image, slot, box, turn);
      }
      const std::int64_t owner = shape.is_padded ? image : owner_of(slot);
      if (owner < 0 && is_floating(c_.target.dtype)) targets.set_all(image, slot, kNan);
      if (owner >= 0 && !is_padding) {
        own_boxes(owner).push_back({box, turn, labels[static_cast<std::size_t>(row)]});
      }
    });
    host_.labels = exactly(labels, c_.dtypes.labels);
    p_.labels = {host_.labels.data(), c_.dtypes.labels};
  }

  /// The image that owns a row, or -1.
  std::int64_t owner_of(std::int64_t row) const {
    const Elements<Any> offsets{p_.offsets.data, p_.offsets.dtype};
    for (std::int64_t b = 0; b < p_.images; ++b) {
      if (row >= offsets.get<std::int64_t>(b) && row < offsets.get<std::int64_t>(b + 1)) return b;
    }
    return -1;
  }

  void add_points() {
    const Strides strides = strides_of(c_.layouts.points, p_.images, p_.anchors, 2);
    p_.points = {lay_out(strides, p_.images, p_.anchors, 2, c_.dtypes.points, host_.points),
                 c_.dtypes.points, strides.image, strides.slot, strides.value};
    if (p_.points.data == nullptr) return;
    // A grid, as wide as it is high, row by row.
    const auto side =
        static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(p_.anchors))));
    const double stride = kSide / static_cast<double>(side);
    for (std::int64_t b = 0; b < p_.images; ++b) {
      for (std::int64_t a = 0; a < p_.anchors; ++a) {
        const std::int64_t at = strides.start + b * strides.image + a * strides.slot;
        const bool is_nan = is(Anchors::kWithNan) && random_.chance(0.05);
        host_.points.set(at + strides.value, (static_cast<double>(a / side) + 0.5) * stride);
        host_.points.set(at, is_nan ? kNan : (static_cast<double>(a % side) + 0.5) * stride);
      }
    }
  }

  struct Turned {
    Box<double> box;
    double angle;
  };

  Turned predicted_box(std::int64_t image) {
    double turn = angle();
    if (is(Anchors::kWild)) return {{wild(), wild(), wild(), wild()}, turn};
    if (is(Anchors::kAlike)) {
      const auto kind = static_cast<double>(random_.below(3));
      return {{12 + 9 * kind, 7, 55 + 11 * kind, 61 + kind}, turn};
    }
    const std::vector<OwnBox>& own = own_boxes(image);
    Box<double> box;
    if (!own.empty() && random_.chance(0.8)) {
      const OwnBox& near = random_.pick(own);
      box = near.box;
      turn = 0.1 * turn + 0.9 * near.angle;
      const double w = 0.3 * (box.x2 - box.x1), h = 0.3 * (box.y2 - box.y1);
      box.x1 += w * random_.uniform(-1, 1);
      box.x2 += w * random_.uniform(-1, 1);
      box.y1 += h * random_.uniform(-1, 1);
      box.y2 += h * random_.uniform(-1, 1);
    } else {
      box = true_box();
    }
    if (is(Anchors::kWithNan) && random_.chance(0.1)) box.x1 = kNan;
    return {box, turn};
  }

  void add_preds() {
    const PlacedBoxes preds =
        lay_out(c_.pred, p_.images, p_.anchors, p_.pred, host_.pred, numbers());
    for_each_place(p_.pred, [&](std::int64_t image, std::int64_t anchor) {
      const Turned pred = predicted_box(image);
      preds.set_turned(image, anchor, pred.box, pred.angle);
    });
  }

  double score() {
    if (is(Anchors::kAlike)) return random_.pick(std::vector<double>{0, 0.25, 0.5, 0.5});
    if (is(Anchors::kWithNan) && random_.chance(0.1)) return kNan;
    if (is(Anchors::kInfinite) && random_.chance(0.2)) return kInfinity;
    if (is(Anchors::kWild)) return wild();
    return random_.chance(0.1) ? 0 : random_.uniform(0, 1);
  }

  void add_scores() {
    const Strides strides = strides_of(c_.layouts.scores, p_.images, p_.anchors, p_.classes);
    p_.scores = {
        lay_out(strides, p_.images, p_.anchors, p_.classes, c_.dtypes.scores, host_.scores),
        c_.dtypes.scores, strides.image, strides.slot, strides.value};
    for (std::int64_t b = 0; b < p_.images; ++b) {
      for (const OwnBox& own : own_boxes(b)) {
        if (own.label < 0 || own.label >= p_.classes) continue;
        for (std::int64_t a = 0; a < p_.anchors; ++a) {
          host_.scores.set(
              strides.start + b * strides.image + a * strides.slot + own.label * strides.value,
              score());
        }
      }
    }
  }

  /// A box of an image, and its label.
  struct OwnBox {
    Box<double> box;
    double angle;
    std::int64_t label;
  };
  std::vector<OwnBox>& own_boxes(std::int64_t image) {
    return boxes_[static_cast<std::size_t>(image)];
  }

  const TaskAlignedCase& c_;
  Random& random_;
  HostTaskAligned& host_;
  TaskAlignedProblem& p_;
  std::vector<std::vector<OwnBox>> boxes_;
};

}  // namespace

HostTaskAligned TaskAlignedMatch::make(const TaskAlignedCase& c, Random& random) {
  HostTaskAligned host;
  Maker(c, random, host).make();
  return host;
}

std::vector<Call> TaskAlignedMatch::calls(const Case&, const Host& host, Random&) {
  const auto run_as = [&host](const auto& implementation, const auto& parallel_for,
                              const Ask& ask) {
    TaskAlignedProblem p = host.problem;
    p.device = implementation.device;
    const std::int64_t count = p.images * p.anchors;
    Run run(implementation, parallel_for,
            ask.of({{"target_index", p.index, count},
                    {"score", DType::kF32, count},
                    {"overlap", DType::kF32, count}}));
    run.move(p.scores.data, host.scores);
    run.move(p.pred.data, host.pred);
    run.move(p.points.data, host.points);
    run.move(p.target.data, host.target);
    run.move(p.offsets.data, host.offsets);
    run.move(p.labels.data, host.labels);
    task_aligned_match(
        implementation, p,
        {run.output(0), static_cast<float*>(run.output(1)), static_cast<float*>(run.output(2))},
        run.execution(task_aligned_match_workspace_bytes(implementation, p)));
    return run.results();
  };
  const auto judge = [&host](const Results& right) { return match_judge(host, right); };
  return {call_of(kName, run_as, is_served, judge, {kOnElements})};
}

}  // namespace boxloss::conformance
