# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss in mmdetection's configs, beside its assigners' own files.

mmengine is not here: its registry is the few lines of mmdet_files.py, so that a name
finds its class in the real one is not shown.
"""

from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from boxloss.torch import compat
from mmdet_files import ASSIGNERS, RESULT, mmdet_files
from surroundings import DEVICES, assert_reads_nothing
from test_max_iou_match import anchors, true_boxes
from torch import Tensor

FILES = [f"{ASSIGNERS}.{each}" for each in (*RESULT, "max_iou_assigner", "match_cost")]
with mmdet_files(*FILES, f"{ASSIGNERS}.hungarian_assigner", "models.losses.utils"):
    import boxloss.registry  # noqa: F401
    from mmdet.registry import MODELS, TASK_UTILS
    from mmdet.structures.bbox import BaseBoxes

CLASSES, SHAPE = 5, (240, 320)
OVERLAPS = {"type": "BboxOverlaps2D"}
FOCAL = {"type": "FocalLossCost"}
CORNERS, SIZES = ({"type": "BBoxL1Cost", "box_format": each} for each in ("xyxy", "xywh"))
GIOU = {"type": "mmdet.IoUCost", "iou_mode": "giou", "weight": 2.0}


class Instances(SimpleNamespace):
    """mmengine's InstanceData: tensors of one length."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))


def both(name: str, **options: Any) -> list[Any]:
    return [TASK_UTILS.build({"type": kind, **options}) for kind in (name, f"boxloss.{name}")]


def truth_of(boxes: Tensor) -> Instances:
    random = torch.Generator().manual_seed(len(boxes))
    labels = torch.randint(CLASSES, (len(boxes),), generator=random)
    return Instances(bboxes=boxes, labels=labels.to(boxes.device))


def assert_same(assigners: list[Any], *given: Any, **named: Any) -> Tensor:
    """The boxes of all, counted from 1."""
    theirs, ours = (each.assign(*given, **named) for each in assigners)
    assert type(ours) is type(theirs)
    assert ours.num_gts == theirs.num_gts
    for name in ("gt_inds", "labels", "max_overlaps"):
        wanted, value = getattr(theirs, name), getattr(ours, name)
        assert (value is None) == (wanted is None)
        if wanted is not None:
            assert value.dtype == wanted.dtype
            assert torch.equal(value, wanted), name
    return ours.gt_inds


# --- MaxIoUAssigner ---

THRESHOLDS: dict[str, dict[str, Any]] = {
    "RPN": {"pos_iou_thr": 0.7, "neg_iou_thr": 0.3, "min_pos_iou": 0.3, "ignore_iof_thr": -1},
    "RetinaNet": {"pos_iou_thr": 0.5, "neg_iou_thr": 0.4, "gpu_assign_thr": 5},
    "RoI heads": {"pos_iou_thr": 0.5, "neg_iou_thr": 0.5, "match_low_quality": False},
    "SSD": {"pos_iou_thr": 0.5, "neg_iou_thr": 0.5, "gt_max_assign_all": False},
    "at least": {"pos_iou_thr": 0.7, "neg_iou_thr": 0.3, "gt_max_assign_all": False}
    | {"min_pos_iou": 0.3},
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 40])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_max_iou_assigner(name: str, count: int, device: str) -> None:
    assigners = both("MaxIoUAssigner", iou_calculator=OVERLAPS, **THRESHOLDS[name])
    priors = Instances(priors=anchors().to(device))
    found = assert_same(assigners, priors, truth_of(true_boxes(1)[:count].to(device)))
    if count > 1:
        kinds = [0, 1] if name in ("RoI heads", "SSD") else [-1, 0, 1]
        assert found.sign().unique().tolist() == kinds
    for each in assigners:  # as a dynamic R-CNN does
        each.pos_iou_thr = each.neg_iou_thr = 0.45
    assert_same(assigners, priors, truth_of(true_boxes(2)[:count].to(device)))


