# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does a call cost the host, beside operators that do nothing?

They take part in autograd, and no more. The one in C++ is built on the spot, by ninja and a C++
compiler; --quick leaves it out. On the CPU a call's time has the arithmetic of 16 pairs in it.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import Any

import torch
from boxloss.torch import giou_loss
from torch import Tensor

from ..common.cases import Case, dense_case
from ..common.exact import check, truth
from ..common.losses import Loss
from ..runner.clocks import Calls
from ..runner.run import BOTH, FORWARD, Run, UnavailableError, Variant, backward

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

    options = {"is_python_module": False, "no_implicit_headers": True, "extra_cflags": ["-O3"]}
    load_inline("boxloss_benchmark", SOURCE, **options)
    return torch.ops.boxloss_benchmark.nothing.default


class Nothing(torch.autograd.Function):
    """In Python what load_nothing does in C++."""

    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(pred, target)
        return pred.new_empty(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        return torch.empty_like(ctx.saved_tensors[0]), None


VARIANTS: dict[str, Variant[Case, Loss]] = {
    "nothing, in C++": Variant(lambda _: load_nothing(), slow_to_start=True),
    "nothing, in Python": Variant(lambda _: Nothing.apply),
    "boxloss": Variant(lambda _: giou_loss),
}

BOXES = 16  # few enough that a CPU computes them in no time, and a GPU faster than it is asked
NO_GRAD = f"{FORWARD}, no_grad"


def measure(run: Run) -> None:
    case = dense_case("f32/f32", BOXES, run.device)
    pred, expected = case.pred, truth(case)
    losses = {name: case.on(loss, "dense") for name, loss in run.load(VARIANTS, case).items()}
    check("boxloss", losses["boxloss"], case, expected)
    empty = partial(torch.empty, (), dtype=pred.dtype, device=pred.device)
    forward: Calls = {**losses}
    both: Calls = {name: partial(backward, pred, loss) for name, loss in losses.items()}
    for measured, calls in (
        (NO_GRAD, {"torch.empty": empty, **forward}),
        (FORWARD, forward),
        (BOTH, both),
    ):
        with torch.set_grad_enabled(measured != NO_GRAD):
            run.time({"pass": measured, "boxes": BOXES}, calls, ("host",))
