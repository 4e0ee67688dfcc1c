# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Random problems: keyword arguments for giou_loss, box_loss and box_losses."""

from typing import Any, get_args

import torch
from boxloss._options import Loss, RotatedLoss
from formula import counted_pairs, shape_of_losses
from torch import Tensor

LOSSES: tuple[str, ...] = get_args(Loss)
ROTATED_LOSSES: tuple[str, ...] = get_args(RotatedLoss)
PAIRINGS = ("dense", "zero_padded", "lengths", "mask", "offsets", "indices", "sets")
INDICES = ("pred_index", "target_index")
FORMATS = ("xyxy", "xywh", "cxcywh")
REDUCTIONS = ("none", "sum", "mean")
FLOATING = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
TARGETS = (*FLOATING, torch.uint8, torch.int16, torch.int32, torch.int64)

# Of losses that have numbers of their own.
PARAMETERS: dict[str, dict[str, float]] = {
    "alpha_iou": {"alpha": 2.5},
    "nwd": {"constant": 12.0},
    "mpdiou": {"image_width": 64.0, "image_height": 48.0},
    "inner_iou": {"ratio": 0.75},
    "probiou": {"floor": 0.25},
    "kld": {"tau": 1.5, "floor": 0.5},
    "gwd": {"tau": 2.0, "floor": 0.125},
    "kfiou": {"floor": 2.0},
}
ANGLE_UNITS = {"radians": 3.0, "degrees": 180.0}  # with the largest angle here

Problem = dict[str, Any]


def boxes(
    shape: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    box_format: str = "xyxy",
    seed: int = 0,
) -> Tensor:
    """Boxes in [0, 64] whose sides are 4 to 24 before they round to the dtype.

    Or rotated boxes, whose format is their unit of angles.
    """
    random = torch.Generator().manual_seed(seed)
    corner = 40 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
    size = 4 + 20 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
    first = corner if box_format in ("xyxy", "xywh") else corner + size / 2
    second = corner + size if box_format == "xyxy" else size
    values = torch.cat((first, second), -1)
    if box_format in ANGLE_UNITS:
        turn = torch.rand(*shape, 1, generator=random, dtype=torch.float64)
        values = torch.cat((values, ANGLE_UNITS[box_format] * turn), -1)
    return (values if dtype.is_floating_point else values.round()).to(device, dtype)


