# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Random problems: keyword arguments for giou_loss."""

from typing import Any

import torch
from formula import counted_pairs
from torch import Tensor

PAIRINGS = ("dense", "zero_padded", "lengths", "mask", "offsets")
FORMATS = ("xyxy", "xywh", "cxcywh")
REDUCTIONS = ("none", "sum", "mean")
FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
TARGETS = (*FLOATING, torch.uint8, torch.int16, torch.int32, torch.int64)

Problem = dict[str, Any]


def boxes(
    shape: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    box_format: str = "xyxy",
    seed: int = 0,
) -> Tensor:
    """Boxes in [0, 64] whose sides are 4 to 24 before they round to the dtype."""
    random = torch.Generator().manual_seed(seed)
    corner = 40 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
    size = 4 + 20 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
    first = corner + size / 2 if box_format == "cxcywh" else corner
    second = corner + size if box_format == "xyxy" else size
    values = torch.cat((first, second), -1)
    return (values if dtype.is_floating_point else values.round()).to(device, dtype)


def problem(
    pairing: str,
    device: torch.device,
    pred_dtype: torch.dtype = torch.float32,
    target_dtype: torch.dtype = torch.float32,
    weight: torch.dtype | None = None,
    **options: Any,
) -> Problem:
    """Three images of five slots, some of which do not count, unless the pairing is dense.

    With offsets image 1 owns more rows than pred has slots, image 2 none, and the list's first row
    and its last two belong to nobody.
    """
    grid = (3, 5)
    rows = (12,) if pairing == "offsets" else grid
    pred_format = options.get("pred_format", "xyxy")
    target_format = options.get("target_format", "xyxy")
    result: Problem = {
        "pred": boxes(grid, device, pred_dtype, pred_format, seed=1),
        "target": boxes(rows, device, target_dtype, target_format, seed=2),
        **options,
    }
    counts = torch.rand(grid, generator=torch.Generator().manual_seed(3)).to(device) < 0.6
    if pairing == "zero_padded":
        result["zero_padded"] = True
        result["target"][~counts] = 0
    if pairing == "lengths":
        result["lengths"] = torch.tensor([5, 2, 0], device=device)
    if pairing == "mask":
        result["mask"] = counts
    if pairing == "offsets":
        result["offsets"] = torch.tensor([1, 3, 10, 10], device=device)
    if weight is not None:
        random = torch.Generator().manual_seed(4)
        result["weight"] = (2 * torch.rand(rows, generator=random)).to(device, weight)
    return result


def on_cpu(values: Problem) -> Problem:
    """Everything on the CPU, where the plain formula is."""
    return {name: v.cpu() if isinstance(v, Tensor) else v for name, v in values.items()}


PAIRING_ARGUMENTS = ("pred", "target", "lengths", "mask", "offsets", "zero_padded")


def pairs_of(values: Problem) -> list[tuple[int, int]]:
    """See counted_pairs."""
    on_host = on_cpu(values)
    return counted_pairs(**{name: on_host[name] for name in PAIRING_ARGUMENTS if name in on_host})


def excluded(values: Problem) -> tuple[Tensor, Tensor]:
    """True for the slots of pred, and for the rows of target, that no counted pair has."""
    pred, target = values["pred"], values["target"]
    slots = torch.ones(pred.shape[:-1].numel(), dtype=torch.bool)
    rows = torch.ones(target.shape[:-1].numel(), dtype=torch.bool)
    for slot, row in pairs_of(values):
        slots[slot] = rows[row] = False
    return (
        slots.reshape(pred.shape[:-1]).to(pred.device),
        rows.reshape(target.shape[:-1]).to(target.device),
    )


def with_overlaps(values: Problem) -> Problem:
    """The same problem where every other pair has a pred that is nearly its target."""
    pred = values["pred"].clone().reshape(-1, 4)
    rows = values["target"].shape[:-1].numel()
    pred_format = values.get("pred_format", "xyxy")
    larger = torch.tensor([1.03, 0.99, 1.05, 1.02], device=pred.device)
    near = larger * boxes((rows,), pred.device, torch.float64, pred_format, seed=2)
    for slot, row in pairs_of(values)[::2]:
        pred[slot] = near[row].to(pred.dtype)
    return {**values, "pred": pred.reshape(values["pred"].shape)}
