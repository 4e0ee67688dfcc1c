// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/box_loss.hpp>

#include "../common/class_loss.hpp"
#include "arguments.hpp"
#include "dispatch/class_loss.hpp"
#include "losses/class_loss.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "losses/overlap.hpp"
#include "recorded_number.hpp"

/// A loss, l1 and iou of one pair as a program, of which JAX makes what custom calls lack:
/// derivatives of every order.
extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_formula(
    const char* loss, const char* pred_format, const char* target_format, double eps,
    const char* eps_mode, const double* parameters, int count) {
  using namespace boxloss;
  using namespace boxloss::jax_binding;
  using namespace boxloss::binding;
  thread_local std::string program;
  try {
    Recorder recorder(8);
    const auto box = [](const char* a, const char* b, const char* c, const char* d) {
      return Box<RecordedNumber>{std::string(a), std::string(b), std::string(c), std::string(d)};
    };
    const Box<RecordedNumber> raw_pred = box("%0", "%1", "%2", "%3");
    const Box<RecordedNumber> raw_target = box("%4", "%5", "%6", "%7");
    const auto pred = to_corners(raw_pred, parse_format("pred_format", pred_format));
    const auto target = to_corners(raw_target, parse_format("target_format", target_format));
    LossProblem p;
    p.loss = loss_named(loss);
    p.eps = eps;
    p.eps_mode = parse_eps_mode(eps_mode);
    p.parameters = parameters_of(p.loss, {parameters, parameters + count});
    const auto constants = converted<RecordedNumber>(constants_of<double>(p));
    const RecordedNumber of_pair =
        with_formula(p.loss, [&](auto formula) { return formula.loss(pred, target, constants); });
    recorded("return", of_pair, l1_distance(raw_pred, raw_target),
             iou_of(overlap(pred, target, constants)));
    program = recorder.text();
    return program.c_str();
  } catch (const Error&) {
    return nullptr;  // a word that the check of a call refuses
  }
}

/// The class loss of one logit, likewise: of a class that is not its query's own, and of the own
/// one, whose quality is the second input. A number that is null is the mode's own.
extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_class_formula(
    const char* mode, const double* alpha, const double* gamma) {
  using namespace boxloss;
  using namespace boxloss::jax_binding;
  thread_local std::string program;
  try {
    Recorder recorder(2);
    const RecordedNumber logit = std::string("%0"), quality = std::string("%1");
    ClassLossProblem p;
    p.mode = binding::ClassLoss::mode_of(mode);
    if (alpha != nullptr) p.alpha = *alpha;
    if (gamma != nullptr) p.gamma = *gamma;
    const auto numbers = class_numbers<RecordedNumber>(p);
    recorded("return", other_loss(numbers, logit), own_loss(numbers, logit, quality));
    program = recorder.text();
    return program.c_str();
  } catch (const Error&) {
    return nullptr;
  }
}
