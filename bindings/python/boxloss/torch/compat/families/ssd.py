# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's SSD and SSDlite: the matching of their default boxes.

The original matches inside of `forward`, image by image, by a matrix of all IoUs. Here all images
are matched at once, without one. The losses, of which the boxes' is smooth L1 of deltas, stay
torchvision's own.
"""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torchvision.models.detection.ssd import SSD

from ..family import Family, Swapped, swap
from ..parts import Parts
from ..targets import Targets
from ..torchvision_models import MATCHERS, cases, match_images

PARTS = Parts({"torchvision.models.detection.ssd": ("SSD.forward",), **MATCHERS})


class Model(SSD):
    def forward(self, images: list[Tensor], targets: Targets | None = None) -> Any:
        if not self.training or targets is None:
            return super().forward(images, targets)
        PARTS.check()
        _check_shapes(targets)
        batch, targets = self.transform(images, targets)
        features = self.backbone(batch.tensors)
        maps = [features] if isinstance(features, Tensor) else list(features.values())
        outputs, anchors = self.head(maps), self.anchor_generator(batch, maps)
        classes = outputs["cls_logits"].shape[-1]
        truth, targets, matched = match_images(self.proposal_matcher, anchors, targets, classes)
        _check_sides(truth.boxes, truth.offsets)
        losses = self.compute_loss(targets, outputs, anchors, matched)
        return {name: truth.checked(loss) for name, loss in losses.items()}


def _check_shapes(targets: Targets) -> None:
    for place, each in enumerate(targets):
        shape = tuple(each["boxes"].shape)
        if len(shape) != 2 or shape[1] != 4:
            raise ValueError(f"targets[{place}] has boxes of shape {shape}; it must be (n, 4)")


def _check_sides(boxes: Tensor, offsets: Tensor) -> None:
    """As torchvision, which waits for the answer, too, for each image by itself."""
    is_flat = (boxes[:, 2:] <= boxes[:, :2]).any(1)
    if not is_flat.any():
        return
    row = int(is_flat.nonzero()[0])
    image = int(torch.searchsorted(offsets, row, right=True)) - 1
    raise ValueError(
        f"boxes: image {image}, row {row - int(offsets[image])} is {boxes[row].tolist()} "
        "(corners); its sizes must be more than 0"
    )


def replace(model: Any) -> Iterator[Swapped]:
    yield swap(model, Model)


def losses_of(model: Any, **made: Any) -> Any:
    """Of its `forward`, which matches, with a made-up output of each part of the network."""
    images = [torch.empty(3, 1, 1) for _ in made["targets"]]
    batch = SimpleNamespace(tensors=torch.empty(0), image_sizes=[(1, 1) for _ in images])
    outputs = {
        "transform": (batch, made["targets"]),
        "backbone": torch.empty(0),
        "head": made["head_outputs"],
        "anchor_generator": made["anchors"],
    }
    parts: Any = {name: partial(lambda its, *_: its, its) for name, its in outputs.items()}
    with patch.dict(model._modules, parts), patch.dict(vars(model), training=True):
        return model.forward(images, made["targets"])


FAMILY = Family(replace, cases, PARTS, losses_of)
