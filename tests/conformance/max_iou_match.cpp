// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "max_iou_match.hpp"

#include "index_arrays.hpp"
#include "placed_boxes.hpp"

namespace boxloss::conformance {
namespace {

constexpr std::int64_t kColumns = 12, kPerCell = 3;

/// Two thirds of the anchors are on a grid of 8, the rest on one of 16; three shapes to a cell.
Box<double> grid_anchor(std::int64_t anchor, std::int64_t anchors) {
  const std::int64_t first = 2 * anchors / 3;
  const bool is_fine = anchor < first;
  const std::int64_t place = is_fine ? anchor : anchor - first;
  const double stride = is_fine ? 8 : 16;
  const double x = stride * static_cast<double>(place / kPerCell % kColumns);
  const double y = stride * static_cast<double>(place / kPerCell / kColumns);
  const double w = stride * (place % kPerCell == 0 ? 0.7 : 1.2);
  const double h = stride * (place % kPerCell == 2 ? 1.6 : 0.9);
  return {x - w, y - h, x + w, y + h};
}

/// Of rotated boxes each shape has another angle.
void fill_grid(const PlacedBoxes& anchors, double turn) {
  for_each_place(anchors.view, [&](std::int64_t b, std::int64_t j) {
    const double angle = turn * static_cast<double>(j % kPerCell);
    anchors.set_turned(b, j, grid_anchor(j, anchors.view.slots), angle);
  });
}

/// Strips without end, each that far from the one before. Of two that have nothing in common, the
/// intersection is infinity * 0.
void fill_strips(const PlacedBoxes& boxes, double distance) {
  for_each_place(boxes.view, [&](std::int64_t b, std::int64_t j) {
    const double y = distance * static_cast<double>(j);
    boxes.set_turned(b, j, {0, y, kInfinity, y + 1}, 0);
  });
}

/// What anchors can have in common with boxes.
void fill_by_anchors(const PlacedBoxes& targets, std::int64_t anchors, double turn,
                     Random& random) {
  for_each_place(targets.view, [&](std::int64_t b, std::int64_t j) {
    if (random.chance(0.67)) return;
    const Box<double> anchor = grid_anchor(random.below(anchors), anchors);
    const double x = (anchor.x1 + anchor.x2) / 2, y = (anchor.y1 + anchor.y2) / 2;
    const auto box = random.pick(std::vector<Box<double>>{anchor,
                                                          {anchor.x1, anchor.y1, x, y},
                                                          {anchor.x2, y, anchor.x2 + 20, y + 9},
                                                          {-90, -90, -60, -70}});
    targets.set_turned(b, j, box, turn * static_cast<double>(random.below(3)));
  });
}

}  // namespace

HostMatch MaxIouMatch::make(const MatchCase& c, Random& random) {
  HostMatch host;
  MaxIouProblem& p = host.problem;
  const auto& [images, anchor_count, boxes] = c.shape;
  const BoxFormat xyxy = BoxFormat::kXyxy;
  p.angle_unit = c.angle_unit;
  const int numbers = p.angle_unit.has_value() ? 5 : 4;
  const PlacedBoxes anchors = lay_out({c.anchor_dtype, xyxy, c.anchor_layout}, images, anchor_count,
                                      p.anchors, host.anchors, numbers);
  const PlacedBoxes targets =
      lay_out({c.target_dtype, xyxy, c.target_layout}, 1, boxes, p.target, host.target, numbers);
  const auto scatter = [&](const PlacedBoxes& placed) {
    if (!p.angle_unit.has_value()) return fill(placed, c.values, 0, random);
    fill_rotated(placed, c.values, 0, *p.angle_unit, false, random);
  };
  scatter(targets);
  if (c.anchors == AnchorPlaces::kEndless) {
    fill_strips(anchors, 0);
    fill_strips(targets, 3);
  } else if (c.anchors == AnchorPlaces::kScattered) {
    scatter(anchors);
  } else {
    const double turn = p.angle_unit == AngleUnit::kDegrees ? 40 : 0.7;
    fill_grid(anchors, turn);
    if (anchor_count > 0 && c.values == Values::kPlain && is_floating(c.target_dtype)) {
      fill_by_anchors(targets, anchor_count, turn, random);
    }
  }
  host.offsets = c.indices.empty() ? random_offsets(c.offsets, images, boxes, random)
                                   : exactly(c.indices, c.offsets);
  p.offsets = {host.offsets.data(), c.offsets};
  p.high = c.at.high;
  p.low = c.at.low;
  p.low_quality = c.low_quality;
  p.min_pos_iou = c.min_pos_iou;
  p.index = c.index;
  // None is read if offsets are wrong.
  const RowRange owned = owned_rows(p.offsets, images, boxes);
  spoil_unread(targets, [&](const auto& read) {
    for (std::int64_t t = owned.begin; t < owned.end; ++t) read(0, t);
  });
  return host;
}

std::vector<Call> MaxIouMatch::calls(const Case&, const Host& host, Random&) {
  const auto run_as = [&host](const auto& implementation, const auto& parallel_for,
                              const Ask& ask) {
    MaxIouProblem p = host.problem;
    p.device = implementation.device;
    const std::int64_t count = p.anchors.images * p.anchors.slots;
    Run run(implementation, parallel_for,
            ask.of({{"target_index", p.index, count}, {"iou", compute_dtype(p), count}}));
    run.move(p.anchors.data, host.anchors);
    run.move(p.target.data, host.target);
    run.move(p.offsets.data, host.offsets);
    max_iou_match(implementation, p, {run.output(0), run.output(1)},
                  run.execution(max_iou_match_workspace_bytes(implementation, p)));
    return run.results();
  };
  // Every number is the oracle's: both round as torch does.
  return {call_of(kName, run_as, is_served, equals,
                  {{0, Alignment::kElement}, {1, Alignment::kElement}})};
}

}  // namespace boxloss::conformance
