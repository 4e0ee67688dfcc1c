// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dispatch/compute_type.hpp"
#include "kernels/max_iou_match.hpp"

/// The reference of max-IoU matching: the matrix of IoUs, and then what torchvision's and
/// mmdetection's matchers do with it, step by step. Its numbers have the compute dtype, since their
/// bits decide; it is compiled without contraction.
namespace boxloss {
namespace {

template <class B>
B box_at(const BoxView& boxes, std::int64_t image, std::int64_t slot) {
  const Elements<Any> elements{boxes.data, boxes.dtype};
  return elements.get_box<B>(image * boxes.image_stride + slot * boxes.slot_stride,
                             boxes.coordinate_stride);
}

/// As torch.max, torch.min and clamp: NaN wins.
template <class C>
C torch_max(C a, C b) {
  return std::isnan(a) || a > b ? a : b;
}
template <class C>
C torch_min(C a, C b) {
  return std::isnan(a) || a < b ? a : b;
}

template <class C>
C iou(const Box<C>& a, const Box<C>& b, AngleUnit) {
  const C area_a = (a.x2 - a.x1) * (a.y2 - a.y1), area_b = (b.x2 - b.x1) * (b.y2 - b.y1);
  const C w = torch_max(torch_min(a.x2, b.x2) - torch_max(a.x1, b.x1), C(0));
  const C h = torch_max(torch_min(a.y2, b.y2) - torch_max(a.y1, b.y1), C(0));
  const C intersection = w * h;
  const C sum = area_a + area_b;
  const C both = sum - intersection;
  return intersection / both;
}

/// By the function that all share: tests/core compares it with another algorithm.
template <class C>
C iou(const RotatedBox<C>& box, const RotatedBox<C>& anchor, AngleUnit unit) {
  return iou_of(match_box(in_radians(box, unit)), match_box(in_radians(anchor, unit)));
}

/// The first of the largest, as torch.max with a dimension.
template <class C>
std::size_t argmax(const std::vector<C>& values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (std::isnan(values[best])) break;
    if (std::isnan(values[i]) || values[i] > values[best]) best = i;
  }
  return best;
}

bool are_in_order(const MaxIouProblem& p) {
  std::int64_t last = 0;
  for (std::int64_t b = 0; b <= p.anchors.images; ++b) {
    const std::int64_t offset = reference::index_at(p.offsets, b);
    if (offset < last || offset > p.target.slots) return false;
    last = offset;
  }
  return true;
}

/// One image's: for each anchor the box of its own that it gets, or what stands for none.
template <class C>
struct Matches {
  std::vector<std::int64_t> box;
  std::vector<C> iou;
};

template <class C>
Matches<C> matched(const MaxIouProblem& p, const std::vector<std::vector<C>>& of_anchor,
                   std::size_t boxes) {
  const std::size_t anchors = of_anchor.size();
  Matches<C> result{std::vector<std::int64_t>(anchors, -1), std::vector<C>(anchors, C(0))};
  if (boxes == 0) return result;
  const auto high = static_cast<C>(p.high), low = static_cast<C>(p.low);
  std::vector<std::int64_t> all(anchors);
  for (std::size_t a = 0; a < anchors; ++a) {
    const std::size_t best = argmax(of_anchor[a]);
    const C value = of_anchor[a][best] + C(0);  // of an inverted box it may be -0
    all[a] = static_cast<std::int64_t>(best);
    result.iou[a] = value;
    result.box[a] = value < low ? -1 : value < high ? -2 : all[a];
  }
  for (std::size_t i = 0; i < boxes; ++i) {
    std::vector<C> of_box;
    for (std::size_t a = 0; a < anchors; ++a) of_box.push_back(of_anchor[a][i]);
    const std::size_t best = argmax(of_box);
    if (!(of_box[best] >= static_cast<C>(p.min_pos_iou))) continue;
    for (std::size_t a = 0; a < anchors; ++a) {
      if (of_box[a] != of_box[best]) continue;
      const auto box = static_cast<std::int64_t>(i);
      if (p.low_quality == LowQuality::kArgmax) result.box[a] = all[a];
      if (p.low_quality == LowQuality::kOverwrite) result.box[a] = box;
      if (p.low_quality == LowQuality::kForce && a == best) result.box[a] = box;
    }
  }
  return result;
}

template <class B, class C = typename B::Value>
void match_image(const MaxIouProblem& p, const MaxIouOutputs& outputs, std::int64_t image,
                 reference::OwnRows own) {
  const AngleUnit unit = p.angle_unit.value_or(AngleUnit::kRadians);
  std::vector<std::vector<C>> of_anchor;
  for (std::int64_t a = 0; a < p.anchors.slots; ++a) {
    std::vector<C>& ious = of_anchor.emplace_back();
    for (std::int64_t row = own.begin; row < own.end; ++row) {
      ious.push_back(iou(box_at<B>(p.target, 0, row), box_at<B>(p.anchors, image, a), unit));
    }
  }
  const Matches<C> matches = matched(p, of_anchor, static_cast<std::size_t>(own.end - own.begin));
  for (std::size_t a = 0; a < of_anchor.size(); ++a) {
    const std::size_t at = static_cast<std::size_t>(image) * of_anchor.size() + a;
    const std::int64_t index = matches.box[a] + (matches.box[a] >= 0 ? own.begin : 0);
    if (outputs.target_index != nullptr && p.index == DType::kI64) {
      static_cast<std::int64_t*>(outputs.target_index)[at] = index;
    } else if (outputs.target_index != nullptr) {
      static_cast<std::int32_t*>(outputs.target_index)[at] = static_cast<std::int32_t>(index);
    }
    if (outputs.iou != nullptr) static_cast<C*>(outputs.iou)[at] = matches.iou[a];
  }
}

}  // namespace

void reference::Operations::max_iou_match(const MaxIouProblem& p, const MaxIouOutputs& outputs,
                                          const Execution&) {
  const bool has_pairs = p.anchors.images > 0 && p.anchors.slots > 0 && p.target.slots > 0;
  const bool has_boxes = has_pairs && are_in_order(p);
  for (std::int64_t image = 0; image < p.anchors.images; ++image) {
    const OwnRows own = has_boxes ? own_rows(p.offsets, image, p.target.slots) : OwnRows{0, 0};
    with_boxes(p, [&](auto box) { match_image<decltype(box)>(p, outputs, image, own); });
  }
}

}  // namespace boxloss
