# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
# cmake -DCHECK=<tools/check_vector_code> -DOBJECT=<of bad_code.cpp> -P can_fail.cmake
# Each fault of bad_code.cpp must be found, and nothing else.

function(check what)
  execute_process(COMMAND ${CHECK} ${what} ${OBJECT} RESULT_VARIABLE result ERROR_VARIABLE text)
  if(NOT result EQUAL 1)
    message(FATAL_ERROR "${what}: exit status ${result}\n${text}")
  endif()
  foreach(fault IN LISTS ARGN)
    if(NOT text MATCHES "${fault}")
      message(FATAL_ERROR "not found: ${fault}\n${text}")
    endif()
  endforeach()
  if(text MATCHES "multiply|scalar: [^\n]*losses<double>")
    message(FATAL_ERROR "good code is reported\n${text}")
  endif()
endfunction()

check(weak "weak: [^\n]*half")
check(scalar
  "[0-9]+ scalar: [^\n]*ious<float>" "[0-9]+ scalar: [^\n]*ious<double>"
  "[0-9]+ scalar: [^\n]*losses<float>" "no vector arithmetic: l1<float>")
