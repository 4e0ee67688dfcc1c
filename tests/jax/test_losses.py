# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses and their gradients: the bits that torch has on the same device."""

from itertools import cycle, islice
from typing import Any, get_args

import boxloss.jax
import boxloss.torch
import pytest
import torch
from both import DEVICE, assert_same, for_jax
from boxloss._options import Loss, RotatedLoss
from combinations import long_but
from problems import (
    ANGLE_UNITS,
    FLOATING,
    FORMATS,
    INDICES,
    PAIRINGS,
    REDUCTIONS,
    TARGETS,
    Problem,
    problem,
)

LOSSES = get_args(Loss)
ROTATED = [
    {"loss": loss, "angle_unit": unit} for loss in get_args(RotatedLoss) for unit in ANGLE_UNITS
]


FUNCTIONS = "box_loss", "box_losses", "rotated_box_loss"  # the first is a part of the second


def table() -> list[Any]:
    """Every pairing with every reduction; the other options in turn, in cycles of other lengths."""
    rows = [(pairing, reduction) for pairing in PAIRINGS for reduction in REDUCTIONS]
    others = zip(
        cycle(LOSSES),
        cycle(FLOATING),
        cycle(TARGETS),
        cycle((None, *FLOATING)),
        cycle((("add", 1e-7), ("clamp", 1e-6))),
        cycle([(pred, target) for pred in FORMATS for target in FORMATS]),
        cycle(ROTATED),
        strict=False,
    )
    assert len(rows) > max(len(LOSSES), len(FORMATS) ** 2, len(ROTATED))
    return [row + other for row, other in zip(rows, islice(others, len(rows)), strict=True)]


@pytest.mark.parametrize("name", long_but(FUNCTIONS, FUNCTIONS[1:]))
@pytest.mark.parametrize(
    ("pairing", "reduction", "loss", "pred", "target", "weight", "eps", "formats", "rotated"),
    table(),
)
def test_the_bits_are_torchs(
    pairing: str,
    reduction: str,
    loss: str,
    pred: Any,
    target: Any,
    weight: Any,
    eps: Any,
    formats: tuple[str, str],
    rotated: dict[str, str],
    name: str,
) -> None:
    own = {
        "loss": loss,
        "pred_format": formats[0],
        "target_format": formats[name == "box_loss"],  # l1 is of values in one format
    }
    values = problem(
        pairing,
        DEVICE,
        pred,
        target,
        weight,
        reduction=reduction,
        eps_mode=eps[0],
        eps=eps[1],
        **(rotated if name == "rotated_box_loss" else own),
    )
    assert_same(getattr(boxloss.jax, name), getattr(boxloss.torch, name), values)


def normalizer(pairing: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([3, 2] if pairing == "sets" else 3, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize(
    "values",
    [
        *(
            problem(pairing, DEVICE, normalizer=normalizer(pairing, dtype))
            for pairing in ("offsets", "sets")
            for dtype in (torch.float64, torch.float32, torch.int64, torch.int32)
        ),
        problem("lengths", DEVICE, normalizer=7.5),
        *(problem("sets", DEVICE, given=(name,)) for name in INDICES),
        *(
            problem(pairing, DEVICE, grid=shape)
            for pairing in ("dense", "mask")
            for shape in ((), (7,), (2, 3, 4))
        ),
    ],
)
def test_other_arguments_have_torchs_bits(values: Problem) -> None:
    assert_same(boxloss.jax.box_loss, boxloss.torch.box_loss, values)


@pytest.mark.parametrize("name", ["iou", "giou", "diou", "ciou", "eiou", "siou"])
def test_named_functions(name: str) -> None:
    values = for_jax(problem("lengths", DEVICE))
    function = getattr(boxloss.jax, f"{name}_loss")
    assert function(**values) == boxloss.jax.box_loss(loss=name, **values)
