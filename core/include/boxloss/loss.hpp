// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <boxloss/set.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The one list of losses: a formula's name in C++ (core/losses), and its name everywhere else. The
/// enum, the names, the parser, the error messages and the tests' tables derive from it.
// clang-format off
#define BOXLOSS_FOR_EACH_LOSS(use) \
  use(Iou, "iou") \
  use(IouSquared, "iou_squared") \
  use(IouLog, "iou_log") \
  use(Giou, "giou") \
  use(Diou, "diou") \
  use(Ciou, "ciou") \
  use(CiouGated, "ciou_gated") \
  use(Eiou, "eiou") \
  use(Siou, "siou") \
  use(AlphaIou, "alpha_iou") \
  use(Nwd, "nwd") \
  use(Mpdiou, "mpdiou") \
  use(InnerIou, "inner_iou")
// clang-format on

namespace boxloss {

/// The loss to compute. 0 is none, and an error, so that a forgotten field does not select a loss.
enum class Loss : std::uint8_t {
  kUnset,
#define BOXLOSS_ENUMERATOR(Formula, word) k##Formula,
  BOXLOSS_FOR_EACH_LOSS(BOXLOSS_ENUMERATOR)
#undef BOXLOSS_ENUMERATOR
};

/// All losses, in the order of the list.
constexpr Set<Loss> kLosses = {
#define BOXLOSS_ENUMERATOR(Formula, word) Loss::k##Formula,
    BOXLOSS_FOR_EACH_LOSS(BOXLOSS_ENUMERATOR)
#undef BOXLOSS_ENUMERATOR
};

/// "giou", …
BOXLOSS_API const char* name_of(Loss loss);

/// The names of the losses in a set: "'giou', …".
BOXLOSS_API std::string names_of(Set<Loss> losses);

/// The loss of that name. Throws InvalidArgument, which lists the names.
BOXLOSS_API Loss loss_named(std::string_view word);

/// A number that some losses have of their own, such as the power of "alpha_iou".
struct LossParameter {
  const char* name;
  double standard;  ///< 0: it must be given
  double least = 1e-6, most = 1e6;
};

/// Those of a loss, in their order.
BOXLOSS_API std::vector<LossParameter> parameters_of(Loss loss);

constexpr int kMostLossParameters = 2;

/// Their values, in the same order; none stands for the standard ones.
struct LossParameters {
  int count = 0;
  double values[kMostLossParameters] = {};
};

/// The values that a loss is computed with. Throws InvalidArgument for another number of them, and
/// for one that is not from its `least` to its `most`.
BOXLOSS_API LossParameters complete_parameters(Loss loss, const LossParameters& given);

/// How eps is applied to a divisor x: x + eps, or max(x, eps).
enum class EpsMode : std::uint8_t { kAdd, kClamp };

/// "add" or "clamp".
BOXLOSS_API const char* name_of(EpsMode mode);

}  // namespace boxloss
