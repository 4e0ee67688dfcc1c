// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// What plain.cpp does, on an NVIDIA GPU: all arrays are in its memory, and the work goes to a
// stream.
#include <cuda_runtime_api.h>

#include <boxloss/boxloss.hpp>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include "two_images.hpp"

namespace {

const std::vector<float> kUpstream = {1};

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Free {
  void operator()(void* data) const { (void)cudaFree(data); }
};
using GpuMemory = std::unique_ptr<void, Free>;

GpuMemory allocate(std::size_t bytes) {
  void* data = nullptr;
  check(cudaMalloc(&data, bytes));
  return GpuMemory(data);
}

template <class T>
GpuMemory to_gpu(const std::vector<T>& values, cudaStream_t stream) {
  const std::size_t bytes = values.size() * sizeof(T);
  GpuMemory memory = allocate(bytes);
  check(cudaMemcpyAsync(memory.get(), values.data(), bytes, cudaMemcpyHostToDevice, stream));
  return memory;
}

void copy_to_host(std::vector<float>& values, const GpuMemory& memory, cudaStream_t stream) {
  const std::size_t bytes = values.size() * sizeof(float);
  check(cudaMemcpyAsync(values.data(), memory.get(), bytes, cudaMemcpyDeviceToHost, stream));
}

}  // namespace

int main() {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  const GpuMemory pred = to_gpu(kPred, stream), target = to_gpu(kTarget, stream),
                  offsets = to_gpu(kOffsets, stream), upstream = to_gpu(kUpstream, stream);

  boxloss::LossProblem problem;
  problem.device = boxloss::Device::kCuda;
  problem.loss = boxloss::Loss::kGiou;
  problem.pred = {pred.get(), boxloss::DType::kF32};
  problem.pred.images = kImages;
  problem.pred.slots = kSlots;
  problem.pred.image_stride = kSlots * 4;
  problem.target = {target.get(), boxloss::DType::kU8};
  problem.target.slots = kOffsets.back();
  problem.pairing = {boxloss::Pairing::Kind::kOffsets, {offsets.get(), boxloss::DType::kI64}};

  // Calls on one stream run one after the other, so one workspace serves them all.
  const boxloss::Implementation& cuda = boxloss::implementation("cuda");
  const std::size_t workspace_bytes = boxloss::loss_workspace_bytes(cuda, problem);
  const GpuMemory workspace = allocate(workspace_bytes);
  boxloss::Execution execution;
  execution.stream = stream;
  execution.workspace = workspace.get();
  execution.workspace_bytes = workspace_bytes;

  // Neither call waits for the GPU, or copies anything.
  const GpuMemory loss = allocate(sizeof(float)), scale = allocate(sizeof(float));
  const GpuMemory gradient = allocate(kPred.size() * sizeof(float));
  boxloss::loss_forward(cuda, problem, {loss.get(), scale.get()}, execution);
  boxloss::loss_backward(cuda, problem, {{upstream.get()}}, scale.get(), {gradient.get()},
                         execution);

  std::vector<float> loss_here(1), gradient_here(kPred.size());
  copy_to_host(loss_here, loss, stream);
  copy_to_host(gradient_here, gradient, stream);
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));

  print(cuda.name, loss_here[0], gradient_here);
}
