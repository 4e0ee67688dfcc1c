# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused: the type of the error and the beginning of its text, on meta tensors, too.

Each check of the binding has its line; what core checks besides is for tests/core. JAX' functions
say the same of the same calls: tests/jax/test_refusals.py.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import boxloss.torch
import numpy
import pytest
import torch
from boxloss.torch import (
    CIoULoss,
    box_loss,
    box_losses,
    giou_loss,
    siou_loss,
    use_implementation,
)
from class_losses import by_query, class_problem
from distribution_losses import distribution_problem
from matching import classes, cost_problem
from problems import Problem, boxes, problem
from task_aligned import problem as task_aligned
from torch import Tensor

CPU, META = torch.device("cpu"), torch.device("meta")
NAN = math.nan


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def rows(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64)


class Refused(NamedTuple):
    """What is changed in a valid call, and how the error begins, behind the function's name."""

    error: type[Exception]
    changed: Problem
    text: str


COST, GOOD_COST = torch.ones(6, 9), classes(cost_problem(CPU))
PRED, TARGET = boxes((3, 6), CPU, seed=1), boxes((9,), CPU, seed=2)
OFFSETS = torch.tensor([0, 5, 5, 9])
ANCHORS = {"anchors": TARGET, "target": TARGET, "offsets": OFFSETS}
RAGGED, PADDED = task_aligned(14, images=2), task_aligned(14, images=2, is_padded=True)
CLASSES = class_problem("varifocal", CPU, normalizer=torch.tensor(3.0))
FGL = {**distribution_problem("fgl", torch.float32), "normalizer": torch.tensor(3.0)}
ROTATED = {"loss": "iou", "angle_unit": "radians"}
VALID: dict[str, Problem] = {
    "box_loss": problem("dense", CPU),
    "box_losses": problem("dense", CPU),
    "rotated_box_loss": problem("dense", CPU, **ROTATED),
    "matching_cost": GOOD_COST,
    "pairwise_iou": {"pred": PRED, "target": TARGET, "offsets": OFFSETS},
    "hungarian_match": {"cost": COST, "offsets": OFFSETS},
    "linear_sum_assignment": {"cost": COST, "lengths": torch.tensor([4, 9])},
    "max_iou_match": {**ANCHORS, "high": 0.4, "low": 0.2},
    "task_aligned_match": RAGGED,
    "class_loss": CLASSES,
    "distribution_loss": FGL,
}


def bad_value(text: str, of: str | None = None, **changed: Any) -> Refused:
    """Of a problem with that pairing: grids are (3, 5), lists 12, indices 10, and sets (2, 7)."""
    return Refused(ValueError, {**(problem(of, CPU) if of else {}), **changed}, text)


def bad_type(text: str, of: str | None = None, **changed: Any) -> Refused:
    return bad_value(text, of, **changed)._replace(error=TypeError)


