// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

/// What `python -m boxloss` asks of the library, with a framework or without.
#include <boxloss/boxloss.hpp>
#include <exception>
#include <string>

namespace {

/// The operations that it serves, in Python's words, each behind a space.
std::string operations_of(const boxloss::Implementation& each) {
  std::string words;
  if (each.box_loss.forward != nullptr) words += " box_loss";
  if (each.rotated_box_loss.forward != nullptr) words += " rotated_box_loss";
  if (each.matching_cost.run != nullptr) words += " matching_cost";
  if (each.assign.run != nullptr) words += " hungarian_match";
  if (each.max_iou_match.run != nullptr) words += " max_iou_match";
  if (each.task_aligned_match.run != nullptr) words += " task_aligned_match";
  if (each.class_loss.run != nullptr) words += " class_loss";
  if (each.distribution_loss.run != nullptr) words += " distribution_loss";
  return words;
}

}  // namespace

/// A line for each implementation, best first for each device: its name and its operations.
extern "C" BOXLOSS_API const char* boxloss_implementations() {
  thread_local std::string lines;
  lines.clear();
  for (const boxloss::Implementation* each : boxloss::implementations()) {
    lines += each->name + operations_of(*each) + "\n";
  }
  return lines.c_str();
}

/// What cpu/native uses of this processor, or why it cannot.
extern "C" BOXLOSS_API const char* boxloss_cpu_capability() {
  thread_local std::string sentence;
  try {
    sentence = std::string("cpu/native uses: ") + boxloss::cpu_capability();
  } catch (const std::exception& error) {
    sentence = std::string("cpu/native cannot be used: ") + error.what();
  }
  return sentence.c_str();
}
