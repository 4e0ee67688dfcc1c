// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>
#include <boxloss/registry.hpp>
#include <string>
#include <vector>

#include "adapter.hpp"

namespace boxloss::torch_binding {
namespace {

std::vector<std::string> implementation_names() {
  std::vector<std::string> names;
  for (const Implementation& each : implementations()) names.emplace_back(each.name);
  return names;
}

std::string choose_implementation(std::string_view name) {
  return with_torch_errors([&] { return use_implementation(name); });
}

}  // namespace
}  // namespace boxloss::torch_binding

// needs_exact_strides: compiled graphs must keep the contiguous last dimension that eager code
// gave.
TORCH_LIBRARY(boxloss, m) {
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  m.def(
      "giou_loss(Tensor pred, Tensor target, Tensor? weight=None, Tensor? normalizer=None, "
      "Tensor? lengths=None, Tensor? mask=None, Tensor? offsets=None, bool zero_padded=False, "
      "str pred_format='xyxy', str target_format='xyxy', str reduction='mean', float eps=1e-7, "
      "str eps_mode='add') -> Tensor",
      tags);
  m.def(
      "_giou_loss_forward(Tensor pred, Tensor target, Tensor? weight, Tensor? normalizer, "
      "Tensor? lengths, Tensor? mask, Tensor? offsets, bool zero_padded, str pred_format, "
      "str target_format, str reduction, float eps, str eps_mode) -> (Tensor loss, Tensor scale)",
      tags);
  m.def(
      "_giou_loss_backward(Tensor grad_loss, Tensor scale, Tensor pred, Tensor target, "
      "Tensor? weight, Tensor? normalizer, Tensor? lengths, Tensor? mask, Tensor? offsets, "
      "bool zero_padded, str pred_format, str target_format, str reduction, float eps, "
      "str eps_mode, bool[3] wanted) -> Tensor[]",
      tags);
  m.def("implementations() -> str[]", boxloss::torch_binding::implementation_names);
  m.def("use_implementation(str name) -> str", boxloss::torch_binding::choose_implementation);
}
