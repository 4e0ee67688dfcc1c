# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""An operator that does nothing but take part in autograd: what no loss can do without."""

from __future__ import annotations

import os
import shutil

import torch
from torch import Tensor

from ..runner.run import UnavailableError
from .losses import Loss

# No differentiable operator in C++ can do less: it saves its inputs for backward and allocates the
# loss and the gradient, whose contents nobody looks at.
SOURCE = """
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor loss_of(const at::Tensor& pred) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::empty({}, pred.options());
}

struct Nothing : torch::autograd::Function<Nothing> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& pred,
                            const at::Tensor& target) {
    ctx->save_for_backward({pred, target});
    return loss_of(pred);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list&) {
    return {at::empty_like(ctx->get_saved_variables()[0]), at::Tensor()};
  }
};

at::Tensor nothing(const at::Tensor& pred, const at::Tensor& target) {
  return at::GradMode::is_enabled() ? Nothing::apply(pred, target) : loss_of(pred);
}

}  // namespace

TORCH_LIBRARY(boxloss_benchmark, m) { m.def("nothing(Tensor pred, Tensor target) -> Tensor"); }
TORCH_LIBRARY_IMPL(boxloss_benchmark, Autograd, m) { m.impl("nothing", nothing); }
TORCH_LIBRARY_IMPL(boxloss_benchmark, CompositeExplicitAutograd, m) {
  m.impl("nothing", [](const at::Tensor& pred, const at::Tensor&) { return loss_of(pred); });
}
"""


def load_nothing() -> Loss:
    """Built on the spot; UnavailableError where it cannot be."""
    compiler = os.environ.get("CXX", "c++")
    for tool in ("ninja", compiler):
        if not shutil.which(tool):
            raise UnavailableError(f"needs ninja and {compiler}, but there is no {tool} here")
    from torch.utils.cpp_extension import load_inline

    load_inline(
        "boxloss_benchmark",
        SOURCE,
        is_python_module=False,
        no_implicit_headers=True,
        extra_cflags=["-O3"],
    )
    operator = torch.ops.boxloss_benchmark.nothing.default

    def nothing(pred: Tensor, target: Tensor) -> Tensor:
        return operator(pred, target)

    return nothing
