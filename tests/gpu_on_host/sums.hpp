// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "counters.hpp"
#include "lanes/pair_args.hpp"

/// What reduce.hpp computes, compiled apart: the mutants are this with a reduce.hpp that is wrong.
namespace boxloss::gpu_on_host {

/// Of one value for each thread of a block.
Partial sum_of_block(const std::vector<Partial>& values);

struct Mean {
  double value, scale;
};

/// Of one value for each thread of a grid of whole blocks.
Mean mean_of_grid(const std::vector<Partial>& values, Counter& counter);

}  // namespace boxloss::gpu_on_host
