# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a data loader would hand over: which pictures, how they are changed, and their true boxes.

A batch is a function of (seed, step) alone: every variant, and a run that goes on, sees the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .pictures import Assigned
from .variants import LayOut, Targets, positions

CONTRAST = (0.6, 1.5)
BRIGHTNESS = (-40, 40)  # gray values


@dataclass(frozen=True)
class Batch:
    rows: Tensor  # (B): which pictures
    mirrored: Tensor  # (B) bool
    contrast: Tensor  # (B)
    brightness: Tensor  # (B)
    positives: Tensor  # the positions of cells with a face
    targets: Targets

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """With all tensors changed, as by a copy to the device."""
        return Batch(
            change(self.rows),
            change(self.mirrored),
            change(self.contrast),
            change(self.brightness),
            change(self.positives),
            tuple(change(each) if isinstance(each, Tensor) else each for each in self.targets),
        )


def make_batch(
    assigned: Sequence[tuple[Assigned, Assigned]], lay_out: LayOut, size: int, seed: int, step: int
) -> Batch:
    rng = np.random.default_rng((seed, step))
    rows = rng.choice(len(assigned), size, replace=False)
    mirrored = rng.random(size) < 0.5
    pairs = [assigned[row][int(flip)] for row, flip in zip(rows, mirrored, strict=True)]
    return Batch(
        torch.from_numpy(rows),
        torch.from_numpy(mirrored),
        torch.from_numpy(rng.uniform(*CONTRAST, size)).float(),
        torch.from_numpy(rng.uniform(*BRIGHTNESS, size)).float(),
        positions(pairs),
        lay_out(pairs),
    )


def view(pictures: Tensor, batch: Batch) -> Tensor:
    """The batch's pictures as gray values, (B, 256, 256): some mirrored, each in its own light."""
    chosen = pictures[batch.rows].float()
    chosen = torch.where(batch.mirrored[:, None, None], chosen.flip(-1), chosen)
    light = (chosen - 128) * batch.contrast[:, None, None] + 128
    return (light + batch.brightness[:, None, None]).clamp(0, 255)
