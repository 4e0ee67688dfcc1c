// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch_get_random_seed.hpp>
#include <tuple>

#include "assign.hpp"
#include "box_loss.hpp"
#include "class_loss.hpp"
#include "distribution_loss.hpp"
#include "matching_cost.hpp"
#include "max_iou_match.hpp"
#include "subject.hpp"
#include "task_aligned_match.hpp"

/// An operation joins the tests of test_operations.cpp by a struct with
///   Case, Host        a line of its table; its problem in arrays on the host
///   is_served         by an implementation?
///   table             named cases
///   groups            the same, in groups; one of them is kEveryCase
///   more_cases        made from them: see MoreCases
///   kPlainCase        a case of the table whose bounds are small
///   kNanCase          one whose results have NaN, if any can
///   random_case       a small one of any mix of properties, of which kMixes are run; and
///   describe          what it is
///   make              the problem of a case; what must not be read is poison
///   calls             how it runs on a device, and how the results are judged
namespace boxloss::conformance {

using Operations = std::tuple<BoxLoss, MatchingCost, Assign, MaxIouMatch, TaskAlignedMatch,
                              ClassLosses, DistributionLosses, RotatedBoxLoss, RotatedMatchingCost>;

/// The subject. Skips the test, out loud, where it does not serve the operation.
template <class Operation>
const Implementation& subject_for() {
  const Implementation& implementation = subject();
  if (!Operation::is_served(implementation)) {
    SKIP(subject_name() << " does not serve " << Operation::kName);
  }
  return implementation;
}

/// All that checks have in common: check_case<BoxLoss>(check, subject, c).
template <class Operation, class Check>
Report check_case(const Check& check, const Implementation& implementation,
                  const typename Operation::Case& c) {
  Random random(Catch::getSeed());
  const typename Operation::Host host = Operation::make(c, random);
  return check(implementation, Operation::calls(c, host, random));
}

}  // namespace boxloss::conformance