TOO_MANY = "give at most one of zero_padded, lengths, mask, offsets and indices; got "
BY_IMAGE = "with zero_padded, lengths or offsets it must be "
OTHER_INDEX = "the shape of the other index, with a 4 behind it"
FLOATING = "it must be float64, float32, float16 or bfloat16"
ANY_NUMBER = "it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64"
INTEGER = "it must be int32 or int64"
OF_NORMALIZER = "it must be float64, float32, int64 or int32"
OF_OFFSETS = "target has shape [1, 5, 5]; with offsets it must be "
OTHER_INDEX_OF_5 = (
    "target has shape [12, 5]; it must be [10, 5], the shape of the other index, with a 5 behind it"
)
ONE, NONE = zeros(5, 5), zeros(5).bool()
OF_BOX_LOSS = [
    bad_value("pred_format is 'yxyx'; allowed: 'xyxy', 'xywh', 'cxcywh'", pred_format="yxyx"),
    bad_value("reduction is 'Mean'; allowed: 'none', 'sum', 'mean'", reduction="Mean"),
    bad_value("eps_mode is 'max'; allowed: 'add', 'clamp'", eps_mode="max"),
    bad_value("eps is -1; it must be finite and not negative", eps=-1.0),
    bad_value("eps is 1e+39; it must be finite and not negative, as a float32", eps=1e39),
    bad_value("eps is 1000", eps=10**400),
    bad_value("loss is 'GIoU'; allowed: 'iou', ", loss="GIoU"),
    bad_value(f"{TOO_MANY}zero_padded mask", of="mask", zero_padded=True),
    bad_value(f"{TOO_MANY}lengths offsets", of="lengths", offsets=rows(4)),
    bad_value(f"{TOO_MANY}mask pred_index target_index", of="indices", mask=zeros(3, 5).bool()),
    bad_value("pred has shape [3, 5, 5]; its last dimension must be 4", pred=zeros(3, 5, 5)),
    bad_value(
        "pred has shape [3, 5, 4], target has shape [1, 5, 4]; they must be", target=zeros(1, 5, 4)
    ),
    bad_value(f"pred has shape [15, 4]; {BY_IMAGE}", of="zero_padded", pred=zeros(15, 4)),
    bad_value(
        "target has shape [3, 5, 4]; with offsets it must", of="offsets", target=zeros(3, 5, 4)
    ),
    bad_value(
        "offsets has shape [3]; it must be [4], one more than", of="offsets", offsets=rows(3)
    ),
    bad_value(
        "lengths has shape [3, 1]; it must be [3], one for", of="lengths", lengths=rows(3, 1)
    ),
    bad_value("mask has shape [5]; it must be [3, 5], pred's", of="mask", mask=zeros(5).bool()),
    bad_value("weight has shape [3, 1]; it must be [3, 5], the", weight=zeros(3, 1)),
    bad_value("weight has shape [3, 5]; it must be [12], the", of="offsets", weight=zeros(3, 5)),
    bad_value("normalizer needs reduction 'mean',", normalizer=zeros(), reduction="sum"),
    bad_value("normalizer has shape [1]; it must have no dimension", normalizer=zeros(1)),
    bad_value(
        "normalizer has shape [7]; it must have no dimension or", of="sets", normalizer=zeros(7)
    ),
    bad_value(
        "pred_index has shape [1, 2, 5]; it must be (pairs) or (sets,",
        of="indices",
        pred_index=rows(1, 2, 5),
    ),
    bad_value(
        "target_index has shape [14]; it must be [2, 7], pred_index's",
        of="sets",
        target_index=rows(14),
    ),
    bad_value(
        f"pred has shape [3, 5, 4]; it must be [2, 7, 4], {OTHER_INDEX}", of="sets", pred_index=None
    ),
    bad_value(
        f"target has shape [12, 4]; it must be [10, 4], {OTHER_INDEX}",
        of="indices",
        target_index=None,
    ),
    bad_type(f"pred is int64; {FLOATING}", pred=rows(3, 5, 4)),
    bad_type(f"target is bool; {ANY_NUMBER}", target=zeros(3, 5, 4).bool()),
    bad_type(f"weight is int64; {FLOATING}", weight=rows(3, 5)),
    bad_type(f"lengths is bool; {INTEGER}", of="lengths", lengths=zeros(3).bool()),
    bad_type(f"offsets is uint8; {INTEGER}", of="offsets", offsets=rows(4).byte()),
    bad_type("mask is uint8; it must be bool", of="mask", mask=rows(3, 5).byte()),
    bad_type(f"pred_index is float32; {INTEGER}", of="indices", pred_index=zeros(10)),
    bad_type(f"target_index is int16; {INTEGER}", of="indices", target_index=rows(10).short()),
    bad_type(f"normalizer is uint8; {OF_NORMALIZER}", normalizer=rows().byte()),
    bad_type(f"pred is complex64; {FLOATING}", pred=zeros(3, 5, 4, dtype=torch.complex64)),
    bad_type(f"target is uint16; {ANY_NUMBER}", target=zeros(3, 5, 4, dtype=torch.uint16)),
    bad_type("loss is NoneType; it must be a string", loss=None),
    bad_type("eps is str; it must be a number", eps="a"),
    bad_type("alpha is str; it must be a number", loss="alpha_iou", alpha="3"),
    bad_value("alpha is nan; it must be from 1e-6", loss="alpha_iou", alpha=NAN),
    bad_value("alpha is 1000", loss="alpha_iou", alpha=10**400),
    bad_value("ratio is 0; it must be from 1e-6 to 1e6", loss="inner_iou", ratio=0),
    bad_value("constant is missing; 'nwd' needs constant", loss="nwd"),
    bad_value("image_height is missing; 'mpdiou' needs", loss="mpdiou", image_width=8),
]
OF_ROTATED_BOX_LOSS = [  # whose other checks are box_loss'
    bad_value("loss is 'ciou'; allowed: 'iou', 'giou', 'probiou',", loss="ciou"),
    bad_value("angle_unit is 'turns'; allowed: 'radians', 'degrees'", angle_unit="turns"),
    bad_value("eps is -1; it must be", eps=-1.0),
    bad_value("tau is 0.5; it must be from 1 to 1e6", loss="kld", tau=0.5),
    bad_value("floor is -1; it must be from 0 to 1e6", loss="kfiou", floor=-1.0),
    bad_type("floor is str; it must be a number", loss="gwd", floor="0"),
    bad_value("pred has shape [3, 5, 4]; its last dimension must be 5", pred=zeros(3, 5, 4)),
    bad_value("target has shape [3, 5, 4]; its last dimension must be 5", target=zeros(3, 5, 4)),
    *(
        bad_value(text, **{**problem(of, CPU, **ROTATED), name: given})
        for text, of, name, given in (
            (f"pred has shape [5, 5]; {BY_IMAGE}(images, slots, 5)", "lengths", "pred", ONE),
            (f"{OF_OFFSETS}(boxes of all images, 5)", "offsets", "target", ONE[None]),
            ("mask has shape [5]; it must be [3, 5], pred's without the 5", "mask", "mask", NONE),
            (OTHER_INDEX_OF_5, "indices", "target_index", None),
        )
    ),
]
NO_CLASSES = {"logits": None, "labels": None}
ROTATED_COST = {"pred": zeros(2, 3, 6, 5), "target": zeros(9, 5)}
OF_MATCHING_COST = [
    bad_type(f"pred is int32; {FLOATING}", pred=GOOD_COST["pred"].int()),
    bad_type(f"target is bool; {ANY_NUMBER}", target=GOOD_COST["target"].bool()),
    bad_type(f"offsets is int16; {INTEGER}", offsets=GOOD_COST["offsets"].short()),
    bad_type(f"labels is float32; {INTEGER}", labels=GOOD_COST["labels"].float()),
    bad_type(f"logits is int32; {FLOATING}", logits=GOOD_COST["logits"].int()),
    bad_type(f"class_cost is int64; {FLOATING}", **NO_CLASSES, class_cost=rows(3, 9)),
    bad_type("class_weight is NoneType; it must be a number", class_weight=None),
    bad_value("pred has shape ", pred=zeros(2, 4, 3, 3)),
    bad_value("target has shape ", target=zeros(1, 9, 4)),
    bad_value("offsets has shape ", offsets=rows(4)),
    bad_value("logits has shape ", logits=zeros(4, 3, 5)),
    bad_value("labels has shape ", labels=rows(8)),
    bad_value("logits is given without labels", labels=None),
    bad_value("labels is given without logits", logits=None),
    bad_value("give logits or class_cost, not both", class_cost=zeros(3, 9)),
    bad_value("loss is 'l2'", loss="l2"),
    bad_value("constant is missing", loss="nwd"),
    bad_value("class_mode is 'hinge'", class_mode="hinge"),
    bad_value("pred_format is 'yolo'", pred_format="yolo"),
    bad_value("target_format is 'yolo'", target_format="yolo"),
    bad_value(
        "l1_weight is 5, and l1 is of values in one format, but pred is", target_format="xyxy"
    ),
    bad_value("angle_unit is 'turns'", angle_unit="turns"),
    bad_value("angle_weight is 1; it is for rotated boxes, (..., 5)", angle_weight=1.0),
    bad_value("loss is 'ciou'; allowed: 'iou', 'giou', 'probiou'", **ROTATED_COST, loss="ciou"),
    bad_value("angle_weight is nan; it must be finite", **ROTATED_COST, angle_weight=NAN),
    bad_value("target has shape [9, 4]; its last dimension must be 5", pred=zeros(2, 3, 6, 5)),
    bad_value(
        "pred has shape [2, 3, 6, 3]; its last dimension must be 4, or 5 for rotated",
        pred=zeros(2, 3, 6, 3),
    ),
    bad_value("eps_mode is 'max'", eps_mode="max"),
    bad_value("eps is -1", eps=-1.0),
    bad_value("l1_weight is 1e+39; it must be finite, as a float32", l1_weight=1e39),
    bad_value("focal_alpha is nan", focal_alpha=NAN),
    bad_value("focal_gamma is -0.5", focal_gamma=-0.5),
    bad_value("nonfinite is nan; it must be finite, as a float32", nonfinite=NAN),
    # Nothing is read of an empty problem's arguments, but they are checked.
    bad_value("class_mode", target=zeros(0, 4), labels=rows(0), class_mode="hinge"),
    *(
        bad_value("class_cost has shape ", **NO_CLASSES, class_cost=zeros(*shape))
        for shape in ((9,), (1, 9), (3, 1), (3, 3, 9), (1, 2, 3, 9))
    ),
]
OF_PAIRWISE_IOU = [  # whose checks are matching_cost's
    bad_value("loss is 'gio'", loss="gio"),
    bad_value("constant is missing", loss="nwd"),
    bad_value("eps is -1", eps=-1.0),
    bad_value("pred has shape [6, 4]", pred=PRED[0]),
    bad_type(f"pred is int32; {FLOATING}", pred=PRED.int()),
    bad_value("offsets has shape [3]", offsets=OFFSETS[1:]),
]
OF_HUNGARIAN_MATCH = [
    bad_type(f"cost is bool; {ANY_NUMBER}", cost=COST.bool()),
    bad_value("cost has shape [1, 1, 6, 9]; it must be (queries", cost=COST[None, None]),
    bad_type(f"offsets is int16; {INTEGER}", offsets=OFFSETS.short()),
    bad_value("offsets has shape [1, 4]; it must be (images + 1", offsets=OFFSETS[None]),
    bad_value("groups is 4; it must be at least 1, and divide the 6 queries", groups=4),
    bad_type("groups is str; it must be an integer", groups="a"),
    bad_type("groups is NoneType; it must be an integer", groups=None),
]
OF_LINEAR_SUM_ASSIGNMENT = [
    bad_type(f"cost is bool; {ANY_NUMBER}", cost=COST.bool()),
    bad_value("cost has shape [9]; it must be (N, M) or (B, N, M)", cost=COST[0]),
    bad_value("cost has shape [1, 1, 6, 9]; it must be (N, M) or", cost=COST[None, None]),
    bad_type(f"lengths is int16; {INTEGER}", lengths=rows(2).short()),
    bad_value("lengths has shape [1, 2]; it must be [2], of each matrix", lengths=rows(1, 2)),
    bad_value("lengths has shape [2]; it must be [1, 2], of each matrix", cost=COST[None]),
    bad_value("cost_limit is nan; it must be a number, or +inf for none", cost_limit=NAN),
    bad_value("cost_limit is -inf; it must be a number, or +inf", cost_limit=-math.inf),
    bad_value("cost_limit and maximize exclude each other", cost_limit=1.0, maximize=True),
    bad_type("cost_limit is str; it must be a number", cost_limit="1"),
    bad_type("maximize is str; it must be True or False", maximize="a"),
]
NO_THRESHOLDS = "; low must not be more than high, and neither NaN"
OF_MAX_IOU_MATCH = [
    bad_type(f"anchors is int64; {FLOATING}", anchors=TARGET.long()),
    bad_type(f"target is bool; {ANY_NUMBER}", target=TARGET.bool()),
    bad_type(f"offsets is int16; {INTEGER}", offsets=OFFSETS.short()),
    bad_value("anchors has shape [1, 1, 9, 4]; it must be ", anchors=TARGET[None, None]),
    bad_value("anchors has shape [9, 3]; its last dimension m", anchors=TARGET[:, :3]),
    bad_value("target has shape [9, 4]; its last dimension must be 5", anchors=zeros(9, 5)),
    bad_value(
        "anchors has shape [1, 1, 9, 5]; it must be (A, 5) or (images, A, 5)",
        anchors=zeros(1, 1, 9, 5),
        target=zeros(9, 5),
    ),
    bad_value("angle_unit is degrees; it is for rotated boxes, (..., 5), b", angle_unit="degrees"),
    bad_value("angle_unit is 'turns'; allowed: 'radians', 'degrees'", angle_unit="turns"),
    bad_value("target has shape [1, 9, 4]; it must be (boxes of ", target=TARGET[None]),
    bad_value("offsets has shape [1, 4]; it must be (images + 1", offsets=OFFSETS[None]),
    bad_value("offsets has shape [0]; it must be (images + 1)", offsets=OFFSETS[:0]),
    bad_value(
        "offsets has shape [4]; it must be [3], one more than anchors has images", anchors=PRED[:2]
    ),
    bad_value(f"low is 0.8 and high 0.4{NO_THRESHOLDS}", low=0.8),
    bad_value(f"low is 0.2 and high nan{NO_THRESHOLDS}", high=NAN),
    bad_type("high is NoneType; it must be a number", high=None),
    bad_value("high is 1000", high=10**400),
    bad_value("min_pos_iou is NaN; it must be a number", min_pos_iou=NAN),
    bad_value(
        "low_quality is 'all'; allowed: 'none', 'argmax', 'overwrite', 'force'", low_quality="all"
    ),
]
ROWS = len(RAGGED["target"])
OF_TASK_ALIGNED_MATCH = [
    bad_type(f"scores is int64; {FLOATING}", scores=RAGGED["scores"].long()),
    bad_type(f"points is int32; {FLOATING}", points=RAGGED["points"].int()),
    bad_type(f"pred is bool; {FLOATING}", pred=RAGGED["pred"].bool()),
    bad_type(f"target is bool; {ANY_NUMBER}", target=RAGGED["target"].bool()),
    bad_type(f"labels is float32; {INTEGER}", labels=RAGGED["labels"].float()),
    bad_type(f"offsets is int16; {INTEGER}", offsets=RAGGED["offsets"].short()),
    bad_value("scores has shape [336, 4]; it must be (images, ", scores=RAGGED["scores"][0]),
    bad_value("pred has shape [1, 336, 4]; it must be [2, 336, 4]", pred=RAGGED["pred"][:1]),
    bad_value("points has shape [335, 2]; it must be [336, 2],", points=RAGGED["points"][1:]),
    bad_value(f"target has shape [{ROWS}, 3]; its last dim", target=RAGGED["target"][:, :3]),
    bad_value(f"target has shape [{ROWS}, 4]; its last dimension must be 5", pred=zeros(2, 336, 5)),
    bad_value("angle_unit is degrees; it is for rotated boxes, (..., 5), b", angle_unit="degrees"),
    bad_value("target has shape [2, 12, 4]; with offsets it must ", target=PADDED["target"]),
    bad_value(f"target has shape [{ROWS}, 4]; without offsets it must be", offsets=None),
    bad_value("offsets has shape [2]; it must be [3], one mo", offsets=RAGGED["offsets"][1:]),
    bad_value(f"labels has shape [{ROWS - 1}]; it must be [", labels=RAGGED["labels"][1:]),
    bad_value("labels has shape [1, 12]; it must ", **{**PADDED, "labels": PADDED["labels"][:1]}),
    bad_value("topk is 0; it must be at least 1", topk=0),
    bad_type("topk is float; it must be an integer", topk=1.5),
    bad_value("topk2 is 0; it must be at least 1", topk2=0),
    bad_value("alpha is -0.5; it must be finite and not negative", alpha=-0.5),
    bad_value("beta is inf; it must be finite and not negative", beta=math.inf),
    bad_value("min_side is nan; it must be finite and not negative", min_side=NAN),
    bad_type("min_side is NoneType; it must be a number", min_side=None),
    bad_value("small_side is -1; ", small_side=-1.0),
    bad_value("small_side is 3", min_side=2.0, small_side=3.0),
    bad_value("pred_format is 'xxyy'; allowed: 'xyxy', 'xywh', ", pred_format="xxyy"),
]
OTHER_CLASS_LOSS = {"mode": "bce", "quality": None}
OF_CLASS_LOSS = [
    bad_type(f"logits is int64; {FLOATING}", logits=rows(2, 3, 5, 7)),
    bad_type(f"target_index is float32; {INTEGER}", target_index=zeros(2, 3, 5)),
    bad_type(f"labels is int16; {INTEGER}", labels=CLASSES["labels"].short()),
    bad_type(f"quality is int32; {FLOATING}", quality=rows(6).int()),
    bad_type(
        f"query_quality is bool; {FLOATING}",
        query_quality=rows(2, 3, 5).bool(),
        **OTHER_CLASS_LOSS,
    ),
    bad_type(f"weight is int64; {FLOATING}", weight=rows(7)),
    bad_type(f"normalizer is uint8; {OF_NORMALIZER}", normalizer=rows().byte()),
    bad_type("mode is NoneType; it must be a string", mode=None),
    bad_type("gamma is str; it must be a number", gamma="2"),
    bad_type("no_object_weight is NoneType; it must be a number", no_object_weight=None),
    bad_value("logits has shape [7]; it must be (queries, classes), (imag", logits=zeros(7)),
    bad_value("logits has shape [1, 2, 3, 5, 7]; it must be", logits=zeros(1, 2, 3, 5, 7)),
    bad_value("target_index has shape [3, 5]; it must be [2, 3, 5], ", target_index=rows(3, 5)),
    bad_value("labels has shape [6, 1]; it must be (T)", labels=rows(6, 1)),
    bad_value("quality has shape [5]; it must be [6], one for each label", quality=zeros(5)),
    bad_value(
        "query_quality has shape [3, 5]; it must be [2, 3, 5], that of target_index",
        query_quality=zeros(3, 5),
        **OTHER_CLASS_LOSS,
    ),
    bad_value("weight has shape [6]; it must be [7], one for each class", weight=zeros(6)),
    bad_value("normalizer has shape [3]; it must be [2], () or one for", normalizer=zeros(3)),
    bad_value(
        "normalizer has shape [2]; it must be [], () or one for",
        logits=zeros(5, 7),
        target_index=rows(5),
        normalizer=zeros(2),
    ),
    bad_value("normalizer needs reduction 'mean', which", reduction="sum"),
    bad_value("mode is 'hinge'; allowed: 'focal', 'varifocal', 'mal', 'ia_bce', ", mode="hinge"),
    bad_value("reduction is 'Mean'; allowed: 'none', 'sum', 'mean'", reduction="Mean"),
    bad_value("mode 'varifocal' needs quality or query_quality", quality=None),
    bad_value("mode 'focal' has no quality", mode="focal"),
    bad_value("give quality or query_quality, not both", query_quality=zeros(2, 3, 5)),
    bad_value("alpha is nan; it must be finite", alpha=NAN),
    bad_value("alpha is 0.25; mode 'bce' has none", mode="bce", alpha=0.25),
    bad_value("alpha is 1.5; mode 'ia_bce' has powers of", mode="ia_bce", alpha=1.5),
    bad_value("gamma is 1e+39; it must be finite", gamma=1e39),
    bad_value("gamma is -1; it must not be negative", gamma=-1.0),
    bad_value("no_object_weight is 0.5; only mode 'softmax' has one", no_object_weight=0.5),
]
DDF = {**dict.fromkeys(FGL), **distribution_problem("ddf")}
SHAPE = (3, 2, 9)  # the queries', of 33 bins
OF_DISTRIBUTION_LOSS = [
    bad_type(f"logits is int64; {FLOATING}", logits=rows(*SHAPE, 132)),
    bad_type(f"target_index is float32; {INTEGER}", target_index=zeros(*SHAPE)),
    bad_type(f"quality is int64; {FLOATING}", quality=rows(*SHAPE)),
    bad_type(f"reference is int64; {FLOATING}", reference=rows(*SHAPE, 4)),
    bad_type(f"target is uint8; {FLOATING}", target=rows(5, 4).byte()),
    bad_type(f"edges is int64; {FLOATING}", edges=rows(33)),
    bad_type(f"teacher is int32; {FLOATING}", **{**DDF, "teacher": rows(2, 9, 132).int()}),
    bad_type(f"confidence is bool; {FLOATING}", **{**DDF, "confidence": rows(2, 9).bool()}),
    bad_type(f"normalizer is uint8; {OF_NORMALIZER}", normalizer=rows().byte()),
    bad_type("mode is NoneType; it must be a string", mode=None),
    bad_type("reg_scale is str; it must be a number", reg_scale="4"),
    bad_type("temperature is NoneType; it must be a number", temperature=None),
    bad_value("logits has shape [132]; it must be (queries, 4 * bins), (im", logits=zeros(132)),
    bad_value("logits has shape [1, 3, 2, 9, 132]; it must", logits=zeros(1, *SHAPE, 132)),
    bad_value("logits has shape [3, 2, 9, 130]; it must be", logits=zeros(*SHAPE, 130)),
    bad_value("logits has shape [3, 2, 9, 0]; it must be (", logits=zeros(*SHAPE, 0)),
    bad_value("target_index has shape [2, 9]; it must be [3, 2, 9], ", target_index=rows(2, 9)),
    bad_value("quality has shape [2, 9]; it must be [3, 2, 9], that of", quality=zeros(2, 9)),
    bad_value(
        "reference has shape [2, 9, 4]; it must be [3, 2, 9, 4], a box for each",
        reference=zeros(2, 9, 4),
    ),
    bad_value("target has shape [5, 3]; it must be (T, 4)", target=zeros(5, 3)),
    bad_value("edges has shape [32]; it must be [33], one for each bin", edges=zeros(32)),
    bad_value(
        "teacher has shape [9, 132]; it must be [2, 9, 132], one layer's logits, or all",
        **{**DDF, "teacher": zeros(9, 132)},
    ),
    bad_value(
        "confidence has shape [3, 2, 9]; it must be [2, 9], one for each query of a layer",
        **{**DDF, "confidence": zeros(*SHAPE)},
    ),
    bad_value("normalizer has shape [2]; it must be [3], () or one for", normalizer=zeros(2)),
    bad_value("normalizer needs reduction 'mean', which", reduction="sum"),
    bad_value("normalizer is given; mode 'ddf' has", **{**DDF, "normalizer": zeros()}),
    bad_value("mode is 'dfl'; allowed: 'fgl', 'ddf'", mode="dfl"),
    bad_value("reduction is 'Mean'; allowed: 'none', 'sum', 'mean'", reduction="Mean"),
    *(
        bad_value(f"mode 'fgl' needs {name}", **{name: None})
        for name in ("reference", "target", "edges")
    ),
    bad_value("mode 'fgl' has no teacher", teacher=DDF["teacher"]),
    bad_value("mode 'fgl' has no confidence", confidence=DDF["confidence"]),
    *(
        bad_value(f"mode 'ddf' needs {name}", **{**DDF, name: None})
        for name in ("teacher", "confidence")
    ),
    *(
        bad_value(f"mode 'ddf' has no {name}", **{**DDF, name: FGL[name]})
        for name in ("reference", "target", "edges")
    ),
    bad_value("reg_scale is 0; it must be positive and finite", reg_scale=0.0),
    bad_value("reg_scale is 2; only mode 'fgl' has one", **DDF, reg_scale=2.0),
    bad_value("temperature is nan; it must be positive and finite", **DDF, temperature=NAN),
    bad_value("temperature is 2; only mode 'ddf' has one", temperature=2.0),
]
L1_OF_TWO_FORMATS = "l1 is of values in one format, but pred is cxcywh and target xywh"
OF_BOX_LOSSES = [
    *(
        bad_value(L1_OF_TWO_FORMATS, of=pairing, pred_format="cxcywh", target_format="xywh")
        for pairing in ("dense", "offsets", "sets")
    ),
    bad_value("eps is -1; it must be finite and not negative", of="sets", eps=-1.0),
    bad_value("pred has shape [3, 5, 4], target has shape [1, 5, 4]", target=zeros(1, 5, 4)),
    bad_type(f"target is bool; {ANY_NUMBER}", target=zeros(3, 5, 4).bool()),
    bad_value("constant is missing", loss="nwd"),
]
REFUSED: dict[str, list[Refused]] = {
    "box_loss": OF_BOX_LOSS,
    "rotated_box_loss": OF_ROTATED_BOX_LOSS,
    "box_losses": OF_BOX_LOSSES,
    "matching_cost": OF_MATCHING_COST,
    "pairwise_iou": OF_PAIRWISE_IOU,
    "hungarian_match": OF_HUNGARIAN_MATCH,
    "linear_sum_assignment": OF_LINEAR_SUM_ASSIGNMENT,
    "max_iou_match": OF_MAX_IOU_MATCH,
    "task_aligned_match": OF_TASK_ALIGNED_MATCH,
    "class_loss": OF_CLASS_LOSS,
    "distribution_loss": OF_DISTRIBUTION_LOSS,
}


