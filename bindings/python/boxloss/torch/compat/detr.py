# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matcher and the box losses of DETR and its relatives, with their signatures.

They take one decoder layer at a time, as those criteria do. `set_criterion` serves all layers at
once.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import torch
from torch import Tensor

from ..._options import ClassMode
from ..arguments import check_tensors
from ..boxes import check_labels
from ..collate import on_host
from ..hungarian_match import hungarian_match
from ..losses import box_losses
from ..matches import collate_matches
from ..matching_cost import matching_cost
from .ranks import number_of_boxes

Targets = Sequence[Mapping[str, Tensor]]
Matches = Sequence[tuple[Any, Any]]


def _check_images(outputs: Mapping[str, Any], targets: Targets) -> None:
    """Whatever fits as rows of lists would give numbers."""
    if not targets:
        raise ValueError("targets is empty: it must hold one mapping for each image, at least one")
    check_tensors("outputs", pred_boxes=outputs["pred_boxes"])
    shape = outputs["pred_boxes"].shape
    if len(shape) != 3 or shape[2] != 4:
        raise ValueError(f"pred_boxes has shape {tuple(shape)}; it must be (images, queries, 4)")
    if shape[0] != len(targets):
        raise ValueError(f"pred_boxes has {shape[0]} images, targets has {len(targets)}")
    for b, each in enumerate(targets):
        boxes = each["boxes"]
        check_tensors(f"targets[{b}]", boxes=boxes)
        if len(boxes) and (boxes.dim() != 2 or boxes.shape[1] != 4):
            raise ValueError(
                f"targets[{b}]: boxes has shape {tuple(boxes.shape)}; it must be (n, 4)"
            )


def _true_boxes(targets: Targets) -> tuple[Tensor, list[int]]:
    """All images' boxes, and each image's first row followed by the number of rows."""
    counts = [len(each["boxes"]) for each in targets]
    return torch.cat([each["boxes"] for each in targets]), [*accumulate(counts, initial=0)]


def _labels(targets: Targets) -> tuple[list[str], Tensor]:
    """transformers calls them class_labels, DETR itself labels: of each image. And all of them."""
    names = ["class_labels" if "class_labels" in each else "labels" for each in targets]
    labels = []
    for b, (each, name) in enumerate(zip(targets, names, strict=True)):
        check_tensors(f"targets[{b}]", **{name: each[name]})
        if len(each[name]) != len(each["boxes"]):
            given = f"{len(each[name])} {name}, {len(each['boxes'])} boxes"
            raise ValueError(f"targets[{b}] has {given}")
        labels.append(each[name])
    return names, torch.cat(labels)


