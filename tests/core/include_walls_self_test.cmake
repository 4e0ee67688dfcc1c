# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DWORK=<temporary folder> -P include_walls_self_test.cmake
# Plants one bad include at a time: each must be found, and the tree without it must pass.

function(check folder include expected)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/core/include/boxloss/good.hpp
    "#include <cstdint>\n#include <boxloss/view.hpp>\n")
  file(WRITE ${WORK}/backends/gpu/good.cu "#include <cuda_runtime.h>\n")
  if(folder)
    file(WRITE ${WORK}/${folder}/planted.hpp "// a comment\n#  include ${include}\n")
  endif()
  execute_process(
    COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -P ${CMAKE_CURRENT_LIST_DIR}/include_walls.cmake
    RESULT_VARIABLE failed ERROR_VARIABLE text)
  if(expected STREQUAL "found" AND NOT (failed AND text MATCHES "planted.hpp"))
    message(FATAL_ERROR "${include} in ${folder} was not found")
  elseif(expected STREQUAL "clean" AND failed)
    message(FATAL_ERROR "a clean tree was refused: ${text}")
  endif()
endfunction()

check("" "" clean)
check(bindings/torch "<torch/library.h>" clean)
foreach(include IN ITEMS <torch/library.h> "\"ATen/ATen.h\"" <c10/core/Device.h> <Python.h>)
  check(core/src "${include}" found)
  check(backends/gpu "${include}" found)
endforeach()
foreach(include IN ITEMS <cuda_runtime.h> <cuda.h> <hip/hip_runtime.h> <Kokkos_Core.hpp>)
  check(core/include/boxloss "${include}" found)
endforeach()
check(core/math "\"cpu/native/box_loss/slots.hpp\"" found)
file(REMOVE_RECURSE ${WORK})
