// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <boxloss/error.hpp>
#include <boxloss/registry.hpp>
#include <cstddef>
#include <numeric>

#include "src/backends.hpp"
#include "src/message.hpp"

namespace boxloss {
namespace {

/// Every name that some build can have, and the BACKEND value that builds it.
struct KnownName {
  const char* name;
  const char* backend;
};
constexpr KnownName kKnownNames[] = {
    {"cpu/native", "cpu"},    {"cpu/reference", "cpu"},  {"cpu/kokkos", "kokkos"},
    {"cuda/native", "cuda"},  {"cuda/kokkos", "kokkos"}, {"hip/native", "hip"},
    {"hip/kokkos", "kokkos"},
};

/// All implementations of this build; this is their only list.
std::vector<Implementation> built() {
  std::vector<Implementation> all = {cpu::native(), cpu::reference()};
#if defined(BOXLOSS_HAS_CUDA)
  all.push_back(cuda::native());
#endif
#if defined(BOXLOSS_HAS_HIP)
  all.push_back(hip::native());
#endif
#if defined(BOXLOSS_HAS_KOKKOS)
  for (const Implementation& implementation : kokkos::implementations()) {
    all.push_back(implementation);
  }
#endif
  std::stable_sort(all.begin(), all.end(), [](const Implementation& a, const Implementation& b) {
    return a.device != b.device ? a.device < b.device : a.priority > b.priority;
  });
  return all;
}

/// use_implementation's choice for host memory and for GPU memory; null: the best one.
std::array<std::atomic<const Implementation*>, 2> choices;

std::atomic<const Implementation*>& choice_for(Device device) {
  return choices[device == Device::kCpu ? 0 : 1];
}

const Implementation* best_on(Device device) {
  for (const Implementation& candidate : implementations()) {  // best first
    if (candidate.device == device) return &candidate;
  }
  return nullptr;
}

bool names_device(std::string_view name, const Implementation& candidate) {
  return name == name_of(candidate.device);
}

const Implementation* find(std::string_view name) {
  for (const Implementation& candidate : implementations()) {
    if (name == candidate.name || names_device(name, candidate)) return &candidate;
  }
  return nullptr;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string built_names() {
  std::string names;
  for (const Implementation& candidate : implementations()) {
    if (!names.empty()) names += ", ";
    names += candidate.name;
  }
  return names;
}

[[noreturn]] void throw_not_compiled(std::string_view name) {
  for (const KnownName& known : kKnownNames) {
    const std::string_view path = known.name;
    const bool is_its_device = path.substr(0, path.find('/')) == name;
    if (path == name || is_its_device) {
      throw NotCompiled(message("'", name, "' is not compiled into this boxloss; it holds ",
                                built_names(), ". Build it with -DBACKEND=", known.backend, "."));
    }
  }
  const KnownName& closest =
      *std::min_element(std::begin(kKnownNames), std::end(kKnownNames),
                        [name](const KnownName& a, const KnownName& b) {
                          return edit_distance(name, a.name) < edit_distance(name, b.name);
                        });
  throw NotCompiled(message("there is no implementation '", name, "'; this boxloss holds ",
                            built_names(), ". Closest name: ", closest.name, "."));
}

}  // namespace

const std::vector<Implementation>& implementations() {
  static const std::vector<Implementation> all = built();
  return all;
}

const Implementation& implementation(std::string_view name) {
  const Implementation* found = find(name);
  if (found == nullptr) throw_not_compiled(name);
  return *found;
}

const Implementation& implementation_for(std::initializer_list<Device> devices) {
  for (const Device device : devices) {
    const Implementation* chosen = choice_for(device).load();
    if (chosen != nullptr) return *chosen;
  }
  for (const Device device : devices) {
    const Implementation* best = best_on(device);
    if (best != nullptr) return *best;
  }
  throw_not_compiled(name_of(*devices.begin()));
}

std::string use_implementation(std::string_view name) {
  const Implementation& wanted = implementation(name);
  const bool takes_back = names_device(name, wanted);
  const Implementation* before = choice_for(wanted.device).exchange(takes_back ? nullptr : &wanted);
  return before != nullptr ? before->name : name_of(wanted.device);
}

}  // namespace boxloss
