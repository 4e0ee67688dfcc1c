# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Whether boxloss gives what a model's own criterion gives, on a made-up batch.

So a part that somebody has changed, by a class, a patch or a setting, and a version that nobody has
tried, are errors in words. No network is run, and nothing is left behind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, distributed
from torch.utils._pytree import tree_leaves, tree_leaves_with_path, tree_map_only

# Both compute in float32, in another order: losses are within 4e-7, relatively, and gradients, as
# vectors, within 4e-6 (tests/peers/test_proof.py asks for a tenth of this).
CLOSE = 5e-5


_one_at_a_time = RLock()  # it changes what all threads see


class Case(NamedTuple):
    """A batch on which two criteria are compared.

    Attributes:
        words: what it is, for errors.
        arguments: of a criterion. Tensors that require a gradient are the network's outputs.
        has_boxes: whether there is any ground truth, which one case at least must have.
    """

    words: str
    arguments: dict[str, Any]
    has_boxes: bool


class Run(NamedTuple):
    """What a criterion gives for a case."""

    case: Case
    losses: dict[str, Tensor]
    gradients: dict[str, Tensor]


ADVICE = (
    ". The model keeps its own criterion. A part of it may have been replaced, derived from or set "
    "otherwise, or this version has another formula. In boxloss' folder docs/detectors.md says "
    "what boxloss replaces, docs/coming-from.md how to use parts of it. "
    "use_boxloss(model, check=False) does not compare"
)


def record(
    criterion: Callable[..., Any], model: Any, cases: Iterable[Case], name: str
) -> list[Run]:
    """What the model's own criterion gives, where it does not raise. `name` is for errors.

    Raises:
        ValueError: it raises in all cases with boxes.
    """
    runs: list[Run] = []
    last: Exception | None = None
    try:
        with torch.device("cpu"):
            made_up = list(cases)
        for case in made_up:
            try:
                runs.append(run(criterion, model, case))
            except Exception as error:  # what it cannot do, it cannot show
                last = error
    except Exception as error:  # the model is none that a batch could be made up for
        last = error
    if not any(each.case.has_boxes for each in runs):
        raise ValueError(
            f"the criterion of {name} could not be compared with boxloss: a made-up batch "
            f"gives {type(last).__name__}: {last}{ADVICE}"
        ) from last
    return runs


def compare(expected: list[Run], criterion: Callable[..., Any], model: Any, name: str) -> None:
    """Raises unless the criterion that has been put into the model gives the same.

    Raises:
        ValueError: it raises, or a loss or a gradient differs.
    """
    for theirs in expected:
        try:
            ours = run(criterion, model, theirs.case)
        except Exception as error:
            raise ValueError(
                f"boxloss raises {type(error).__name__}: {error} where the criterion of "
                f"{name} does not ({theirs.case.words}){ADVICE}"
            ) from error
        if (difference := first_difference(theirs, ours)) is not None:
            raise ValueError(
                f"boxloss is not the criterion of {name}: {difference} "
                f"({theirs.case.words}){ADVICE}"
            )


def run(criterion: Callable[..., Any], model: Any, case: Case) -> Run:
    with _one_at_a_time, undisturbed(device_of(case)):
        arguments = tree_map_only(
            Tensor,
            lambda each: each.detach().clone().requires_grad_(each.requires_grad),
            case.arguments,
        )
        leaves = {name: each for name, each in _tensors(arguments) if each.requires_grad}
        found = dict(_tensors(criterion(model, **arguments)))
        with_gradient = [each.sum() for each in found.values() if each.requires_grad]
        if with_gradient:
            torch.stack([each.float() for each in with_gradient]).sum().backward()
        gradients = {
            name: torch.zeros_like(each) if each.grad is None else each.grad
            for name, each in leaves.items()
        }
        return Run(case, {name: each.detach() for name, each in found.items()}, gradients)


def _tensors(values: Any) -> Iterator[tuple[str, Tensor]]:
    """With their names in a nest of lists and dictionaries."""
    for path, each in tree_leaves_with_path(values):
        if isinstance(each, Tensor):
            yield (
                ".".join(str(getattr(step, "key", getattr(step, "idx", step))) for step in path),
                each,
            )


def first_difference(theirs: Run, ours: Run) -> str | None:
    if theirs.losses.keys() != ours.losses.keys():
        names = sorted(theirs.losses.keys() ^ ours.losses.keys())
        return f"only one of them has {', '.join(names)}"
    for name, value in theirs.losses.items():
        if value.shape != ours.losses[name].shape:
            shapes = tuple(value.shape), tuple(ours.losses[name].shape)
            return f"{name} has shape {shapes[0]}, with boxloss {shapes[1]}"
        if not is_close(value, ours.losses[name]):
            return f"{name} is {shown(value)}, with boxloss {shown(ours.losses[name])}"
    for name, value in theirs.gradients.items():
        if not is_close(value, ours.gradients[name]):
            apart = (value - ours.gradients[name]).norm() / value.norm()
            return f"the gradient of {name} is {apart:.1%} off"
    return None


def is_close(theirs: Tensor, ours: Tensor) -> bool:
    """As vectors; both may have no number in the same places."""
    if not theirs.is_floating_point():
        return torch.equal(theirs, ours)
    theirs, ours = (each.detach().cpu().double() for each in (theirs, ours))  # some have no double
    missing = theirs.isnan()
    if not torch.equal(missing, ours.isnan()):
        return False
    theirs, ours = (each.masked_fill(missing, 0) for each in (theirs, ours))
    larger = max(theirs.norm(), ours.norm())
    return bool((theirs - ours).norm() <= CLOSE * larger + TINY)


# Where all is 0 but for rounding.
TINY = 1e-7


def shown(value: Tensor) -> str:
    if value.numel() == 1:
        return f"{value.item():.6g}"
    return str([float(f"{each:.6g}") for each in value.flatten()[:4].tolist()])


def device_of(case: Case) -> torch.device:
    tensors = (each for each in tree_leaves(case.arguments) if isinstance(each, Tensor))
    return next(tensors).device


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """With gradients, in float32, on this rank alone; random numbers go on as if nothing was."""
    kind = "cuda" if device.type == "cpu" else device.type  # the CPU's are always kept
    devices = [] if device.type == "cpu" else [device]
    default = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices, device_type=kind))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.enter_context(patch.object(distributed, "is_initialized", lambda: False))
        accelerate = sys.modules.get("accelerate")
        if accelerate is not None:
            stack.enter_context(patch.object(accelerate.PartialState, "_shared_state", {}))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(default)
