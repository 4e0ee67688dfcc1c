# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# Kokkos, for every execution space that it was built with.
find_package(Kokkos 4.5 QUIET)
if(NOT Kokkos_FOUND)
  if(Kokkos_CONSIDERED_VERSIONS)
    set(reason "found version ${Kokkos_CONSIDERED_VERSIONS} only")
  else()
    set(reason "which was not found")
  endif()
  if(Kokkos_NOT_FOUND_MESSAGE)
    string(APPEND reason " (${Kokkos_NOT_FOUND_MESSAGE})")
  endif()
  message(FATAL_ERROR "BACKEND=${BACKEND}: 'kokkos' needs Kokkos 4.5 or later, ${reason}. Install it "
    "(Debian: libkokkos-dev) and set Kokkos_ROOT to its prefix.")
endif()
message(STATUS "Found Kokkos ${Kokkos_VERSION}: ${Kokkos_DEVICES}")
if(Kokkos_ENABLE_CUDA)
  find_package(CUDAToolkit REQUIRED)
elseif(Kokkos_ENABLE_HIP)
  enable_language(HIP)  # for the tests' memory
endif()
