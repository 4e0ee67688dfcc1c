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

HAZE = (-0.4, 0.4)  # how much of another picture lies over it; below zero none
CONTRAST = (0.6, 1.8)
BRIGHTNESS = (-40, 40)  # gray values


@dataclass(frozen=True)
class Batch:
    rows: Tensor  # (B): which pictures
    mirrored: Tensor  # (B) bool
    light: Tensor  # (3, B): HAZE, CONTRAST and BRIGHTNESS
    positives: Tensor  # the positions of cells with a face
    targets: Targets

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """With all tensors changed, as by a copy to the device."""
        return Batch(
            change(self.rows),
            change(self.mirrored),
            change(self.light),
            change(self.positives),
            tuple(change(each) if isinstance(each, Tensor) else each for each in self.targets),
        )


def make_batch(
    assigned: Sequence[tuple[Assigned, Assigned]], lay_out: LayOut, size: int, seed: int, step: int
) -> Batch:
    rng = np.random.default_rng((seed, step))
    rows = rng.choice(len(assigned), size, replace=False)
    mirrored = rng.random(size) < 0.5
    light = [rng.uniform(low, high, size) for low, high in (HAZE, CONTRAST, BRIGHTNESS)]
    pairs = [assigned[row][int(flip)] for row, flip in zip(rows, mirrored, strict=True)]
    return Batch(
        torch.from_numpy(rows),
        torch.from_numpy(mirrored),
        torch.from_numpy(np.stack(light)).float(),
        positions(pairs),
        lay_out(pairs),
    )


def view(pictures: Tensor, batch: Batch) -> Tensor:
    """The batch's pictures as gray values, (B, 256, 256): some mirrored, each in its own light.

    There are few photographs to learn from, and a texture never seen would be taken for faces. So
    another picture lies over many, faintly and upside down.
    """
    haze, contrast, brightness = batch.light[:, :, None, None]
    chosen = pictures[batch.rows].float()
    hazy = chosen.lerp(chosen.roll(1, dims=0).flip(-2), haze.clamp(min=0))
    seen = torch.where(batch.mirrored[:, None, None], hazy.flip(-1), hazy)
    gray: Tensor = (seen - 128) * contrast + 128 + brightness
    return gray.clamp(0, 255)
