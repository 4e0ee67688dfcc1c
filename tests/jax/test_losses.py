# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses and their gradients: the bits that torch has on the same device."""

import inspect
import re
from itertools import cycle, islice
from pathlib import Path
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import DEVICE, assert_same, for_jax
from boxloss._options import Loss
from problems import FLOATING, FORMATS, PAIRINGS, REDUCTIONS, TARGETS, problem

LOSSES = get_args(Loss)
OPTIONS = Path(__file__).parents[2] / "bindings" / "options.hpp"


def table() -> list[tuple[Any, ...]]:
    """Every pairing with every loss; the other options in turn, in cycles of different lengths."""
    rows = [(pairing, loss) for pairing in PAIRINGS for loss in LOSSES]
    others = zip(
        cycle(FLOATING),
        cycle(TARGETS),
        cycle((None, *FLOATING)),
        cycle(REDUCTIONS),
        cycle((("add", 1e-7), ("clamp", 1e-6))),
        cycle([(pred, target) for pred in FORMATS for target in FORMATS]),
        strict=False,
    )
    return [row + other for row, other in zip(rows, islice(others, len(rows)), strict=True)]


@pytest.mark.parametrize(
    ("pairing", "loss", "pred", "target", "weight", "reduction", "eps", "formats"), table()
)
def test_the_bits_are_torchs(
    pairing: str,
    loss: str,
    pred: Any,
    target: Any,
    weight: Any,
    reduction: str,
    eps: Any,
    formats: tuple[str, str],
) -> None:
    values = problem(
        pairing,
        DEVICE,
        pred,
        target,
        weight,
        loss=loss,
        reduction=reduction,
        eps_mode=eps[0],
        eps=eps[1],
        pred_format=formats[0],
        target_format=formats[1],
    )
    assert_same(boxloss.jax.box_loss, boxloss.torch.box_loss, values)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_l1_and_iou_have_torchs_bits(pairing: str, reduction: str) -> None:
    values = problem(pairing, DEVICE, weight=torch.float32, reduction=reduction, loss="ciou")
    assert_same(boxloss.jax.box_losses, boxloss.torch.box_losses, values)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.int32])
@pytest.mark.parametrize("pairing", ["offsets", "sets"])
def test_a_normalizer_has_torchs_bits(pairing: str, dtype: torch.dtype) -> None:
    numbers = torch.tensor([3, 2] if pairing == "sets" else 3, dtype=dtype, device=DEVICE)
    values = problem(pairing, DEVICE, normalizer=numbers)
    assert_same(boxloss.jax.box_loss, boxloss.torch.box_loss, values)


def test_a_normalizer_may_be_a_number() -> None:
    assert_same(
        boxloss.jax.box_loss, boxloss.torch.box_loss, problem("lengths", DEVICE, normalizer=7.5)
    )


@pytest.mark.parametrize("name", ["pred_index", "target_index"])
def test_one_index_has_torchs_bits(name: str) -> None:
    values = problem("sets", DEVICE, given=(name,))
    assert_same(boxloss.jax.box_loss, boxloss.torch.box_loss, values)


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 4)])
def test_any_leading_dimensions(shape: tuple[int, ...]) -> None:
    for pairing in ("dense", "mask"):
        values = problem("dense", DEVICE, grid=shape)
        if pairing == "mask":
            values["mask"] = torch.ones(shape, dtype=torch.bool)
        assert_same(boxloss.jax.box_loss, boxloss.torch.box_loss, values)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("pairing", ["dense", "lengths", "mask", "offsets", "indices", "sets"])
def test_no_boxes(pairing: str, reduction: str) -> None:
    values = problem(pairing, DEVICE, reduction=reduction)
    if pairing == "offsets":
        values |= {"target": torch.zeros(0, 4), "offsets": torch.zeros(4, dtype=torch.int32)}
    elif pairing in ("indices", "sets"):
        for name in ("pred_index", "target_index"):
            values[name] = values[name][..., :0]
    else:
        values |= {"pred": torch.zeros(3, 0, 4), "target": torch.zeros(3, 0, 4)}
        if pairing == "mask":
            values["mask"] = torch.zeros(3, 0, dtype=torch.bool)
    assert_same(boxloss.jax.box_losses, boxloss.torch.box_losses, values)


@pytest.mark.parametrize("name", ["iou", "giou", "diou", "ciou", "eiou", "siou"])
def test_named_functions(name: str) -> None:
    values = for_jax(problem("lengths", DEVICE))
    function = getattr(boxloss.jax, f"{name}_loss")
    assert function(**values) == boxloss.jax.box_loss(loss=name, **values)
    assert inspect.signature(function).parameters.keys() == (
        inspect.signature(boxloss.jax.box_loss).parameters.keys() - {"loss"}
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("box_loss", "BOX_LOSS"),
        ("box_losses", "BOX_LOSS"),
        ("matching_cost", "MATCHING_COST"),
        ("pairwise_iou", "PAIRWISE_IOU"),
        ("max_iou_match", "MAX_IOU_MATCH"),
        ("task_aligned_match", "TASK_ALIGNED_MATCH"),
    ],
)
def test_the_parameters_are_the_lists(name: str, options: str) -> None:
    """The same names and defaults, in one order."""
    text = OPTIONS.read_text().partition(f"define BOXLOSS_{options}_OPTIONS(use)")[2]
    rows = re.findall(r"use\(\w+, (\w+), (\S+)\)", text.partition("\n\n")[0])
    assert rows
    parameters = inspect.signature(getattr(boxloss.jax, name)).parameters.values()
    shown = [(each.name, each.default) for each in parameters if each.default is not each.empty]
    assert shown == [(option, eval(default)) for option, default in rows]


def test_numpys_arrays_are_taken() -> None:
    values = for_jax(problem("offsets", DEVICE))
    arrays = {name: np.asarray(value) for name, value in values.items()}
    loss = boxloss.jax.box_loss(**arrays)
    assert isinstance(loss, jax.Array)
    assert loss == boxloss.jax.box_loss(**values)
    assert loss.dtype == jnp.float32
