// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "cpu/operations.hpp"
#include "dispatch/with_pairing.hpp"
#include "src/backends.hpp"

namespace boxloss {

Implementation cpu::native() {
  Implementation self;
  self.name = "cpu/native";
  self.priority = 100;
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = kPairings;
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = native::workspace_bytes;
  self.box_loss.forward = native::forward;
  self.box_loss.backward = native::backward;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = native::matching_cost;
  return self;
}

Implementation cpu::reference() {
  Implementation self;
  self.name = "cpu/reference";
  self.box_loss.losses = kLosses;
  self.box_loss.pairings = {Pairing::Kind::kDense,   Pairing::Kind::kZeroPadded,
                            Pairing::Kind::kLengths, Pairing::Kind::kMask,
                            Pairing::Kind::kOffsets, Pairing::Kind::kIndexed};
  self.box_loss.extras = kExtras;
  self.box_loss.workspace_bytes = [](const LossProblem&) { return std::size_t{0}; };
  self.box_loss.forward = reference::forward;
  self.box_loss.backward = reference::backward;
  self.matching_cost.losses = kLosses;
  self.matching_cost.class_terms = kClassTerms;
  self.matching_cost.run = reference::matching_cost;
  return self;
}

}  // namespace boxloss
