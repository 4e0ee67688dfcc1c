# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build> -DWORK=<temporary folder> -DCONSUMER=<project> -DGENERATOR=<generator>
#       -DCXX=<compiler> -DCONFIG=<configuration> -DREADME=<file>
#       [-DKokkos_DIR=<its package>] -P install_and_consume.cmake
# Installs the built tree into a prefix of its own, then builds and runs a project that finds it
# there: the consumer's own program, and the one in the README.

file(REMOVE_RECURSE ${WORK})
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/prefix
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${WORK}/prefix/share/doc/boxloss/LICENSE)
  message(FATAL_ERROR "the licence was not installed")
endif()
file(READ ${README} text)
string(FIND "${text}" "```cpp\n" begin)
string(SUBSTRING "${text}" ${begin} -1 text)
string(SUBSTRING "${text}" 7 -1 text)
string(FIND "${text}" "```" length)
string(SUBSTRING "${text}" 0 ${length} text)
file(WRITE ${WORK}/readme.cpp "${text}")

execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
          -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${CONFIG}
          -DCMAKE_PREFIX_PATH=${WORK}/prefix -DKokkos_DIR=${Kokkos_DIR} -DREADME_SOURCE=${WORK}/readme.cpp
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG} COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build -C ${CONFIG} --output-on-failure
          --no-tests=error
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${WORK})
