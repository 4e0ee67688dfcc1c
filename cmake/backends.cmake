# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# BACKEND: which backends to build, a list. cpu is always in, because it holds the oracle.
set(BACKEND "cpu" CACHE STRING "Backends to build, a list of folders in backends/: cpu cuda hip kokkos")

file(GLOB boxloss_known_backends ${PROJECT_SOURCE_DIR}/backends/*/CMakeLists.txt)
list(TRANSFORM boxloss_known_backends REPLACE ".*/(.*)/CMakeLists.txt" "\\1")

set(BOXLOSS_BACKENDS cpu ${BACKEND})
list(REMOVE_DUPLICATES BOXLOSS_BACKENDS)
foreach(backend IN LISTS BOXLOSS_BACKENDS)
  if(NOT backend IN_LIST boxloss_known_backends)
    list(JOIN boxloss_known_backends ", " allowed)
    message(FATAL_ERROR "BACKEND=${BACKEND}: '${backend}' is not a backend. Allowed: ${allowed}. "
      "One that is not in backends/ is built apart and loaded: docs/backends.md.")
  endif()
endforeach()
list(JOIN BOXLOSS_BACKENDS ", " boxloss_backends_text)
message(STATUS "boxloss ${PROJECT_VERSION}${development}, backends: ${boxloss_backends_text}")
foreach(backend IN LISTS BOXLOSS_BACKENDS)
  include(cmake/${backend}.cmake OPTIONAL)  # its language, which only the top level can enable
endforeach()