# --- What torch's binding alone can be given ---

# Of nine columns or boxes in three images, whose offsets the host looks at: what it says of them.
BAD_OFFSETS = {
    "offsets[3] is 10; it must lie in [0, 9]": [1, 3, 3, 10],
    "offsets[0] is -1; it must lie in [0, 9]": [-1, 1, 1, 8],
    "offsets[1] is 4294967296; it must lie in [0, 9]": [0, 2**32, 2**32, 2**32 + 1],
    "offsets[2] is 3, less than offsets[1], which is 4; offsets must not decrease": [0, 4, 3, 9],
}
# And of a matrix of six rows and nine columns.
BAD_LENGTHS = {
    "lengths[0] is -1; it must lie in [0, 6], the rows of cost": [-1, 9],
    "lengths[1] is 10; it must lie in [0, 9], the columns of cost": [6, 10],
    "lengths[1] is 4294967297; it must lie in [0, 9], the columns": [6, 2**32 + 1],
}
OF_TORCH_ALONE: dict[str, list[Refused]] = {
    "box_loss": [
        bad_type("normalizer is str; it must be a tensor or a number", normalizer="3"),
        bad_type("normalizer is bool; it must be a tensor or a number", normalizer=True),
        bad_value("normalizer is 1e+39; it must be less than", normalizer=1e39),
    ],
    "box_losses": [bad_type("normalizer is list; it must be a tensor", normalizer=[3])],
    **{
        name: [
            bad_type("normalizer is str; it must be a tensor or a number", normalizer="3"),
            bad_value("normalizer is 1e+39; it must be less than", normalizer=1e39),
        ]
        for name in ("class_loss", "distribution_loss")
    },
    **{
        name: [bad_value(text, offsets=torch.tensor(bad)) for text, bad in BAD_OFFSETS.items()]
        for name in ("hungarian_match", "max_iou_match")
    },
    "linear_sum_assignment": [
        *(bad_value(text, lengths=torch.tensor(bad)) for text, bad in BAD_LENGTHS.items()),
        bad_value(
            "lengths[1, 0] is 7; it must lie in [0, 6], the rows of cost",
            cost=COST.expand(2, 6, 9),
            lengths=torch.tensor([[6, 9], [7, -1]]),
        ),
    ],
    "task_aligned_match": [
        bad_value("the label of row 0 of target is ", labels=RAGGED["labels"] + 4),
        bad_value("the label of row ", **{**PADDED, "labels": PADDED["labels"] - 9}),
        bad_value("offsets[0] is -1; it must lie in [0, ", offsets=RAGGED["offsets"] - 1),
        bad_value(f"offsets[2] is {ROWS + 1}; it must lie in [0", offsets=RAGGED["offsets"] + 1),
        bad_value("offsets[1] is 1, less than offsets[0], ", offsets=torch.tensor([2, 1, 3])),
    ],
}
WITH_EVERY_TENSOR: list[tuple[str, Problem]] = [
    *(
        ("box_loss", problem(of, CPU, weight=torch.float32, normalizer=torch.tensor(2.0)))
        for of in ("lengths", "mask", "offsets", "sets")
    ),
    *((name, values) for name, values in VALID.items() if "box_loss" not in name),
    ("rotated_box_loss", problem("mask", CPU, weight=torch.float32, **ROTATED)),
    ("class_loss", by_query(CLASSES)),
    ("distribution_loss", DDF),
    ("matching_cost", {**GOOD_COST, **NO_CLASSES, "class_cost": zeros(3, 9)}),
]
FIRST = {
    **{"hungarian_match": "cost", "linear_sum_assignment": "cost", "max_iou_match": "anchors"},
    "task_aligned_match": "scores",
    **{"class_loss": "logits", "distribution_loss": "logits"},
}
EVERY_TENSOR = [
    pytest.param(name, values, argument, id=f"{name}-{argument}")
    for name, values in WITH_EVERY_TENSOR
    for argument, each in values.items()
    if isinstance(each, Tensor)
]


