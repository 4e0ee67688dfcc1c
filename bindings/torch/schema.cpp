// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <torch/library.h>
#include <boxloss/registry.hpp>
#include <string>
#include <vector>

#include "adapter.hpp"
#include "loss_args.hpp"

namespace boxloss::torch_binding {
namespace {

std::vector<std::string> names_and_aten() {
  std::vector<std::string> names = implementation_names();
  names.emplace_back("aten");
  return names;
}

std::string choose(std::string_view name) {
  return with_torch_errors("use_implementation", [&] { return choose_implementation(name); });
}

std::string capability_of_cpu() {
  return with_torch_errors("cpu_capability", [] { return std::string(cpu_capability()); });
}

/// giou_loss is box_loss with "giou"; its errors have its own name.
at::Tensor giou_loss(const LossArgs& args) {
  try {
    return call_box_loss(args);
  } catch (const c10::Error&) {
    check_args(args);
    throw;
  }
}

/// The parameters after pred, target and loss. None is keyword-only, which takes torch 0.4 µs for
/// each that is given.
const std::string kOptions =
    "Tensor? weight=None, Tensor? normalizer=None, Tensor? lengths=None, Tensor? mask=None, "
    "Tensor? offsets=None, bool zero_padded=False, str pred_format='xyxy', "
    "str target_format='xyxy', str reduction='mean', float eps=1e-7, str eps_mode='add', "
    "Tensor? pred_index=None, Tensor? target_index=None";

/// All parameters, without defaults.
std::string all_parameters() {
  std::string text = "Tensor pred, Tensor target, str loss, " + kOptions;
  for (std::size_t begin; (begin = text.find('=')) != std::string::npos;) {
    text.erase(begin, text.find(',', begin) - begin);
  }
  return text;
}

}  // namespace
}  // namespace boxloss::torch_binding

// needs_exact_strides: gradients have the strides of their tensors, so compiled graphs must pass
// these as eager code does.
TORCH_LIBRARY(boxloss, m) {
  using namespace boxloss::torch_binding;
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag, at::Tag::needs_exact_strides};
  const auto define = [&](const std::string& schema) { m.def(schema.c_str(), tags); };
  const std::string boxes = "(Tensor pred, Tensor target, ";
  const std::string with_loss = boxes + "str loss='giou', " + kOptions;
  define("box_loss" + with_loss + ") -> Tensor");
  define("box_losses" + with_loss + ") -> (Tensor loss, Tensor l1, Tensor iou)");
  define("giou_loss" + boxes + kOptions + ") -> Tensor");
  define("_box_loss_forward(" + all_parameters() +
         ", bool extras) -> (Tensor loss, Tensor scale, Tensor l1, Tensor iou)");
  define("_box_loss_backward(Tensor? grad_loss, Tensor? grad_l1, Tensor scale, " +
         all_parameters() + ", bool[3] wanted) -> (Tensor pred, Tensor target, Tensor weight)");
  m.def("implementations() -> str[]", names_and_aten);
  m.def("cpu_capability() -> str", capability_of_cpu);
  m.def("use_implementation(str name) -> str", choose);
}

TORCH_LIBRARY_IMPL(boxloss, CompositeImplicitAutograd, m) {
  using namespace boxloss::torch_binding;
  m.impl("giou_loss", Entries::giou_loss<giou_loss>);
}
