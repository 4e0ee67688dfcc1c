# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""mmdetection's MaxIoUAssigner and HungarianAssigner, with the signatures that its configs use.

mmdetection calls an assigner for one image at a time. These write no matrix of IoUs, or one kernel
of costs, and wait for no device where the original waits for each ground-truth box, or for SciPy.
What boxloss does not compute is refused by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmdet.models.task_modules.assigners.assign_result import AssignResult
from mmdet.models.task_modules.assigners.base_assigner import BaseAssigner
from torch import Tensor
from torch.nn import functional

from ..._options import BoxFormat, LowQuality
from ..collate import collate_ragged, on_host
from ..hungarian_match import hungarian_match
from ..matching_cost import matching_cost
from ..max_iou_match import max_iou_match
from . import faults


class MaxIoUAssigner(BaseAssigner):
    """mmdetection's MaxIoUAssigner, by IoUs of the same bits.

    Differences: a NaN in an IoU is the best of all, where the original ignores such an anchor; a
    union below 1e-6 is taken as it is; boxes of halves are computed in float32.

    Args:
        pos_iou_thr, min_pos_iou, gt_max_assign_all, match_low_quality: as theirs.
        neg_iou_thr: a float that is not more than pos_iou_thr; not a range of two.
        ignore_iof_thr: not more than 0: boxes to be ignored are not served.
        ignore_wrt_candidates: has no effect then.
        gpu_assign_thr: has no effect: there is no matrix that a GPU had no room for.
        iou_calculator: dict(type="BboxOverlaps2D"), the default, alone.
        perm_repeat_gt_cfg: None.
    """

    def __init__(
        self,
        pos_iou_thr: float,
        neg_iou_thr: float,
        min_pos_iou: float = 0.0,
        gt_max_assign_all: bool = True,
        ignore_iof_thr: float = -1,
        ignore_wrt_candidates: bool = True,
        match_low_quality: bool = True,
        gpu_assign_thr: float = -1,
        iou_calculator: Mapping[str, Any] | None = None,
        perm_repeat_gt_cfg: None = None,
    ) -> None:
        calculator = dict(iou_calculator or {"type": "BboxOverlaps2D"})
        has_own = list(calculator) != ["type"] or _name(calculator) != "BboxOverlaps2D"
        _refuse("neg_iou_thr", neg_iou_thr, not isinstance(neg_iou_thr, float), "a float")
        _refuse("ignore_iof_thr", ignore_iof_thr, ignore_iof_thr > 0, "what is not more than 0")
        _refuse("iou_calculator", calculator, has_own, "dict(type='BboxOverlaps2D')")
        _refuse("perm_repeat_gt_cfg", perm_repeat_gt_cfg, perm_repeat_gt_cfg is not None, "None")
        self.pos_iou_thr = pos_iou_thr
        self.neg_iou_thr = neg_iou_thr
        self.min_pos_iou = min_pos_iou
        self.gt_max_assign_all = gt_max_assign_all
        self.match_low_quality = match_low_quality

    def assign(
        self, pred_instances: Any, gt_instances: Any, gt_instances_ignore: Any = None, **_: Any
    ) -> AssignResult:
        """The ground-truth box of each prior; gt_instances_ignore has no effect."""
        low_quality: LowQuality = "overwrite" if self.gt_max_assign_all else "force"
        target, offsets = collate_ragged([_boxes(gt_instances.bboxes)])
        index, iou = max_iou_match(
            _boxes(pred_instances.priors),
            target,
            offsets,
            high=self.pos_iou_thr,
            low=self.neg_iou_thr,
            low_quality=low_quality if self.match_low_quality else "none",
            min_pos_iou=self.min_pos_iou,
        )
        return _result(index[0], iou[0], gt_instances.labels)


# The match costs that are served, with their options' defaults.
_COSTS: dict[str, dict[str, Any]] = {
    "ClassificationCost": {"weight": 1.0},
    "FocalLossCost": {
        **{"alpha": 0.25, "gamma": 2.0, "eps": 1e-12},
        **{"binary_input": False, "weight": 1.0},
    },
    "BBoxL1Cost": {"box_format": "xyxy", "weight": 1.0},
    "IoUCost": {"iou_mode": "giou", "weight": 1.0},
}


