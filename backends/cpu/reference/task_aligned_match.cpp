// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dispatch/compute_type.hpp"
#include "dtypes/elements.hpp"
#include "losses/ciou.hpp"
#include "losses/rotated/probiou.hpp"

/// The reference of the task-aligned match: whole matrices of an image's boxes and anchors, step
/// after step as the rule is told. Which points lie in a box is found in the compute dtype C, as
/// everywhere; all else is in double.
namespace boxloss {
namespace {

template <class B>
B values_at(const BoxView& view, std::int64_t image, std::int64_t slot) {
  const Elements<Any> elements{view.data, view.dtype};
  return elements.get_box<B>(image * view.image_stride + slot * view.slot_stride,
                             view.coordinate_stride);
}

template <class C>
Box<C> as_formulas_take(const Box<C>& box, const BoxView& view, const TaskAlignedProblem&) {
  return to_corners(box, view.format);
}
template <class C>
RotatedBox<C> as_formulas_take(const RotatedBox<C>& box, const BoxView&,
                               const TaskAlignedProblem& p) {
  return in_radians(box, *p.angle_unit);
}

/// The numbers of a padded box, added up as torch does.
template <class C>
C sum(const Box<C>& box) {
  return (box.x1 + box.y1) + (box.x2 + box.y2);
}
template <class C>
C sum(const RotatedBox<C>& box) {
  return (box.cx + box.cy) + (box.w + box.h) + box.angle;
}

template <class C>
double loss(const Box<C>& pred, const Box<C>& target) {
  const auto widened = [](const Box<C>& box) {
    return Box<double>{box.x1, box.y1, box.x2, box.y2};
  };
  const Eps<double> eps = make_eps<double>(static_cast<C>(1e-7), EpsMode::kAdd);
  return Ciou::loss(widened(pred), widened(target), eps);
}
template <class C>
double loss(const RotatedBox<C>& pred, const RotatedBox<C>& target) {
  Constants<double> constants = {};
  constants.own[0] = static_cast<C>(rotated::Probiou::kParameters[0].standard);
  return rotated::Probiou::loss(converted<double>(pred), converted<double>(target), constants);
}

/// What tells whether a point lies in a box whose sides less than `small` are enlarged to `least`;
/// with a `least` of 0 none is.
template <class C>
struct Region {
  C small, least;

  C side(C given) const { return least > 0 && given < small ? least : given; }

  bool contains(const Box<C>& box, C x, C y) const {
    const C centre_x = (box.x1 + box.x2) / 2, centre_y = (box.y1 + box.y2) / 2;
    const C w = side(box.x2 - box.x1), h = side(box.y2 - box.y1), eps = static_cast<C>(1e-9);
    const Box<C> around =
        least > 0 ? Box<C>{centre_x - w / 2, centre_y - h / 2, centre_x + w / 2, centre_y + h / 2}
                  : box;
    return x - around.x1 > eps && y - around.y1 > eps && around.x2 - x > eps && around.y2 - y > eps;
  }

