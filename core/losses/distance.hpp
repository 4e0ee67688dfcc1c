// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "derivatives.hpp"
#include "eps.hpp"
#include "overlap.hpp"

/// Parts of losses that compare the boxes' positions and sizes, relative to the enclosing box.
namespace boxloss {

/// The offset of the target's centre from pred's. For equal boxes it is exactly 0.
template <class T>
struct CentreDistance {
  T x, y;
};

template <class T>
BOXLOSS_HOST_DEVICE CentreDistance<T> centre_distance(const Box<T>& p, const Box<T>& t) {
  return {T(0.5) * ((t.x1 - p.x1) + (t.x2 - p.x2)), T(0.5) * ((t.y1 - p.y1) + (t.y2 - p.y2))};
}

/// The offsets of the target's corners from pred's, and the sum of their squares.
template <class T>
struct CornerDistance {
  T x1, y1, x2, y2, square;
};

template <class T>
BOXLOSS_HOST_DEVICE CornerDistance<T> corner_distance(const Box<T>& p, const Box<T>& t) {
  const T x1 = t.x1 - p.x1, y1 = t.y1 - p.y1, x2 = t.x2 - p.x2, y2 = t.y2 - p.y2;
  return {x1, y1, x2, y2, (x1 * x1 + y1 * y1) + (x2 * x2 + y2 * y2)};
}

/// Adds `by` times each offset.
template <class T>
BOXLOSS_HOST_DEVICE void add_corners(const CornerDistance<T>& c, const T& by, Derivatives<T>& d) {
  d.x.begin = d.x.begin + by * c.x1;
  d.y.begin = d.y.begin + by * c.y1;
  d.x.end = d.x.end + by * c.x2;
  d.y.end = d.y.end + by * c.y2;
}

/// The squared distance of the centres over the squared diagonal of the enclosure after eps.
template <class T>
struct RelativeDistance {
  CentreDistance<T> centre;
  Enclosure<T> enclosure;
  Guarded<T> diagonal;
  T per_diagonal;
  T value;
};

template <class T>
BOXLOSS_HOST_DEVICE RelativeDistance<T> relative_distance(const Box<T>& p, const Box<T>& t,
                                                          const Eps<T>& eps) {
  CentreDistance<T> c = centre_distance(p, t);
  Enclosure<T> e = enclosure(p, t);
  Guarded<T> diagonal = guard(e.w * e.w + e.h * e.h, eps);
  const T per = reciprocal(diagonal.value);
  return {c, e, diagonal, per, (c.x * c.x + c.y * c.y) * per};
}

template <class T>
BOXLOSS_HOST_DEVICE void add_relative_distance(const RelativeDistance<T>& r, const Eps<T>& eps,
                                               Derivatives<T>& d) {
  // Side times reciprocal first: the reciprocal's square may overflow.
  const T by_side = T(-2) * slope(r.diagonal, eps) * r.value;
  d.x.enclosing = d.x.enclosing + by_side * (r.enclosure.w * r.per_diagonal);
  d.y.enclosing = d.y.enclosing + by_side * (r.enclosure.h * r.per_diagonal);
  add_centre(T(2) * (r.centre.x * r.per_diagonal), d.x);
  add_centre(T(2) * (r.centre.y * r.per_diagonal), d.y);
}

/// 1 - iou + the relative distance: DIoU, which CIoU and EIoU add to.
template <class T>
struct DiouTerms {
  Overlap<T> overlap;
  RelativeDistance<T> distance;
  T loss;
};

template <class T>
BOXLOSS_HOST_DEVICE DiouTerms<T> diou_terms(const Box<T>& p, const Box<T>& t, const Eps<T>& eps) {
  Overlap<T> o = overlap(p, t, eps);
  RelativeDistance<T> r = relative_distance(p, t, eps);
  return {o, r, (T(1) - iou_of(o)) + r.value};
}

template <class T>
BOXLOSS_HOST_DEVICE Derivatives<T> diou_derivatives(const Box<T>& p, const Box<T>& t,
                                                    const Eps<T>& eps, const DiouTerms<T>& g) {
  Derivatives<T> d = through_iou(p, t, g.overlap, eps, g.loss, T(-1));
  add_relative_distance(g.distance, eps, d);
  return d;
}

}  // namespace boxloss
