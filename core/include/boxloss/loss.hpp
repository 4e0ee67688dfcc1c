// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <boxloss/set.hpp>
#include <cstdint>
#include <string>
#include <string_view>

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
  use(Siou, "siou")
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

/// How eps is applied to a divisor x: x + eps, or max(x, eps).
enum class EpsMode : std::uint8_t { kAdd, kClamp };

/// "add" or "clamp".
BOXLOSS_API const char* name_of(EpsMode mode);

}  // namespace boxloss
