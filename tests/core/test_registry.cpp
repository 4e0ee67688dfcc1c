// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/boxloss.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <cstdlib>
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

TEST_CASE("a name begins with its device") {
  for (const Implementation* candidate : implementations()) {
    REQUIRE(std::string(candidate->name).rfind(name_of(candidate->device) + std::string("/"), 0) ==
            0);
  }
}

TEST_CASE("implementations come best first within a device") {
  const auto all = implementations();
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i - 1]->device == all[i]->device) REQUIRE(all[i - 1]->priority > all[i]->priority);
  }
}

TEST_CASE("a path gives exactly that, a device its best") {
  REQUIRE(implementation("cpu/reference").name == std::string("cpu/reference"));
  REQUIRE(implementation("cpu/native").name == std::string("cpu/native"));
  REQUIRE(implementation("cpu").name == std::string("cpu/native"));
}

TEST_CASE("no device is refused") { REQUIRE_THROWS_AS(implementation_for({}), InvalidArgument); }

TEST_CASE("an unknown name is told the closest one") {
  REQUIRE_THROWS_MATCHES(implementation("cpu/natve"), NotCompiled,
                         Message("there is no implementation 'cpu/natve'; this boxloss holds " +
                                 built_names() + ". Closest name: cpu/native."));
  REQUIRE_THROWS_MATCHES(implementation("cuda/kokos"), NotCompiled,
                         Message("there is no implementation 'cuda/kokos'; this boxloss holds " +
                                 built_names() + ". Closest name: cuda/kokkos."));
  REQUIRE_THROWS_AS(implementation(""), NotCompiled);
}

TEST_CASE("a known name that is not built is told its flag") {
  if (holds(Device::kCuda)) SKIP("this build holds cuda");
  REQUIRE_THROWS_MATCHES(implementation("cuda/native"), NotCompiled,
                         Message("'cuda/native' is not compiled into this boxloss; it holds " +
                                 built_names() + ". Build it with -DBACKEND=cuda."));
  REQUIRE_THROWS_MATCHES(implementation("cuda"), NotCompiled,
                         Message("'cuda' is not compiled into this boxloss; it holds " +
                                 built_names() + ". Build it with -DBACKEND=cuda."));
}

TEST_CASE("each known name that is not built is told the flag that builds it") {
  const std::vector<std::pair<std::string, std::string>> known = {{"cuda/native", "cuda"},
                                                                  {"hip/native", "hip"},
                                                                  {"cpu/kokkos", "kokkos"},
                                                                  {"cuda/kokkos", "kokkos"},
                                                                  {"hip/kokkos", "kokkos"}};
  int asked = 0;
  for (const auto& [name, backend] : known) {
    if (built_names().find(name) != std::string::npos) continue;
    ++asked;
    REQUIRE_THROWS_MATCHES(implementation(name), NotCompiled,
                           Message("'" + name + "' is not compiled into this boxloss; it holds " +
                                   built_names() + ". Build it with -DBACKEND=" + backend + "."));
  }
  if (asked == 0) SKIP("this build holds everything");
}

TEST_CASE("memory finds an implementation") {
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
  if (holds(Device::kCuda) || holds(Device::kHip)) SKIP("this build holds a GPU's");
  REQUIRE_THROWS_MATCHES(implementation_for({Device::kCuda, Device::kHip}), NotCompiled,
                         Message("'cuda' is not compiled into this boxloss; it holds " +
                                 built_names() + ". Build it with -DBACKEND=cuda."));
}

TEST_CASE("a choice holds until it is restored") {
  const std::string before = use_implementation("cpu/reference");
  REQUIRE(before == "cpu");
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/reference"));
  // Only implementation_for follows the choice: names mean what they say.
  REQUIRE(implementation("cpu").name == std::string("cpu/native"));

  const std::string nested = use_implementation("cpu/native");
  REQUIRE(nested == "cpu/reference");
  use_implementation(nested);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/reference"));
  use_implementation(before);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
}

TEST_CASE("a choice that cannot be had changes nothing") {
  REQUIRE_THROWS_AS(use_implementation("cpu/nothing"), NotCompiled);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
}

/// Run by itself for each name, and for one that is wrong: see CMakeLists.txt.
TEST_CASE("the capability is the one that the environment names") {
  const std::string name = cpu_capability();
  if (const char* const wanted = std::getenv("BOXLOSS_CPU_CAPABILITY")) REQUIRE(name == wanted);
}

TEST_CASE("an implementation serves nothing that it does not say") {
  constexpr Implementation silent;
  const LossFunctions& box_loss = silent.box_loss;
  kLosses.for_each([&](Loss loss) { REQUIRE_FALSE(box_loss.losses.contains(loss)); });
  kExtras.for_each([&](Extra extra) { REQUIRE_FALSE(box_loss.extras.contains(extra)); });
  REQUIRE_FALSE(box_loss.pairings.contains(Pairing::Kind::kIndexed));
  const CostFunctions& cost = silent.matching_cost;
  kLosses.for_each([&](Loss loss) { REQUIRE_FALSE(cost.losses.contains(loss)); });
  kClassTerms.for_each([&](ClassTerm term) { REQUIRE_FALSE(cost.class_terms.contains(term)); });
}

TEST_CASE("every implementation that is built serves pairs by index, l1 and iou") {
  for (const Implementation* candidate : implementations()) {
    INFO(candidate->name);
    REQUIRE(candidate->box_loss.pairings.contains(Pairing::Kind::kIndexed));
    kExtras.for_each([&](Extra extra) { REQUIRE(candidate->box_loss.extras.contains(extra)); });
  }
}

TEST_CASE("dtypes and devices have names and sizes") {
  REQUIRE(name_of(DType::kBF16) == std::string("bfloat16"));
  REQUIRE(name_of(DType::kU8) == std::string("uint8"));
  REQUIRE(size_of(DType::kF64) == 8);
  REQUIRE(size_of(DType::kF32) == 4);
  REQUIRE(size_of(DType::kF16) == 2);
  REQUIRE(size_of(DType::kBF16) == 2);
  REQUIRE(size_of(DType::kU8) == 1);
  REQUIRE(size_of(DType::kI16) == 2);
  REQUIRE(size_of(DType::kI32) == 4);
  REQUIRE(size_of(DType::kI64) == 8);
  REQUIRE(name_of(DType::kNone) == std::string("none"));
  REQUIRE(size_of(DType::kNone) == 0);
  REQUIRE(name_of(Device::kCpu) == std::string("cpu"));
  REQUIRE(name_of(Device::kCuda) == std::string("cuda"));
  REQUIRE(name_of(Device::kHip) == std::string("hip"));
}

TEST_CASE("pairings, extras, formats, reductions and modes have names") {
  REQUIRE(name_of(Pairing::Kind::kZeroPadded) == std::string("zero-padded"));
  REQUIRE(name_of(Pairing::Kind::kIndexed) == std::string("indexed"));
  REQUIRE(name_of(Extra::kL1) == std::string("l1"));
  REQUIRE(name_of(Extra::kIou) == std::string("iou"));
  REQUIRE(name_of(BoxFormat::kXywh) == std::string("xywh"));
  REQUIRE(name_of(Reduction::kNone) == std::string("none"));
  REQUIRE(name_of(Reduction::kSum) == std::string("sum"));
  REQUIRE(name_of(Reduction::kMean) == std::string("mean"));
  REQUIRE(name_of(EpsMode::kAdd) == std::string("add"));
  REQUIRE(name_of(EpsMode::kClamp) == std::string("clamp"));
}

}  // namespace
}  // namespace boxloss