def problem(
    pairing: str,
    device: torch.device,
    pred_dtype: torch.dtype = torch.float32,
    target_dtype: torch.dtype = torch.float32,
    weight: torch.dtype | None = None,
    grid: tuple[int, ...] = (3, 5),
    **options: Any,
) -> Problem:
    """Three images of five slots, some of which do not count, unless the pairing is dense.

    Of rotated boxes, if there is an `angle_unit`.

    With offsets image 1 owns more rows than pred has slots, image 2 none, and the list's first row
    and its last two belong to nobody. With indices, in two sets for "sets", no row is in more than
    two pairs, and some are in none.
    """
    options |= PARAMETERS.get(options.get("loss", ""), {})
    if pairing in ("indices", "sets"):
        shape = (10,) if pairing == "indices" else (2, 7)
        return indexed(shape, device, pred_dtype, target_dtype, weight, **options)
    rows = (12,) if pairing == "offsets" else grid
    result: Problem = {
        "pred": boxes(grid, device, pred_dtype, format_of("pred", options), seed=1),
        "target": boxes(rows, device, target_dtype, format_of("target", options), seed=2),
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
    return result if weight is None else {**result, **random_weight(result, weight)}


def format_of(name: str, options: Problem) -> str:
    """Of pred or target, as `boxes` takes it."""
    return options.get("angle_unit") or options.get(f"{name}_format", "xyxy")


def random_weight(values: Problem, dtype: torch.dtype) -> dict[str, Tensor]:
    """Of the shape that it must have, in [0, 2]."""
    shape = shape_of_losses(**only_pairing(values))
    random = torch.Generator().manual_seed(4)
    return {"weight": (2 * torch.rand(shape, generator=random)).to(values["pred"].device, dtype)}


def indexed(
    shape: tuple[int, ...],
    device: torch.device,
    pred_dtype: torch.dtype = torch.float32,
    target_dtype: torch.dtype = torch.float32,
    weight: torch.dtype | None = None,
    given: tuple[str, ...] = INDICES,
    pred_list: tuple[int, ...] = (3, 5),
    target_list: tuple[int, ...] = (12,),
    most: int = 2,
    **options: Any,
) -> Problem:
    """Pairs by index; an operand whose index is not given has the indices' shape."""
    result: Problem = {**options}
    for seed, (name, dtype, rows, index_dtype) in enumerate(
        (
            ("pred", pred_dtype, pred_list, torch.int64),
            ("target", target_dtype, target_list, torch.int32),
        )
    ):
        index = f"{name}_index"
        if index in given:
            numbers = some_rows(shape, torch.Size(rows).numel(), 5 + seed, most)
            result[index] = numbers.to(device, index_dtype)
        box_format = format_of(name, options)
        own = rows if index in given else shape
        result[name] = boxes(own, device, dtype, box_format, seed=1 + seed)
    return result if weight is None else {**result, **random_weight(result, weight)}


def some_rows(shape: tuple[int, ...], rows: int, seed: int, most: int = 2) -> Tensor:
    """An index of a list, with some that lie outside; each row at most that often."""
    count = torch.Size(shape).numel()
    assert count <= most * rows
    random = torch.Generator().manual_seed(seed)
    index = torch.randperm(most * rows, generator=random)[:count] % rows
    index[seed % 3 :: 7] = -1
    index[seed % 5 :: 11] = rows
    return index.reshape(shape)


def on_cpu(values: Problem) -> Problem:
    """Everything on the CPU, where the plain formula is."""
    return {name: v.cpu() if isinstance(v, Tensor) else v for name, v in values.items()}


PAIRING_ARGUMENTS = ("pred", "target", "lengths", "mask", "offsets", "zero_padded", *INDICES)


def only_pairing(values: Problem) -> Problem:
    """What tells which pairs there are."""
    return {name: values[name] for name in PAIRING_ARGUMENTS if name in values}


def pairs_of(values: Problem) -> list[tuple[int, int, int]]:
    """See counted_pairs."""
    return counted_pairs(**only_pairing(on_cpu(values)))


def is_in_sets(values: Problem) -> bool:
    """Has each set a reduced loss of its own?"""
    return any(name in values and values[name].dim() == 2 for name in INDICES)


def excluded(values: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """True for the rows of pred, of target and of the loss that no counted pair has."""
    shapes = [values[name].shape[:-1] for name in ("pred", "target")]
    shapes.append(shape_of_losses(**only_pairing(values)))
    results = [torch.ones(shape.numel(), dtype=torch.bool) for shape in shapes]
    for pair in pairs_of(values):
        for result, row in zip(results, pair, strict=True):
            result[row] = False
    device = values["pred"].device
    pred, target, loss = (
        result.reshape(shape).to(device) for result, shape in zip(results, shapes, strict=True)
    )
    return pred, target, loss


def with_overlaps(values: Problem) -> Problem:
    """The same problem where every other pair has a pred that is nearly its target."""
    numbers = values["pred"].shape[-1]
    pred = values["pred"].clone().reshape(-1, numbers)
    rows = values["target"].shape[:-1].numel()
    larger = torch.tensor([1.03, 0.99, 1.05, 1.02, 1.04], device=pred.device)[:numbers]
    near = larger * boxes((rows,), pred.device, torch.float64, format_of("pred", values), seed=2)
    for slot, row, _ in pairs_of(values)[::2]:
        pred[slot] = near[row].to(pred.dtype)
    return {**values, "pred": pred.reshape(values["pred"].shape)}
