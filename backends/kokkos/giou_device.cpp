// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "giou_kokkos.hpp"
#include "pair_launch.hpp"

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
namespace boxloss::kokkos {

void giou_forward_on_device(const GiouLossProblem& problem, const GiouLossOutputs& outputs,
                            const Execution& execution) {
  const DeviceCall call(execution);
  forward<Giou>(call, problem, outputs, execution);
  check_launch();
}

void giou_backward_on_device(const GiouLossProblem& problem, const GradView& grad_loss,
                             const void* scale, const GiouLossGradients& gradients,
                             const Execution& execution) {
  const DeviceCall call(execution);
  backward<Giou>(call, problem, grad_loss, scale, gradients);
  check_launch();
}

}  // namespace boxloss::kokkos
#endif
