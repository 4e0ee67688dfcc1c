# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Who computes the loss, and what the hardware allows.

A peer's loss takes predictions and what the case's layout holds, and returns the mean of 1 - GIoU.
The peers of the padded case are those of the face detector benchmark, which hand over the same
tensors; dense pairs are their own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from boxloss.torch import giou_loss, use_implementation
from torch import Tensor

from ..common.cases import Case
from ..common.losses import (
    Loss,
    UnavailableError,
    giou,
    load_compiled,
    load_torchvision,
    masked_loss,
    torchvision_giou,
    triton_kernels,
)
from ..common.timing import Call


@dataclass(frozen=True)
class Peer:
    layout: str  # of the case, as its loss takes the true boxes
    load: Callable[[Case], Loss]  # raises UnavailableError
    slow_to_start: bool = False  # left out by --quick
    implementation: str | None = None  # of boxloss, where not the device's best

    def chosen(self) -> AbstractContextManager[None]:
        """Autograd's backward asks for the implementation at its own time: the choice must last."""
        return use_implementation(self.implementation) if self.implementation else nullcontext()

    def choosing(self, call: Call) -> Call:
        """The same call, by this implementation."""
        if self.implementation is None:
            return call

        def chosen() -> object:
            with self.chosen():
                return call()

        return chosen


# boxloss


def boxloss(layout: str, implementation: str | None = None) -> Peer:
    losses: dict[str, Loss] = {
        "dense": giou_loss,
        "padded": partial(giou_loss, zero_padded=True),
        "lengths": lambda pred, target, lengths: giou_loss(pred, target, lengths=lengths),
        "offsets": lambda pred, target, offsets: giou_loss(pred, target, offsets=offsets),
        "mask": lambda pred, target, mask: giou_loss(pred, target, mask=mask),
    }
    return Peer(layout, lambda _: losses[layout], implementation=implementation)


# Of the seed's layouts.
LABELS = {"padded": "padded", "lengths": "lengths", "ragged": "offsets", "mask": "mask"}


# Triton, written by hand


def triton(layout: str) -> Peer:
    def load(case: Case) -> Loss:
        if case.pred.device.type == "cpu":
            raise UnavailableError("Triton compiles for GPUs only")
        module = triton_kernels()
        return {
            "dense": module.dense_loss,
            "padded": module.padded_loss,
            "lengths": module.lengths_loss,
        }[layout]

    return Peer(layout, load)


# Dense pairs


def _float(pred: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype that boxloss computes in."""
    dtype = torch.promote_types(torch.promote_types(pred.dtype, target.dtype), torch.float32)
    return pred.to(dtype), target.to(dtype)


def dense_loss(pred: Tensor, target: Tensor) -> Tensor:
    return (1 - giou(*_float(pred, target))).mean()


def _load_dense_compiled(case: Case) -> Loss:
    return torch.compile(dense_loss, dynamic=False)


def load_dense_torchvision(case: Case) -> Loss:
    generalized_box_iou_loss = torchvision_giou()
    return lambda pred, target: generalized_box_iou_loss(*_float(pred, target), reduction="mean")


def _load_fast_box_ops(checkout: Path | None, case: Case) -> Loss:
    if checkout is None:
        raise UnavailableError("--fast-box-ops says where its built checkout is")
    if case.pair != "f32/f32":
        raise UnavailableError("both box tensors must have the same dtype; timed in fp32 only")
    sys.path.insert(0, str(checkout))
    try:
        module = importlib.import_module("torch_fast_box_ops")
    except (ImportError, OSError, StopIteration) as error:  # StopIteration: it was not built
        raise UnavailableError(f"no built checkout in '{checkout}' ({error!r})") from error
    finally:
        sys.path.remove(str(checkout))
    # Its backward has no choice but to write the gradient of the true boxes too.
    return partial(module.generalized_box_iou_loss, reduction="mean")


def peers(
    kind: str, fast_box_ops: Path | None, implementations: Sequence[str] = ()
) -> dict[str, Peer]:
    """Those of a kind of case; the first is what ratios are taken to. `implementations` of boxloss
    are timed beside the device's best."""
    if kind == "seed":
        return {
            **{f"boxloss {label}": boxloss(layout) for label, layout in LABELS.items()},
            **{
                f"{name} {label}": boxloss(layout, name)
                for name in implementations
                for label, layout in LABELS.items()
            },
            "Triton padded": triton("padded"),
            "Triton lengths": triton("lengths"),
            "torch.compile": Peer("lengths", lambda _: load_compiled(), slow_to_start=True),
            "eager": Peer("lengths", lambda _: masked_loss),
            "torchvision": Peer("lengths", lambda _: load_torchvision()),
        }
    return {
        "boxloss": boxloss("dense"),
        **{name: boxloss("dense", name) for name in implementations},
        "Triton": triton("dense"),
        "fast-box-ops": Peer("dense", partial(_load_fast_box_ops, fast_box_ops)),
        "torch.compile": Peer("dense", _load_dense_compiled, slow_to_start=True),
        "eager": Peer("dense", lambda _: dense_loss),
        "torchvision": Peer("dense", load_dense_torchvision),
    }


# What the hardware allows

EMPTY, COPY, SUM = "empty kernel", "copy", "sum"
LIMITS = (EMPTY, COPY, SUM)


def limits(moved: int, read_only: bool, device: torch.device) -> dict[str, Call]:
    """The least a launch costs, and the usual ways to move as many bytes."""
    calls: dict[str, Call] = {}
    if device.type == "cuda":
        with suppress(UnavailableError):  # said already, of Triton's loss
            calls[EMPTY] = triton_kernels().nothing
    # Written once before: the CPU gives no memory to pages that nobody wrote.
    half = torch.ones(moved // 2, dtype=torch.uint8, device=device)
    other = torch.ones_like(half)
    calls[COPY] = lambda: _copy(half, other)
    if read_only:
        whole = torch.ones(moved // 4, device=device)
        calls[SUM] = whole.sum
    return calls


def _copy(source: Tensor, target: Tensor) -> None:
    # In pieces: one memcpy of more than a gigabyte runs at two thirds of the speed in a graph.
    for piece, into in zip(source.split(2**26), target.split(2**26), strict=True):
        into.copy_(piece)
