// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks a function that both the host and a device may run. A toolchain that needs other words
/// defines it first; it stands for the next two as well, unless they are defined, too.
#if defined(BOXLOSS_HOST_DEVICE)
#if !defined(BOXLOSS_HOST_DEVICE_CALL)
#define BOXLOSS_HOST_DEVICE_CALL BOXLOSS_HOST_DEVICE
#endif
#if !defined(BOXLOSS_DEVICE_INLINE)
#define BOXLOSS_DEVICE_INLINE BOXLOSS_HOST_DEVICE
#endif
#elif defined(__CUDACC__)
#define BOXLOSS_HOST_DEVICE __host__ __device__ __forceinline__
#elif defined(__HIPCC__)  // whose __forceinline__ is in a header
#define BOXLOSS_HOST_DEVICE __host__ __device__ __attribute__((always_inline)) inline
#else
#define BOXLOSS_HOST_DEVICE __attribute__((always_inline)) inline
#endif

/// The same for branchy code outside the fast paths. On NVIDIA GPUs it is a call, since inlining it
/// at every use would multiply each kernel's size and compile time. AMD's compiler inlines it in no
/// more time; for a call it would reserve the registers of the largest possible callee.
#if defined(BOXLOSS_HOST_DEVICE_CALL)
#elif defined(__HIP__)
#define BOXLOSS_HOST_DEVICE_CALL BOXLOSS_HOST_DEVICE
#elif defined(__CUDACC__)
#define BOXLOSS_HOST_DEVICE_CALL __host__ __device__ __noinline__
#else
#define BOXLOSS_HOST_DEVICE_CALL inline
#endif

/// The opposite: inlined on a GPU, where a call would keep its arguments in memory; a call on the
/// host, whose compiler would take minutes for all the copies.
#if defined(BOXLOSS_DEVICE_INLINE)
#elif defined(__CUDACC__) || defined(__HIPCC__)
#define BOXLOSS_DEVICE_INLINE BOXLOSS_HOST_DEVICE
#else
#define BOXLOSS_DEVICE_INLINE __attribute__((noinline))
#endif

/// Unrolls the following loop. A GPU keeps an array in registers only if every index is a constant.
/// The other one keeps a GPU's compiler from it, where it would only take registers.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define BOXLOSS_UNROLL _Pragma("unroll")
#define BOXLOSS_NO_UNROLL _Pragma("unroll 1")
#elif defined(__CUDACC__) || defined(__HIPCC__)
#define BOXLOSS_UNROLL
#define BOXLOSS_NO_UNROLL
#else
#define BOXLOSS_UNROLL _Pragma("GCC unroll 8")
#define BOXLOSS_NO_UNROLL
#endif
