# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matching of torchvision's Faster R-CNN, of its proposals' anchors and its heads' proposals.

The original matches image by image, by a matrix of all IoUs, in the region proposal network of
200,000 anchors x boxes. Here all images are matched at once, without one. The losses, which are
smooth L1 of deltas, stay torchvision's own.
"""

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork

from ..collate import collate_ragged
from .torchvision_matcher import match


class Proposals(RegionProposalNetwork):
    def assign_targets_to_anchors(
        self, anchors: list[Tensor], targets: list[dict[str, Tensor]]
    ) -> tuple[list[Tensor], list[Tensor]]:
        true_boxes, offsets = collate_ragged([each["boxes"] for each in targets])
        row = match(self.proposal_matcher, torch.stack(anchors), true_boxes, offsets)
        labels = torch.where(row >= 0, 1.0, torch.where(row == -1, 0.0, -1.0))
        boxes = functional.pad(true_boxes, (0, 0, 0, 1))[row.clamp(min=-1)]  # of none any
        return list(labels), list(boxes)


class Heads(RoIHeads):
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
        return tuple(  # type: ignore[return-value]
            [each[:count] for each, count in zip(values, counts, strict=True)]
            for values in (in_image, labels)
        )
