// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <boxloss/backend.hpp>
#include <boxloss/error.hpp>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "src/checks.hpp"
#include "src/registry.hpp"

namespace boxloss {
namespace {

void check_abi(int abi) {
  check(abi == kBackendAbi, "it was compiled for interface ", abi,
        " of boxloss' backends; this boxloss has ", kBackendAbi,
        ". Compile it again, with this boxloss' headers");
}

void check_name(const char* name) {
  const std::string_view path = name == nullptr ? "" : name;
  const std::string_view device = device_word(path);
  check(path.size() > device.size() + 1, "its implementation has the name '", path,
        "'; it must be device/variant, as cpu/native is");
  device_named(device);  // checks the word
}

/// An operation has all of its functions, or none.
void check_operation(const char* name,
                     std::initializer_list<std::pair<const char*, bool>> functions) {
  const char *given = nullptr, *missing = nullptr;
  for (const auto& [function, is_given] : functions) (is_given ? given : missing) = function;
  check(given == nullptr || missing == nullptr, name, " has ", given, ", but no ", missing);
}

/// Without one it would serve nothing, which is not what anybody means.
template <class Enum>
void check_set(const char* name, const char* set, bool has_operation, Set<Enum> members) {
  check(!has_operation || !members.is_empty(), name, " has functions, but ", set, " is empty");
}

void check_implementation(const Implementation& added) {
  check_name(added.name);
  const LossFunctions& box_loss = added.box_loss;
  check_operation(added.name, {{"box_loss.workspace_bytes", box_loss.workspace_bytes != nullptr},
                               {"box_loss.forward", box_loss.forward != nullptr},
                               {"box_loss.backward", box_loss.backward != nullptr}});
  check_set(added.name, "box_loss.losses", box_loss.forward != nullptr, box_loss.losses);
  check_set(added.name, "box_loss.pairings", box_loss.forward != nullptr, box_loss.pairings);
  const CostFunctions& cost = added.matching_cost;
  check_set(added.name, "matching_cost.losses", cost.run != nullptr, cost.losses);
  check_set(added.name, "matching_cost.class_terms", cost.run != nullptr, cost.class_terms);
  const AssignFunctions& assign = added.assign;
  check_operation(added.name, {{"assign.workspace_bytes", assign.workspace_bytes != nullptr},
                               {"assign.run", assign.run != nullptr}});
  const MaxIouFunctions& max_iou = added.max_iou_match;
  check_operation(added.name,
                  {{"max_iou_match.workspace_bytes", max_iou.workspace_bytes != nullptr},
                   {"max_iou_match.run", max_iou.run != nullptr}});
  const TaskAlignedFunctions& task_aligned = added.task_aligned_match;
  check_operation(added.name,
                  {{"task_aligned_match.workspace_bytes", task_aligned.workspace_bytes != nullptr},
                   {"task_aligned_match.run", task_aligned.run != nullptr}});
  check(box_loss.forward != nullptr || cost.run != nullptr || assign.run != nullptr ||
            max_iou.run != nullptr || task_aligned.run != nullptr ||
            added.target_faults.run != nullptr,
        added.name, " serves no operation");
}

void register_all(const std::vector<Implementation>& added) {
  for (const Implementation& each : added) check_implementation(each);
  add_to_registry(added);
}

struct Close {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

/// What the library exports, for this interface.
const Backend& exported(const Library& library) {
  const void* const symbol = dlsym(library.get(), "boxloss_backend");
  check(symbol != nullptr, "it exports no boxloss_backend, which BOXLOSS_BACKEND defines");
  const auto& backend = *static_cast<const Backend*>(symbol);
  check_abi(backend.abi);
  return backend;
}

Library open(const std::string& path) {
  // Without a slash the loader would search its own folders.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  Library library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library != nullptr) return library;
  const std::string reason = dlerror();
  // If it lacks a function since it is for another interface, it is told that.
  const Library unbound(dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (unbound != nullptr) exported(unbound);
  throw InvalidArgument(message("it cannot be loaded: ", reason));
}

/// Its exceptions do not outlive the library.
std::vector<Implementation> implementations_of(const Backend& backend) {
  check(backend.implementations != nullptr, "its list of implementations is null");
  try {
    return backend.implementations();
  } catch (const std::exception& error) {
    throw InvalidArgument(message("its list of implementations failed: ", error.what()));
  } catch (...) {
    throw InvalidArgument("its list of implementations failed");
  }
}

}  // namespace

void register_implementation(const Implementation& implementation, int abi) {
  check_abi(abi);
  register_all({implementation});
}

const Backend& load_backend(const std::string& path) {
  try {
    Library library = open(path);
    const Backend& backend = exported(library);
    const std::vector<Implementation> all = implementations_of(backend);
    check(!all.empty(), "its list of implementations is empty");
    register_all(all);
    library.release();  // the registry points into it
    return backend;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(message("backend ", path, ": ", error.what()));
  }
}

}  // namespace boxloss

const char* boxloss_load_backend(const char* path) {
  thread_local std::string problem;
  try {
    if (path == nullptr) throw boxloss::InvalidArgument("path is null; it must name a library");
    boxloss::load_backend(path);
    return nullptr;
  } catch (const std::exception& error) {
    problem = error.what();
    return problem.c_str();
  }
}
