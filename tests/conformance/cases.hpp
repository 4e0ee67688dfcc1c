// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/box_loss.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "random.hpp"

namespace boxloss::conformance {

/// How boxes lie in memory.
enum class Layout {
  kPacked,
  kWide,           ///< the first four columns of seven
  kGaps,           ///< rows between one image and the next that belong to nobody
  kOddGaps,        ///< the same, but no whole rows: only the first image is aligned
  kShifted,        ///< packed, but from the second element on: aligned to one element only
  kOneImage,       ///< the same boxes for every image: image stride 0
  kOneBox,         ///< one box for all slots: both strides 0
  kTransposed,     ///< image after image of slot 0, then of slot 1
  kPlanes,         ///< coordinate after coordinate of each image, as a convolution gives them
  kCommonPlanes,   ///< coordinate after coordinate of all images
  kApart,          ///< the same, with gaps between neighbours
  kOneCoordinate,  ///< one number for all four: coordinate stride 0
};

/// What the boxes are like.
enum class Values {
  kPlain,    ///< real coordinates that often overlap, never tie
  kKinks,    ///< small integers: ties, touching, identical, degenerate and inverted boxes abound
  kSpecial,  ///< kinks, with NaN and infinity among counted boxes, weights and incoming gradients
};

struct Operand {
  DType dtype;
  BoxFormat format;
  Layout layout;
};

struct CasePairing {
  Pairing::Kind kind;
  DType indices;  ///< of lengths or offsets
  /// With pairs by index: of the rows of each side, if it has any.
  std::optional<DType> pred_rows = {}, target_rows = {};
};

/// With offsets `rows` is the length of the ragged list. With pairs by index the lists have
/// (images, slots) preds and (images, rows) targets; what has no index has (sets, pairs).
struct Shape {
  std::int64_t images, slots, rows;
  std::int64_t sets = 1, pairs = 0;
};

struct CaseNormalizer {
  DType dtype;
  std::int64_t stride;

  // Implicit: one for all sets is all that most lines of the table need.
  constexpr CaseNormalizer(DType d, std::int64_t s = 0)  // NOLINT(google-explicit-constructor)
      : dtype(d), stride(s) {}
};

struct CaseEps {
  double value;
  EpsMode mode;
};

/// One line of the table. Its loss is set when it runs: see cases_of.
struct Case {
  std::string name;
  CasePairing pairing;
  Operand pred, target;
  Shape shape;
  Reduction reduction;
  std::optional<DType> weight;
  std::optional<CaseNormalizer> normalizer;
  CaseEps eps;
  Values values;
  Loss loss{};
};

/// The named cases: every implementation has to pass them all.
const std::vector<Case>& cases();

std::vector<Loss> losses();

/// The cases that run with that loss: all with GIoU, which has kernels of its own, each with one of
/// the others in turn, since what is computed does not depend on where boxes lie, and with all of
/// them where the values have kinks, which are each loss's own.
template <class C>
std::vector<C> cases_of(Loss loss, const std::vector<C>& table) {
  const std::vector<Loss> all = losses();
  std::vector<C> list;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Loss turn = all[i % all.size()];
    const bool is_due = loss == (turn == Loss::kGiou ? Loss::kIou : turn);
    if (loss != Loss::kGiou && table[i].values == Values::kPlain && !is_due) continue;
    list.push_back(table[i]);
    list.back().loss = loss;
  }
  return list;
}

/// A small case of any mix of properties.
Case random_case(Random& random);

}  // namespace boxloss::conformance
