// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/error.hpp>
#include <boxloss/registry.hpp>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cpu/vector/capabilities.hpp"
#include "src/message.hpp"

namespace boxloss {
namespace {

struct Capability {
  const char* name;
  bool is_here;
  const native::VectorCode<float>& of_float;
  const native::VectorCode<double>& of_double;
};

/// Widest first.
std::vector<Capability> capabilities() {
  using namespace native;
  return {
#if defined(BOXLOSS_X86_CAPABILITIES)
      // The levels v4 and v3 of the x86-64 psABI, as far as the loops use them.
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl"),
       avx512::kFloat, avx512::kDouble},
      {"avx2",
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"),
       avx2::kFloat, avx2::kDouble},
#endif
      {"baseline", true, baseline::kFloat, baseline::kDouble},
  };
}

std::string names(const std::vector<Capability>& all, bool also_missing) {
  std::string text;
  for (const Capability& each : all) {
    if (!each.is_here && !also_missing) continue;
    text += (text.empty() ? "" : ", ") + std::string(each.name);
  }
  return text;
}

Capability choose() {
  const std::vector<Capability> all = capabilities();
  const char* const variable = std::getenv("BOXLOSS_CPU_CAPABILITY");
  const std::string_view wanted = variable != nullptr ? variable : "";
  for (const Capability& each : all) {
    if (wanted.empty() && each.is_here) return each;
    if (wanted != each.name) continue;
    if (each.is_here) return each;
    throw InvalidArgument(message("BOXLOSS_CPU_CAPABILITY is '", wanted,
                                  "', which this processor does not have; it has ",
                                  names(all, false)));
  }
  throw InvalidArgument(
      message("BOXLOSS_CPU_CAPABILITY is '", wanted, "'; it must be one of ", names(all, true)));
}

const Capability& chosen() {
  static const Capability capability = choose();
  return capability;
}

}  // namespace

const char* cpu_capability() { return chosen().name; }

template <>
const native::VectorCode<float>& native::vector_code() {
  return chosen().of_float;
}

template <>
const native::VectorCode<double>& native::vector_code() {
  return chosen().of_double;
}

}  // namespace boxloss