def call(name: str, values: Problem) -> Any:
    return getattr(boxloss.torch, name)(**values)


def move(values: Problem, device: torch.device) -> Problem:
    return {n: v.to(device) if isinstance(v, Tensor) else v for n, v in values.items()}


def assert_refused(name: str, values: Problem, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call(name, values)
    assert str(raised.value).startswith(f"{name}: {text}")


@pytest.mark.parametrize("name", VALID)
def test_what_is_changed_was_valid(name: str) -> None:
    call(name, VALID[name])


def of_each(table: dict[str, list[Refused]]) -> list[Any]:
    return [
        pytest.param(name, each, id=f"{name}-{each.text}")
        for name, refused in table.items()
        for each in refused
    ]


@pytest.mark.parametrize(("name", "refused"), of_each(REFUSED))
def test_refused(device: torch.device, name: str, refused: Refused) -> None:
    """With and without gradients, which take different ways; and on meta tensors."""
    for where in (device, META):
        values = move({**VALID[name], **refused.changed}, where)
        assert_refused(name, values, refused.error, refused.text)
        first = FIRST.get(name, "pred")
        if values.get(first) is not None and values[first].is_floating_point():
            values[first] = values[first].detach().requires_grad_()
            assert_refused(name, values, refused.error, refused.text)


@pytest.mark.parametrize(
    "name",
    ["rotated_box_loss", "matching_cost", "pairwise_iou", "class_loss", "distribution_loss"],
)
def test_aten_refuses_the_same(name: str) -> None:
    with use_implementation("aten"):
        for refused in REFUSED[name]:
            values = {**VALID[name], **refused.changed}
            assert_refused(name, values, refused.error, refused.text)


@pytest.mark.parametrize(("name", "refused"), of_each(OF_TORCH_ALONE))
def test_what_torch_alone_is_given_is_refused(name: str, refused: Refused) -> None:
    assert_refused(name, {**VALID[name], **refused.changed}, refused.error, refused.text)


@pytest.mark.parametrize(("name", "values", "argument"), EVERY_TENSOR)
def test_tensors_of_another_kind(name: str, values: Problem, argument: str) -> None:
    """On another device, of another layout, and none."""
    first, each = FIRST.get(name, "pred"), values[argument]
    if argument != first:
        for where, there in ((CPU, META), (META, CPU)):
            mixed = {**move(values, where), argument: each.to(there)}
            text = f"{argument} is on {there}, {first} is on {where}; all must be on one device"
            may_be_there = name.endswith("match") and argument == "offsets"
            may_be_there |= name == "linear_sum_assignment"
            if there != CPU or not may_be_there:
                assert_refused(name, mixed, RuntimeError, text)
    if each.dim() > 0:
        assert_refused(
            name,
            {**values, argument: each.to_sparse()},
            ValueError,
            f"{argument} is Sparse; it must be dense",
        )
    for given in ([0.0], each.numpy()):
        if argument != "normalizer":  # which may be a number
            text = f"{argument} is {type(given).__name__}; it must be a tensor"
            assert_refused(name, {**values, argument: given}, TypeError, text)


OPTIONS_OF_A_WRONG_TYPE: list[tuple[Callable[..., Any], str, Any, str]] = [
    (giou_loss, "mask", [True], "a tensor"),
    (box_losses, "target", None, "a tensor"),
    (siou_loss, "pred", numpy.zeros((3, 4)), "a tensor"),
    (CIoULoss(), "weight", "sum", "a tensor"),
    (box_loss, "zero_padded", "yes", "True or False"),
    (box_loss, "zero_padded", zeros(2), "True or False"),
]


@pytest.mark.parametrize(("function", "argument", "given", "words"), OPTIONS_OF_A_WRONG_TYPE)
def test_options_of_a_wrong_type(
    function: Callable[..., Any], argument: str, given: Any, words: str
) -> None:
    values = {**VALID["box_loss"], argument: given}
    name = "box_losses" if function is box_losses else "box_loss"
    text = f"^{name}: {argument} is {type(given).__name__}; it must be {words}$"
    with pytest.raises(TypeError, match=text) as raised:
        function(**values)
    if argument not in ("pred", "target"):  # or else it would have all of the operator's schema
        assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("name", "argument"), [("hungarian_match", "groups"), ("matching_cost", "nonfinite")]
)
def test_a_tensor_is_no_number(name: str, argument: str) -> None:
    values = {**VALID[name], argument: zeros(2)}
    kind = "an integer" if argument == "groups" else "a number"
    assert_refused(name, values, TypeError, f"{argument} is Tensor; it must be {kind}")


