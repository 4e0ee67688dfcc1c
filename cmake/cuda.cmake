# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# The CUDA language, for the whole project.
include(CheckLanguage)
check_language(CUDA)
unset(CMAKE_CUDA_HOST_COMPILER)  # which hides the one that was given
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "BACKEND=${BACKEND}: 'cuda' needs nvcc, which was not found. Install the CUDA "
    "toolkit (12.0 or later) and put its bin directory on PATH, or set CUDACXX to nvcc.")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities to build for")
endif()
enable_language(CUDA)
find_package(CUDAToolkit 12.0 REQUIRED)
