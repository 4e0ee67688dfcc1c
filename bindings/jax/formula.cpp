// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/rotated_box_loss.hpp>

#include "../common/class_loss.hpp"
#include "arguments.hpp"
#include "dispatch/class_loss.hpp"
#include "losses/class_loss.hpp"
#include "losses/formulas.hpp"
#include "losses/l1.hpp"
#include "losses/overlap.hpp"
#include "losses/rotated/formulas.hpp"
#include "recorded_number.hpp"

namespace boxloss::jax_binding {
namespace {

/// What `record` computes of that many inputs, until this thread's next call; null for a word that
/// the check of a call refuses.
template <class Record>
const char* program_of(int inputs, const Record& record) {
  thread_local std::string program;
  try {
    Recorder recorder(inputs);
    record();
    program = recorder.text();
    return program.c_str();
  } catch (const Error&) {
    return nullptr;
  }
}

/// The problem, of which only the loss and its constants are set.
template <class Problem, class Loss>
Problem problem_of(Loss loss, double eps, const char* eps_mode, const double* parameters,
                   int count) {
  Problem p;
  p.loss = loss;
  p.eps = eps;
  p.eps_mode = binding::parse_eps_mode(eps_mode);
  p.parameters = binding::parameters_of(loss, {parameters, parameters + count});
  return p;
}

template <class Problem, class PairBox>
RecordedNumber loss_of(const Problem& p, const PairBox& pred, const PairBox& target) {
  const auto constants = converted<RecordedNumber>(constants_of<double>(p));
  return with_formula(p.loss, [&](auto formula) { return formula.loss(pred, target, constants); });
}

}  // namespace
}  // namespace boxloss::jax_binding

/// A loss, l1 and iou of one pair as a program, of which JAX makes what custom calls lack:
/// derivatives of every order.
extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_box_loss_formula(
    const char* loss, const char* pred_format, const char* target_format, double eps,
    const char* eps_mode, const double* parameters, int count) {
  using namespace boxloss;
  using namespace boxloss::jax_binding;
  return program_of(8, [&] {
    const Box<RecordedNumber> raw_pred = {input(0), input(1), input(2), input(3)};
    const Box<RecordedNumber> raw_target = {input(4), input(5), input(6), input(7)};
    const auto pred = to_corners(raw_pred, binding::parse_format("pred_format", pred_format));
    const auto target =
        to_corners(raw_target, binding::parse_format("target_format", target_format));
    const auto p = problem_of<LossProblem>(loss_named(loss), eps, eps_mode, parameters, count);
    const auto constants = converted<RecordedNumber>(constants_of<double>(p));
    recorded("return", loss_of(p, pred, target), l1_distance(raw_pred, raw_target),
             iou_of(overlap(pred, target, constants)));
  });
}

/// The loss of one pair of rotated boxes, likewise.
extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_rotated_box_loss_formula(
    const char* loss, const char* angle_unit, double eps, const char* eps_mode,
    const double* parameters, int count) {
  using namespace boxloss;
  using namespace boxloss::jax_binding;
  return program_of(10, [&] {
    const AngleUnit unit = binding::parse_angle_unit(angle_unit);
    const auto box = [&](int first) {
      return in_radians(RotatedBox<RecordedNumber>{input(first), input(first + 1), input(first + 2),
                                                   input(first + 3), input(first + 4)},
                        unit);
    };
    const auto p =
        problem_of<RotatedLossProblem>(rotated_loss_named(loss), eps, eps_mode, parameters, count);
    recorded("return", loss_of(p, box(0), box(5)));
  });
}

/// The class loss of one logit, likewise: of a class that is not its query's own, and of the own
/// one, whose quality is the second input. A number that is null is the mode's own.
extern "C" __attribute__((visibility("default"))) const char* boxloss_jax_class_formula(
    const char* mode, const double* alpha, const double* gamma) {
  using namespace boxloss;
  using namespace boxloss::jax_binding;
  return program_of(2, [&] {
    const RecordedNumber logit = input(0), quality = input(1);
    ClassLossProblem p;
    p.mode = binding::ClassLoss::mode_of(mode);
    if (alpha != nullptr) p.alpha = *alpha;
    if (gamma != nullptr) p.gamma = *gamma;
    const auto numbers = class_numbers<RecordedNumber>(p);
    recorded("return", other_loss(numbers, logit), own_loss(numbers, logit, quality));
  });
}