def test_boxes_of_other_forms() -> None:
    assigners = both("MaxIoUAssigner", **THRESHOLDS["RPN"])
    boxes = true_boxes(0)[:7]
    for priors in (torch.empty(0, 4), torch.cat((boxes + 3, torch.ones(7, 1)), 1)):
        assert_same(assigners, Instances(priors=priors), truth_of(boxes))
    priors = Instances(priors=BaseBoxes(tensor=boxes + 3))
    truth = Instances(bboxes=BaseBoxes(tensor=boxes), labels=torch.arange(7))
    assert_same(assigners, priors, truth)


# --- HungarianAssigner ---

COSTS: dict[str, Any] = {
    "DETR": [{"type": "ClassificationCost", "weight": 1.0}, SIZES | {"weight": 5.0}, GIOU],
    "Deformable DETR": [FOCAL | {"weight": 2.0}, SIZES | {"weight": 5.0}, GIOU],
    "Sparse R-CNN": [FOCAL | {"weight": 2.0}, CORNERS | {"weight": 5.0}, GIOU],
    "no boxes": FOCAL | {"alpha": 0.25, "gamma": 2, "eps": 1e-12, "binary_input": False},
    "another focal loss": [FOCAL | {"alpha": 0.6, "gamma": 0.5, "weight": 2.0}, CORNERS, GIOU],
    "IoU": [{"type": "IoUCost", "iou_mode": "iou"}],
    "L1": [CORNERS],
}


def queries(count: int, seed: int) -> Instances:
    random = torch.Generator().manual_seed(seed)
    first = 100 * torch.rand(count, 2, generator=random)
    sides = 10 + 120 * torch.rand(count, 2, generator=random)
    scores = 2 * torch.randn(count, CLASSES, generator=random)
    return Instances(bboxes=torch.cat((first, first + sides), 1), scores=scores)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 12, 40])
@pytest.mark.parametrize("name", COSTS)
def test_hungarian_assigner(name: str, count: int, device: str) -> None:
    assigners = both("HungarianAssigner", match_costs=COSTS[name])
    for seed in range(5):
        truth = truth_of(queries(count, seed + 100).bboxes.to(device))
        found = queries(20, seed)
        found = Instances(bboxes=found.bboxes.to(device), scores=found.scores.to(device))
        matched = assert_same(assigners, found, truth, img_meta={"img_shape": SHAPE})
        assert (matched > 0).sum() == min(count, 20)


# --- What is not served ---

THIRD = {"pos_iou_thr": 0.7, "neg_iou_thr": 0.3}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("MaxIoUAssigner", THIRD | {"neg_iou_thr": (0.1, 0.3)}, r"neg_iou_thr is \(0.1, 0.3\)"),
    ("MaxIoUAssigner", THIRD | {"neg_iou_thr": 0}, "neg_iou_thr is 0; boxloss serves a float"),
    ("MaxIoUAssigner", THIRD | {"ignore_iof_thr": 0.5}, "ignore_iof_thr is 0.5"),
    ("MaxIoUAssigner", THIRD | {"perm_repeat_gt_cfg": {"iou_thr": 0.7}}, "perm_repeat_gt_cfg is"),
    *(
        ("MaxIoUAssigner", THIRD | {"iou_calculator": each}, "iou_calculator is .*BboxOverlaps2D")
        for each in ({"type": "RBboxOverlaps2D"}, OVERLAPS | {"dtype": "fp16"})
    ),
    ("HungarianAssigner", {"match_costs": []}, "match_costs has none"),
    ("HungarianAssigner", {"match_costs": [GIOU, {"type": "DiceCost"}]}, r"\[1\] is 'DiceCost'"),
    ("HungarianAssigner", {"match_costs": [GIOU, GIOU]}, r"\[1\] is 'IoUCost'.*each once"),
    (
        "HungarianAssigner",
        {"match_costs": [FOCAL, {"type": "ClassificationCost"}]},
        "match_costs has FocalLossCost, ClassificationCost; .*one",
    ),
    *(
        ("HungarianAssigner", {"match_costs": [cost | {key: value}]}, rf"\[0\]: {told}")
        for cost, key, value, told in (
            (FOCAL, "binary_input", True, "binary_input is True; boxloss serves False"),
            (FOCAL, "eps", 1e-3, "eps is 0.001; boxloss serves 1e-12"),
            (CORNERS, "box_format", "cxcywh", "box_format is 'cxcywh'; .* 'xyxy' or 'xywh'"),
            (GIOU, "iou_mode", "iof", "iou_mode is 'iof'"),
            (GIOU, "eps", 1e-3, "an option is 'eps'; boxloss serves iou_mode, weight of IoUCost"),
        )
    ),
]


