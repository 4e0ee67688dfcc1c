# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's RetinaNet, trained with its own matcher and box loss and with boxloss' instead.

    python -m examples.retinanet

The original goes through the images one by one, and the matcher has a matrix of all IoUs of each.
Here all images are matched at once without one, all their pairs are one list, and an image's
1 / (number of its pairs) is their weight. For the losses "giou", which RetinaNet v2 has, "diou" and
"ciou"; boxloss has no "smooth_l1", nor "l1" of deltas. The model is small and random. Needs boxloss
and torchvision.
"""

import torch
from boxloss.torch import box_loss, collate_ragged, max_iou_match
from torch import Tensor, nn
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.retinanet import RetinaNetHead, RetinaNetRegressionHead

from examples import training
from examples.training import COUNTS, STEPS, Run

Targets = list[dict[str, Tensor]]


class Model(RetinaNet):
    """model.__class__ = Model: the matcher."""

    def compute_loss(
        self, targets: Targets, head_outputs: dict[str, Tensor], anchors: list[Tensor]
    ) -> dict[str, Tensor]:
        true_boxes, offsets = collate_ragged([each["boxes"] for each in targets])
        rule = self.proposal_matcher
        row, _ = max_iou_match(
            torch.stack(anchors),
            true_boxes,
            offsets,
            high=rule.high_threshold,
            low=rule.low_threshold,
            low_quality="argmax" if rule.allow_low_quality_matches else "none",
        )
        in_image = torch.where(row < 0, row, row - offsets[:-1, None])
        return self.head.compute_loss(targets, head_outputs, anchors, list(in_image))


class RegressionHead(RetinaNetRegressionHead):
    """model.head.regression_head.__class__ = RegressionHead."""

    def compute_loss(
        self,
        targets: Targets,
        head_outputs: dict[str, Tensor],
        anchors: list[Tensor],
        matched_idxs: list[Tensor],
    ) -> Tensor:
        true_boxes, offsets = collate_ragged([each["boxes"] for each in targets])
        matched = torch.stack(matched_idxs)  # to each anchor's true box in its image; < 0: none
        image, anchor = (matched >= 0).nonzero(as_tuple=True)  # waits for their number
        # One anchor in hundreds has a true box: only those are decoded, as wide as true boxes are.
        deltas = head_outputs["bbox_regression"][image, anchor].to(true_boxes)
        pred = self.box_coder.decode_single(deltas, torch.stack(anchors)[image, anchor])
        row = offsets[image] + matched[image, anchor]
        weight = 1 / ((matched >= 0).sum(1) * len(targets)).double()
        return box_loss(
            pred,
            true_boxes,
            self._loss_type,
            target_index=row,
            weight=weight[image],
            reduction="sum",
        )


# --- Training ---

SIDE = 64  # of images, in pixels


def small_model(head: type[RetinaNetRegressionHead], loss: str = "giou") -> RetinaNet:
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 16
    anchors = AnchorGenerator(((16, 24, 32),), ((0.5, 1.0, 2.0),))
    number = anchors.num_anchors_per_location()[0]
    both = RetinaNetHead(in_channels=16, num_anchors=number, num_classes=5)
    both.regression_head = head(in_channels=16, num_anchors=number)
    both.regression_head._loss_type = loss
    kind = Model if head is RegressionHead else RetinaNet
    return kind(backbone, num_classes=5, min_size=SIDE, anchor_generator=anchors, head=both)


def train(
    head: type[RetinaNetRegressionHead],
    seed: int = 0,
    steps: int = STEPS,
    counts: tuple[int, ...] = COUNTS,
    loss: str = "giou",
) -> Run:
    return training.train_torchvision(lambda: small_model(head, loss), SIDE, seed, steps, counts)


if __name__ == "__main__":
    training.show("The box loss", train(RetinaNetRegressionHead), boxloss=train(RegressionHead))
