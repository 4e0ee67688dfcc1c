// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/collate_targets.hpp"
#include "cpu/operations.hpp"

namespace boxloss {

void native::Operations::collate_targets(const CollateProblem& p, const CollateOutputs& outputs,
                                         const Execution&) {
  collate_by(p, outputs, [](const CollateArgs& a, const TargetLists& lists) {
    bool has_fault = false;
    for (std::int64_t row = lists.first_row[0]; row < lists.first_row[lists.count]; ++row) {
      if (collate_row(a, lists, row)) has_fault = true;
    }
    for (std::int64_t i = 0; i < offsets_of(a, lists); ++i) write_offset(a, lists, i);
    write_factor(a, lists, has_fault);
  });
}

/// An oracle would do exactly the same.
void reference::Operations::collate_targets(const CollateProblem& p, const CollateOutputs& outputs,
                                            const Execution& execution) {
  native::Operations::collate_targets(p, outputs, execution);
}

}  // namespace boxloss
