# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# The HIP language, for the whole project: for AMD GPUs, or with -DCMAKE_HIP_PLATFORM=nvidia for
# NVIDIA's, through HIP's headers over CUDA.
if(CMAKE_HIP_PLATFORM STREQUAL "nvidia")
  set(architectures 80 90)
  set(spelling "^([0-9]+[af]?(-real|-virtual)?|native|all|all-major)$")
else()
  set(architectures gfx90a gfx942 gfx1030 gfx1100 gfx1201)
  set(spelling "^(native|gfx[0-9a-f]+(-[0-9a-f]+)*(-generic)?(:[a-z]+[+-])*)$")
endif()
if(NOT DEFINED CMAKE_HIP_ARCHITECTURES)
  set(CMAKE_HIP_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures to build for")
endif()
foreach(architecture IN LISTS CMAKE_HIP_ARCHITECTURES)
  if(NOT architecture MATCHES "${spelling}")
    list(GET architectures 0 example)
    message(FATAL_ERROR "CMAKE_HIP_ARCHITECTURES=${CMAKE_HIP_ARCHITECTURES}: '${architecture}' is "
      "not an architecture of this platform; they are spelled like ${example}.")
  endif()
endforeach()

if(CMAKE_HIP_PLATFORM STREQUAL "nvidia")
  find_program(CMAKE_HIP_COMPILER nvcc)
  if(CMAKE_VERSION VERSION_LESS 3.28 OR NOT CMAKE_HIP_COMPILER OR
     NOT EXISTS "${CMAKE_HIP_COMPILER_ROCM_ROOT}/include/hip/hip_runtime.h")
    message(FATAL_ERROR "BACKEND=${BACKEND}: 'hip' with CMAKE_HIP_PLATFORM=nvidia needs CMake 3.28 "
      "or later (this is ${CMAKE_VERSION}), nvcc on PATH or in CMAKE_HIP_COMPILER "
      "('${CMAKE_HIP_COMPILER}'), and HIP's headers, with those for NVIDIA, in the folder include of "
      "CMAKE_HIP_COMPILER_ROCM_ROOT ('${CMAKE_HIP_COMPILER_ROCM_ROOT}').")
  endif()
  enable_language(HIP)
  find_package(CUDAToolkit 12.0 REQUIRED)
  set(BOXLOSS_HIP_PACKAGE CUDAToolkit)
else()
  include(CheckLanguage)
  check_language(HIP)
  if(NOT CMAKE_HIP_COMPILER)
    message(FATAL_ERROR "BACKEND=${BACKEND}: 'hip' needs HIP and its clang, which were not found. "
      "Install ROCm (6.0 or later) and put its bin directory on PATH, or set CMAKE_HIP_COMPILER to "
      "its clang++.")
  endif()
  enable_language(HIP)
  find_package(hip 6.0 REQUIRED)
  set(BOXLOSS_HIP_PACKAGE hip)
endif()
