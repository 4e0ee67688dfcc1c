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
  check_shape(a.normalizer, shape_of_sets<Size>(a), "() or one for each layer");
}

/// Those of a problem that all have, of sizes that are numbers.
template <class Problem, class Args>
void set_rows(Problem& p, const Args& a) {
  p.sets = has_layers(a.logits) ? a.logits.size(0) : 1;
  p.images = a.logits.rank > 2 ? a.logits.size(-3) : 1;
  p.queries = a.logits.size(-2);
  p.normalizer_stride = a.normalizer && a.normalizer.rank == 1 ? 1 : 0;
}

/// The gradient of such a loss. It is given the loss' incoming one, and `scale`.
template <class Loss, class Problem>
struct LogitsGradient {
  static constexpr const char* kFunction = Loss::kFunction;
  static constexpr std::array kOutputs = {"d_logits"};

  template <class Args>
  static Problem describe(const Args& a) {
    using Size = std::decay_t<decltype(a.logits.size(0))>;
    auto p = Loss::template describe<Problem>(a);
    const auto loss = Loss::template outputs<Size>(a, p);
    check_as(a.grad, loss[0], "the shape of the loss");
    check_as(a.scale, loss[1], "as the loss gave it");
    p.grad = a.grad.data;
    p.scale = a.scale.data;
    return p;
  }

  template <class Args>
  static auto outputs(const Args& a, const Problem& p) {
    using Size = std::decay_t<decltype(a.logits.size(0))>;
    return std::array{
        Output<Size>{p.logits.dtype, {a.logits.shape, a.logits.shape + a.logits.rank}}};
  }
};

}  // namespace boxloss::binding
