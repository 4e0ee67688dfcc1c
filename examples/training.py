# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the examples share: boxes to learn, a few steps of training, and a table of the losses."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

COUNTS = (3, 0, 5)  # ground-truth boxes of each image
STEPS = 8

Run = tuple[list[float], nn.Module]  # the loss of each step, and the model afterwards
Replace = Callable[[Any], Any]  # of a model's criterion, in place


def keep(model: nn.Module) -> None:
    """Its own criterion."""


def random_boxes(count: int) -> Tensor:
    """(count, 4), centre and size, in an image whose sides are 1."""
    return torch.cat((0.3 + 0.4 * torch.rand(count, 2), 0.15 + 0.35 * torch.rand(count, 2)), 1)


def transformers_batch(counts: tuple[int, ...] = COUNTS) -> tuple[Tensor, list[dict[str, Tensor]]]:
    """Images of noise, with `counts` ground-truth boxes each, as transformers has them."""
    labels = [
        {"class_labels": torch.randint(5, (count,)), "boxes": random_boxes(count)}
        for count in counts
    ]
    return torch.rand(len(counts), 3, 64, 64), labels


def torchvision_batch(
    side: int, counts: tuple[int, ...] = COUNTS
) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Likewise; boxes are corners in pixels."""
    targets = []
    for count in counts:
        centres, sides = (side * random_boxes(count)).split(2, 1)
        corners = torch.cat((centres - sides / 2, centres + sides / 2), 1)
        targets.append({"boxes": corners, "labels": torch.randint(5, (count,))})
    return list(torch.rand(len(counts), 3, side, side)), targets


def add_noise(model: nn.Module) -> None:
    """As a DETR begins, all queries predict nearly the same, and a few biases have all of the
    gradient."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)


def train_transformers(
    make_model: Callable[[], nn.Module], replace: Replace, seed: int, steps: int
) -> Run:
    torch.manual_seed(seed)
    model = make_model().train()
    replace(model)
    images, labels = transformers_batch()

    def losses() -> tuple[Tensor, Tensor]:
        loss = model(pixel_values=images, labels=labels).loss
        return loss, loss

    return train(model, losses, steps)


def train_torchvision(
    make_model: Callable[[], nn.Module],
    side: int,
    replace: Replace,
    seed: int,
    steps: int,
    shown: str = "bbox_regression",
) -> Run:
    torch.manual_seed(seed)
    model = make_model().train()
    replace(model)
    batch = torchvision_batch(side)

    def losses() -> tuple[Tensor, Tensor]:
        by_name = model(*batch)
        return sum(by_name.values()), by_name[shown]

    return train(model, losses, steps)


def train(model: nn.Module, losses: Callable[[], tuple[Tensor, Tensor]], steps: int) -> Run:
    """`losses` gives two: which is trained by, and which is shown."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shown = []
    for _ in range(steps):
        total, loss = losses()
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        shown.append(loss.item())
    return shown, model


def show(loss: str, original: Run, **others: Run) -> None:
    """Side by side: the same starts, the same steps."""
    print(f"{loss} of {len(original[0])} steps of training, each way from the same start:")
    runs = {"original": original, **others}
    print("step" + "".join(f"{name:>12}" for name in runs))
    for step, values in enumerate(zip(*(shown for shown, _ in runs.values()), strict=True)):
        print(f"{step:4}" + "".join(f"{value:12.6f}" for value in values))
    for name, (_, model) in others.items():
        pairs = zip(original[1].parameters(), model.parameters(), strict=True)
        apart = max((a - b).abs().max().item() for a, b in pairs)
        print(f"Then all weights of {name} are within {apart:.1e} of the original's.")
