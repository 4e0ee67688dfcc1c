# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random models of torchvision's detectors that are no example, batches, and training."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.detection import KeypointRCNN, MaskRCNN
from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from torchvision.models.detection.keypoint_rcnn import KeypointRCNNHeads, KeypointRCNNPredictor
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.models.detection.ssd import SSD
from torchvision.models.detection.ssdlite import SSDLiteHead
from torchvision.ops import MultiScaleRoIAlign

from examples import faster_rcnn
from examples.training import torchvision_batch

SIDE, CLASSES, KEYPOINTS = 64, 5, 3


def mask_rcnn() -> nn.Module:
    return faster_rcnn.small_model(
        MaskRCNN,
        mask_roi_pool=MultiScaleRoIAlign(["0"], output_size=6, sampling_ratio=2),
        mask_head=MaskRCNNHeads(16, (8,), 1),
        mask_predictor=MaskRCNNPredictor(8, 8, CLASSES),
    )


def keypoint_rcnn() -> nn.Module:
    return faster_rcnn.small_model(
        KeypointRCNN,
        keypoint_roi_pool=MultiScaleRoIAlign(["0"], output_size=6, sampling_ratio=2),
        keypoint_head=KeypointRCNNHeads(16, (8,)),
        keypoint_predictor=KeypointRCNNPredictor(8, KEYPOINTS),
    )


def ssd(make_head: Callable[..., nn.Module] | None = None) -> SSD:
    first = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.ReLU())
    second = nn.Sequential(nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.ReLU())
    backbone = IntermediateLayerGetter(nn.Sequential(first, second), {"0": "0", "1": "1"})
    backbone.out_channels = [16, 16]
    boxes = DefaultBoxGenerator([[2], [2, 3]])
    given = backbone.out_channels, boxes.num_anchors_per_location(), CLASSES
    head = None if make_head is None else make_head(*given)
    return SSD(backbone, boxes, (SIDE, SIDE), CLASSES, head=head)


SMALL: dict[str, Callable[[], nn.Module]] = {
    "Mask R-CNN": mask_rcnn,
    "Keypoint R-CNN": keypoint_rcnn,
    "SSD": ssd,
    "SSDlite": partial(ssd, partial(SSDLiteHead, norm_layer=nn.BatchNorm2d)),
}


def batch(side: int, counts: tuple[int, ...]) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Each instance fills its box; most detectors leave masks and keypoints alone."""
    images, targets = torchvision_batch(side, counts)
    pixels = torch.arange(side)
    for each in targets:
        first, last = each["boxes"][:, None].split(2, -1)
        columns, rows = ((first <= pixels[:, None]) & (pixels[:, None] < last)).unbind(-1)
        each["masks"] = (rows[:, :, None] & columns[:, None]).to(torch.uint8)
        points = first + torch.rand(len(first), KEYPOINTS, 2) * (last - first)
        given = torch.cat((points, torch.ones_like(points[..., :1])), -1)
        each["keypoints"] = given.to(torch.float32)  # nothing else is taken
    return images, targets
