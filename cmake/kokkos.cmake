# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# Kokkos, which brings its own compiler for the one target that uses it.
find_package(Kokkos 4.5 QUIET COMPONENTS separable_compilation)
if(NOT Kokkos_FOUND)
  if(Kokkos_CONSIDERED_VERSIONS)
    set(reason "found version ${Kokkos_CONSIDERED_VERSIONS} only")
  else()
    set(reason "which was not found")
  endif()
  message(FATAL_ERROR "BACKEND=${BACKEND}: 'kokkos' needs Kokkos 4.5 or later, ${reason}. Install it "
    "(Debian: libkokkos-dev) and set Kokkos_ROOT to its prefix.")
endif()
message(STATUS "Found Kokkos ${Kokkos_VERSION}: ${Kokkos_DEVICES}")
