// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <boxloss/backend.hpp>
#include <boxloss/error.hpp>
#include <exception>
#include <memory>
#include <string>
#include <vector>

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

/// A function or a set of an operation, and whether it is there.
struct Member {
  const char* name;
  bool is_there, is_optional = false;
};

struct Operation {
  const char* name;
  std::vector<Member> functions, sets = {};
};

template <class Problem, class Outputs>
Operation operation(const char* name, const Functions<Problem, Outputs>& functions) {
  return {name,
          {{"workspace_bytes", functions.workspace_bytes != nullptr, /*is_optional=*/true},
           {"run", functions.run != nullptr}}};
}

template <class Problem>
Operation operation(const char* name, const PairLossFunctions<Problem>& functions) {
  return {name,
          {{"workspace_bytes", functions.workspace_bytes != nullptr, /*is_optional=*/true},
           {"forward", functions.forward != nullptr},
           {"backward", functions.backward != nullptr}},
          {{"losses", !functions.losses.is_empty()}, {"pairings", !functions.pairings.is_empty()}}};
}

template <class Problem>
Operation operation(const char* name, const PairwiseFunctions<Problem>& functions) {
  return {name,
          {{"run", functions.run != nullptr}},
          {{"losses", !functions.losses.is_empty()},
           {"class_terms", !functions.class_terms.is_empty()}}};
}

std::vector<Operation> operations_of(const Implementation& i) {
  return {operation("box_loss", i.box_loss),
          operation("matching_cost", i.matching_cost),
          operation("assign", i.assign),
          operation("max_iou_match", i.max_iou_match),
          operation("task_aligned_match", i.task_aligned_match),
          operation("collate_targets", i.collate_targets),
          operation("class_loss", i.class_loss),
          operation("class_loss_backward", i.class_loss_backward),
          operation("distribution_loss", i.distribution_loss),
          operation("distribution_loss_backward", i.distribution_loss_backward),
          operation("rotated_box_loss", i.rotated_box_loss),
          operation("rotated_matching_cost", i.rotated_matching_cost),
          operation("rotated_max_iou_match", i.rotated_max_iou_match),
          operation("rotated_task_aligned_match", i.rotated_task_aligned_match)};
}

/// An operation has all functions that it needs, or none. With a set that is empty it would serve
/// nothing, which is not what anybody means. Returns whether it has any.
bool check_operation(const char* implementation, const Operation& operation) {
  const char *given = nullptr, *missing = nullptr;
  for (const Member& each : operation.functions) {
    if (each.is_there) given = each.name;
    if (!each.is_there && !each.is_optional) missing = each.name;
  }
  check(given == nullptr || missing == nullptr, implementation, " has ", operation.name, ".", given,
        ", but no ", operation.name, ".", missing);
  for (const Member& set : operation.sets) {
    check(given == nullptr || set.is_there, implementation, " has functions, but ", operation.name,
          ".", set.name, " is empty");
  }
  return given != nullptr;
}

void check_implementation(const Implementation& added) {
  check_name(added.name);
  bool serves_any = false;
  for (const Operation& each : operations_of(added)) {
    serves_any = check_operation(added.name, each) || serves_any;
  }
  check(serves_any, added.name, " serves no operation");
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
