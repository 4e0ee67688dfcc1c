# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The problems that two builds are compared by: some thousand small ones, the same in each process.

Losses and pairings take turns, and for a matcher's cost losses and class terms, so that each meets
each some times; all else is drawn, by the CPU, from the problem's own name. A row of a list is in
two pairs at most: a GPU adds those in any order, and two numbers, added to 0, give the same bits in
either. More share a row in "crowded" problems, which are the CPU's alone. Tensors are contiguous:
that others, and nested ones, have the same bits is for tests/torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...common.loss_parameters import PARAMETERS

BY_INDEX = ("pred_index", "target_index", "both indices", "sets", "crowded")
PAIRINGS = ("dense", "mask", "zero_padded", "lengths", "offsets")
CLASS_TERMS = ("none", "softmax", "sigmoid", "focal", "given")
ROTATED = "rotated "  # begins the word of a loss of rotated boxes

FLOATING = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
TARGETS = (*FLOATING, torch.uint8, torch.int16, torch.int32, torch.int64)
INDICES = (torch.int64, torch.int32)
FORMATS = ("xyxy", "xywh", "cxcywh")
ANGLE_UNITS = {"radians": 3.0, "degrees": 180.0}  # in place of a format; and the largest angle here
EPS = ((1e-7, "add"), (0.0, "add"), (0.5, "add"), (0.0, "clamp"), (1e-3, "clamp"), (4.0, "clamp"))
LONGEST = 9000
KINDS = ("plain", "kinks", "wild")
SPECIAL = torch.tensor((torch.nan, torch.inf, -torch.inf, 1e30, -1e30, 1e-40, 0.0)).double()

Arguments = dict[str, Any]
Shape = tuple[int, ...]
Shapes = tuple[Shape, Shape, Shape]  # of pred, of target and of the losses
Record = dict[str, Tensor] | str  # what a build makes of a problem: results, or what its error says
Records = dict[str, Record]  # by problem


class Problem(NamedTuple):
    """A call of a function of boxloss.torch."""

    name: str
    function: str
    arguments: Arguments  # tensors on the CPU
    leaves: tuple[str, ...] = ()  # whose gradients are wanted
    is_twice: bool = False  # gradients of the gradients as well


