# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build> -DWORK=<temporary folder> -DCONSUMER=<project> -DGENERATOR=<generator>
#       -DCXX=<compiler> -DCONFIG=<configuration> [-DKokkos_DIR=<its package>]
#       [-DLOADER=<program>] -P install_and_consume.cmake
# Installs the built tree into a prefix of its own, then builds a project that finds it there and
# runs its tests or, where LOADER is given, has that load the backend that the project is.

file(REMOVE_RECURSE ${WORK})
execute_process(
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/prefix
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${WORK}/prefix/share/doc/boxloss/LICENSE)
  message(FATAL_ERROR "the licence was not installed")
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
          -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${CONFIG}
          -DCMAKE_PREFIX_PATH=${WORK}/prefix -DKokkos_DIR=${Kokkos_DIR}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG} COMMAND_ERROR_IS_FATAL ANY)
if(LOADER)
  set(test ${LOADER} --load ${WORK}/build/toy_backend.so --implementation toy/example)
else()
  set(test ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build -C ${CONFIG} --output-on-failure
           --no-tests=error)
endif()
execute_process(COMMAND ${test} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${WORK})
