// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace boxloss {
namespace {

using Catch::Matchers::Message;

std::string built_names() {
  std::string names;
  for (const Implementation* candidate : implementations()) {
    names += (names.empty() ? "" : ", ") + std::string(candidate->name);
  }
  return names;
}

bool holds(Device device) {
  const auto all = implementations();
  return std::any_of(all.begin(), all.end(),
                     [device](const Implementation* i) { return i->device == device; });
}

TEST_CASE("every built implementation is under conformance test, and the other way round") {
  std::vector<std::string> built;
  for (const Implementation* candidate : implementations()) built.push_back(candidate->name);
  std::vector<std::string> tested = {BOXLOSS_IMPLEMENTATIONS};
  std::sort(built.begin(), built.end());
  std::sort(tested.begin(), tested.end());
  REQUIRE(built == tested);
}

TEST_CASE("names begin with their device, and the best of each comes first") {
  const Implementation* last = nullptr;
  for (const Implementation* candidate : implementations()) {
    const std::string device = name_of(candidate->device);
    REQUIRE(std::string(candidate->name).rfind(device + "/", 0) == 0);
    if (last && last->device == candidate->device) REQUIRE(last->priority > candidate->priority);
    last = candidate;
  }
}

TEST_CASE("no device is refused") { REQUIRE_THROWS_AS(implementation_for({}), InvalidArgument); }

void require_not_compiled(const std::string& name, const std::string& text) {
  REQUIRE_THROWS_MATCHES(implementation(name), NotCompiled, Message(text));
}

std::string not_built(const std::string& name, const std::string& backend) {
  return "'" + name + "' is not compiled into this boxloss; it holds " + built_names() +
         ". Build it with -DBACKEND=" + backend + ".";
}

TEST_CASE("an unknown name is told the closest one") {
  for (const auto& [name, closest] : std::map<std::string, std::string>{
           {"cpu/natve", "cpu/native"}, {"cuda/kokos", "cuda/kokkos"}}) {
    require_not_compiled(name, "there is no implementation '" + name + "'; this boxloss holds " +
                                   built_names() + ". Closest name: " + closest + ".");
  }
  REQUIRE_THROWS_AS(implementation(""), NotCompiled);
}

TEST_CASE("each known name that is not built is told the flag that builds it") {
  int asked = 0;
  for (const auto& [name, backend] : std::map<std::string, std::string>{{"cuda/native", "cuda"},
                                                                        {"hip/native", "hip"},
                                                                        {"cpu/kokkos", "kokkos"},
                                                                        {"cuda/kokkos", "kokkos"},
                                                                        {"hip/kokkos", "kokkos"}}) {
    if (built_names().find(name) != std::string::npos) continue;
    ++asked;
    require_not_compiled(name, not_built(name, backend));
  }
  if (!holds(Device::kCuda)) require_not_compiled("cuda", not_built("cuda", "cuda"));
  if (asked == 0) SKIP("this build holds everything");
}

TEST_CASE("memory finds an implementation") {
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
  if (holds(Device::kCuda) || holds(Device::kHip)) SKIP("this build holds a GPU's");
  REQUIRE_THROWS_MATCHES(implementation_for({Device::kCuda, Device::kHip}), NotCompiled,
                         Message(not_built("cuda", "cuda")));
}

TEST_CASE("a choice holds until it is restored") {
  const std::string before = use_implementation("cpu/reference");
  REQUIRE(before == "cpu");
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/reference"));
  // Only implementation_for follows the choice: names mean what they say.
  REQUIRE(implementation("cpu").name == std::string("cpu/native"));

  REQUIRE_THROWS_AS(use_implementation("cpu/nothing"), NotCompiled);
  const std::string nested = use_implementation("cpu/native");
  REQUIRE(nested == "cpu/reference");
  use_implementation(nested);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/reference"));
  use_implementation(before);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
}

/// Run by itself for each name, and for one that is wrong: see CMakeLists.txt.
TEST_CASE("the capability is the one that the environment names") {
  const std::string name = cpu_capability();
  if (const char* const wanted = std::getenv("BOXLOSS_CPU_CAPABILITY")) REQUIRE(name == wanted);
}

constexpr Implementation kSilent;
static_assert(kSilent.box_loss.losses.is_empty() && kSilent.box_loss.pairings.is_empty() &&
              kSilent.box_loss.extras.is_empty() && kSilent.matching_cost.losses.is_empty() &&
              kSilent.matching_cost.class_terms.is_empty());

TEST_CASE("every implementation that is built serves pairs by index, l1 and iou") {
  for (const Implementation* candidate : implementations()) {
    INFO(candidate->name);
    REQUIRE(candidate->box_loss.pairings.contains(Pairing::Kind::kIndexed));
    kExtras.for_each([&](Extra extra) { REQUIRE(candidate->box_loss.extras.contains(extra)); });
  }
}

}  // namespace
}  // namespace boxloss
