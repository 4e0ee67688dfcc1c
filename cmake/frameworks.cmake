# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# The frameworks that there are bindings for, as Python3 imports them.

# The folder of a module, or what the problem is.
function(boxloss_find_module module folder problem)
  find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import ${module}, pathlib; print(pathlib.Path(${module}.__file__).parent)"
    OUTPUT_VARIABLE found ERROR_VARIABLE error RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0)
    set(${folder} ${found} PARENT_SCOPE)
  else()
    string(REGEX MATCH "[^\n]*$" reason "${error}")  # the traceback's last line
    set(${problem} "${Python3_EXECUTABLE} cannot import ${module} (${reason})" PARENT_SCOPE)
  endif()
endfunction()

# pip's builds have INSTALLED for an option: ON if Python3 imports the module, or a folder is given.
macro(boxloss_resolve option module folder)
  if(${option} STREQUAL "INSTALLED")
    if(NOT ${folder})
      boxloss_find_module(${module} ${folder} ${module}_problem)
    endif()
    if(${folder})
      set(${option} ON)
    else()
      set(${option} OFF)
      message(STATUS "boxloss is built without ${module}: ${${module}_problem}")
    endif()
  endif()
endmacro()

boxloss_resolve(BOXLOSS_TORCH torch BOXLOSS_TORCH_DIR)
boxloss_resolve(BOXLOSS_JAX jaxlib BOXLOSS_JAXLIB_DIR)
if(torch_problem AND jaxlib_problem)
  message(FATAL_ERROR "boxloss is built for the torch that is installed, the jaxlib, or both, but "
    "${torch_problem}, and ${jaxlib_problem}. It takes torch 2.11 or later, jaxlib 0.6 or later, and "
    "pip hides them from the build without --no-build-isolation:\n"
    "  pip install scikit-build-core cmake ninja\n"
    "  pip install --no-build-isolation .")
endif()
