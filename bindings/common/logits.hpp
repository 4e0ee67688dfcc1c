// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "arguments.hpp"

/// What losses of logits share: (queries, n), (images, queries, n) or (layers, images, queries, n).
namespace boxloss::binding {

template <class Array>
bool has_layers(const Array& logits) {
  return logits.rank == 4;
}

/// (layers), or () of logits without layers.
template <class Size, class Args>
std::vector<Size> shape_of_sets(const Args& a) {
  return has_layers(a.logits) ? std::vector<Size>{a.logits.size(0)} : std::vector<Size>{};
}

/// Logits' without their last dimension.
template <class Size, class Args>
std::vector<Size> shape_of_rows(const Args& a) {
  return {a.logits.shape, a.logits.shape + a.logits.rank - 1};
}

template <class Size, class Args>
std::vector<Size> shape_of_loss(const Args& a, Reduction reduction) {
  return reduction == Reduction::kNone ? shape_of_rows<Size>(a) : shape_of_sets<Size>(a);
}

template <class Size, class Args>
void check_normalizer(const Args& a) {
  if (!a.normalizer || a.normalizer.rank == 0) return;
  check_shape<Size, std::vector<Size>>(a.normalizer, shape_of_sets<Size>(a),
                                       "() or one for each layer");
}

/// Those of a problem that all have, of sizes that are numbers.
template <class Problem, class Args>
void set_rows(Problem& p, const Args& a) {
  p.sets = has_layers(a.logits) ? a.logits.size(0) : 1;
  p.images = a.logits.rank > 2 ? a.logits.size(-3) : 1;
  p.queries = a.logits.size(-2);
  p.normalizer_stride = a.normalizer && a.normalizer.rank == 1 ? 1 : 0;
}

/// What backward is given beside a loss' arguments: the incoming gradient, and `scale` of that
/// shape.
template <class Size, class Args, class Problem>
void set_gradient(Problem& p, const Args& a, const std::vector<Size>& shape_of_scale) {
  const DType compute = compute_dtype(p);
  for (const auto* each : {&a.grad, &a.scale}) {
    check_dtype(dtype_of(*each) == compute, each->name, " is ", name_of(dtype_of(*each)),
                "; it must be ", name_of(compute), ", as the loss is");
  }
  check_shape<Size, std::vector<Size>>(a.scale, shape_of_scale, "as the loss gave it");
  check_shape<Size, std::vector<Size>>(a.grad, shape_of_loss<Size>(a, p.reduction),
                                       "the shape of the loss");
  p.grad = a.grad.data;
  p.scale = a.scale.data;
}

}  // namespace boxloss::binding