def _rows(
    indices: Matches, firsts: list[int], queries: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    if all(getattr(half, "is_cpu", True) for half in chain.from_iterable(indices)):
        counts = [last - first for first, last in pairwise(firsts)]
        return collate_matches(indices, counts, queries, device=device)
    return _rows_there(indices, firsts, queries)


def _rows_there(indices: Matches, firsts: list[int], queries: int) -> tuple[Tensor, Tensor]:
    """Indices of pairs that are on the device, as denoising queries': no synchronization."""
    if len(indices) != len(firsts) - 1:
        raise ValueError(f"indices has {len(indices)} images, targets has {len(firsts) - 1}")
    for b, (src, tgt) in enumerate(indices):
        if src.dim() != 1 or src.shape != tgt.shape:
            raise ValueError(
                f"indices[{b}]: src has shape {tuple(src.shape)}, tgt has {tuple(tgt.shape)}; "
                "both must be (k,)"
            )
    srcs = [each + image * queries for image, (each, _) in enumerate(indices)]
    tgts = [each + first for first, (_, each) in zip(firsts, indices, strict=False)]
    return torch.cat(srcs), torch.cat(tgts)


def detr_loss_boxes(
    outputs: Mapping[str, Any],
    targets: Targets,
    indices: Matches,
    num_boxes: float | Tensor,
) -> dict[str, Tensor]:
    """loss_boxes of DETR's criterion: L1 and 1 - GIoU of matched pairs, each over num_boxes.

    Deprecated; to go in 0.5: `set_criterion` does it for all layers at once, and `box_losses` for
    pairs of `collate_matches`.

    The originals compute the GIoU of all pairs' boxes with each other and keep the diagonal. They
    check for inverted boxes (x2 < x1), which synchronizes; boxloss computes with them.

    Args:
        outputs: "pred_boxes": (images, queries, 4), cxcywh, float64, float32, float16 or bfloat16.
        targets: for each image "boxes": (n, 4), cxcywh; n may be 0.
        indices: for each image (src, tgt) of shape (k): prediction src[i] belongs to ground-truth
            box tgt[i]. On the CPU as from a matcher, or all on the boxes' device.
        num_boxes: divides both sums: a number, or a tensor of one element. It gets no gradient.

    Returns:
        "loss_bbox" and "loss_giou", without dimensions, float64 when either box tensor is, else
        float32.

    Raises:
        ValueError: targets is empty, or of other images than pred_boxes; a bad shape.
            Otherwise as collate_matches and box_losses. On a GPU indices are not checked: a pair
            out of range is not valid.
    """
    warnings.warn(
        "detr_loss_boxes will go in 0.5: call boxloss.torch.set_criterion for all layers at once, "
        "or box_losses with pairs of collate_matches",
        FutureWarning,
        stacklevel=2,
    )
    _check_images(outputs, targets)
    pred = outputs["pred_boxes"]
    target, firsts = _true_boxes(targets)
    pred_index, target_index = _rows(indices, firsts, pred.shape[1], pred.device)
    giou, l1, _ = box_losses(
        pred,
        target,
        "giou",
        eps=0.0,
        pred_format="cxcywh",
        target_format="cxcywh",
        pred_index=pred_index,
        target_index=target_index,
        normalizer=number_of_boxes("num_boxes", num_boxes, pred, target),
    )
    return {"loss_bbox": l1, "loss_giou": giou}


class HungarianMatcher(torch.nn.Module):
    """DETR's matcher, or with class_mode="focal" that of Deformable DETR, DINO, RT-DETR, LW-DETR.

    An entry of the cost is a weighted sum of the class term, the L1 distance and -GIoU. It is
    float32, computed in float64 if boxes are. Entries that are not finite are taken last, as by
    `hungarian_match`; transformers puts the largest float32 in their place, beside which the other
    queries' costs vanish.

    The pairs are lists on the CPU, as criteria want them, for which the host waits: one
    synchronization. `matching_cost` and `hungarian_match` leave them on the device.

    Args:
        class_cost, bbox_cost, giou_cost: the weights; DETR itself calls them cost_class, cost_bbox
            and cost_giou, in this order. Not all of them may be 0.
        class_mode: as for matching_cost. alpha, gamma: those of "focal".

    Raises:
        ValueError: all weights are 0.
    """

    def __init__(
        self,
        class_cost: float = 1.0,
        bbox_cost: float = 1.0,
        giou_cost: float = 1.0,
        *,
        class_mode: ClassMode = "softmax",
        alpha: float = 0.25,
        gamma: float = 2.0,
    ) -> None:
        super().__init__()
        if class_cost == bbox_cost == giou_cost == 0:
            raise ValueError("class_cost, bbox_cost and giou_cost are 0; one must not be")
        self.class_cost = class_cost
        self.bbox_cost = bbox_cost
        self.giou_cost = giou_cost
        self.class_mode = class_mode
        self.alpha = alpha
        self.gamma = gamma

    def forward(
        self, outputs: Mapping[str, Any], targets: Targets, group_detr: int = 1
    ) -> list[tuple[Tensor, Tensor]]:
        """The pairs of least total cost.

        Args:
            outputs: "logits" or "pred_logits": (images, queries, classes), "pred_boxes": (images,
                queries, 4), cxcywh.
            targets: for each image "boxes": (n, 4), cxcywh, and "class_labels" or "labels": (n),
                int32 or int64; n may be 0.
            group_detr: the number of groups of consecutive queries; each is matched separately, as
                LW-DETR does in training. It must divide their number.

        Returns:
            For each image (src, tgt), int64 on the CPU, src ascending: min(queries, n) pairs, or as
            many for each group; fewer where the cost of those left is +inf.

        Raises:
            ValueError: shapes that are not those above, or not as many labels as boxes; a label
                that is no class; and what matching_cost raises.
        """
        _check_images(outputs, targets)
        pred = outputs["pred_boxes"]
        target, firsts = _true_boxes(targets)
        offsets = on_host(firsts, pred.device).to(pred.device, non_blocking=True)
        logits = outputs["logits" if "logits" in outputs else "pred_logits"]  # DETR's own name
        names, labels = _labels(targets)
        cost = matching_cost(
            pred,
            target,
            offsets,
            logits=logits,
            labels=labels,
            iou_weight=self.giou_cost,
            l1_weight=self.bbox_cost,
            class_weight=self.class_cost,
            class_mode=self.class_mode,
            focal_alpha=self.alpha,
            focal_gamma=self.gamma,
        )
        matched = hungarian_match(cost, offsets, groups=group_detr).target_of_query
        # One copy, for which the host waits.
        both = torch.cat((matched.flatten(), labels)).cpu()
        rows, labels = both.split([matched.numel(), len(labels)])
        for b, (name, first, last) in enumerate(zip(names, firsts, firsts[1:], strict=False)):
            check_labels(f"targets[{b}]: {name}", labels[first:last], logits.shape[-1])
        rows = rows.view_as(matched)
        found = [(each >= 0).nonzero().squeeze(1) for each in rows]
        images = zip(found, rows, firsts, strict=False)
        return [(src, row[src] - first) for src, row, first in images]

    def extra_repr(self) -> str:
        """The options, for print(module)."""
        focal = f", alpha={self.alpha}, gamma={self.gamma}" if self.class_mode == "focal" else ""
        return (
            f"class_cost={self.class_cost}, bbox_cost={self.bbox_cost}, "
            f"giou_cost={self.giou_cost}, class_mode={self.class_mode!r}{focal}"
        )
