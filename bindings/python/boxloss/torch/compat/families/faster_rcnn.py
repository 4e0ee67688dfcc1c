# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's Faster R-CNN, Mask R-CNN and Keypoint R-CNN: the matching of anchors and proposals.

The original matches image by image, by a matrix of all IoUs, in the region proposal network of
200,000 anchors x boxes. Here all images are matched at once, without one. The losses, which are
smooth L1 of deltas, stay torchvision's own.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork

from ..family import Family, Swapped, swap
from ..parts import Parts
from ..targets import Targets, ground_truth_of
from ..torchvision_models import MATCHERS, cases, match

PARTS = Parts(
    {
        "torchvision.models.detection.rpn": ("RegionProposalNetwork.assign_targets_to_anchors",),
        "torchvision.models.detection.roi_heads": ("RoIHeads.assign_targets_to_proposals",),
        **MATCHERS,
    }
)


class Model(FasterRCNN):
    """As it is, but for torch.jit.script."""


class Proposals(RegionProposalNetwork):
    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: Targets
    ) -> tuple[list[Tensor], list[Tensor]]:
        PARTS.check()
        if not all("labels" in each for each in targets):  # which proposals do not need
            targets = [
                {**each, "labels": each["boxes"].new_zeros(len(each["boxes"])).long()}
                for each in targets
            ]
        truth = ground_truth_of(targets, "labels", 0, drops_labels=True)
        row = match(self.proposal_matcher, torch.stack(anchors), truth.boxes, truth.offsets)
        labels = torch.where(row >= 0, 1.0, torch.where(row == -1, 0.0, -1.0))
        boxes = functional.pad(truth.boxes, (0, 0, 0, 1))[row.clamp(min=-1)]  # of none any
        boxes = truth.checked(boxes)
        return list(labels), list(boxes)


class Heads(RoIHeads):
    def assign_targets_to_proposals(
        self, proposals: list[Tensor], gt_boxes: list[Tensor], gt_labels: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        pairs = zip(gt_boxes, gt_labels, strict=True)
        targets = [{"boxes": boxes, "labels": labels} for boxes, labels in pairs]
        truth = ground_truth_of(targets, "labels", None, drops_labels=True)
        padded = pad_sequence(proposals, batch_first=True)
        row = match(self.proposal_matcher, padded, truth.boxes, truth.offsets)
        # What -1 reads: one label more, behind the last, of the background.
        labels = functional.pad(truth.labels, (0, 1))[row.clamp(min=-1)]
        labels = torch.where(row == -2, -1, labels)
        in_image = (row - truth.offsets[:-1, None]).clamp(min=0)
        counts = [len(each) for each in proposals]
        return tuple(  # type: ignore[return-value]
            [each[:count] for each, count in zip(values, counts, strict=True)]
            for values in (in_image, labels)
        )


def replace(model: Any) -> Iterator[Swapped]:
    yield swap(model, Model)
    yield swap(model.rpn, Proposals)
    yield swap(model.roi_heads, Heads)


def matches_of(model: Any, **made: Any) -> Any:
    """Labels, and what positive ones are matched with; of the others that is never read."""
    targets = made["targets"]
    boxes, labels = ([each[name] for each in targets] for name in ("boxes", "labels"))
    of_anchors, matched = model.rpn.assign_targets_to_anchors(made["anchors"], targets)
    index, of_proposals = model.roi_heads.assign_targets_to_proposals(
        made["proposals"], boxes, labels
    )
    return {
        "labels of anchors": of_anchors,
        "boxes of anchors": positive(matched, of_anchors),
        "labels of proposals": of_proposals,
        "boxes of proposals": positive(index, of_proposals),
    }


def positive(values: list[Tensor], labels: list[Tensor]) -> list[Tensor]:
    return [each[of > 0] for each, of in zip(values, labels, strict=True)]


FAMILY = Family(replace, cases, PARTS, matches_of)
