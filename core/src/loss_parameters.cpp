// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <cmath>
#include <iterator>
#include <string>
#include <type_traits>

#include "losses/formulas.hpp"
#include "losses/rotated/formulas.hpp"
#include "src/checks.hpp"

namespace boxloss {
namespace {

template <class Formula, class = void>
constexpr bool kHasParameters = false;
template <class Formula>
constexpr bool kHasParameters<Formula, std::void_t<decltype(Formula::kParameters)>> = true;

std::string names_of(const std::vector<LossParameter>& parameters) {
  std::string names;
  for (const LossParameter& each : parameters) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return names.empty() ? "none" : names;
}

/// A power of ten as people write it: 1e6, not 1e+06; and 0.
std::string bound(double power) {
  if (power == 0 || power == 1) return power == 0 ? "0" : "1";
  return message("1e", static_cast<int>(std::lround(std::log10(power))));
}

template <class Enum>
std::vector<LossParameter> parameters_in(Set<Enum> all, Enum loss) {
  if (!all.contains(loss)) return {};
  return with_formula(loss, [](auto formula) -> std::vector<LossParameter> {
    using Formula = decltype(formula);
    if constexpr (kHasParameters<Formula>) {
      return {std::begin(Formula::kParameters), std::end(Formula::kParameters)};
    } else {
      return {};
    }
  });
}

template <class Enum>
LossParameters completed(Enum loss, const LossParameters& given) {
  const std::vector<LossParameter> parameters = parameters_of(loss);
  const auto count = static_cast<int>(parameters.size());
  check(given.count == 0 || given.count == count, "parameters has ", given.count, " numbers; '",
        name_of(loss), "' has ", count, ": ", names_of(parameters));
  LossParameters all = given;
  all.count = count;
  for (int i = 0; i < count; ++i) {
    const LossParameter& each = parameters[static_cast<std::size_t>(i)];
    double& value = all.values[i];
    if (given.count == 0) value = each.standard;
    check(given.count != 0 || value != 0, each.name, " is missing; '", name_of(loss), "' needs ",
          names_of(parameters));
    if (value >= each.least && value <= each.most) continue;
    check(false, each.name, " is ", value, "; it must be from ", bound(each.least), " to ",
          bound(each.most));
  }
  return all;
}

}  // namespace

std::vector<LossParameter> parameters_of(Loss loss) { return parameters_in(kLosses, loss); }

std::vector<LossParameter> parameters_of(RotatedLoss loss) {
  return parameters_in(kRotatedLosses, loss);
}

LossParameters complete_parameters(Loss loss, const LossParameters& given) {
  return completed(loss, given);
}

LossParameters complete_parameters(RotatedLoss loss, const LossParameters& given) {
  return completed(loss, given);
}

}  // namespace boxloss
