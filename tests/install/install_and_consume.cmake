# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build> -DWORK=<temporary folder> -DCONSUMER=<project> -DGENERATOR=<generator>
#       -DCXX=<compiler> -DCONFIG=<configuration> [-DKokkos_DIR=<its package>]
#       [-DLOADER=<program>] -P install_and_consume.cmake
# Installs the built tree into a prefix of its own, then builds a project that finds it there and
# runs its tests or, where LOADER is given, has that load the project's two backends.

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
  execute_process(
    COMMAND ${LOADER} --load ${WORK}/build/dense_backend.so --implementation toy/dense
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(
    COMMAND ${LOADER} --load ${WORK}/build/toy_backend.so --implementation toy/example
    COMMAND_ERROR_IS_FATAL ANY)
else()
  execute_process(
    COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build -C ${CONFIG} --output-on-failure
            --no-tests=error
    COMMAND_ERROR_IS_FATAL ANY)
endif()
file(REMOVE_RECURSE ${WORK})
