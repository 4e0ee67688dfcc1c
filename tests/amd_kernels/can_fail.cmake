# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# Each kernel of bad_kernels.cu must be named with its fault, on each architecture, and no other.
set(faults
  "has_scratch: a private segment of [0-9]+ bytes"
  "has_scratch: [0-9]+ scratch instructions"
  "spills_vgprs: [0-9]+ VGPR spills"
  "spills_sgprs: [0-9]+ SGPR spills"
  "calls: 1 calls"
  "elements_flat: 0 128-bit loads, fewer than 2")

execute_process(COMMAND ${CHECK} ${OBJECT} RESULT_VARIABLE result ERROR_VARIABLE text)
if(NOT result EQUAL 1)
  message(FATAL_ERROR "bad kernels: exit status ${result}\n${text}")
endif()
foreach(architecture IN LISTS ARCHITECTURES)
  string(REGEX REPLACE ":.*" "" architecture ${architecture})
  foreach(fault IN LISTS faults)
    if(NOT text MATCHES "${architecture} ${fault}\n")
      message(FATAL_ERROR "not reported: ${architecture} ${fault}\n${text}")
    endif()
  endforeach()
endforeach()
if(text MATCHES "good_flat")
  message(FATAL_ERROR "a good kernel is reported\n${text}")
endif()

execute_process(COMMAND ${CHECK} ${CMAKE_CURRENT_LIST_FILE} RESULT_VARIABLE result ERROR_VARIABLE text)
if(NOT result EQUAL 1 OR NOT text MATCHES "no kernels")
  message(FATAL_ERROR "a file without kernels: exit status ${result}\n${text}")
endif()
