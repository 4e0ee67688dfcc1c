// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "array.hpp"
#include "instrumented.hpp"

/// What breakages are made of.
namespace boxloss::conformance {

/// The implementation that is broken.
const Implementation& whole();

using Edit = std::function<void(Array&)>;

Array read_on_device(const void* data, DType dtype, std::int64_t count);

/// Passes `count` values on the device through `edit`.
void edit_on_device(void* data, DType dtype, std::int64_t count, const Edit& edit);

/// Those of pairs by index, of l1 and of iou.
std::vector<Breakage> breakages_of_pairs();

}  // namespace boxloss::conformance
