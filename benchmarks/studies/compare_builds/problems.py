# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The problems that two builds are compared by: some thousand small ones, the same in each process.

Losses and pairings take turns, and for a matcher's cost losses and class terms, so that each meets
each some thirty times; all else is drawn, by the CPU, from the problem's own number. A row of a
list is in two pairs at most: a GPU adds those in any order, and two numbers, added to 0, give the
same bits in either. More share a row in "crowded" problems alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ...common.loss_parameters import PARAMETERS

PAIRINGS = (
    "dense",
    "mask",
    "zero_padded",
    "lengths",
    "offsets",
    "nested",
    "nested target",
    "pred_index",
    "target_index",
    "both indices",
    "sets",
    "crowded",
)
CLASS_TERMS = ("none", "softmax", "sigmoid", "focal", "given")
ROTATED = "rotated "  # begins the word of a loss of rotated boxes
OF_EACH_CELL = {
    **{"pairs": 28, "costs": 10, "overlaps": 12},
    **{"rotated pairs": 7, "rotated costs": 5, "rotated overlaps": 6},
}
ASSIGNMENTS = 60

FLOATING = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
TARGETS = (*FLOATING, torch.uint8, torch.int16, torch.int32, torch.int64)
INDICES = (torch.int64, torch.int32)
FORMATS = ("xyxy", "xywh", "cxcywh")
ANGLE_UNITS = {"radians": 3.0, "degrees": 180.0}  # in place of a format; and the largest angle here
EPS = ((1e-7, "add"), (0.0, "add"), (0.5, "add"), (0.0, "clamp"), (1e-3, "clamp"), (4.0, "clamp"))
NORMALIZERS = (torch.float32, torch.float64, torch.int32, torch.int64)
LONGEST = 9000
KINDS = ("plain", "kinks", "wild")
SPECIAL = (torch.nan, torch.inf, -torch.inf, 1e30, -1e30, 1e-40, 0.0)

RUNS = ", runs"  # ends the name of a result that holds some, along its first dimension

Arguments = dict[str, Any]
Shape = tuple[int, ...]
Record = dict[str, Tensor] | str  # what a build makes of a problem: results, or what its error says
Records = dict[str, Record]  # by problem


def scattered(values: Tensor) -> Tensor:
    return torch.stack([values, values], -1)[..., 0]


def unaligned(values: Tensor) -> Tensor:
    flat = values.flatten()
    return torch.cat([flat[:1], flat])[len(flat[:1]) :].view(values.shape)


# How a tensor may lie in memory. Copies to another device lose it, so it is laid out there.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "sliced": lambda values: torch.cat([values, values], -1)[..., : values.shape[-1]],
    "planes": lambda values: values.movedim(-1, 0).contiguous().movedim(0, -1),
    "transposed": lambda values: values.transpose(0, -2).contiguous().transpose(0, -2),
    "expanded": lambda values: values[:1].expand_as(values),
    "scattered": scattered,
    "unaligned": unaligned,
}
LAYOUTS_OF_WEIGHTS = ("expanded", "scattered", "unaligned")


@dataclass
class Problem:
    """A call of a function of boxloss.torch."""

    name: str
    function: str
    arguments: Arguments  # tensors on the CPU
    layouts: dict[str, str] = field(default_factory=dict)  # by argument, if not contiguous
    jagged: Tensor | None = None  # offsets of the arguments that are values of nested tensors
    nested: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()  # whose gradients are wanted
    incoming: str = "random"  # the gradient of what is not reduced: "random" or "ones"
    is_twice: bool = False  # gradients of the gradients as well

    @property
    def is_crowded(self) -> bool:
        """Do so many pairs share a row that a GPU's bits vary from run to run?"""
        return ", crowded, " in self.name


def draw_problems(losses: list[str]) -> Iterator[Problem]:
    for prefix in ("", ROTATED):
        words = [each for each in losses if each.startswith(ROTATED) == bool(prefix)]
        for draw, loss, pairing in cells(prefix + "pairs", words, PAIRINGS):
            yield pair_problem(draw, loss, pairing)
        for draw, loss, term in cells(prefix + "costs", words, CLASS_TERMS):
            yield cost_problem(draw, loss, term)
        for draw, loss in cells(prefix + "overlaps", words):
            yield overlap_problem(draw, loss)
    for number in range(ASSIGNMENTS):
        yield assignment_problem(Draw(f"assignments {number}"))


