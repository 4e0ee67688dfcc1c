// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/target_faults.hpp"
#include "cpu/operations.hpp"

/// For both CPU implementations: an oracle would do exactly the same.
namespace boxloss::native {

void target_faults(const TargetProblem& p, const TargetOutputs& outputs, const Execution&) {
  const TargetFaultsArgs args = target_faults_args(p, outputs);
  bool has_fault = false;
  for (std::int64_t row = 0; row < args.rows && !has_fault; ++row) has_fault = is_faulty(args, row);
  write_factor(args, has_fault);
}

}  // namespace boxloss::native
