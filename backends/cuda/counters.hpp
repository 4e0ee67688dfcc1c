// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpu_runtime.hpp>

namespace boxloss::BOXLOSS_GPU {

/// Counts the blocks that have finished, and the pairs that they counted. Zero between launches:
/// the last block, whose arrival completes the count, sets it back.
using Counter = unsigned long long;

/// A counter that no other launch can use at the same time, or null when all are taken: then the
/// caller zeroes one of its own on the stream. Launches on one stream follow each other and share
/// one; a captured launch may be replayed beside anything, so it keeps one for good.
Counter* take_counter(int device, Stream stream);

}  // namespace boxloss::BOXLOSS_GPU
