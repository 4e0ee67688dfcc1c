# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# An error thrown by one library and caught in another needs one libstdc++ for both. g++ links it
# into each where it finds no shared one; nvcc's host compiler links what holds CUDA.
foreach(language CXX CUDA HIP)
  set(linker ${CMAKE_CXX_COMPILER})
  set(id ${CMAKE_CXX_COMPILER_ID})
  if(NOT language STREQUAL "CXX")
    set(linker ${CMAKE_${language}_HOST_LINK_LAUNCHER})
    set(id ${CMAKE_${language}_HOST_COMPILER_ID})  # empty before CMake 3.31
  endif()
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT linker OR (id AND NOT id STREQUAL "GNU"))
    continue()
  endif()
  execute_process(COMMAND ${linker} -print-file-name=libstdc++.so OUTPUT_VARIABLE found
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(found STREQUAL "libstdc++.so")
    message(FATAL_ERROR "${linker}, which links ${language}, has no libstdc++.so: it would link "
      "libstdc++ statically into a shared boxloss, and the first error thrown there would end the "
      "process. Take one that has it, the same for CMAKE_CXX_COMPILER (CXX) and, with CUDA, "
      "CMAKE_CUDA_HOST_COMPILER (CUDAHOSTCXX).")
  endif()
endforeach()
