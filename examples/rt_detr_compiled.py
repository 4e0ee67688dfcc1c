# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' RT-DETR with its criterion in CUDA graphs: forward and backward, hardly a launch.

    python -m examples.rt_detr_compiled

A graph repeats the same launches, so shapes must not change from step to step. The ground truth is
padded to a fixed number of rows, and only the device knows which rows are an image's: boxloss'
criterion takes that. transformers makes denoising queries for as many boxes as there are, and waits
for the device; `denoising_queries` makes them for a fixed number. torch.compile does the rest.
Without a GPU nothing is compiled. The model is small and random. Needs transformers, Pillow.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from boxloss.torch.compat import FixedTargets, use_boxloss
from torch import Tensor
from torch.nn import functional
from transformers.models.rt_detr import modeling_rt_detr

from examples import rt_detr, training
from examples.training import COUNTS, STEPS, Run

ROWS = 24  # of ground truth in a batch


def denoising_queries(
    targets: FixedTargets,
    num_classes: int,
    num_queries: int,
    class_embed: Callable[[Tensor], Tensor],
    num_denoising_queries: int = 100,
    label_noise_ratio: float = 0.5,
    box_noise_scale: float = 1.0,
    *,
    most: int,
) -> tuple[Any, Any, Any, Any]:
    """For transformers' get_contrastive_denoising_training_group, with `most` boxes an image.

    Groups of 2 * most queries: boxes with little noise, which are to be found again, then the same
    boxes with more. The random numbers are the original's where `most` is the largest image's.
    """
    boxes, labels, offsets = targets
    groups = max(num_denoising_queries // most, 1)
    slot = torch.arange(most, device=boxes.device)
    row = offsets[:-1, None] + slot
    is_box = row < offsets[1:, None]
    row = row.where(is_box, len(boxes))  # behind the last: no box
    copies = 2 * groups
    boxes = functional.pad(boxes, (0, 0, 0, 1))[row].tile(1, copies, 1)
    labels = functional.pad(labels, (0, 1), value=num_classes)[row].tile(1, copies).int()

    is_other = torch.rand_like(labels, dtype=torch.float) < label_noise_ratio / 2
    others = torch.randint_like(labels, num_classes)
    labels = others.where(is_other & is_box.tile(1, copies), labels)

    centres, sides = boxes.split(2, -1)
    corners = torch.cat((centres - sides / 2, centres + sides / 2), -1)
    sign = 2.0 * torch.randint_like(corners, 2) - 1
    is_negative = (torch.arange(copies * most, device=boxes.device) // most % 2)[:, None]
    noise = sign * (torch.rand_like(corners) + is_negative)
    corners = (corners + noise * sides.tile(2) / 2 * box_noise_scale).clamp(0, 1)
    low, high = corners.split(2, -1)
    noisy = modeling_rt_detr.inverse_sigmoid(torch.cat(((low + high) / 2, high - low), -1))

    # Denoising queries see those of their group, and the others; these see no denoising query.
    group = torch.arange(copies * most, device=boxes.device) // (2 * most)
    group = functional.pad(group, (0, num_queries), value=-1)
    is_hidden = (group >= 0) & (group[:, None] != group)
    mask = torch.zeros(is_hidden.shape, device=boxes.device).masked_fill(is_hidden, -torch.inf)
    about = {"dn_num_group": groups, "dn_num_split": [copies * most, num_queries]}
    return class_embed(labels), noisy, mask, about


@contextmanager
def fixed_denoising(most: int) -> Iterator[None]:
    """While it lasts, transformers' RT-DETRs take FixedTargets."""
    name = "get_contrastive_denoising_training_group"
    with patch.object(modeling_rt_detr, name, partial(denoising_queries, most=most)):
        yield


def train(seed: int = 0, steps: int = STEPS) -> Run:
    """As rt_detr.train, on a GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    model = rt_detr.small_model().train()
    images, labels = training.transformers_batch()
    use_boxloss(model.to(device))
    run = torch.compile(model, mode="reduce-overhead") if device == "cuda" else model
    pixels = images.to(device)
    targets = FixedTargets(*(each.to(device) for each in FixedTargets.of(labels, ROWS)))

    def losses() -> tuple[Tensor, Tensor]:
        loss = run(pixel_values=pixels, labels=targets).loss
        return loss, loss

    with fixed_denoising(max(COUNTS)):
        shown, _ = training.train(model, losses, steps)
    return shown, model.cpu()


if __name__ == "__main__":
    training.show("The loss", rt_detr.train(), fixed=train())