class HungarianAssigner(BaseAssigner):
    """mmdetection's HungarianAssigner, of the match costs of DETR and its relatives.

    Costs are float32 and rounded in another way: of two assignments with equal costs up to rounding
    the other one may be chosen. Costs that are not finite, an error in the original, are matched
    last. FocalLossCost has 1e-8 in its logarithms: it differs for logits beyond 15. With a cost of
    classes, labels outside of them and ground-truth boxes that are not finite or have a negative
    size are an error: on the CPU at once, on a GPU in a later call, or in `compat.check_targets`.

    Args:
        match_costs: one or several of ClassificationCost or FocalLossCost, BBoxL1Cost, and IoUCost
            with "giou" or "iou", as configs, each once.
    """

    def __init__(self, match_costs: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        costs = _parsed([match_costs] if isinstance(match_costs, Mapping) else match_costs)
        focal, box, iou = (costs.get(key, {}) for key in ("FocalLossCost", "BBoxL1Cost", "IoUCost"))
        of_classes = focal or costs.get("ClassificationCost", {})
        self.has_classes = bool(of_classes)
        self.has_sizes = box.get("box_format") == "xywh"
        self.options = {
            "class_mode": "focal" if focal else "softmax",
            "focal_alpha": focal.get("alpha", 0.25),
            "focal_gamma": focal.get("gamma", 2.0),
            "loss": iou.get("iou_mode", "giou"),
            "class_weight": of_classes.get("weight", 0.0),
            "l1_weight": box.get("weight", 0.0),
            "iou_weight": iou.get("weight", 0.0),
        }

    def assign(
        self,
        pred_instances: Any,
        gt_instances: Any,
        img_meta: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> AssignResult:
        """The ground-truth box of each query; BBoxL1Cost needs img_meta["img_shape"]."""
        pred = _boxes(pred_instances.bboxes)
        target, offsets = collate_ragged([_boxes(gt_instances.bboxes)])
        classes: dict[str, Any] = {}
        if self.has_classes:
            scores, labels = pred_instances.scores, gt_instances.labels.long()
            rows = faults.Rows(target, labels, offsets, "labels", scores.shape[-1], False)
            labels = faults.check(rows)[0]
            classes = {"logits": scores[None], "labels": labels}
        box_format: BoxFormat = "xyxy"
        eps = 1e-6  # of bbox_overlaps, in pixels
        if self.options["l1_weight"]:
            if img_meta is None:
                raise ValueError("img_meta is None; BBoxL1Cost needs its 'img_shape'")
            height, width = img_meta["img_shape"]
            sides = on_host((width, height) * 2, target.device)
            sides = sides.to(target.device, non_blocking=True).to(target.dtype)
            pred, target = pred / sides, target / sides
            eps /= width * height  # of areas
        if self.has_sizes:
            box_format = "cxcywh"
            pred, target = _centred(pred), _centred(target)
        cost = matching_cost(
            pred[None],
            target,
            offsets,
            **classes,
            **self.options,
            pred_format=box_format,
            target_format=box_format,
            eps=eps,
            eps_mode="clamp",
        )
        index = hungarian_match(cost, offsets).target_of_query[0]
        return _result(index, None, gt_instances.labels)


def _parsed(match_costs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Options by the cost's name."""
    found: dict[str, dict[str, Any]] = {}
    for place, cost in enumerate(match_costs):
        kind, name = f"match_costs[{place}]", _name(cost)
        _refuse(kind, name, name not in _COSTS or name in found, f"{', '.join(_COSTS)}, each once")
        given = {key: value for key, value in cost.items() if key != "type"}
        options = _COSTS[name]
        for key, value in given.items():
            _refuse(
                f"{kind}: an option", key, key not in options, f"{', '.join(options)} of {name}"
            )
            if key in _SERVED:
                allowed = _SERVED[key]
                words = " or ".join(map(repr, allowed))
                _refuse(f"{kind}: {key}", value, value not in allowed, words)
        found[name] = options | given
    if not found or {"ClassificationCost", "FocalLossCost"} <= found.keys():
        raise ValueError(
            f"match_costs has {', '.join(found) or 'none'}; boxloss serves one or several, and of "
            "ClassificationCost and FocalLossCost one"
        )
    return found


_SERVED: dict[str, tuple[Any, ...]] = {
    "eps": (1e-12,),
    "binary_input": (False,),
    "box_format": ("xyxy", "xywh"),
    "iou_mode": ("giou", "iou"),
}


def _refuse(name: str, value: object, is_refused: bool, served: str) -> None:
    if is_refused:
        raise ValueError(f"{name} is {value!r}; boxloss serves {served}")


def _name(config: Mapping[str, Any]) -> str:
    """A config's type is a class or its name, which may have mmdetection's scope."""
    kind = config["type"]
    return str(getattr(kind, "__name__", kind)).removeprefix("mmdet.")


def _boxes(boxes: Any) -> Tensor:
    """(n, 4): of mmdetection's BaseBoxes their tensor; a score behind the corners is left out."""
    tensor: Tensor = getattr(boxes, "tensor", boxes)
    return tensor[:, :4]


def _centred(boxes: Tensor) -> Tensor:
    """cxcywh."""
    low, high = boxes.split(2, -1)
    return torch.cat(((low + high) / 2, high - low), -1)


def _result(index: Tensor, overlaps: Tensor | None, labels: Tensor) -> AssignResult:
    """mmdetection counts boxes from 1; 0 is the background, -1 is to be ignored."""
    # What is negative reads one label more, behind the last.
    found = functional.pad(labels.long(), (0, 1), value=-1)[index.clamp(min=-1)]
    return AssignResult(len(labels), index + 1, overlaps, labels=found)
