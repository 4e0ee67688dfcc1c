// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/export.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/set.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The one list of the losses of rotated boxes: a formula's name in C++ (core/losses/rotated), and
/// its name everywhere else.
// clang-format off
#define BOXLOSS_FOR_EACH_ROTATED_LOSS(use) \
  use(Iou, "iou") \
  use(Giou, "giou") \
  use(Probiou, "probiou") \
  use(Kld, "kld") \
  use(Gwd, "gwd") \
  use(Kfiou, "kfiou")
// clang-format on

namespace boxloss {

/// The loss to compute. 0 is none, and an error.
enum class RotatedLoss : std::uint8_t {
  kUnset,
#define BOXLOSS_ENUMERATOR(Formula, word) k##Formula,
  BOXLOSS_FOR_EACH_ROTATED_LOSS(BOXLOSS_ENUMERATOR)
#undef BOXLOSS_ENUMERATOR
};

/// All of them, in the order of the list.
constexpr Set<RotatedLoss> kRotatedLosses = {
#define BOXLOSS_ENUMERATOR(Formula, word) RotatedLoss::k##Formula,
    BOXLOSS_FOR_EACH_ROTATED_LOSS(BOXLOSS_ENUMERATOR)
#undef BOXLOSS_ENUMERATOR
};

/// Those by areas, of which the IoU of each pair can be asked for.
constexpr Set<RotatedLoss> kLossesByArea = {RotatedLoss::kIou, RotatedLoss::kGiou};

/// "giou", …
BOXLOSS_API const char* name_of(RotatedLoss loss);

/// The names of the losses in a set: "'giou', …".
BOXLOSS_API std::string names_of(Set<RotatedLoss> losses);

/// The loss of that name. Throws InvalidArgument, which lists the names.
BOXLOSS_API RotatedLoss rotated_loss_named(std::string_view word);

/// The numbers that a loss has of its own, in their order.
BOXLOSS_API std::vector<LossParameter> parameters_of(RotatedLoss loss);

/// The values that a loss is computed with. Throws InvalidArgument for another number of them, and
/// for one out of its range.
BOXLOSS_API LossParameters complete_parameters(RotatedLoss loss, const LossParameters& given);

}  // namespace boxloss
