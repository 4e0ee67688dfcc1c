// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "counters.hpp"
#include "lanes/pair_args.hpp"

/// What reduce.hpp computes, compiled apart: the mutants are this with a reduce.hpp that is wrong.
namespace boxloss::gpu_on_host {

/// Of one value for each thread of a block.
LossesPartial sum_of_block(const std::vector<LossesPartial>& values);

struct Mean {
  double loss, l1, scale;
};

/// Of one value for each thread of a grid of whole blocks.
Mean mean_of_grid(const std::vector<LossesPartial>& values, Counter& counter);

/// The same for each of several sets, which have as many values each, `blocks_of_set` whole blocks
/// of them.
std::vector<Mean> means_of_sets(const std::vector<LossesPartial>& values, std::size_t sets,
                                unsigned blocks_of_set, Counter& counter);

}  // namespace boxloss::gpu_on_host