@pytest.mark.parametrize(
    ("name", "argument", "given", "bits"),
    [("hungarian_match", "groups", 2**63, 63), ("matching_cost", "eps", 10**400, 1024)],
)
def test_integers_that_are_too_large(name: str, argument: str, given: int, bits: int) -> None:
    text = rf"^{name}: {argument} is \d+.*; it must be less than 2\^{bits} in"
    with pytest.raises(ValueError, match=text):
        call(name, {**VALID[name], argument: given})


def test_a_module_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"^box_loss: eps is str; it must be a number$"):
        CIoULoss(eps="1")
    with pytest.raises(TypeError, match=r"^use_implementation: name is int; it must be a string$"):
        use_implementation(5)  # type: ignore[arg-type]


def test_a_right_type_is_not_blamed_for_another_error() -> None:
    """What torch takes besides, as numpy's scalars."""
    values: Problem = {"eps": torch.tensor(1.0), "zero_padded": None, "target": zeros(1, 3, 4)}
    for eps in (torch.tensor(1.0), numpy.float32(1), numpy.int64(1), True):
        values["eps"] = eps
        box_loss(zeros(1, 3, 4), **values)
        with pytest.raises(RuntimeError, match="target is on cpu, pred is on meta"):
            box_loss(zeros(1, 3, 4).to("meta"), **values)


