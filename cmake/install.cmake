# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# find_package(boxloss) and the targets boxloss::boxloss, boxloss::backend and boxloss::torch for other
# projects. The Python package is such a prefix, too: its folder holds include and lib beside the modules.
include(CMakePackageConfigHelpers)

set(boxloss_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/boxloss)
# What a backend is made from: it takes the headers of core's other folders, too.
add_library(boxloss_backend INTERFACE)
set_target_properties(boxloss_backend PROPERTIES EXPORT_NAME backend)
target_link_libraries(boxloss_backend INTERFACE boxloss)
target_include_directories(boxloss_backend INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/boxloss/backend>)
install(TARGETS boxloss boxloss_backend EXPORT boxloss-targets)
install(DIRECTORY core/include/boxloss DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY core/dispatch core/dtypes core/kernels core/losses core/math core/pairings
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/boxloss/backend)
install(FILES core/src/message.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/boxloss/backend/src)
install(EXPORT boxloss-targets NAMESPACE boxloss:: DESTINATION ${boxloss_package_dir})
configure_package_config_file(cmake/boxloss-config.cmake.in boxloss-config.cmake
  INSTALL_DESTINATION ${boxloss_package_dir})
write_basic_package_version_file(boxloss-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/boxloss-config.cmake
              ${PROJECT_BINARY_DIR}/boxloss-config-version.cmake
              cmake/boxloss-torch.cmake
  DESTINATION ${boxloss_package_dir})
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)  # a wheel has its own

if(BOXLOSS_TORCH)
  install(TARGETS boxloss_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY bindings/torch/include/boxloss DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(BOXLOSS_JAX)
  install(TARGETS boxloss_jax LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(BOXLOSS_TORCH OR BOXLOSS_JAX)
  string(CONCAT version "__version__ = \"@PROJECT_VERSION@@development@\"\nBACKENDS = \"@BOXLOSS_BACKENDS@\"\n"
    "CUDA = \"@CMAKE_CUDA_COMPILER_VERSION@\"\nCUDA_ARCHITECTURES = \"@CMAKE_CUDA_ARCHITECTURES@\"\n")
  file(CONFIGURE OUTPUT _version.py CONTENT "${version}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/_version.py DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY bindings/python/boxloss/ DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
    PATTERN __pycache__ EXCLUDE)
  # Docstrings name them.
  install(DIRECTORY docs DESTINATION . COMPONENT python EXCLUDE_FROM_ALL FILES_MATCHING PATTERN *.md)
endif()