def cells(kind: str, *axes: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """What is drawn for each problem of a kind, and which losses, pairings and so on it has."""
    for number, cell in enumerate([*product(*axes)] * OF_EACH_CELL[kind]):
        yield Draw(f"{kind} {number}"), *cell


class Draw:
    """What is drawn for one problem."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.random = random.Random(name)
        self.generator = torch.Generator().manual_seed(self.random.getrandbits(32))
        self.choice, self.integer = self.random.choice, self.random.randint

    def happens(self, share: float) -> bool:
        return self.random.random() < share

    def length(self) -> int:
        """Of a row of boxes: mostly short, some longer than a tile, a few longer than a task."""
        share = self.random.random()
        if share < 0.03:
            return 0
        if share < 0.85:
            return self.integer(1, 40)
        return self.integer(241, 600) if share < 0.99 else LONGEST

    def rand(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def boxes(
        self, shape: tuple[int, ...], dtype: torch.dtype, box_format: str, kind: str = "plain"
    ) -> Tensor:
        """Near each other; of small integers, which tie, "kinks" are empty and inverted, too."""
        if kind == "kinks":
            corner = self.integers(0, 4, (*shape, 2)).double()
            size = self.integers(-1, 4, (*shape, 2)).double()
        else:
            corner, size = 20 * self.rand(*shape, 2), 4 + 20 * self.rand(*shape, 2)
        first = corner if box_format in ("xyxy", "xywh") else corner + size / 2
        boxes = torch.cat([first, corner + size if box_format == "xyxy" else size], -1)
        if box_format in ANGLE_UNITS:
            turn = ANGLE_UNITS[box_format] * self.rand(*shape, 1)
            boxes = torch.cat([boxes, turn], -1)
        if kind == "wild":
            boxes = self.with_special(boxes)
        if not dtype.is_floating_point:
            boxes = boxes.nan_to_num(0.0).round().clamp(0 if dtype == torch.uint8 else -99, 255)
        return boxes.to(dtype)

    def both_boxes(
        self, loss: str, pred: Shape, target: Shape, formats: tuple[str, str], kind: str
    ) -> Arguments:
        """Predictions and ground truth of these shapes, and what every function has of them."""
        eps, eps_mode = self.choice(EPS)
        if formats[0] in ANGLE_UNITS:
            options = {"angle_unit": formats[0]}
        else:
            options = {"pred_format": formats[0], "target_format": formats[1]}
        loss = loss.removeprefix(ROTATED)
        return {
            "pred": self.boxes(pred, self.choice(FLOATING), formats[0], kind),
            "target": self.boxes(target, self.choice(TARGETS), formats[1], kind),
            "loss": loss,
            **options,
            "eps": eps,
            "eps_mode": eps_mode,
            **PARAMETERS.get(loss, {}),
        }

    def with_special(self, values: Tensor) -> Tensor:
        special = torch.tensor(SPECIAL).double()[self.integers(0, len(SPECIAL) - 1, values.shape)]
        return special.where(self.rand(*values.shape) < 0.02, values)

    def rows(self, shape: tuple[int, ...], rows: int, most: int) -> Tensor:
        """Indices of a list, each at most that often; some are padding, or not in it."""
        count = torch.Size(shape).numel()
        found = torch.randperm(max(most * rows, count), generator=self.generator)[:count]
        found = (found % max(rows, 1)).where(found < most * rows, -1)
        outside = torch.tensor([-1, -7, rows, rows + 9])[self.integers(0, 3, (count,))]
        return found.where(self.rand(count) < 0.9, outside).reshape(shape).to(self.choice(INDICES))

    def offsets(self, most: int, images: int | None = None, gap: int = 2) -> tuple[Tensor, int]:
        """Of images with up to so many rows, some of nobody around them; and all rows' number."""
        counts = self.integers(0, most, (images or self.integer(1, 4),))
        first = self.integer(0, gap)
        offsets = torch.cat([torch.tensor([first]), first + counts.cumsum(0)])
        total = int(offsets[-1]) + self.integer(0, gap)
        return offsets.to(self.choice(INDICES)), total

    def layouts(self, arguments: Arguments, names: tuple[str, ...]) -> dict[str, str]:
        """Of a third of those that are given."""
        return {
            name: self.choice(LAYOUTS_OF_WEIGHTS if name == "weight" else tuple(LAYOUTS))
            for name in names
            if name in arguments and arguments[name].dim() > 1 and self.happens(0.35)
        }


def pair_problem(draw: Draw, loss: str, pairing: str) -> Problem:
    if loss.startswith(ROTATED):
        function = "rotated_box_loss"
        pred_format = target_format = draw.choice(tuple(ANGLE_UNITS))
    else:  # L1 wants equal formats
        function = draw.choice(("box_loss", "box_losses"))
        pred_format = draw.choice(FORMATS)
        target_format = pred_format if function == "box_losses" else draw.choice(FORMATS)
    is_crowded = pairing == "crowded"
    kind = draw.choice(KINDS[:2] if is_crowded else KINDS)
    pred_shape, target_shape, losses, pairs, jagged = paired(draw, pairing)
    formats = pred_format, target_format
    arguments = draw.both_boxes(loss, pred_shape, target_shape, formats, kind) | pairs
    arguments["reduction"] = draw.choice(("none", "sum", "mean"))
    if pairing == "zero_padded":
        arguments["target"][draw.rand(*target_shape) < 0.4] = 0
    if draw.happens(0.6):
        arguments["weight"] = (2 * draw.rand(*losses)).to(draw.choice(FLOATING))
    if arguments["reduction"] == "mean" and draw.happens(0.4):
        sets = losses[:-1] if pairing in ("sets", "crowded") and draw.happens(0.5) else ()
        numbers = draw.integers(0 if kind == "wild" else 1, 9, sets).to(draw.choice(NORMALIZERS))
        arguments["normalizer"] = numbers if draw.happens(0.8) or sets else 3.5

    dtypes = [str(arguments[name].dtype) for name in ("pred", "target")]
    nested: tuple[str, ...] = ()
    if pairing.startswith("nested"):
        also = tuple(name for name in ("weight", "mask") if name in arguments and draw.happens(0.5))
        nested = (*(("pred",) if pairing == "nested" else ()), "target", *also)
    leaves = tuple(
        name
        for name, share in (("pred", 0.85), ("target", 0.5), ("weight", 0.6))
        if name in arguments and arguments[name].is_floating_point() and draw.happens(share)
    )
    words = (draw.name, function, loss, pairing, kind, *formats, arguments["reduction"], *dtypes)
    return Problem(
        ", ".join(words),
        function,
        arguments,
        draw.layouts(arguments, ("pred", "target", "weight")),
        jagged,
        nested,
        leaves,
        draw.choice(("random", "ones")),
        is_twice=not nested and draw.happens(0.06),  # torch cannot, of nested results
    )


def paired(draw: Draw, pairing: str) -> tuple[Shape, Shape, Shape, Arguments, Tensor | None]:
    """Shapes of pred, of target and of the losses; what tells the pairs; offsets if nested."""
    images, slots = draw.integer(1, 4), draw.length()
    if slots == LONGEST:
        images = 2
    grid: Shape = (images, slots)
    if pairing in ("dense", "mask"):
        shape = draw.choice(((slots,), grid, (images, 1, slots), ()))
        mask = draw.rand(*shape) < draw.choice((0.1, 0.9))
        return shape, shape, shape, {"mask": mask} if pairing == "mask" else {}, None
    if pairing == "zero_padded":
        return grid, grid, grid, {"zero_padded": True}, None
    if pairing == "lengths":
        lengths = draw.integers(-1, slots + 1, (images,)).to(draw.choice(INDICES))
        return grid, grid, grid, {"lengths": lengths}, None
    if pairing == "offsets":
        offsets, rows = draw.offsets(slots + 2, images)
        if draw.happens(0.1):
            offsets[0], offsets[-1] = -3, rows + 5  # they are clamped
        return grid, (rows,), (rows,), {"offsets": offsets}, None
    if pairing.startswith("nested"):
        offsets, rows = draw.offsets(slots + 2, images, gap=0)
        if pairing == "nested target":
            return grid, (rows,), (rows,), {}, offsets.long()
        some = {"mask": draw.rand(rows) < 0.7} if draw.happens(0.3) else {}
        return (rows,), (rows,), (rows,), some, offsets.long()

    is_crowded = pairing == "crowded"
    preds: Shape = draw.choice((grid, (slots,), (2, images, slots)))
    targets: Shape = (draw.length(),)
    sets = draw.integer(1, 3)
    pairs: Shape = (max(slots // 2, 1),) if pairing != "sets" else (sets, max(slots // sets, 1))
    if slots == LONGEST:  # longer than a task, the lists as well
        preds, targets, pairs = (2, 2, slots), (4 * slots,), (*pairs[:-1], 2 * slots)
    if is_crowded:
        preds, targets, pairs = (4, 25), (60,), (sets, 300)
    most = 60 if is_crowded else 2
    indices: Arguments = {}
    if pairing != "target_index":
        indices["pred_index"] = draw.rows(pairs, torch.Size(preds).numel(), most)
    if pairing != "pred_index":
        indices["target_index"] = draw.rows(pairs, targets[0], most)
    return (
        preds if "pred_index" in indices else pairs,
        targets if "target_index" in indices else pairs,
        pairs,
        indices,
        None,
    )


def cost_problem(draw: Draw, loss: str, term: str) -> Problem:
    is_rotated = loss.startswith(ROTATED)
    of_boxes = tuple(ANGLE_UNITS) if is_rotated else FORMATS
    box_format, kind = draw.choice(of_boxes), draw.choice(KINDS)
    images, queries = draw.integer(1, 3), draw.length() % 1000
    offsets, rows = draw.offsets(draw.choice((1, 6, 40)), images)
    lead = draw.choice(((), (1,), (3,), (2, 2)))
    l1_weight = draw.choice((0.0, 5.0, 5.0))
    # With L1 other formats are refused.
    may_differ = not is_rotated and (l1_weight == 0 or draw.happens(0.05))
    formats = box_format, draw.choice(FORMATS) if may_differ else box_format
    arguments = {
        **draw.both_boxes(loss, (*lead, images, queries), (rows,), formats, kind),
        "offsets": offsets,
        "iou_weight": draw.choice((0.0, 2.0, 2.0)),
        "l1_weight": l1_weight,
        "class_weight": draw.choice((0.0, 1.0, 2.0)),
        "nonfinite": draw.choice((None, 1e6)),
    }
    if is_rotated:
        arguments["angle_weight"] = draw.choice((0.0, 1.0, 3.0))
    if term == "given":
        shape = (*draw.choice((lead, lead[1:])), queries, rows)
        given = 4 * draw.rand(*shape) - 2
        given = draw.with_special(given) if kind == "wild" else given
        arguments["class_cost"] = given.to(draw.choice(FLOATING))
    elif term != "none":
        classes = draw.choice((1, 5, 80))
        logits = 12 * draw.rand(*lead, images, queries, classes) - 6
        logits = draw.with_special(logits) if kind == "wild" else logits
        arguments["logits"] = logits.to(draw.choice(FLOATING))
        arguments["labels"] = draw.integers(-1, classes, (rows,)).to(draw.choice(INDICES))
        arguments["class_mode"] = term
        if term == "focal":
            arguments["focal_alpha"] = draw.choice((0.25, 0.5, -1.0))
            arguments["focal_gamma"] = draw.choice((2.0, 0.0, 1.5))
    layouts = draw.layouts(arguments, ("pred", "target", "logits", "class_cost"))
    words = ("matching_cost", loss, term, kind, *formats)
    return Problem(", ".join((draw.name, *words)), "matching_cost", arguments, layouts)


def overlap_problem(draw: Draw, loss: str) -> Problem:
    images, kind = draw.integer(1, 3), draw.choice(KINDS)
    offsets, rows = draw.offsets(draw.choice((1, 6, 40)), images)
    shape = (*draw.choice(((), (2,))), images, draw.length() % 1000)
    formats = draw.choice(FORMATS), draw.choice(FORMATS)
    if loss.startswith(ROTATED):
        formats = (draw.choice(tuple(ANGLE_UNITS)),) * 2
    arguments = draw.both_boxes(loss, shape, (rows,), formats, kind)
    arguments["offsets"] = offsets
    layouts = draw.layouts(arguments, ("pred", "target"))
    name = f"{draw.name}, pairwise_iou, {loss}, {kind}"
    return Problem(name, "pairwise_iou", arguments, layouts)


def assignment_problem(draw: Draw) -> Problem:
    """Costs of few values tie: which pair is taken is a result, too."""
    offsets, rows = draw.offsets(draw.choice((3, 30)))
    groups = draw.choice((1, 1, 2, 3))
    queries = groups * draw.integer(1, 20)
    cost = draw.integers(0, 9, (*draw.choice(((), (1,), (3,))), queries, rows)).double()
    if draw.happens(0.1):
        cost = draw.with_special(cost)
    arguments: Arguments = {
        "cost": cost.to(draw.choice((torch.float32, torch.float64))),
        "offsets": offsets,
        "groups": 7 if draw.happens(0.05) else groups,
    }
    name = f"{draw.name}, hungarian_match, groups {groups}, {queries} queries, {rows} boxes"
    return Problem(name, "hungarian_match", arguments)
