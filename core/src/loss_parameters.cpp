// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/loss.hpp>
#include <iterator>
#include <string>
#include <type_traits>

#include "losses/formulas.hpp"
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

}  // namespace

std::vector<LossParameter> parameters_of(Loss loss) {
  if (!kLosses.contains(loss)) return {};
  return with_formula(loss, [](auto formula) -> std::vector<LossParameter> {
    using Formula = decltype(formula);
    if constexpr (kHasParameters<Formula>) {
      return {std::begin(Formula::kParameters), std::end(Formula::kParameters)};
    } else {
      return {};
    }
  });
}

LossParameters complete_parameters(Loss loss, const LossParameters& given) {
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
    check(value >= 1e-6 && value <= 1e6, each.name, " is ", value, "; it must be from 1e-6 to 1e6");
  }
  return all;
}

}  // namespace boxloss
