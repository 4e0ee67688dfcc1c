# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A YOLO of Ultralytics, trained with its own box loss and with boxloss in its place.

    python examples/yolo.py

The CIoU loss of all anchors' boxes, in place: those without an object are masked, not gathered out.
The model is small and random. Needs boxloss and ultralytics, which is under the AGPL-3.0.
"""

from typing import Any

import torch
from boxloss.torch import ciou_loss
from torch import Tensor
from ultralytics.nn.tasks import DetectionModel
from ultralytics.utils.loss import BboxLoss
from ultralytics.utils.tal import bbox2dist


class FusedBboxLoss(BboxLoss):
    """model.criterion.bbox_loss = FusedBboxLoss(reg_max), for models with reg_max > 1."""

    def forward(
        self,
        pred_dist: Tensor,
        pred_bboxes: Tensor,
        anchor_points: Tensor,
        target_bboxes: Tensor,
        target_scores: Tensor,
        target_scores_sum: Tensor,
        fg_mask: Tensor,
        imgsz: Tensor,
        stride: Tensor,
    ) -> tuple[Tensor, Tensor]:
        weight = target_scores.sum(-1)
        box = ciou_loss(
            pred_bboxes,
            target_bboxes,
            mask=fg_mask,
            weight=weight,
            normalizer=target_scores_sum,
        )

        # The distribution focal loss is Ultralytics' own.
        where = fg_mask.nonzero(as_tuple=True)
        bins = self.dfl_loss.reg_max
        sides = bbox2dist(anchor_points, target_bboxes, bins - 1)[where]
        dfl = self.dfl_loss(pred_dist[where].view(-1, bins), sides).squeeze(-1)
        return box, (dfl * weight[where]).sum() / target_scores_sum


# --- Training ---

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


def small_model(bbox_loss: type[BboxLoss]) -> DetectionModel:
    model = DetectionModel(dict(SMALL), verbose=False)
    model.args = type("Gains", (), {"box": 7.5, "cls": 0.5, "dfl": 1.5})
    model.criterion = model.init_criterion()
    model.criterion.bbox_loss = bbox_loss(SMALL["reg_max"])
    return model


def random_batch(
    counts: tuple[int, ...] = (3, 0, 5), dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """Images of noise, with `counts` true boxes each."""
    total = sum(counts)
    centre = 0.35 + 0.3 * torch.rand(total, 2, dtype=dtype)
    return {
        "img": torch.rand(len(counts), 3, 128, 128, dtype=dtype),
        "batch_idx": torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)),
        "cls": torch.randint(5, (total,)),
        "bboxes": torch.cat((centre, 0.2 + 0.4 * torch.rand(total, 2, dtype=dtype)), 1),
    }


def train(
    bbox_loss: type[BboxLoss], seed: int = 0, steps: int = 8, dtype: torch.dtype = torch.float32
) -> tuple[list[float], DetectionModel]:
    """The box loss of each step, and the model afterwards."""
    torch.manual_seed(seed)
    model = small_model(bbox_loss).train().to(dtype)
    batch = random_batch(dtype=dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    box_losses = []
    for _ in range(steps):
        loss, items = model(batch)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        box_losses.append(items["box_loss"].item())
    return box_losses, model


def main() -> None:
    original, model = train(BboxLoss)
    replaced, other = train(FusedBboxLoss)
    print("step   original    boxloss")
    for step, losses in enumerate(zip(original, replaced, strict=True)):
        print("{:4} {:10.6f} {:10.6f}".format(step, *losses))
    weights = zip(model.parameters(), other.parameters(), strict=True)
    print(f"weights differ by at most {max((a - b).abs().max().item() for a, b in weights):.1e}")


if __name__ == "__main__":
    main()
