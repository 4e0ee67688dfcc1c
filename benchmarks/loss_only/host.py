# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a call costs the host, beside operators that do nothing but take part in autograd."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from boxloss.torch import box_loss, giou_loss
from torch import Tensor

from ..common.cases import dense_case
from ..common.groups import BOTH, FORWARD, Group, timed_rows
from ..common.losses import Loss, UnavailableError
from ..common.timing import Calls, Effort, backward, host_times

# No differentiable operator in C++ can do less: it saves its inputs for backward and allocates the
# loss and the gradient, whose contents nobody looks at.
NOTHING = """
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


class Nothing(torch.autograd.Function):
    """The same in Python."""

    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(pred, target)
        return pred.new_empty(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        return torch.empty_like(ctx.saved_tensors[0]), None


def only_empty(pred: Tensor, _: Tensor) -> Tensor:
    return torch.empty((), dtype=pred.dtype, device=pred.device)


BOXES = 16  # few enough that a CPU computes them in no time, and a GPU faster than it is asked
CALLS_AHEAD = 200


def check_tools() -> None:
    """UnavailableError, unless the operator can be built."""
    compiler = os.environ.get("CXX", "c++")
    for tool in ("ninja", compiler):
        if not shutil.which(tool):
            raise UnavailableError(f"needs ninja and {compiler}, but there is no {tool} here")


def host_losses() -> dict[str, Loss]:
    """boxloss and what does nothing; in C++ it is built on the spot."""
    from torch.utils.cpp_extension import load_inline

    load_inline(
        "boxloss_benchmark",
        NOTHING,
        is_python_module=False,
        no_implicit_headers=True,
        extra_cflags=["-O3"],
    )
    nothing = torch.ops.boxloss_benchmark.nothing.default

    def nothing_loss(pred: Tensor, target: Tensor) -> Tensor:
        return nothing(pred, target)  # type: ignore[no-any-return]

    return {
        "nothing, in C++": nothing_loss,
        "nothing, in Python": Nothing.apply,
        "boxloss": giou_loss,
        "boxloss, by word": box_loss,
    }


def measure_host(device: torch.device, effort: Effort) -> Iterator[Group]:
    case = dense_case("f32/f32", BOXES, device)
    (target,) = case.layouts["dense"]
    losses = {name: partial(loss, case.pred, target) for name, loss in host_losses().items()}
    calls: Calls = {**losses}
    both: Calls = {name: partial(backward, loss, case.pred) for name, loss in losses.items()}
    for measured, timed, records in (
        ("forward, no_grad", calls, False),
        (FORWARD, calls, True),
        (BOTH, both, True),
    ):
        if not records:
            timed = {"torch.empty": partial(only_empty, case.pred, target), **timed}
        with torch.set_grad_enabled(records):
            times = host_times(timed, device, effort, CALLS_AHEAD)
        rows = timed_rows({"host": times})
        yield Group(f"host, {BOXES} boxes", "host", case.pair, BOXES, measured, None, rows)
