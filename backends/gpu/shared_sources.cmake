# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0

# The sources that every GPU platform compiles: CUDA and HIP with gpu_runtime of this folder,
# tests/gpu_on_host with its own.
set(boxloss_gpu_dir ${CMAKE_CURRENT_LIST_DIR})
set(boxloss_gpu_kernels
  ${boxloss_gpu_dir}/assign.cu ${boxloss_gpu_dir}/box_loss/backward.cu
  ${boxloss_gpu_dir}/box_loss/counters.cu ${boxloss_gpu_dir}/box_loss/forward.cu
  ${boxloss_gpu_dir}/class_loss.cu ${boxloss_gpu_dir}/distribution_loss.cu
  ${boxloss_gpu_dir}/matching_cost.cu
  ${boxloss_gpu_dir}/collate_targets.cu ${boxloss_gpu_dir}/max_iou_match.cu
  ${boxloss_gpu_dir}/rotated_box_loss.cu ${boxloss_gpu_dir}/task_aligned_match.cu)
set(boxloss_gpu_sources ${boxloss_gpu_kernels} ${boxloss_gpu_dir}/implementations.cpp)
