// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/backend.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <map>
#include <thread>

#include "refusals.hpp"

// The registry is the process', and only grows: each test has names of its own.
namespace boxloss {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

/// Serves GIoU of dense pairs, whose loss it says is `kLoss`.
constexpr float kLoss = 42;

Implementation implementation_named(const char* name) {
  Implementation self;
  self.name = name;
  self.box_loss.losses = {Loss::kGiou};
  self.box_loss.pairings = {Pairing::Kind::kDense};
  self.box_loss.forward = [](const LossProblem&, const LossOutputs& outputs, const Execution&) {
    *static_cast<float*>(outputs.loss) = kLoss;
  };
  self.box_loss.backward = [](const LossProblem&, const GradOutputs&, const void*,
                              const LossGradients&, const Execution&) {};
  return self;
}

TEST_CASE("a device is a word that keeps its number") {
  const Device device = device_named("npu");
  REQUIRE(device == device_named(std::string("npu")));
  REQUIRE(device != device_named("NPU"));
  REQUIRE(name_of(device) == std::string("npu"));
  REQUIRE(device_named("cpu") == Device::kCpu);
  REQUIRE(device_named("cuda") == Device::kCuda);
  REQUIRE(device_named("hip") == Device::kHip);
  REQUIRE_THROWS_MATCHES(implementation_for({device_named("nothing")}), NotCompiled,
                         MessageMatches(ContainsSubstring(
                             "there is no implementation 'nothing'; this boxloss holds")));
  constexpr auto kNobodys = static_cast<Device>(kMostDevices - 1);
  REQUIRE(name_of(kNobodys) == std::string("unknown"));
  REQUIRE_THROWS_AS(implementation_for({kNobodys}), NotCompiled);
}

TEST_CASE("a device that is no word is refused") {
  for (const char* const wrong : {"", "npu/acme", "n p u", "npu:0", "ü"}) {
    REQUIRE_THROWS_MATCHES(
        device_named(wrong), InvalidArgument,
        Message(std::string("'") + wrong +
                "' names no device; it must be a word of letters, digits and underscores"));
  }
}

TEST_CASE("threads that name devices at once agree") {
  constexpr int kThreads = 8, kWords = 40;
  std::vector<std::vector<Device>> found(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Device>& mine : found) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kWords; ++i) mine.push_back(device_named("word_" + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Device>& mine : found) REQUIRE(mine == found[0]);
  for (int i = 0; i < kWords; ++i) {
    REQUIRE(name_of(found[0][static_cast<std::size_t>(i)]) == "word_" + std::to_string(i));
  }
}

TEST_CASE("an implementation that is registered is found, chosen and called") {
  {
    const std::string name = "found/acme";  // copied
    register_implementation(implementation_named(name.c_str()));
  }
  const Device device = device_named("found");
  const Implementation& acme = implementation("found/acme");
  REQUIRE(acme.name == std::string("found/acme"));
  REQUIRE(acme.device == device);
  REQUIRE(&implementation("found") == &acme);
  REQUIRE(&implementation_for({device}) == &acme);
  const auto all = implementations();
  REQUIRE(std::count(all.begin(), all.end(), &acme) == 1);

  const float boxes[] = {0, 0, 1, 1};
  LossProblem problem;
  problem.device = device;
  problem.loss = Loss::kGiou;
  problem.pred.data = problem.target.data = boxes;
  problem.pred.slots = problem.target.slots = 1;
  float loss = 0, scale = 0;
  loss_forward(acme, problem, {&loss, &scale}, {});
  REQUIRE(loss == kLoss);
}

TEST_CASE("the highest priority is a device's best, whenever it comes") {
  const Device device = device_named("best");
  Implementation first = implementation_named("best/first");
  first.priority = 10;
  register_implementation(first);
  const Implementation* const kept = &implementation("best/first");
  Implementation better = implementation_named("best/better");
  better.priority = 20;
  register_implementation(better);
  register_implementation(implementation_named("best/worse"));
  REQUIRE(implementation_for({device}).name == std::string("best/better"));
  REQUIRE(implementation("best").name == std::string("best/better"));
  REQUIRE(&implementation("best/first") == kept);  // callers refer to it

  const std::string before = use_implementation("best/first");
  REQUIRE(before == "best");
  REQUIRE(&implementation_for({device}) == kept);
  REQUIRE(implementation_for({Device::kCpu}).name == std::string("cpu/native"));
  use_implementation(before);
  REQUIRE(implementation_for({device}).name == std::string("best/better"));
}

const std::string kOldAbi = "it was compiled for interface " + std::to_string(kBackendAbi - 1) +
                            " of boxloss' backends; this boxloss has " +
                            std::to_string(kBackendAbi) +
                            ". Compile it again, with this boxloss' headers";

/// Of an implementation with two operations: right, until a row spoils it.
struct Registration {
  Implementation i = implementation_named("refused/acme");
  int abi = kBackendAbi;
  std::vector<const Implementation*> before = implementations();