def draw_problems(losses: list[str], device: str) -> Iterator[Problem]:
    """Of rotated boxes a third as many."""
    pairings = PAIRINGS + (BY_INDEX if device == "cpu" else BY_INDEX[:-1])
    of_cells: tuple[tuple[Callable[..., Problem], str, int, tuple[str, ...]], ...] = (
        (pair_problem, "pairs", 28, pairings),
        (cost_problem, "costs", 10, CLASS_TERMS),
        (cost_problem, "overlaps", 12, ("overlaps",)),
    )
    for make, kind, times, axis in of_cells:
        for loss, word in product(losses, axis):
            for number in range(times // 3 if loss.startswith(ROTATED) else times):
                yield make(Draw(f"{kind} {number}, {loss}, {word}"), loss, word)
    for number in range(60):
        yield assignment_problem(Draw(f"assignments {number}"))


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
        lengths = 0, self.integer(1, 40), self.integer(241, 600), LONGEST
        return self.random.choices(lengths, (3, 82, 14, 1))[0]

    def rand(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64)

    def integers(self, low: int, high: int, shape: Shape) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def strange(self, values: Tensor, kind: str) -> Tensor:
        """With a few special numbers, if the kind is wild."""
        special = SPECIAL[self.integers(0, len(SPECIAL) - 1, values.shape)]
        return special.where(self.rand(*values.shape) < 0.02 * (kind == "wild"), values)

    def boxes(self, shape: Shape, dtype: torch.dtype, box_format: str, kind: str) -> Tensor:
        """Near each other; of small integers, which tie, "kinks" are empty and inverted, too."""
        corner, size = 20 * self.rand(*shape, 2), 4 + 20 * self.rand(*shape, 2)
        if kind == "kinks":
            corner, size = (corner / 4).floor(), (size / 4).floor() - 2
        first = corner if box_format in ("xyxy", "xywh") else corner + size / 2
        boxes = torch.cat([first, corner + size if box_format == "xyxy" else size], -1)
        if box_format in ANGLE_UNITS:
            boxes = torch.cat([boxes, ANGLE_UNITS[box_format] * self.rand(*shape, 1)], -1)
        boxes = self.strange(boxes, kind)
        if not dtype.is_floating_point:
            boxes = boxes.nan_to_num(0.0).round().clamp(0 if dtype == torch.uint8 else -99, 255)
        return boxes.to(dtype)

    def both_boxes(
        self, loss: str, pred: Shape, target: Shape, kind: str, may_differ: bool
    ) -> Arguments:
        """Predictions and ground truth of these shapes, and what every function has of them."""
        word, (eps, eps_mode) = loss.removeprefix(ROTATED), self.choice(EPS)
        formats = [self.choice(FORMATS), self.choice(FORMATS)]
        if not may_differ:
            formats[1] = formats[0]
        options: Arguments = dict(zip(("pred_format", "target_format"), formats, strict=True))
        if word != loss:
            formats = [self.choice([*ANGLE_UNITS])] * 2
            options = {"angle_unit": formats[0]}
        return {
            "pred": self.boxes(pred, self.choice(FLOATING), formats[0], kind),
            "target": self.boxes(target, self.choice(TARGETS), formats[1], kind),
            **{"loss": word, "eps": eps, "eps_mode": eps_mode},
            **options,
            **PARAMETERS.get(word, {}),
        }

    def rows(self, shape: Shape, rows: int, most: int) -> Tensor:
        """Indices of a list, each at most that often; some are padding, or not in it."""
        count = torch.Size(shape).numel()
        found = torch.randperm(max(most * rows, count), generator=self.generator)[:count]
        found = (found % max(rows, 1)).where(found < most * rows, -1)
        outside = torch.tensor([-1, -7, rows, rows + 9])[self.integers(0, 3, (count,))]
        return found.where(self.rand(count) < 0.9, outside).reshape(shape).to(self.choice(INDICES))

    def offsets(self, most: int, images: int) -> tuple[Tensor, int]:
        """Of images with up to so many rows, some of nobody around them; and all rows' number."""
        counts = self.integers(0, most, (images,))
        first = self.integer(0, 2)
        offsets = torch.cat([torch.tensor([first]), first + counts.cumsum(0)])
        return offsets.to(self.choice(INDICES)), int(offsets[-1]) + self.integer(0, 2)

    def problem(self, function: str, kind: str, arguments: Arguments, **more: Any) -> Problem:
        return Problem(f"{self.name}, {function}, {kind}", function, arguments, **more)


def pair_problem(draw: Draw, loss: str, pairing: str) -> Problem:
    function = draw.choice(("box_loss", "box_losses"))
    kind = draw.choice(KINDS[:2] if pairing == "crowded" else KINDS)
    make = by_index if pairing in BY_INDEX else paired
    (preds, targets, losses), pairs = make(draw, pairing)
    # L1 wants equal formats.
    arguments = draw.both_boxes(loss, preds, targets, kind, function == "box_loss") | pairs
    arguments["reduction"] = draw.choice(("none", "sum", "mean"))
    if pairing == "zero_padded":
        arguments["target"][draw.rand(*targets) < 0.4] = 0
    if draw.happens(0.6):
        arguments["weight"] = (2 * draw.rand(*losses)).to(draw.choice(FLOATING))
    if arguments["reduction"] == "mean" and draw.happens(0.4):
        sets = losses[:-1] if pairing in ("sets", "crowded") and draw.happens(0.5) else ()
        numbers = draw.integers(0 if kind == "wild" else 1, 9, sets)
        numbers = numbers.to(draw.choice((torch.float32, torch.float64, *INDICES)))
        arguments["normalizer"] = numbers if draw.happens(0.8) or sets else 3.5
    leaves = tuple(
        name
        for name, share in (("pred", 0.85), ("target", 0.5), ("weight", 0.6))
        if name in arguments and arguments[name].is_floating_point() and draw.happens(share)
    )
    function = "rotated_box_loss" if loss.startswith(ROTATED) else function
    return draw.problem(function, kind, arguments, leaves=leaves, is_twice=draw.happens(0.06))


def paired(draw: Draw, pairing: str) -> tuple[Shapes, Arguments]:
    """Shapes, and what tells the pairs."""
    slots = draw.length()
    images = 2 if slots == LONGEST else draw.integer(1, 4)
    grid: Shape = (images, slots)
    if pairing in ("dense", "mask"):
        shape = draw.choice(((slots,), grid, (images, 1, slots), ()))
        mask = draw.rand(*shape) < draw.choice((0.1, 0.9))
        return (shape,) * 3, {"mask": mask} if pairing == "mask" else {}
    if pairing == "zero_padded":
        return (grid,) * 3, {"zero_padded": True}
    if pairing == "lengths":
        lengths = draw.integers(-1, slots + 1, (images,)).to(draw.choice(INDICES))
        return (grid,) * 3, {"lengths": lengths}
    offsets, rows = draw.offsets(slots + 2, images)
    if draw.happens(0.1):
        offsets[0], offsets[-1] = -3, rows + 5  # they are clamped
    return (grid, (rows,), (rows,)), {"offsets": offsets}


def by_index(draw: Draw, pairing: str) -> tuple[Shapes, Arguments]:
    slots, images, sets, most = draw.length(), draw.integer(1, 4), draw.integer(1, 3), 2
    preds: Shape = draw.choice(((images, slots), (slots,), (2, images, slots)))
    targets: Shape = (draw.length(),)
    pairs: Shape = (sets, max(slots // sets, 1)) if pairing == "sets" else (max(slots // 2, 1),)
    if slots == LONGEST:  # longer than a task, the lists as well
        preds, targets, pairs = (2, 2, slots), (4 * slots,), (*pairs[:-1], 2 * slots)
    if pairing == "crowded":
        preds, targets, pairs, most = (4, 25), (60,), (sets, 300), 60
    indices = {
        "pred_index": draw.rows(pairs, torch.Size(preds).numel(), most),
        "target_index": draw.rows(pairs, targets[0], most),
    }
    if pairing in indices:
        indices = {pairing: indices[pairing]}
    preds = preds if "pred_index" in indices else pairs
    return (preds, targets if "target_index" in indices else pairs, pairs), indices


def cost_problem(draw: Draw, loss: str, term: str) -> Problem:
    """Of matching_cost; overlaps are pairwise_iou's."""
    kind = draw.choice(KINDS)
    images, queries = draw.integer(1, 3), draw.length() % 1000
    offsets, rows = draw.offsets(draw.choice((1, 6, 40)), images)
    lead = draw.choice(((), (1,), (3,), (2, 2)))
    l1_weight = 0.0 if term == "overlaps" else draw.choice((0.0, 5.0, 5.0))
    arguments = draw.both_boxes(loss, (*lead, images, queries), (rows,), kind, l1_weight == 0)
    arguments["offsets"] = offsets
    if term == "overlaps":
        return draw.problem("pairwise_iou", kind, arguments)
    options = {"iou_weight": (0.0, 2.0), "class_weight": (0.0, 1.0), "nonfinite": (None, 1e6)}
    if loss.startswith(ROTATED):
        options["angle_weight"] = (0.0, 3.0)
    if term == "focal":
        options |= {"focal_alpha": (0.25, 0.5, -1.0), "focal_gamma": (2.0, 0.0, 1.5)}
    arguments |= {name: draw.choice(each) for name, each in options.items()}
    arguments["l1_weight"] = l1_weight
    if term == "given":
        shape = (*draw.choice((lead, lead[1:])), queries, rows)
        given = draw.strange(4 * draw.rand(*shape) - 2, kind)
        arguments["class_cost"] = given.to(draw.choice(FLOATING))
    elif term != "none":
        classes = draw.choice((1, 5, 80))
        logits = draw.strange(12 * draw.rand(*lead, images, queries, classes) - 6, kind)
        arguments["logits"] = logits.to(draw.choice(FLOATING))
        arguments["labels"] = draw.integers(-1, classes, (rows,)).to(draw.choice(INDICES))
        arguments["class_mode"] = term
    return draw.problem("matching_cost", kind, arguments)


def assignment_problem(draw: Draw) -> Problem:
    """Costs of few values tie: which pair is taken is a result, too."""
    offsets, rows = draw.offsets(draw.choice((3, 30)), draw.integer(1, 4))
    kind, groups = draw.choice(KINDS), draw.choice((1, 1, 2, 3))
    shape = (*draw.choice(((), (1,), (3,))), groups * draw.integer(1, 20), rows)
    cost = draw.strange(draw.integers(0, 9, shape).double(), kind).to(draw.choice(FLOATING[::3]))
    arguments = {"cost": cost, "offsets": offsets, "groups": 7 if draw.happens(0.05) else groups}
    return draw.problem("hungarian_match", kind, arguments)
