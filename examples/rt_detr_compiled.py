# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' RT-DETR trained in CUDA graphs: forward and backward with hardly a launch.

    python -m examples.rt_detr_compiled

A graph repeats the same launches, so all shapes must be the same in each step. `max_boxes` makes
them so, in the criterion and in the denoising queries; torch.compile does the rest. The rate of
learning changes from step to step. Without a GPU nothing is compiled. Beside it, the model with its
own criterion: each batch has an image with MOST boxes, so that both have the same denoising
queries. The model is small and random. Needs transformers, Pillow.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from boxloss.torch.compat import collate_fixed, use_boxloss
from torch import nn
from torch.utils.data import DataLoader, default_collate

from examples import rt_detr, training
from examples.training import Run

MOST = 5  # boxes of an image
COUNTS = (3, 0, MOST, MOST, 2, 1)  # two batches
EPOCHS = 4


def collate_lists(samples: list[dict[str, Any]]) -> dict[str, Any]:
    pixels = default_collate([each["pixel_values"] for each in samples])
    return {"pixel_values": pixels, "labels": [each["labels"] for each in samples]}


def on(device: str, value: Any) -> Any:
    if isinstance(value, list):
        return [{name: each.to(device) for name, each in image.items()} for image in value]
    return value.to(device, non_blocking=True)


def train(
    replace: Callable[[nn.Module], Any] = training.keep,
    collate: Callable[[list[Any]], dict[str, Any]] = collate_lists,
    compile: Callable[[nn.Module], Any] = lambda model: model,
) -> Run:
    """A batch is moved to the GPU, if there is one, while the step before it is computed."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    images = zip(*training.transformers_batch(COUNTS), strict=True)
    samples = [{"pixel_values": pixels, "labels": labels} for pixels, labels in images]
    model = rt_detr.small_model().to(device).train()
    replace(model)
    run = compile(model) if device == "cuda" else model
    batches: Any = DataLoader(
        samples, batch_size=3, collate_fn=collate, pin_memory=device == "cuda"
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * len(batches))
    shown = []
    for _ in range(EPOCHS):
        for batch in batches:
            optimizer.zero_grad()
            loss = run(**{name: on(device, value) for name, value in batch.items()}).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            schedule.step()
            shown.append(loss.item())
    return shown, model.cpu()


def train_fixed() -> Run:
    return train(
        partial(use_boxloss, max_boxes=MOST),
        partial(collate_fixed, max_boxes=MOST, num_labels=5),
        partial(torch.compile, mode="reduce-overhead"),
    )


if __name__ == "__main__":
    training.show("The loss", train(), fixed=train_fixed())
