// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <boxloss/set.hpp>
#include <cstdint>
#include <string>
#include <string_view>

/// The one list of losses: what a formula is called in C++ (core/losses), and its word everywhere
/// else. The enum, the words, the parser, the refusals and the tests' tables derive from it.
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

/// Which loss is computed. 0 names none, and is refused: a forgotten field must not mean a loss.
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

/// The words of the losses in a set: "'giou', …".
BOXLOSS_API std::string names_of(Set<Loss> losses);

/// The loss of that word. Throws InvalidArgument, naming those that there are.
BOXLOSS_API Loss loss_named(std::string_view word);

/// Where eps goes: what a formula divides by becomes x + eps, or max(x, eps).
enum class EpsMode : std::uint8_t { kAdd, kClamp };

/// "add" or "clamp".
BOXLOSS_API const char* name_of(EpsMode mode);

}  // namespace boxloss
