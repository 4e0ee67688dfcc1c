// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <hip/hip_runtime.h>

/// Kernels that tools/check_amd_kernels must report, each for what its name says, and a good one.

extern "C" {

__global__ void has_scratch(int* data) {
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = data[i + threadIdx.x];
  data[threadIdx.x] = values[data[threadIdx.x] % 32];
}

__global__ void __attribute__((amdgpu_num_vgpr(24))) spills_vgprs(int* data) {
  int values[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    values[i] = data[i * 256 + threadIdx.x];
    asm volatile("" : "+v"(values[i]));
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) data[i * 256 + 255 - threadIdx.x] = values[i];
}

__global__ void __attribute__((amdgpu_num_sgpr(64))) spills_sgprs(int* data) {
  int values[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) values[i] = data[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; ++i) data[64 + (values[i] ^ values[63 - i])] = values[i];
}

__device__ __noinline__ void called(int* data) { *data = 1; }

__global__ void calls(int* data) { called(data + threadIdx.x); }

/// Two boxes, each by four loads.
__global__ void elements_flat(const volatile float* boxes, float* sums) {
  const volatile float* box = boxes + 8 * threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += box[i];
  sums[threadIdx.x] = sum;
}

__global__ void good_flat(const float4* pred, const float4* target, float4* out) {
  const float4 p = pred[threadIdx.x];
  const float4 t = target[threadIdx.x];
  out[threadIdx.x] = {p.x + t.x, p.y + t.y, p.z + t.z, p.w + t.w};
}

}  // extern "C"
