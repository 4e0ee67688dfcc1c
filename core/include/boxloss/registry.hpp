// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>
#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/collate_targets.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <boxloss/set.hpp>
#include <boxloss/task_aligned_match.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace boxloss {

/// How an implementation computes the loss, and what of it. Without functions it does not, and core
/// refuses what is not in the sets.
///
/// Functions get problems that core has checked and prepared. The pointer of an optional array is
/// null exactly if it is not given, but where nothing is read it may always be. `workspace_bytes`
/// is asked before there are pointers, then of optional arrays it gets some that lead nowhere; what
/// it returns depends on shapes, dtypes and options alone, never on the device's model.
template <class Problem>
struct PairLossFunctions {
  Set<decltype(Problem::loss)> losses = {};
  Set<Pairing::Kind> pairings = {};
  Set<Extra> extras = {};
  /// For a loss that is reduced. Null: no workspace is needed.
  std::size_t (*workspace_bytes)(const Problem&) = nullptr;
  void (*forward)(const Problem&, const LossOutputs&, const Execution&) = nullptr;
  void (*backward)(const Problem&, const GradOutputs&, const void* scale, const LossGradients&,
                   const Execution&) = nullptr;
};

using LossFunctions = PairLossFunctions<LossProblem>;
using RotatedLossFunctions = PairLossFunctions<RotatedLossProblem>;

/// The same for the matcher's cost.
template <class Problem>
struct PairwiseFunctions {
  Set<decltype(Problem::loss)> losses = {};
  Set<ClassTerm> class_terms = {};
  void (*run)(const Problem&, float* cost, const Execution&) = nullptr;
};

using CostFunctions = PairwiseFunctions<CostProblem>;
using RotatedCostFunctions = PairwiseFunctions<RotatedCostProblem>;

/// The same for an operation that is served whole. Without `workspace_bytes` it needs none.
template <class Problem, class Outputs>
struct Functions {
  std::size_t (*workspace_bytes)(const Problem&) = nullptr;
  void (*run)(const Problem&, const Outputs&, const Execution&) = nullptr;
};

/// One way to compute on one kind of device. Backends fill it by assigning to members
/// (backend.hpp); users only pass it on.
struct Implementation {
  /// A path that begins with the device: "cpu/reference", "cuda/kokkos".
  const char* name = "";
  /// The registry reads it from the name.
  Device device = Device::kCpu;
  /// Asking for the device gives the implementation with the highest.
  int priority = 0;
  /// One member for each operation.
  LossFunctions box_loss = {};
  CostFunctions matching_cost = {};
  Functions<AssignProblem, AssignOutputs> assign = {};
  Functions<MaxIouProblem, MaxIouOutputs> max_iou_match = {};
  Functions<TaskAlignedProblem, TaskAlignedOutputs> task_aligned_match = {};
  Functions<CollateProblem, CollateOutputs> collate_targets = {};
  Functions<ClassLossProblem, ClassLossOutputs> class_loss = {};
  Functions<ClassLossGradProblem, ClassLossGradOutputs> class_loss_backward = {};
  Functions<DistributionLossProblem, DistributionLossOutputs> distribution_loss = {};
  Functions<DistributionLossGradProblem, DistributionLossGradOutputs> distribution_loss_backward =
      {};
  RotatedLossFunctions rotated_box_loss = {};
  RotatedCostFunctions rotated_matching_cost = {};
  Functions<MaxIouProblem, MaxIouOutputs> rotated_max_iou_match = {};
  Functions<TaskAlignedProblem, TaskAlignedOutputs> rotated_task_aligned_match = {};
};

/// All implementations, of this build and registered later, best first within a device. They stay
/// until the process ends.
BOXLOSS_API std::vector<const Implementation*> implementations();

/// The implementation of that name ("cuda/kokkos"), or the best one of that device ("cuda"). Throws
/// NotCompiled, whose message names what there is, the build option, and the closest name.
BOXLOSS_API const Implementation& implementation(std::string_view name);

/// The implementation for memory that any of `devices` can address: what use_implementation chose,
/// else the best one of the first device that has any. Throws NotCompiled.
BOXLOSS_API const Implementation& implementation_for(std::initializer_list<Device> devices);

/// The same, or null where there is none.
BOXLOSS_API const Implementation* find_implementation(std::initializer_list<Device> devices);

/// Chooses, for the whole process, what implementation_for gives on the name's device; CUDA and HIP
/// share a choice. A bare device name undoes the choice. Returns the name that restores the
/// previous choice. Throws NotCompiled.
BOXLOSS_API std::string use_implementation(std::string_view name);

/// The vector instructions of cpu/native's loops: "avx512", "avx2" or "baseline". It is the widest
/// that the processor supports, or the value of the environment variable BOXLOSS_CPU_CAPABILITY at
/// the first use. Throws InvalidArgument if that is unknown, or not supported by this processor.
BOXLOSS_API const char* cpu_capability();

}  // namespace boxloss
