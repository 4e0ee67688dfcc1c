# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matching of torchvision's SSD and SSDlite, of their default boxes.

The original matches inside of `forward`, image by image, by a matrix of all IoUs. Here all images
are matched at once, without one. The losses, of which the boxes' is smooth L1 of deltas, stay
torchvision's own.
"""

from typing import Any

import torch
from torch import Tensor
from torchvision.models.detection.ssd import SSD

from .parts import Parts
from .targets import Targets, collate_targets
from .torchvision_matcher import MATCHERS, match

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
        truth = collate_targets(
            targets, "labels", outputs["cls_logits"].shape[-1], drops_labels=True
        )
        _check_sides(truth.boxes, truth.offsets)
        row = match(self.proposal_matcher, torch.stack(anchors), truth.boxes, truth.offsets)
        in_image = torch.where(row < 0, row, row - truth.offsets[:-1, None])
        labels = truth.labels.split(truth.counts)
        targets = [{**each, "labels": own} for each, own in zip(targets, labels, strict=True)]
        losses = self.compute_loss(targets, outputs, anchors, list(in_image))
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