  Registration() {
    i.matching_cost.run = [](const CostProblem&, float*, const Execution&) {};
    i.matching_cost.losses = kLosses;
    i.matching_cost.class_terms = kClassTerms;
  }
  void run() { register_implementation(i, abi); }
  bool is_untouched() const { return implementations() == before; }
};

// clang-format off
TEST_CASE("an implementation that cannot be is refused, and nothing changes") {
  const std::string named = "its implementation has the name '", no_path = "'; it must be device/variant, as cpu/native is";
  require_refused<InvalidArgument>(Refusals<Registration>{
      {[](Registration& r) { r.abi = kBackendAbi - 1; }, kOldAbi},
      {[](Registration& r) { r.i.name = "cpu/native"; }, "there is an implementation 'cpu/native' already"},
      {[](Registration& r) { r.i.name = "/acme"; }, "'' names no device; it must be a word of letters, digits and underscores"},
      {[](Registration& r) { r.i.name = nullptr; }, named + no_path},
      {[](Registration& r) { r.i.name = ""; }, named + no_path},
      {[](Registration& r) { r.i.name = "npu"; }, named + "npu" + no_path},
      {[](Registration& r) { r.i.name = "npu/"; }, named + "npu/" + no_path},
      {[](Registration& r) { r.i.box_loss = {}; r.i.matching_cost = {}; }, "refused/acme serves no operation"},
      {[](Registration& r) { r.i.box_loss.backward = nullptr; }, "refused/acme has box_loss.forward, but no box_loss.backward"},
      {[](Registration& r) { r.i.max_iou_match.workspace_bytes = [](const MaxIouProblem&) { return std::size_t{0}; }; }, "refused/acme has max_iou_match.workspace_bytes, but no max_iou_match.run"},
      {[](Registration& r) { r.i.box_loss.losses = {}; }, "refused/acme has functions, but box_loss.losses is empty"},
      {[](Registration& r) { r.i.box_loss.pairings = {}; }, "refused/acme has functions, but box_loss.pairings is empty"},
      {[](Registration& r) { r.i.matching_cost.losses = {}; }, "refused/acme has functions, but matching_cost.losses is empty"},
      {[](Registration& r) { r.i.matching_cost.class_terms = {}; }, "refused/acme has functions, but matching_cost.class_terms is empty"},
  });
}
// clang-format on

TEST_CASE("an implementation of one operation is enough") {
  Registration cost_alone, faults_alone;
  cost_alone.i.name = "one_operation/cost";
  cost_alone.i.box_loss = {};
  cost_alone.run();
  faults_alone.i = {};
  faults_alone.i.name = "one_operation/faults";
  faults_alone.i.collate_targets.run = [](const CollateProblem&, const CollateOutputs&,
                                          const Execution&) {};
  faults_alone.run();
}

TEST_CASE("threads that register at once lose nothing") {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i] {
      register_implementation(
          implementation_named(("threads/thread_" + std::to_string(i)).c_str()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) {
    const std::string name = "threads/thread_" + std::to_string(i);
    REQUIRE(implementation(name).name == name);
  }
}

/// A library of loaded_backend.cpp.
std::string library(const char* what) {
  return std::string(BOXLOSS_LIBRARIES) + "/boxloss_" + what + ".so";
}

TEST_CASE("a backend that is loaded is registered, once") {
  const std::string path = library("good_backend");
  REQUIRE(boxloss_load_backend(path.c_str()) == nullptr);
  REQUIRE(implementation("npu").name == std::string("npu/loaded"));
  REQUIRE_THROWS_MATCHES(
      load_backend(path), InvalidArgument,
      Message("backend " + path + ": there is an implementation 'npu/loaded' already"));
  REQUIRE(implementation("npu").name == std::string("npu/loaded"));
}

TEST_CASE("a library that cannot be loaded is told why, and registers nothing") {
  const auto before = implementations();
  const auto refusal = [](const std::string& path, const std::string& words) {
    INFO(path);
    REQUIRE_THROWS_MATCHES(load_backend(path), InvalidArgument,
                           MessageMatches(ContainsSubstring("backend " + path + ": " + words)));
    REQUIRE_THAT(boxloss_load_backend(path.c_str()), ContainsSubstring(words));
  };
  refusal("no_such_file.so", "it cannot be loaded: ./no_such_file.so: cannot open");
  refusal(__FILE__, "it cannot be loaded: ");
  refusal(library("no_backend"), "it exports no boxloss_backend, which BOXLOSS_BACKEND defines");
  refusal(library("old_abi"), kOldAbi);
  refusal(library("lacks_symbol"), "it cannot be loaded: ");
  REQUIRE_THAT(boxloss_load_backend(library("lacks_symbol").c_str()),
               ContainsSubstring("undefined symbol") && ContainsSubstring("defined_nowhere"));
  for (const auto& [kind, words] : std::map<std::string, std::string>{
           {"throws", "its list of implementations failed: no driver"},
           {"throws number", "its list of implementations failed"},
           {"none", "its list of implementations is empty"},
           {"taken", "there is an implementation 'cpu/native' already"}}) {
    setenv("BOXLOSS_LOADED", kind.c_str(), 1);
    refusal(library("good_backend"), words);
  }
  unsetenv("BOXLOSS_LOADED");
  REQUIRE(implementations() == before);
}

// Where the number was not raised with the structs, old backends would read them wrongly.
TEST_CASE("the structs of this interface have the sizes that its number stands for") {
  static_assert(kBackendAbi == 6, "then write down the sizes below anew");
  REQUIRE(sizeof(void*) == 8);
  CHECK(sizeof(Backend) == 24);
  CHECK(sizeof(Implementation) == 320);
  CHECK(sizeof(LossProblem) == 288);
  CHECK(sizeof(RotatedLossProblem) == 288);
  CHECK(sizeof(LossOutputs) == 32);
  CHECK(sizeof(GradOutputs) == 48);
  CHECK(sizeof(LossGradients) == 32);
  CHECK(sizeof(CostProblem) == 344);
  CHECK(sizeof(RotatedCostProblem) == 352);
  CHECK(sizeof(AssignProblem) == 144);
  CHECK(sizeof(AssignOutputs) == 32);
  CHECK(sizeof(MaxIouProblem) == 216);
  CHECK(sizeof(MaxIouOutputs) == 16);
  CHECK(sizeof(TaskAlignedProblem) == 368);
  CHECK(sizeof(TaskAlignedOutputs) == 24);
  CHECK(sizeof(ClassLossProblem) == 248);
  CHECK(sizeof(ClassLossOutputs) == 16);
  CHECK(sizeof(ClassLossGradProblem) == 272);
  CHECK(sizeof(ClassLossGradOutputs) == 8);
  CHECK(sizeof(DistributionLossProblem) == 272);
  CHECK(sizeof(DistributionLossOutputs) == 16);
  CHECK(sizeof(DistributionLossGradProblem) == 288);
  CHECK(sizeof(DistributionLossGradOutputs) == 8);
  CHECK(sizeof(CollateProblem) == 72);
  CHECK(sizeof(CollateOutputs) == 48);
  CHECK(sizeof(Execution) == 64);
}

// The last, for it leaves room for no other.
TEST_CASE("more devices than there is room for are refused, and the others stay") {
  std::vector<std::string> words;
  const auto fill = [&] {
    while (words.size() < kMostDevices) {
      const std::string word = "device_" + std::to_string(words.size());
      device_named(word);
      words.push_back(word);
    }
  };
  REQUIRE_THROWS_MATCHES(fill(), InvalidArgument,
                         MessageMatches(ContainsSubstring("one too many; a process can name 256")));
  for (const std::string& word : words) REQUIRE(name_of(device_named(word)) == word);
}

}  // namespace
}  // namespace boxloss
