# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Detectors with random weights, how each is trained, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from ..training_step.detectors import Batch, detr_batch, fixed_batch, yolo, yolo_batch
from .scenes import CLASSES, CROWD_COUNTS, SIDE

MOST_FOUND = 100  # in a picture, as many as COCO's mAP counts


@dataclass(frozen=True)
class Detector:
    make: Callable[[], nn.Module]
    batch: Callable[[list[Tensor], list[Tensor], list[Tensor]], Batch]  # images, boxes, labels
    # Of each picture (k, 6): corners in pixels, score, class.
    detect: Callable[[nn.Module, Tensor], list[Tensor]]
    images: int  # in a batch
    steps: int
    rate: float  # the highest
    decay: float
    clip: float  # of the gradient's norm
    fixed: Callable[..., Batch] | None = None  # in fixed shapes, of the same


yolo11n = partial(yolo("DetectionModel", "yolo11n.yaml", nc=CLASSES), SIDE)


def criterion_in_float32(yolo: Any) -> None:
    """Its own criterion, which gets float32 and rounds nothing to autocast's dtype."""
    make = yolo.init_criterion

    def in_float32() -> Callable[..., Any]:
        criterion = make()

        def call(found: Any, batch: Any) -> Any:
            with torch.autocast(batch["img"].device.type, enabled=False):
                return criterion(tree_map_only(Tensor, Tensor.float, found), batch)

        return call

    yolo.init_criterion, yolo.criterion = in_float32, None


def detect_by_yolo(model: nn.Module, images: Tensor) -> list[Tensor]:
    import torchvision  # noqa: F401, or else NMS would be a loop in Python
    from ultralytics.utils.nms import non_max_suppression

    found: list[Tensor] = non_max_suppression(
        model(images), 0.001, 0.7, multi_label=True, max_det=MOST_FOUND
    )
    return found


def rt_detr_r18() -> nn.Module:
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        freeze_backbone_batch_norms=False,  # nothing is pretrained
        encoder_in_channels=[128, 256, 512],
        hidden_expansion=0.5,
        decoder_layers=3,
        num_labels=CLASSES,
    )
    return RTDetrForObjectDetection(config)


def d_fine_n() -> nn.Module:
    from transformers import DFineConfig, DFineForObjectDetection, HGNetV2Config

    backbone = HGNetV2Config(
        stem_channels=[3, 16, 16],
        stage_in_channels=[16, 64, 256, 512],
        stage_mid_channels=[16, 32, 64, 128],
        stage_out_channels=[64, 256, 512, 1024],
        hidden_sizes=[64, 256, 512, 1024],  # the same, for what follows
        stage_num_blocks=[1, 1, 2, 1],
        stage_numb_of_layers=[3, 3, 3, 3],
        use_learnable_affine_block=True,
        out_features=["stage3", "stage4"],
    )
    config = DFineConfig(
        backbone_config=backbone,
        freeze_backbone_batch_norms=False,
        encoder_in_channels=[512, 1024],
        feat_strides=[16, 32],
        encoder_hidden_dim=128,
        encoder_ffn_dim=512,
        encode_proj_layers=[1],
        hidden_expansion=0.34,
        depth_mult=0.5,
        d_model=128,
        decoder_in_channels=[128, 128],
        decoder_ffn_dim=512,
        decoder_layers=3,
        decoder_n_points=[6, 6],
        num_feature_levels=2,
        num_labels=CLASSES,
    )
    return DFineForObjectDetection(config)


def detect_by_detr(model: Any, images: Tensor) -> list[Tensor]:
    found = model(pixel_values=images)
    scores, place = found.logits.sigmoid().flatten(1).topk(MOST_FOUND)
    query, label = place // CLASSES, place % CLASSES
    boxes = found.pred_boxes.gather(1, query[..., None].expand(-1, -1, 4))
    centre, size = boxes.split(2, -1)
    corners = SIDE * torch.cat((centre - size / 2, centre + size / 2), -1)
    return [*torch.cat((corners, scores[..., None], label[..., None]), -1)]


# The fullest picture's boxes are the limit in fixed shapes.
fixed_detr_batch = partial(fixed_batch, most=CROWD_COUNTS[1])

# Steps are as many as six trainings of each take less than 25 minutes of a GPU.
DETECTORS = {
    "YOLO11n": Detector(yolo11n, yolo_batch, detect_by_yolo, 64, 4000, 1e-3, 5e-4, 10),
    "RT-DETR-R18": Detector(
        *(rt_detr_r18, detr_batch, detect_by_detr, 32, 1500, 2e-4, 1e-4, 0.1),
        fixed=fixed_detr_batch,
    ),
    "D-FINE-N": Detector(d_fine_n, detr_batch, detect_by_detr, 32, 1000, 4e-4, 1e-4, 0.1),
}
