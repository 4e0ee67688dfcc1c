// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/subject.hpp"

#include <catch2/catch_get_random_seed.hpp>
#include <gpu_runtime.hpp>
#include <stdexcept>
#include <string_view>

namespace boxloss::conformance {
namespace {

struct Hardware {
  const char* name;
  unsigned wavefront;
};
constexpr Hardware kHardware[] = {{"gpu_on_host/wave32", 32}, {"gpu_on_host/wave64", 64}};

}  // namespace

const Implementation& subject() {
  static Implementation implementation = gpu_on_host::implementations().front();
  for (const Hardware& hardware : kHardware) {
    if (subject_name() != hardware.name) continue;
    gpu_on_host::set_hardware(hardware.wavefront, Catch::getSeed());
    implementation.name = hardware.name;
    return implementation;
  }
  throw std::out_of_range("no hardware is named " + subject_name());
}

}  // namespace boxloss::conformance
