# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# What find_package(boxloss COMPONENTS torch) adds: boxloss::torch, the operator library for the
# torch at hand. An installation may hold several, one for each minor version of torch.
function(boxloss_add_torch)
  # Of torch's package the version file is enough. The rest would ask for the CUDA toolkit that torch
  # was built with, and nothing here needs one.
  find_package(Torch QUIET CONFIG CONFIGS TorchConfigVersion.cmake)
  if(NOT Torch_FOUND)
    string(CONCAT problem "torch was not found. Add to CMAKE_PREFIX_PATH what "
      "`python -c 'import torch; print(torch.utils.cmake_prefix_path)'` prints, or libtorch's folder.")
    set(boxloss_NOT_FOUND_MESSAGE "${problem}" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(torch_dir ${Torch_DIR}/../../.. ABSOLUTE)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor ${PACKAGE_VERSION})

  get_filename_component(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.. ABSOLUTE)
  set(library ${folder}/libboxloss_torch-${torch_minor}.so)
  if(NOT EXISTS ${library})
    file(GLOB found RELATIVE ${folder} ${folder}/libboxloss_torch-*.so)
    list(TRANSFORM found REPLACE "libboxloss_torch-(.*)\\.so" "\\1")
    list(JOIN found ", " found)
    string(CONCAT problem "boxloss was not built for torch ${torch_minor}, which is in "
      "${torch_dir}. In ${folder} there are operators for torch: ${found}.")
    set(boxloss_NOT_FOUND_MESSAGE "${problem}" PARENT_SCOPE)
    return()
  endif()

  set(libraries ${torch_dir}/lib/libtorch.so ${torch_dir}/lib/libtorch_cpu.so
    ${torch_dir}/lib/libc10.so)
  add_library(boxloss::torch SHARED IMPORTED)
  set_target_properties(boxloss::torch PROPERTIES IMPORTED_LOCATION ${library})
  target_compile_features(boxloss::torch INTERFACE cxx_std_20)
  target_include_directories(boxloss::torch INTERFACE
    ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
  target_link_libraries(boxloss::torch INTERFACE boxloss::boxloss ${libraries})
  # Operators register themselves when their library is loaded, so the linker shall not leave it out
  # where none is called by name; nor libtorch.so, which brings torch's operators for a GPU.
  list(JOIN libraries "," libraries)
  target_link_options(boxloss::torch INTERFACE
    "LINKER:--push-state,--no-as-needed,${library},${libraries},--pop-state")
endfunction()

if(NOT TARGET boxloss::torch)
  boxloss_add_torch()
endif()
if(TARGET boxloss::torch)
  set(boxloss_torch_FOUND TRUE)
endif()
