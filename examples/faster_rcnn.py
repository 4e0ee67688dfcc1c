# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's Faster R-CNN, trained with its own matching and with boxloss in its place.

    python -m examples.faster_rcnn

The original matches image by image, by a matrix of all IoUs, in the region proposal network of
200,000 anchors x boxes. Here all images are matched at once, without one. The losses, which are
smooth L1 of deltas, stay torchvision's own. The model is small and random. Needs boxloss and
torchvision.
"""

import torch
from boxloss.torch import collate_ragged, max_iou_match
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection._utils import Matcher
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork
from torchvision.ops import MultiScaleRoIAlign

from examples import training
from examples.training import COUNTS, STEPS, Run


class Proposals(RegionProposalNetwork):
    """model.rpn.__class__ = Proposals."""

    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: list[dict[str, Tensor]]
    ) -> tuple[list[Tensor], list[Tensor]]:
        true_boxes, offsets = collate_ragged([each["boxes"] for each in targets])
        row = match(self.proposal_matcher, torch.stack(anchors), true_boxes, offsets)
        labels = torch.where(row >= 0, 1.0, torch.where(row == -1, 0.0, -1.0))
        boxes = functional.pad(true_boxes, (0, 0, 0, 1))[row.clamp(min=-1)]  # of none any
        return list(labels), list(boxes)


class Heads(RoIHeads):
    """model.roi_heads.__class__ = Heads."""

    def assign_targets_to_proposals(
        self, proposals: list[Tensor], gt_boxes: list[Tensor], gt_labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        true_boxes, offsets = collate_ragged(gt_boxes)
        padded = pad_sequence(proposals, batch_first=True)
        row = match(self.proposal_matcher, padded, true_boxes, offsets)
        # What -1 reads: one label more, behind the last, of the background.
        labels = functional.pad(torch.cat(gt_labels), (0, 1))[row.clamp(min=-1)]
        labels = torch.where(row == -2, -1, labels)
        in_image = (row - offsets[:-1, None]).clamp(min=0)
        counts = [len(each) for each in proposals]
        return tuple(
            [each[:count] for each, count in zip(values, counts, strict=True)]
            for values in (in_image, labels)
        )


def match(rule: Matcher, boxes: Tensor, true_boxes: Tensor, offsets: Tensor) -> Tensor:
    """The row of each box' true box, -1 for the background, -2 for what is ignored."""
    return max_iou_match(
        boxes,
        true_boxes,
        offsets,
        high=rule.high_threshold,
        low=rule.low_threshold,
        low_quality="argmax" if rule.allow_low_quality_matches else "none",
    ).target_index


def use_boxloss(model: FasterRCNN) -> None:
    model.rpn.__class__ = Proposals
    model.roi_heads.__class__ = Heads


# --- Training ---

SIDE = 64  # of images, in pixels


def small_model() -> FasterRCNN:
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 16
    return FasterRCNN(
        backbone,
        min_size=SIDE,
        rpn_anchor_generator=AnchorGenerator(((16, 24, 32),), ((0.5, 1.0, 2.0),)),
        rpn_post_nms_top_n_train=100,
        box_roi_pool=MultiScaleRoIAlign(["0"], output_size=3, sampling_ratio=2),
        box_head=TwoMLPHead(16 * 3 * 3, 32),
        box_predictor=FastRCNNPredictor(32, 5),
    )


def train(
    with_boxloss: bool, seed: int = 0, steps: int = STEPS, counts: tuple[int, ...] = COUNTS
) -> Run:
    def make_model() -> FasterRCNN:
        model = small_model()
        if with_boxloss:
            use_boxloss(model)
        return model

    return training.train_torchvision(make_model, SIDE, seed, steps, counts, "loss_rpn_box_reg")


if __name__ == "__main__":
    training.show("The proposals' box loss", train(False), boxloss=train(True))
