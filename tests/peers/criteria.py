# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A detector's criterion beside boxloss' one: a row of CRITERIA in test_detr.py for each.

A new family of detectors is such a row; a small model in MODELS of models.py, in which boxloss is
proved, restored, copied, pickled and given faulty targets; and rows of CHANGES in test_proof.py for
the parts that it refuses.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import detr_cases as cases
import torch
from detr_cases import QUERIES, Targets
from surroundings import autocast, computed, default_dtype, moved, rounded
from torch import Tensor, nn

# In double, relatively; losses one by one, gradients as vectors. With u = 2 * 2^-53, since both
# round, and by what tests/torch/comparison.py derives: GIoU's and L1's sum of P <= 312 pairs is
# right to (40 + 4 (17 + P)) u = 3e-13 of its pairs' size, a box' gradient to 80 u = 2e-14; a sum
# over N <= 3,900 scores to some N u = 9e-13.
CLOSE = 1e-12

Leaves = dict[str, Tensor]
Results = tuple[Leaves, Leaves]  # losses, with their total; the total's gradients


class Case(NamedTuple):
    """What a criterion is given, but for the configuration."""

    counts: tuple[int, ...]
    values: Leaves
    labels: Targets
    denoising: dict[str, Any] | None


@dataclass(frozen=True)
class Criterion:
    """Functions of a configuration and arguments: to the total, losses by name, other outputs."""

    ours: Any
    theirs: Any
    config: Callable[..., Any]
    options: tuple[dict[str, Any], ...]  # of the configuration: each is compared
    values: Callable[[tuple[int, ...], int, int], Leaves]  # of counts, denoising queries, seed
    last: Any = None  # where the last layer lies
    auxiliary: int = 0  # how many outputs are told
    groups: tuple[int, ...] = (0, 2)  # of denoising queries
    text: Callable[[int], dict[str, Any]] = lambda images: {}  # by the number of images
    by_default: bool = True  # Does the default dtype decide what the original computes in?
    # None: as models of transformers call it.
    arguments: Callable[[Case], dict[str, Any]] | None = None


class Modules(NamedTuple):
    """The configuration of a criterion that is a module."""

    theirs: nn.Module
    ours: nn.Module


def by_modules(total: Callable[[nn.Module, Leaves], Tensor]) -> tuple[Any, Any]:
    """Both functions; total: of a module and the losses that it gives."""

    def results(criterion: nn.Module, arguments: dict[str, Any]) -> tuple[Tensor, Leaves, None]:
        losses = criterion(**arguments)
        return total(criterion, losses), losses, None

    return (
        lambda config, **arguments: results(config.ours, arguments),
        lambda config, **arguments: results(config.theirs, arguments),
    )


def denoising_of(counts: tuple[int, ...], groups: int) -> dict[str, Any] | None:
    """As RT-DETR numbers its denoising queries: positive ones, then as many negative ones."""
    most = max(counts)
    if not most or not groups:
        return None
    first = 2 * most * torch.arange(groups)[:, None]
    return {
        "dn_positive_idx": tuple((first + torch.arange(count)).flatten() for count in counts),
        "dn_num_group": groups,
        "dn_num_split": [2 * most * groups, QUERIES],
    }


def made(
    of: Criterion,
    counts: tuple[int, ...] = (3, 0, 5),
    groups: int | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Numbers in double that `dtype` has, too."""
    denoising = denoising_of(counts, of.groups[-1] if groups is None else groups)
    noisy = denoising["dn_num_split"][0] if denoising else 0
    values = rounded(of.values(counts, noisy, seed), dtype)
    return Case(counts, values, cases.true_boxes(counts, cases.generator(seed + 100)), denoising)


def arguments_of(of: Criterion, case: Case, device: str = "cpu") -> dict[str, Any]:
    if of.arguments is not None:
        return of.arguments(case)
    # The last layer's outputs are among them all.
    noise = {"denoising_meta_values": case.denoising} if of.groups != (0,) else {}
    logits, pred_boxes = (case.values[f"outputs_{name}"][of.last] for name in ("class", "coord"))
    return {
        "logits": logits,
        "labels": case.labels,
        "device": torch.device(device),
        "pred_boxes": pred_boxes,
        **noise,
        **case.values,
        **moved(of.text(len(case.counts)), device),
    }


def run(
    of: Criterion, criterion: Any, case: Case, config: Any, dtype: torch.dtype, device: str = "cpu"
) -> Results:
    """Halves are as autocast makes them."""
    values = moved(
        {name: each.requires_grad_() for name, each in case.values.items()}, device, dtype
    )
    labels = moved(case.labels, device, computed(dtype))
    given = Case(case.counts, values, labels, moved(case.denoising, device))
    with (
        autocast(device, dtype),
        default_dtype(computed(dtype)) if of.by_default else nullcontext(),
    ):
        arguments = arguments_of(of, given, device)
        total, losses, auxiliary = criterion(config=config, **arguments)
    is_told = getattr(config, "auxiliary_loss", False)
    assert len(auxiliary or ()) == (of.auxiliary if is_told else 0)
    total.backward()
    gradients = {name: each.grad for name, each in values.items() if each.grad is not None}
    return moved(({"total": total.detach(), **losses}, gradients), "cpu")


def assert_close(ours: Leaves, theirs: Leaves) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name].shape == value.shape, name
        assert (ours[name] - value).norm() <= CLOSE * (1 + value.norm()), name
