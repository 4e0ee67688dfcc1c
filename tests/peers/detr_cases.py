# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What DETR's criteria are given, and how far two correct ones can be apart.

Boxes lie on a grid on which all corners are exact in float32, and a predicted corner never meets a
true one: where min and max tie, and where boxes only touch, a slope is a matter of taste. The
original always runs in double, on the same numbers. In units of u, the unit roundoff of what
boxloss computes in (where that is double, both round, so u is counted twice), with logits |x| <= X,
before what both multiply and divide by:

    of a pair GIoU's loss <= 2, L1 <= 4     48 (derived in tests/torch/comparison.py), 8
    a sum of P pairs                        48 P, and 4 P times P in double, 1e-6 = 17 in float32
    a box' gradient                         316 / side of GIoU's (comparison.py), 8 of L1's
    sigmoid p, relative                     X + 6; of alpha p^2 2 X + 15
    BCE <= |x| + 1, towards an IoU, 17      22 (|x| + 1)
    its weight <= 1, relative               2 X + 15, or the IoU's 17
    the varifocal loss of N entries         (N + 2 X + 40) * sum of weight (|x| + 1)
    its gradient, weight (p - IoU)          (2 X + 17) + (X + 6) + 17 + 3
    cross entropy <= 2 X + log C            C + 6 X + 10
    N of them over the sum of their weights C + 6 X + 10 + 2 N (2 X + log C)
    its gradient, w (softmax - 1) / sum w   (C + 4 X + 10 + N) / sum w
"""

from math import log

import torch
from torch import Tensor

UNIT_ROUNDOFF = {torch.float64: 2 * 2.0**-53, torch.float32: 2.0**-24}
LAYERS, QUERIES, CLASSES = 3, 20, 7
LARGEST_LOGIT = 6.0
SHORTEST_SIDE = 2.0**-4
# Images without boxes among others, all of them, more boxes than queries.
COUNTS = ((3, 0, 5), (0, 0), (25, 4), (1,))

Targets = list[dict[str, Tensor]]
Results = tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]  # total, losses, gradients


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def boxes(shape: tuple[int, ...], random: torch.Generator, shift: float = 0.0) -> Tensor:
    """cxcywh in double: corners are multiples of 2^-10, plus shift; sides from 1/16 to 1/2."""
    centres = torch.randint(205, 820, (*shape, 2), generator=random) / 1024 + shift
    sides = torch.randint(32, 257, (*shape, 2), generator=random) / 512
    return torch.cat((centres, sides), -1).double()


def logits(shape: tuple[int, ...], random: torch.Generator) -> Tensor:
    drawn = 2 * torch.randn(*shape, generator=random, dtype=torch.float64)
    return drawn.clamp(-LARGEST_LOGIT, LARGEST_LOGIT).float().double()


def true_boxes(counts: tuple[int, ...], random: torch.Generator) -> Targets:
    return [
        {
            "boxes": boxes((count,), random, shift=2.0**-11),
            "class_labels": torch.randint(CLASSES, (count,), generator=random),
        }
        for count in counts
    ]


def cast(labels: Targets, dtype: torch.dtype) -> Targets:
    return [{**each, "boxes": each["boxes"].to(dtype)} for each in labels]


# --- How far apart, in u ---


def box_loss_error(pairs: int) -> float:
    """Of GIoU's loss and of L1."""
    return (48 + 4 * (17 + pairs)) * pairs


def box_gradient_error(giou_factor: float, l1_factor: float) -> float:
    return giou_factor * 316 / SHORTEST_SIDE + l1_factor * 8


def varifocal_error(scores: Tensor, pairs: int) -> float:
    """Of a loss with alpha = 0.75 and gamma = 2."""
    x = scores.abs() + 1
    size = (0.75 * scores.sigmoid() ** 2 * x).sum().item() + pairs * (LARGEST_LOGIT + 1)
    return (scores.numel() + 2 * LARGEST_LOGIT + 40) * size


VARIFOCAL_GRADIENT_ERROR = 3 * LARGEST_LOGIT + 43


def cross_entropy_error(queries: int) -> float:
    of_one = CLASSES + 1 + 6 * LARGEST_LOGIT + 10
    return of_one + 2 * queries * (2 * LARGEST_LOGIT + log(CLASSES + 1))


def cross_entropy_gradient_error(queries: int, eos_coefficient: float) -> float:
    of_one = CLASSES + 1 + 4 * LARGEST_LOGIT + 10 + queries
    return of_one / (eos_coefficient * queries)
