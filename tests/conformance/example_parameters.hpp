// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <map>
#include <string_view>
#include <vector>

namespace boxloss::conformance {

/// Values for a loss' parameters. Three quarters of small integers are exact, so that inner boxes
/// tie where boxes do; no exponential of pixels' distances over 16 is next to 0.
template <class Enum>
LossParameters example_parameters(Enum loss) {
  static const std::map<std::string_view, double> examples = {
      {"alpha", 3},    {"constant", 16}, {"image_width", 8}, {"image_height", 6},
      {"ratio", 0.75}, {"floor", 0.25},  {"tau", 2}};
  LossParameters all;
  for (const LossParameter& each : parameters_of(loss)) {
    all.values[all.count++] = examples.at(each.name);
  }
  return all;
}

/// Nothing where the loss has no such number.
template <class Enum>
void set_parameter(Enum loss, std::string_view name, double value, LossParameters& all) {
  const std::vector<LossParameter> names = parameters_of(loss);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name == name) all.values[i] = value;
  }
}

}  // namespace boxloss::conformance
