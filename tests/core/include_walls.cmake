# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -P include_walls.cmake
# Arrows point one way, bindings -> core <- backends, and the public headers name no device's
# toolkit. Fails and names every include that breaks through.

set(broken "")

function(forbid what names)
  foreach(folder IN LISTS ARGN)
    file(GLOB_RECURSE files ${ROOT}/${folder}/*)
    foreach(file IN LISTS files)
      file(STRINGS ${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"](${names})")
      foreach(line IN LISTS lines)
        string(APPEND broken "\n  ${file}: ${line}  (${what})")
      endforeach()
    endforeach()
  endforeach()
  set(broken "${broken}" PARENT_SCOPE)
endfunction()

set(frameworks "torch/|ATen/|c10/|jax|xla/|tensorflow/|numpy/|pybind11|nanobind|Python\\.h")
set(toolkits "cuda|cub/|thrust/|nv|hip|rocm|roc|Kokkos")
forbid("a framework's header below bindings/" "${frameworks}" core backends)
forbid("a device toolkit's header in the public API" "${toolkits}" core/include)
forbid("a backend's header in core" "cpu/|cuda/|gpu/|hip/|kokkos/|backends/"
  core/dispatch core/dtypes core/include core/kernels core/losses core/math core/pairings)

if(broken)
  message(FATAL_ERROR "includes that break through a wall:${broken}")
endif()