def test_what_stands_for_a_tensor_is_no_error() -> None:
    def losses(pred: Tensor, target: Tensor) -> Tensor:
        return giou_loss(pred, target) + box_loss(pred, target, "ciou")

    given = boxes((5,), CPU, seed=1), boxes((5,), CPU, seed=2)
    assert torch.equal(torch.fx.symbolic_trace(losses)(*given), losses(*given))


@pytest.mark.parametrize("function", [box_loss, box_losses])
def test_errors_under_a_transform_name_the_function_that_was_called(
    device: torch.device, function: Callable[..., Any]
) -> None:
    bad = {**problem("sets", device), "eps": -1.0}
    pred, target = bad.pop("pred")[None], bad.pop("target")
    with pytest.raises(ValueError, match=f"^{function.__name__}: eps is -1"):
        torch.func.vmap(lambda pred: function(pred, target, **bad))(pred)
    mixed = {**problem("dense", device), "pred_format": "cxcywh", "target_format": "xywh"}
    pred = mixed.pop("pred")
    with pytest.raises(ValueError, match=f"^box_losses: {L1_OF_TWO_FORMATS}"):
        torch.func.grad(lambda pred: box_losses(pred, **mixed).l1.sum())(pred)


def test_a_target_that_does_not_lie_on_its_elements() -> None:
    shifted = torch.frombuffer(bytearray(33), dtype=torch.int16, count=16, offset=1).view(4, 4)
    with pytest.raises(ValueError, match="target does not lie on a multiple of the 2 bytes of a"):
        giou_loss(zeros(4, 4), shifted)
    giou_loss(zeros(4, 4), shifted.clone())
