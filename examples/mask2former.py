# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' Mask2Former, trained to find rectangles, with its own criterion and with boxloss.

    python -m examples.mask2former [masks.png]

shows the losses of eight steps, which are the same. With a file's name boxloss trains on, for half
a minute on a CPU, and draws the masks that are predicted before and after. The model is small and
random. Needs transformers; the picture, Pillow.
"""

import sys
from typing import Any

import torch
from boxloss.torch.compat import use_boxloss
from torch import Tensor, nn
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig

from examples import training
from examples.rectangles import COLOURS, SIDE, Targets, draw
from examples.training import STEPS, Replace, Run, keep


def batch(number: int, seed: int) -> dict[str, Any]:
    images, targets = draw(number, torch.Generator().manual_seed(seed))
    counts = targets.offsets.diff().tolist()
    masks, labels = masks_of(targets).split(counts), targets.labels.split(counts)
    return {"pixel_values": images, "mask_labels": masks, "class_labels": labels}


def masks_of(targets: Targets) -> Tensor:
    """(rows, SIDE, SIDE), 0 or 1."""
    cx, cy, w, h, angle = targets.boxes[:, :, None, None].unbind(1)
    pixels = (torch.arange(SIDE) + 0.5) / SIDE
    x, y = pixels - cx, pixels[:, None] - cy
    along, across = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
    return ((along.abs() < w / 2) & (across.abs() < h / 2)).float()


def small_model() -> Mask2FormerForUniversalSegmentation:
    stages = [f"stage{i}" for i in range(1, 5)]
    backbone = SwinConfig(
        patch_size=2, embed_dim=16, depths=[1] * 4, num_heads=[1] * 4, out_features=stages
    )
    sizes = ("hidden_dim", "mask_feature_size", "feature_size", "dim_feedforward")
    config = Mask2FormerConfig(
        backbone_config=backbone,
        encoder_layers=1,
        decoder_layers=3,
        num_attention_heads=2,
        num_queries=10,
        encoder_feedforward_dim=32,
        train_num_points=400,
        num_labels=len(COLOURS),
        **dict.fromkeys(sizes, 32),
    )
    return Mask2FormerForUniversalSegmentation(config)


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    torch.manual_seed(seed)
    model = small_model().train()
    replace(model)
    given = batch(4, seed)

    def losses() -> tuple[Tensor, Tensor]:
        loss = model(**given).loss
        return loss, loss

    return training.train(model, losses, steps)


@torch.no_grad()
def painted(model: nn.Module, images: Tensor) -> Tensor:
    """(height, width, 3): the images side by side, with the masks in their class' colours."""
    found = model.eval()(images)
    scores, label = found.class_queries_logits.softmax(-1)[..., :-1].max(-1)
    masks = nn.functional.interpolate(found.masks_queries_logits, size=SIDE, mode="bilinear")
    weight = masks.sigmoid() * (scores > 0.5)[..., None, None]
    strength, query = weight.max(1)
    colour = COLOURS[label.gather(1, query.flatten(1))].view(len(images), SIDE, SIDE, 3)
    model.train()
    return torch.where((strength > 0.5)[..., None], colour, images.movedim(1, -1) / 2)


def picture(model: nn.Module, file: str, steps: int = 300) -> None:
    """Rows: images that it has not seen, and what is predicted before and after."""
    from PIL import Image

    images = batch(8, -1)["pixel_values"]
    rows = [images.movedim(1, -1), painted(model, images)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        loss = model(**batch(8, step)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rows.append(painted(model, images))
    pixels = torch.cat([row.movedim(0, 1).flatten(1, 2) for row in rows])
    Image.fromarray((255 * pixels).byte().numpy()).resize((4 * 8 * SIDE, 4 * 3 * SIDE), 0).save(
        file
    )


if __name__ == "__main__":
    ours = train(use_boxloss)
    training.show("The loss", train(), boxloss=ours)
    if len(sys.argv) > 1:
        picture(ours[1], sys.argv[1])