@pytest.mark.parametrize(("name", "options", "told"), REFUSED)
def test_what_is_not_served_is_refused_by_name(
    name: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        TASK_UTILS.build({"type": f"boxloss.{name}", **options})


def test_l1_needs_the_image() -> None:
    _, ours = both("HungarianAssigner", match_costs=[CORNERS])
    with pytest.raises(ValueError, match="img_meta is None; BBoxL1Cost needs its 'img_shape'"):
        ours.assign(queries(3, 0), truth_of(queries(2, 1).bboxes))


def test_labels_that_are_no_class() -> None:
    """Theirs is an IndexError, of which a GPU knows no row."""
    truth = truth_of(queries(3, 1).bboxes)
    truth.labels[1] = CLASSES
    theirs, ours = both("HungarianAssigner", match_costs=FOCAL)
    with pytest.raises(IndexError):
        theirs.assign(queries(9, 0), truth)
    with pytest.raises(ValueError, match=r"labels: image 0, row 1 is 5; .* lie in \[0, 5\)"):
        ours.assign(queries(9, 0), truth)


# --- How they are called ---


@pytest.mark.parametrize("name", ["MaxIoUAssigner", "HungarianAssigner"])
def test_signatures(name: str) -> None:
    theirs, ours = (TASK_UTILS.scopes[scope].classes[name] for scope in ("mmdet", "boxloss"))
    wanted, given = (signature(each).parameters for each in (theirs, ours))
    assert list(given) == list(wanted)
    for key, each in wanted.items():
        if key != "iou_calculator":  # None is theirs
            assert given[key].default == each.default, key


def test_nobody_waits_for_the_device() -> None:
    boxes, labels = true_boxes(0)[:7], torch.arange(7) % CLASSES
    _, by_iou = both("MaxIoUAssigner", **THRESHOLDS["RPN"])
    _, by_cost = both("HungarianAssigner", match_costs=COSTS["DETR"])

    def assign(
        priors: Tensor, bboxes: Tensor, scores: Tensor, boxes: Tensor, labels: Tensor
    ) -> None:
        truth = Instances(bboxes=boxes, labels=labels)
        by_iou.assign(Instances(priors=priors), truth)
        found = Instances(bboxes=bboxes, scores=scores)
        by_cost.assign(found, truth, img_meta={"img_shape": SHAPE})

    assert_reads_nothing(
        assign, priors=anchors(), boxes=boxes, labels=labels, **vars(queries(20, 0))
    )


def test_losses_by_their_scope() -> None:
    pred, target = queries(9, 0).bboxes, queries(9, 1).bboxes
    for name, options, word in (
        ("GIoULoss", {}, "giou"),
        ("IoULoss", {"mode": "square"}, "iou_squared"),
        ("MMDetLoss", {"loss": "siou"}, "siou"),
    ):
        config = {"type": f"boxloss.{name}", "loss_weight": 2.0, **options}
        wanted = compat.MMDetLoss(word, loss_weight=2.0)(pred, target)
        assert torch.equal(MODELS.build(config)(pred, target), wanted)
