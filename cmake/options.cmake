# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

option(BOXLOSS_TESTS "Build the C++ tests (needs Catch2 3)" ${PROJECT_IS_TOP_LEVEL})
option(BOXLOSS_TORCH "Build the PyTorch operators (needs an importable torch, 2.11 or later)" OFF)
option(BOXLOSS_JAX "Build the handlers for JAX (needs an importable jaxlib, 0.6 or later)" OFF)
option(BOXLOSS_INSTALL "Install the C++ library and its CMake package" ${PROJECT_IS_TOP_LEVEL})
option(BOXLOSS_WERROR "Make warnings errors" OFF)
option(BOXLOSS_X86_CAPABILITIES "Build the CPU's loops for AVX2 and AVX-512, too" ON)
set(BOXLOSS_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
option(BUILD_SHARED_LIBS "Build boxloss as a shared library" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)  # here, and not in a project around this one
endif()

# What every target of ours has in common.
function(boxloss_set_up_target target)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow>
    $<$<AND:$<BOOL:${BOXLOSS_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
  if(BOXLOSS_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${BOXLOSS_SANITIZE})
  endif()
  if(BOXLOSS_SANITIZE AND NOT boxloss_as_without_sanitizer)
    target_compile_options(${target} PRIVATE -O1 -g1
      -fsanitize=${BOXLOSS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  endif()
endfunction()

# Sources with options of their own: compiled apart, put into the one library.
function(boxloss_add_objects target)
  add_library(${target} OBJECT ${ARGN})
  boxloss_set_up_target(${target})
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR}/backends)
  target_compile_definitions(${target} PRIVATE $<$<BOOL:${BUILD_SHARED_LIBS}>:BOXLOSS_SHARED>)
  target_sources(boxloss PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
