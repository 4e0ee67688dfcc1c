# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""HungarianMatcher and detr_loss_boxes of boxloss.torch.compat beside transformers' own.

What these two are made of, and most of what they refuse, is for tests/torch/test_compat.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import HungarianMatcher, detr_loss_boxes
from criteria import assert_close
from detr_cases import CLASSES, COUNTS, QUERIES, Targets
from surroundings import DEVICES, moved, waits
from torch import Tensor
from transformers import DFineConfig
from transformers.loss import loss_d_fine as d_fine
from transformers.loss import loss_deformable_detr as deformable
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_lw_detr as lw_detr
from transformers.loss import loss_rt_detr as rt_detr

WEIGHTS = {"class_cost": 2.0, "bbox_cost": 5.0, "giou_cost": 2.5}
BOXES_ALONE = {"class_cost": 0.0, "bbox_cost": 5.0, "giou_cost": 2.0}
FOCAL = {"class_mode": "focal", "alpha": 0.3, "gamma": 1.5}
USUAL_FOCAL = {"class_mode": "focal"}
Pairs = list[tuple[Tensor, Tensor]]


def config(use_focal_loss: bool) -> DFineConfig:
    """RT-DETR's matcher reads the same names."""
    weights = {f"matcher_{name}": value for name, value in WEIGHTS.items()}
    return DFineConfig(
        use_focal_loss=use_focal_loss, matcher_alpha=0.3, matcher_gamma=1.5, **weights
    )


@dataclass(frozen=True)
class Matcher:
    make: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)  # of ours
    groups: int = 1  # of QUERIES each
    weights: dict[str, float] = field(default_factory=lambda: WEIGHTS)


MATCHERS = {
    "DETR": Matcher(lambda: detr.HungarianMatcher(**WEIGHTS)),
    "DETR, boxes alone": Matcher(lambda: detr.HungarianMatcher(**BOXES_ALONE), weights=BOXES_ALONE),
    "RT-DETR": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(True)), FOCAL),
    "RT-DETR, softmax": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(False))),
    "D-FINE": Matcher(lambda: d_fine.DFineLoss(config(True)).matcher, FOCAL),
    "Deformable DETR": Matcher(
        lambda: deformable.DeformableDetrHungarianMatcher(**WEIGHTS), USUAL_FOCAL
    ),
    "LW-DETR": Matcher(lambda: lw_detr.LwDetrHungarianMatcher(**WEIGHTS), USUAL_FOCAL, 13),
}


def inputs(
    counts: tuple[int, ...], seed: int = 0, groups: int = 1
) -> tuple[dict[str, Tensor], Targets]:
    random = cases.generator(seed)
    shape = len(counts), groups * QUERIES
    outputs = {
        "logits": cases.logits((*shape, CLASSES), random),
        "pred_boxes": cases.boxes(shape, random),
    }
    return outputs, cases.true_boxes(counts, random)


def assert_same_pairs(matcher: Matcher, outputs: dict[str, Tensor], targets: Targets) -> None:
    more = [matcher.groups] if matcher.groups > 1 else []
    ours = HungarianMatcher(**matcher.weights, **matcher.options)(
        {name: each.clone().requires_grad_() for name, each in outputs.items()}, targets, *more
    )
    theirs = matcher.make()(outputs, targets, *more)
    assert isinstance(ours, list)
    for found, wanted in zip(ours, theirs, strict=True):
        assert isinstance(found, tuple)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == torch.int64
            assert one.is_cpu
            assert one.tolist() == other.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_pairs(
    matcher: str, counts: tuple[int, ...], seed: int, dtype: torch.dtype, device: str
) -> None:
    peer = MATCHERS[matcher]
    assert_same_pairs(peer, *moved(inputs(counts, seed, peer.groups), device, dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
# Theirs multiplies NaN by a weight of 0.
@pytest.mark.parametrize("matcher", [name for name in MATCHERS if name != "DETR, boxes alone"])
def test_what_is_not_finite(matcher: str, value: float, device: str) -> None:
    """NaN is matched last."""
    peer = MATCHERS[matcher]
    outputs, targets = moved(inputs((3, 5), groups=peer.groups), device)
    outputs["logits"][:, ::3] = value
    assert_same_pairs(peer, outputs, targets)


OUTSIDE = [(torch.tensor([QUERIES]), torch.tensor([0])), (torch.tensor([0]), torch.tensor([0]))]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda *given: HungarianMatcher()(*given, group_detr=3), r"groups is 3; .* 20 queries"),
        (lambda *_: HungarianMatcher(0, 0, 0), "class_cost, bbox_cost and giou_cost are 0"),
        (lambda outputs, _: HungarianMatcher()(outputs, []), "targets is empty"),
        (
            lambda outputs, targets: HungarianMatcher()(
                outputs, [targets[0], {**targets[1], "class_labels": torch.arange(5) + 20}]
            ),
            r"targets\[1\]: class_labels\[0\] is 20; it must lie in \[0, ",
        ),
        (lambda outputs, _: detr_loss_boxes(outputs, [], [], 1), "targets is empty"),
        (lambda *given: detr_loss_boxes(*given, OUTSIDE, 1), "src"),
    ],
)
def test_what_is_refused(call: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call(*inputs((3, 5)))


def losses_and_gradient(
    function: Any, outputs: dict[str, Tensor], *given: Any
) -> dict[str, Tensor]:
    pred = outputs["pred_boxes"].detach().requires_grad_()
    losses = function({**outputs, "pred_boxes": pred}, *given)
    (3 * losses["loss_giou"] + 4 * losses["loss_bbox"]).backward()
    return moved({**losses, "gradient": pred.grad}, "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
def test_loss_boxes(counts: tuple[int, ...], seed: int, device: str) -> None:
    outputs, targets = inputs(counts, seed)
    indices = HungarianMatcher()(outputs, targets)
    number = 3.5  # an average over ranks, say
    theirs = detr.ImageLoss(None, CLASSES, 0.1, []).loss_boxes
    wanted = losses_and_gradient(theirs, outputs, targets, indices, number)
    given = moved((outputs, targets), device)
    for its_pairs in (indices, moved(indices, device)):
        found = losses_and_gradient(detr_loss_boxes, *given, its_pairs, number)
        assert_close(found, wanted)


if torch.cuda.is_available():

    def test_the_matcher_waits_once_and_the_losses_never() -> None:
        outputs, targets = moved(inputs((3, 0, 5), 9), "cuda")
        matcher = HungarianMatcher(1, 5, 2)
        indices = matcher(outputs, targets)
        assert waits(lambda: matcher(outputs, targets)) == 1
        assert waits(lambda: detr_loss_boxes(outputs, targets, indices, 8.0)) == 0