  /// As Ultralytics computes it, from three of the four corners.
  bool contains(const RotatedBox<C>& box, C x, C y) const {
    struct Vector {
      C x, y;
      Vector operator+(Vector b) const { return {x + b.x, y + b.y}; }
      Vector operator-(Vector b) const { return {x - b.x, y - b.y}; }
      C dot(Vector b) const { return x * b.x + y * b.y; }
    };
    const auto [sin, cos] = sin_cos(box.angle);
    const C w = side(box.w), h = side(box.h);
    const Vector half_w = {w / 2 * cos, w / 2 * sin}, half_h = {-h / 2 * sin, h / 2 * cos};
    const Vector centre = {box.cx, box.cy}, corner = centre + half_w + half_h;
    const Vector ab = centre + half_w - half_h - corner, ad = centre - half_w + half_h - corner;
    const Vector ap = Vector{x, y} - corner;
    return ap.dot(ab) >= 0 && ap.dot(ab) <= ab.dot(ab) && ap.dot(ad) >= 0 &&
           ap.dot(ad) <= ad.dot(ad);
  }
};

double rounded_to(DType dtype, double value) {
  if (dtype == DType::kF16) return to_float(to_half(static_cast<float>(value)));
  if (dtype == DType::kBF16) return to_float(to_bfloat16(static_cast<float>(value)));
  return value;
}

void set_index(const TaskAlignedProblem& p, const TaskAlignedOutputs& outputs, std::int64_t at,
               std::int64_t value) {
  if (p.index == DType::kI64) {
    static_cast<std::int64_t*>(outputs.target_index)[at] = value;
  } else {
    static_cast<std::int32_t*>(outputs.target_index)[at] = static_cast<std::int32_t>(value);
  }
}

/// What an image's box has with each anchor; 0 where the anchor is no candidate.
struct BoxRow {
  std::vector<bool> is_chosen;
  std::vector<double> metric, overlap;
};

class Image {
 public:
  Image(const TaskAlignedProblem& p, std::int64_t image) : p_(p), image_(image) {
    const bool is_padded = p.offsets.data == nullptr;
    first_ = is_padded ? image * p.target.slots : reference::index_at(p.offsets, image);
    const std::int64_t end =
        is_padded ? first_ + p.target.slots : reference::index_at(p.offsets, image + 1);
    for (std::int64_t row = first_; row < end; ++row) {
      with_boxes(p, [&](auto box) { boxes_.push_back(box_row<decltype(box)>(row)); });
    }
  }

  /// The owner of each anchor, as a box of the image, or -1.
  std::vector<std::int64_t> owners() {
    for (BoxRow& box : boxes_) box.is_chosen = best(box.metric, p_.topk);
    std::vector<std::int64_t> owners;
    for (std::size_t a = 0; a < anchors(); ++a) owners.push_back(owner_of(a));
    if (p_.topk2.value_or(p_.topk) == p_.topk) return owners;
    for (std::size_t j = 0; j < boxes_.size(); ++j) {
      std::vector<double> own(anchors());
      for (std::size_t a = 0; a < anchors(); ++a) {
        if (owners[a] == static_cast<std::int64_t>(j)) own[a] = boxes_[j].metric[a];
      }
      const std::vector<bool> is_kept = best(own, *p_.topk2);
      for (std::size_t a = 0; a < anchors(); ++a) {
        if (own[a] > 0 && !is_kept[a]) owners[a] = -1;
      }
    }
    return owners;
  }

  void write(const std::vector<std::int64_t>& owners, const TaskAlignedOutputs& outputs) const {
    std::vector<double> most_metric(boxes_.size()), most_overlap(boxes_.size());
    for (std::size_t a = 0; a < anchors(); ++a) {
      if (owners[a] < 0) continue;
      const auto j = static_cast<std::size_t>(owners[a]);
      most_metric[j] = std::max(most_metric[j], boxes_[j].metric[a]);
      most_overlap[j] = std::max(most_overlap[j], boxes_[j].overlap[a]);
    }
    for (std::size_t a = 0; a < anchors(); ++a) {
      if (owners[a] < 0) continue;
      const auto j = static_cast<std::size_t>(owners[a]);
      const std::int64_t at = image_ * p_.anchors + static_cast<std::int64_t>(a);
      set_index(p_, outputs, at, first_ + owners[a]);
      const double score = boxes_[j].metric[a] * most_overlap[j] / (most_metric[j] + 1e-9);
      outputs.score[at] = static_cast<float>(score);
      outputs.overlap[at] = static_cast<float>(boxes_[j].overlap[a]);
    }
  }

 private:
  std::size_t anchors() const { return static_cast<std::size_t>(p_.anchors); }

