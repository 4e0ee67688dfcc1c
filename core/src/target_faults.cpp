// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/registry.hpp>
#include <boxloss/target_faults.hpp>

#include "src/checks.hpp"

namespace boxloss {
namespace {

void check_problem(const TargetProblem& p) {
  check_enumerator<Unsupported>("boxes", ".dtype", p.boxes.dtype);
  check_indices("labels", p.labels.dtype);
  if (is_given(p.image)) check_enumerator<Unsupported>("image", ".dtype", p.image.dtype);
  check(p.rows >= 0 && p.rows <= kMostBoxes, "rows is ", p.rows,
        "; it must not be negative, nor more than 64 bits can count the bytes of");
  check(p.classes >= 0, "classes is ", p.classes,
        "; it must not be negative, and 0 if it is unknown");
  check(p.images >= 0, "images is ", p.images, "; it must not be negative, and 0 if it is unknown");
  check(p.boxes.data != nullptr || p.rows == 0, "boxes is null; it must point to (rows, 4) values");
  check(p.labels.data != nullptr || p.rows == 0,
        "labels is null; it must point to (rows) integers");
  check_aligned("boxes", p.boxes.data, p.boxes.dtype);
  check_aligned("labels", p.labels.data, p.labels.dtype);
  check_pointer("image", p.image, p.rows > 0);
}

void check_outputs(const TargetOutputs& outputs) {
  check(outputs.factor != nullptr, "outputs.factor is null");
  check_aligned("outputs.factor", outputs.factor, DType::kF32);
  check_aligned("outputs.answer", outputs.answer, DType::kF32);
}

}  // namespace

void target_faults(const Implementation& implementation, const TargetProblem& problem,
                   const TargetOutputs& outputs, const Execution& execution) {
  check_served(implementation, "target_faults", implementation.target_faults.run != nullptr,
               problem.device);
  check_problem(problem);
  check_outputs(outputs);
  implementation.target_faults.run(problem, outputs, execution);
}

}  // namespace boxloss
