# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A YOLO of Ultralytics, trained with its own criterion and with boxloss in its place.

    python -m examples.yolo

It is small and random, like YOLO11 or YOLO26. The criterion is
boxloss/torch/compat/families/yolo.py. It needs boxloss and ultralytics, which is under the
AGPL-3.0.
"""

from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch.compat import use_boxloss
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel

from examples import training
from examples.training import COUNTS, STEPS, Replace, Run, keep, random_boxes

SMALL = {
    "nc": 5,
    "reg_max": 16,
    "end2end": False,
    "backbone": [
        [-1, 1, "Conv", [8, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
        [-1, 1, "Conv", [16, 3, 2]],
    ],
    "head": [[[2, 3], 1, "Detect", ["nc"]]],
}
LIKE_26 = {"reg_max": 1, "end2end": True}  # YOLO26: no distributions, two heads


def small_model(**changes: Any) -> DetectionModel:
    model = DetectionModel({**SMALL, **changes}, verbose=False)
    model.args = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5, epochs=100)
    return model


def random_batch(counts: tuple[int, ...] = COUNTS) -> dict[str, Any]:
    """Images of noise, with `counts` ground-truth boxes each."""
    total = sum(counts)
    return {
        "img": torch.rand(len(counts), 3, 128, 128),
        "batch_idx": torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)),
        "cls": torch.randint(5, (total,)),
        "bboxes": random_boxes(total),
    }


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    torch.manual_seed(seed)
    model = small_model().train()
    replace(model)
    batch = random_batch()

    def losses() -> tuple[Tensor, Tensor]:
        loss, items = model(batch)
        return loss.sum(), items["box_loss"]

    return training.train(model, losses, steps)


if __name__ == "__main__":
    training.show("The box loss", train(), boxloss=train(use_boxloss))
