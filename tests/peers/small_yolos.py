# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random YOLOs of each kind that boxloss knows, and a batch for all of them."""

import math
from functools import partial
from typing import Any

import torch
from boxloss.torch.compat.versions import is_before
from ultralytics.nn.tasks import DetectionModel, OBBModel, PoseModel, SegmentationModel

from examples import yolo
from examples.training import COUNTS

KEYPOINTS = [3, 3]  # how many, and the numbers of each
SEGMENT = {"head": [[[2, 3], 1, "Segment", ["nc", 4, 8]]]}
POSE = {"head": [[[2, 3], 1, "Pose", ["nc", KEYPOINTS]]], "kpt_shape": KEYPOINTS}
OBB = {"head": [[[2, 3], 1, "OBB", ["nc", 1]]]}
OBB_26 = {"head": [[[2, 3], 1, "OBB26", ["nc", 1]]], **yolo.LIKE_26}  # angles without limits
KINDS: dict[str, dict[str, Any]] = {"11": {}, "26": yolo.LIKE_26}
if not is_before("ultralytics", 8, 4, 130):
    KINDS |= {"11-obb": OBB, "26-obb": OBB_26}
if not is_before("ultralytics", 8, 4, 190):
    KINDS |= {"11-seg": SEGMENT, "11-pose": POSE, "11-seg, two heads": SEGMENT | yolo.LIKE_26}
GAINS = {"pose": 12.0, "kobj": 1.0, "angle": 1.0}


def small_model(kind: str) -> DetectionModel:
    changes = KINDS[kind]
    if changes.keys() <= yolo.LIKE_26.keys():
        return yolo.small_model(**changes)
    made: Any = OBBModel if "obb" in kind else SegmentationModel
    if "pose" in kind:
        made = partial(PoseModel, data_kpt_shape=KEYPOINTS)
    model = made({**yolo.SMALL, **changes}, verbose=False)
    model.args = yolo.small_model().args
    vars(model.args).update(overlap_mask=True, **GAINS)
    return model


def random_batch(counts: tuple[int, ...] = COUNTS, kind: str = "11") -> dict[str, Any]:
    """With masks, of which each pixel has the number of its image's box, or 0, and keypoints; or
    with angles."""
    batch = yolo.random_batch(counts)
    if "obb" in kind:
        angles = math.pi * (torch.rand(sum(counts), 1) - 0.25)
        batch["bboxes"] = torch.cat((batch["bboxes"], angles), 1)
    masks = [torch.randint(count + 1, (1, 32, 32)) for count in counts]
    visible = torch.randint(3, (sum(counts), KEYPOINTS[0], 1))
    points = torch.rand(sum(counts), KEYPOINTS[0], 2)
    return {**batch, "masks": torch.cat(masks), "keypoints": torch.cat((points, visible), -1)}
