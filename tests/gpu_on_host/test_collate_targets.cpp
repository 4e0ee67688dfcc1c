// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <gpu_runtime.hpp>

#include "conformance/collated_rows.hpp"

/// What a fault is, is core's, and tested there.
namespace boxloss::gpu_on_host {
namespace {

TEST_CASE("collate_targets: a fault in any row is found, and is not the next block's") {
  set_hardware(GENERATE(32u, 64u), GENERATE(1u, 2u, 3u));
  conformance::check_collated_rows(implementations().front());
}

}  // namespace
}  // namespace boxloss::gpu_on_host
