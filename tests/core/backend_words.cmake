# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DWORK=<temporary folder> -DWORD=<backend> -DTEXT=<message>
#       -DGENERATOR=<generator> [-DARGUMENTS=<for CMake>] -P backend_words.cmake
# Configuring with -DBACKEND=WORD, as if no toolkit were installed, must stop, and say TEXT.

file(REMOVE_RECURSE ${WORK})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${ROOT} -B ${WORK} -G ${GENERATOR} -DBACKEND=${WORD} -DBOXLOSS_TESTS=OFF
          -DCMAKE_CUDA_COMPILER=NOTFOUND -DCMAKE_HIP_COMPILER=NOTFOUND
          -DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON ${ARGUMENTS}
  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE error)
file(REMOVE_RECURSE ${WORK})
# CMake wraps long messages.
string(REGEX REPLACE "[ \n]+" " " error "${error}")
string(FIND "${error}" "${TEXT}" at)
if(NOT failed)
  message(FATAL_ERROR "-DBACKEND=${WORD} was taken")
elseif(at EQUAL -1)
  message(FATAL_ERROR "-DBACKEND=${WORD} did not say '${TEXT}', but: ${error}")
endif()
