// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <boxloss/error.hpp>
#include <cstddef>
#include <deque>
#include <mutex>
#include <numeric>

#include "built_backends.hpp"
#include "src/checks.hpp"
#include "src/message.hpp"
#include "src/registry.hpp"

// What each backend that was built defines.
#define BOXLOSS_DECLARE(backend)                 \
  namespace boxloss::backend {                   \
  std::vector<Implementation> implementations(); \
  }
BOXLOSS_BUILT_BACKENDS(BOXLOSS_DECLARE)

namespace boxloss {
namespace {

/// Names that other builds of these sources hold, and the BACKEND value that builds them.
struct KnownName {
  const char* name;
  const char* backend;
};
constexpr KnownName kKnownNames[] = {
    {"cuda/native", "cuda"},   {"hip/native", "hip"},    {"cpu/kokkos", "kokkos"},
    {"cuda/kokkos", "kokkos"}, {"hip/kokkos", "kokkos"},
};

/// It never moves, since callers refer to it.
struct Registered {
  explicit Registered(const Implementation& added) : name(added.name), implementation(added) {
    implementation.name = name.c_str();
    implementation.device = device_named(device_word(name));
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  std::string name;
  Implementation implementation;
};

/// One for each device, which calls read without a lock; null where there is none.
using OfDevices = std::array<std::atomic<const Implementation*>, kMostDevices>;

class Registry {
 public:
  Registry() {
#define BOXLOSS_ADD(backend) add(backend::implementations());
    BOXLOSS_BUILT_BACKENDS(BOXLOSS_ADD)
#undef BOXLOSS_ADD
  }

  void add(const std::vector<Implementation>& added) {
    const std::lock_guard lock(mutex_);
    check_names(added);
    for (const Implementation& each : added) {
      const Implementation& kept = all_.emplace_back(each).implementation;
      std::atomic<const Implementation*>& best = of(best_, kept.device);
      if (best == nullptr || best.load()->priority < kept.priority) best = &kept;
    }
  }

  /// Best first within a device.
  std::vector<const Implementation*> list() const {
    std::vector<const Implementation*> all;
    {
      const std::lock_guard lock(mutex_);
      for (const Registered& each : all_) all.push_back(&each.implementation);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
      return a->device != b->device ? a->device < b->device : a->priority > b->priority;
    });
    return all;
  }

  const Implementation* best(Device device) { return of(best_, device); }

  /// use_implementation's choice; null: the best one. CUDA and HIP share one: both are a GPU's,
  /// which torch, for one, calls by the same name.
  std::atomic<const Implementation*>& choice(Device device) {
    return of(chosen_, device == Device::kHip ? Device::kCuda : device);
  }

 private:
  static std::atomic<const Implementation*>& of(OfDevices& all, Device device) {
    return all[static_cast<std::size_t>(device)];
  }

  void check_names(const std::vector<Implementation>& added) const {
    std::vector<std::string_view> names;
    for (const Registered& each : all_) names.push_back(each.name);
    for (const Implementation& each : added) {
      if (std::find(names.begin(), names.end(), each.name) != names.end()) {
        throw InvalidArgument(message("there is an implementation '", each.name, "' already"));
      }
      names.push_back(each.name);
    }
  }

  mutable std::mutex mutex_;
  std::deque<Registered> all_;
  OfDevices best_ = {}, chosen_ = {};
};

/// Never destroyed: what runs last in a process may still compute.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

bool names_device(std::string_view name, const Implementation& candidate) {
  return name == name_of(candidate.device);
}

const Implementation* find(std::string_view name) {
  for (const Implementation* candidate : implementations()) {  // best first
    if (name == candidate->name || names_device(name, *candidate)) return candidate;
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

[[noreturn]] void throw_not_compiled(std::string_view name) {
  std::string held;
  std::vector<std::string_view> candidates;
  for (const Implementation* each : implementations()) {
    held += (held.empty() ? "" : ", ") + std::string(each->name);
    candidates.push_back(each->name);
  }
  for (const KnownName& known : kKnownNames) {
    if (known.name == name || device_word(known.name) == name) {
      throw NotCompiled(message("'", name, "' is not compiled into this boxloss; it holds ", held,
                                ". Build it with -DBACKEND=", known.backend, "."));
    }
    candidates.push_back(known.name);
  }
  const std::string_view closest = *std::min_element(
      candidates.begin(), candidates.end(),
      [name](auto a, auto b) { return edit_distance(name, a) < edit_distance(name, b); });
  const bool is_path = name.find('/') != std::string_view::npos;
  throw NotCompiled(message("there is no implementation '", name, "'; this boxloss holds ", held,
                            is_path ? message(". Closest name: ", closest, ".")
                                    : ". Other devices' backends are loaded by load_backend."));
}

}  // namespace

void add_to_registry(const std::vector<Implementation>& added) { registry().add(added); }

std::vector<const Implementation*> implementations() { return registry().list(); }

const Implementation& implementation(std::string_view name) {
  const Implementation* found = find(name);
  if (found == nullptr) throw_not_compiled(name);
  return *found;
}

const Implementation* find_implementation(std::initializer_list<Device> devices) {
  for (const Device device : devices) {
    const Implementation* chosen = registry().choice(device);
    if (chosen != nullptr) return chosen;
  }
  for (const Device device : devices) {
    const Implementation* best = registry().best(device);
    if (best != nullptr) return best;
  }
  return nullptr;
}

const Implementation& implementation_for(std::initializer_list<Device> devices) {
  if (devices.size() == 0) throw InvalidArgument("devices is empty; it must name one or more");
  const Implementation* const found = find_implementation(devices);
  if (found == nullptr) throw_not_compiled(message(shown(*devices.begin())));
  return *found;
}

std::string use_implementation(std::string_view name) {
  const Implementation& wanted = implementation(name);
  const bool takes_back = names_device(name, wanted);
  const Implementation* before =
      registry().choice(wanted.device).exchange(takes_back ? nullptr : &wanted);
  return before != nullptr ? before->name : name_of(wanted.device);
}

}  // namespace boxloss
