# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does the assignment alone take, beside SciPy's?

hungarian_match is timed on costs that lie on the device, SciPy in a plain loop over the same
problems, after one copy where the device is a GPU. Costs are RT-DETR's, of queries x boxes in each
image: half-trained, most queries are near a box of their own; random, queries are anywhere;
crowded, they are near a fifth of the boxes; untrained, all are nearly equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from boxloss.torch import MatchResult, hungarian_match, matching_cost
from torch import Tensor

from ..common.losses import scipy_assignment
from ..runner.agreement import DisagreementError
from ..runner.run import Row, Run, Variant

Matrix = np.ndarray[Any, Any]

# --- Cases ---

KINDS = ("half-trained", "random", "crowded", "untrained")
CLASSES = 80
TRAINED = 0.6  # of the queries, in a half-trained model
CROWD = 0.2  # of the boxes, which all queries are near to
NEAR = 0.02  # by how much boxes that are near differ, of the picture
UNSURE = -4.6  # logits that focal losses begin with: a probability of 0.01
SURE = 4.0  # by how much a query knows its class
ALIKE = 0.002, 0.01  # by how much boxes and logits of an untrained model differ


@dataclass(frozen=True)
class Size:
    """Of the problems: `queries` are a group's."""

    queries: int
    boxes: int
    layers: int = 7
    images: int = 16
    groups: int = 1


SIZES = {
    "300 x 7": Size(300, 7),
    "300 x 20": Size(300, 20),
    "300 x 150": Size(300, 150),
    "900 x 30": Size(900, 30),
    "1000 x 1000": Size(1000, 1000, layers=1, images=4),
    "13 groups of 300 x 7": Size(300, 7, layers=1, groups=13),
}
QUICK_SIZES = {
    name: Size(30, min(size.boxes, 40) // 2, 2, 2, min(size.groups, 3))
    for name, size in SIZES.items()
}
CASES = tuple(SIZES)


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    size: Size
    cost: Tensor  # (layers, groups * queries, images * boxes)
    offsets: Tensor  # (images + 1)

    @property
    def columns(self) -> Row:
        size = self.size
        problems = size.layers * size.images * size.groups
        return {"case": self.name, "kind": self.kind, "problems": problems}

    def blocks(self, cost: Matrix) -> Iterator[Matrix]:
        """Of each layer, image and group, as views."""
        size = self.size
        for layer in cost:
            for image in range(size.images):
                columns = layer[:, image * size.boxes : (image + 1) * size.boxes]
                yield from columns.reshape(size.groups, size.queries, size.boxes)


def make_case(name: str, kind: str, size: Size, device: torch.device) -> Case:
    """Made on the CPU: the same numbers on every device."""
    generator = torch.Generator().manual_seed(0)
    truths = torch.rand(size.images, size.boxes, 4, generator=generator)
    truths = torch.cat([truths[..., :2], 0.05 + 0.3 * truths[..., 2:]], -1)  # cxcywh
    labels = torch.randint(CLASSES, (size.images, size.boxes), generator=generator)
    lead = (size.layers, size.images, size.groups * size.queries)
    boxes, logits = _predictions(kind, lead, truths, labels, generator)
    offsets = torch.arange(size.images + 1) * size.boxes
    cost = matching_cost(
        boxes,
        truths.flatten(0, 1),
        offsets,
        logits=logits,
        labels=labels.flatten(),
        class_weight=2,
        class_mode="focal",
    )
    return Case(name, kind, size, cost.to(device), offsets.to(device))


def _predictions(
    kind: str,
    lead: tuple[int, int, int],
    truths: Tensor,
    labels: Tensor,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Boxes and logits."""

    def noise(*size: int) -> Tensor:
        return torch.randn(*lead, *size, generator=generator)

    if kind == "untrained":
        of_boxes, of_logits = ALIKE
        return 0.5 + of_boxes * noise(4), UNSURE + of_logits * noise(CLASSES)
    logits = UNSURE + noise(CLASSES)
    anywhere = torch.rand(*lead, 4, generator=generator)
    if kind == "random":
        return anywhere, logits
    count = truths.shape[1]
    known = count if kind == "half-trained" else max(1, round(CROWD * count))
    own = torch.arange(lead[1])[:, None], torch.randint(known, lead, generator=generator)
    knows = torch.rand(lead, generator=generator) < (TRAINED if kind == "half-trained" else 1)
    near = (truths[own] + NEAR * noise(4)).clamp(min=0.01)
    boxes = torch.where(knows[..., None], near, anywhere)
    return boxes, logits.scatter_add(-1, labels[own][..., None], SURE * knows[..., None].float())


# --- Variants ---


def load_boxloss(case: Case) -> Callable[[], MatchResult]:
    return partial(hungarian_match, case.cost, case.offsets, groups=case.size.groups)


def load_scipy(case: Case) -> Callable[[], list[tuple[Matrix, Matrix]]]:
    assign = scipy_assignment()
    return lambda: [assign(block) for block in case.blocks(case.cost.cpu().numpy())]


VARIANTS: dict[str, Variant[Case, Callable[[], Any]]] = {
    "boxloss": Variant(load_boxloss),
    "SciPy": Variant(load_scipy),
}


def check(case: Case, found: MatchResult, expected: list[tuple[Matrix, Matrix]]) -> None:
    """DisagreementError, unless all indices are SciPy's."""
    size = case.size
    wanted = np.full((size.layers * size.images, size.groups, size.queries), -1)
    for problem, (queries, boxes) in enumerate(expected):
        image, group = divmod(problem, size.groups)
        wanted[image, group, queries] = boxes + image % size.images * size.boxes
    if not np.array_equal(wanted.ravel(), found.target_of_query.cpu().numpy().ravel()):
        raise DisagreementError(f"{case.name}, {case.kind}: another assignment than SciPy's")


# --- Measuring ---


def measure(run: Run) -> None:
    for case in run.each(cases(run)):
        calls = run.load(VARIANTS, case)
        check(case, calls["boxloss"](), calls["SciPy"]())
        run.time(case.columns, calls, ("stream", "gpu"), {"boxloss": calls["boxloss"]})


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    sizes = QUICK_SIZES if run.quick else SIZES
    return {
        f"{name}, {kind}": partial(make_case, name, kind, size, run.device)
        for name, size in sizes.items()
        for kind in KINDS
    }