  template <class B>
  BoxRow box_row(std::int64_t row) const {
    using C = typename B::Value;
    BoxRow result = {std::vector<bool>(anchors()), std::vector<double>(anchors()),
                     std::vector<double>(anchors())};
    const bool is_padded = p_.offsets.data == nullptr;
    const B given = values_at<B>(p_.target, is_padded ? image_ : 0, is_padded ? row - first_ : row);
    const B box = as_formulas_take(given, p_.target, p_);
    const std::int64_t label = reference::index_at(p_.labels, row);
    if (label < 0 || label >= p_.classes) return result;
    if (is_padded && !(sum(box) > 0)) return result;
    const Region<C> region = {static_cast<C>(p_.small_side.value_or(p_.min_side)),
                              static_cast<C>(p_.min_side)};
    for (std::int64_t a = 0; a < p_.anchors; ++a) {
      const Elements<Any> points{p_.points.data, p_.points.dtype};
      const std::int64_t at = image_ * p_.points.image_stride + a * p_.points.anchor_stride;
      const C x = points.get<C>(at), y = points.get<C>(at + p_.points.coordinate_stride);
      if (!region.contains(box, x, y)) continue;
      const B pred = as_formulas_take(values_at<B>(p_.pred, image_, a), p_.pred, p_);
      const double lost = loss(pred, box);
      const double score = Elements<Any>{p_.scores.data, p_.scores.dtype}.get<C>(
          image_ * p_.scores.image_stride + a * p_.scores.anchor_stride +
          label * p_.scores.class_stride);
      const double overlap = lost > 1 ? 0 : 1 - lost;  // NaN stays
      const double power = rounded_to(p_.scores.dtype, std::pow(score, p_.alpha));
      const double metric = power * std::pow(overlap, p_.beta);
      if (std::isnan(overlap) || std::isnan(metric)) continue;
      const auto i = static_cast<std::size_t>(a);
      result.overlap[i] = overlap;
      result.metric[i] = metric;
    }
    return result;
  }

  /// Which values are above 0, and among the `count` highest; of equal ones the first are.
  static std::vector<bool> best(const std::vector<double>& values, std::int64_t count) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] > 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return values[i] > values[j]; });
    std::vector<bool> result(values.size());
    for (std::size_t k = 0; k < order.size() && static_cast<std::int64_t>(k) < count; ++k) {
      result[order[k]] = true;
    }
    return result;
  }

  std::int64_t owner_of(std::size_t anchor) const {
    std::int64_t choosers = 0;
    std::size_t owner = 0;
    for (std::size_t j = 0; j < boxes_.size(); ++j) {
      if (!boxes_[j].is_chosen[anchor]) continue;
      ++choosers;
      owner = j;
    }
    if (choosers == 0) return -1;
    if (choosers > 1) {
      double most = -1;
      for (std::size_t j = 0; j < boxes_.size(); ++j) {
        const bool has_any = boxes_[j].overlap[anchor] > 0 || boxes_[j].metric[anchor] > 0;
        if (!has_any || !(boxes_[j].overlap[anchor] > most)) continue;
        most = boxes_[j].overlap[anchor];
        owner = j;
      }
    }
    return boxes_[owner].metric[anchor] > 0 ? static_cast<std::int64_t>(owner) : -1;
  }

  const TaskAlignedProblem& p_;
  std::int64_t image_, first_;
  std::vector<BoxRow> boxes_;
};

/// Whether each image's boxes come behind those of the image before, within the list.
bool are_in_order(const TaskAlignedProblem& p) {
  if (p.offsets.data == nullptr) return true;
  std::int64_t last = 0;
  for (std::int64_t b = 0; b <= p.images; ++b) {
    const std::int64_t offset = reference::index_at(p.offsets, b);
    if (offset < last || offset > p.target.slots) return false;
    last = offset;
  }
  return true;
}

}  // namespace

void reference::Operations::task_aligned_match(const TaskAlignedProblem& p,
                                               const TaskAlignedOutputs& outputs,
                                               const Execution&) {
  for (std::int64_t at = 0; at < p.images * p.anchors; ++at) {
    set_index(p, outputs, at, -1);
    outputs.score[at] = outputs.overlap[at] = 0;
  }
  if (p.anchors == 0 || p.classes == 0 || p.target.images * p.target.slots == 0) return;
  if (!are_in_order(p)) return;
  for (std::int64_t b = 0; b < p.images; ++b) {
    Image image(p, b);
    image.write(image.owners(), outputs);
  }
}

}  // namespace boxloss
