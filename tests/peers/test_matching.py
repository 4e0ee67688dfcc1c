# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and hungarian_match beside the matchers of transformers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import ModuleType
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch import collate_matches, collate_ragged, hungarian_match, matching_cost
from detr_cases import CLASSES, COUNTS, LARGEST_LOGIT, LAYERS, QUERIES, Targets
from surroundings import DEVICES, moved
from torch import Tensor
from transformers import DFineConfig
from transformers.loss import loss_d_fine as d_fine
from transformers.loss import loss_deformable_detr as deformable
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_lw_detr as lw_detr
from transformers.loss import loss_rt_detr as rt_detr

WEIGHTS = {"class_cost": 2.0, "bbox_cost": 5.0, "giou_cost": 2.5}


def config(use_focal_loss: bool) -> DFineConfig:
    """RT-DETR's matcher reads the same names."""
    weights = {f"matcher_{name}": value for name, value in WEIGHTS.items()}
    return DFineConfig(
        use_focal_loss=use_focal_loss, matcher_alpha=0.3, matcher_gamma=1.5, **weights
    )


@dataclass(frozen=True)
class Matcher:
    make: Callable[[], Any]
    module: ModuleType  # which asks SciPy
    options: dict[str, Any] = field(default_factory=dict)  # of matching_cost
    groups: int = 1  # of QUERIES each
    boxes_in_float32: bool = False  # whatever they are given in

    @property
    def queries(self) -> int:
        return self.groups * QUERIES


FOCAL = {"class_mode": "focal", "focal_alpha": 0.3, "focal_gamma": 1.5}
USUAL_FOCAL = {"class_mode": "focal"}
MATCHERS = {
    "DETR": Matcher(lambda: detr.HungarianMatcher(**WEIGHTS), detr),
    "RT-DETR": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(True)), rt_detr, FOCAL),
    "RT-DETR, softmax": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(False)), rt_detr),
    "D-FINE": Matcher(lambda: d_fine.DFineLoss(config(True)).matcher, rt_detr, FOCAL),
    "Deformable DETR": Matcher(
        lambda: deformable.DeformableDetrHungarianMatcher(**WEIGHTS), deformable, USUAL_FOCAL
    ),
    "LW-DETR": Matcher(
        lambda: lw_detr.LwDetrHungarianMatcher(**WEIGHTS), lw_detr, USUAL_FOCAL, 13, True
    ),
}


def outputs_and_targets(
    matcher: Matcher, counts: tuple[int, ...], seed: int, device: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Targets]:
    """Logits and boxes of all layers; labels and boxes of each image, by transformers' names."""
    random = cases.generator(seed)
    shape = (LAYERS, len(counts), matcher.queries)
    values = cases.logits((*shape, CLASSES), random), cases.boxes(shape, random)
    return moved((*values, cases.true_boxes(counts, random)), device, dtype)


def by_transformers(
    matcher: Matcher, logits: Tensor, pred: Tensor, targets: Targets
) -> list[list[Any]]:
    """[layer][image] of pairs."""
    find, groups = matcher.make(), [matcher.groups] if matcher.groups > 1 else []
    layers = zip(logits, pred, strict=True)
    return [find({"logits": x, "pred_boxes": boxes}, targets, *groups) for x, boxes in layers]


def by_boxloss(
    matcher: Matcher, logits: Tensor, pred: Tensor, targets: Targets
) -> tuple[Tensor, Tensor]:
    """The cost and its offsets."""
    target, offsets = collate_ragged([each["boxes"] for each in targets])
    cost = matching_cost(
        pred,
        target,
        offsets,
        logits=logits,
        labels=torch.cat([each["class_labels"] for each in targets]),
        iou_weight=WEIGHTS["giou_cost"],
        l1_weight=WEIGHTS["bbox_cost"],
        class_weight=WEIGHTS["class_cost"],
        **matcher.options,
    )
    return cost, offsets


def assert_same_pairs(
    matcher: Matcher,
    cost: Tensor,
    offsets: Tensor,
    theirs: list[list[Any]],
    counts: tuple[int, ...],
) -> None:
    pred_index, target_index = collate_matches(theirs, counts, matcher.queries)
    result = hungarian_match(cost, offsets, groups=matcher.groups)
    of_query = torch.full((LAYERS * len(counts) * matcher.queries,), -1)
    of_query[pred_index.flatten()] = target_index.flatten()
    assert result.target_of_query.flatten().tolist() == of_query.tolist()
    found = [each[each >= 0] for each in result[:2]]
    assert of_query[found[0].cpu()].tolist() == found[1].tolist()
    assert len(found[0]) == pred_index.numel()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_is_theirs(
    monkeypatch: pytest.MonkeyPatch,
    matcher: str,
    counts: tuple[int, ...],
    seed: int,
    dtype: torch.dtype,
    device: str,
) -> None:
    peer = MATCHERS[matcher]
    values = outputs_and_targets(peer, counts, seed, device, dtype)
    shown: list[Any] = []  # to SciPy: an image of a group at a time, group by group of each layer
    solve = peer.module.linear_sum_assignment
    monkeypatch.setattr(
        peer.module, "linear_sum_assignment", lambda cost: (shown.append(cost), solve(cost))[1]
    )
    theirs = by_transformers(peer, *values)
    cost, offsets = by_boxloss(peer, *values)

    # In double nothing but the result rounds, once, to float32. In float32 theirs is the worse:
    # logits of at most 6 leave 1 - p >= 2e-3, off by a unit roundoff u, so that focal's logarithm
    # is off by u / 2e-3, that is 3e-5, times 0.75 and the weight 2; all else is some tens of u.
    assert LARGEST_LOGIT <= 6
    error = 1e-10 if dtype == torch.float64 and not peer.boxes_in_float32 else 1e-4
    blocks = iter(shown)
    for group in cost.cpu().double().unflatten(1, (peer.groups, QUERIES)).flatten(0, 1):
        for first, last in pairwise(offsets.tolist()):
            wanted = next(blocks).double()
            distance = (group[:, first:last] - wanted).abs()
            assert torch.all(distance <= error + 2.0**-24 * wanted.abs())
    assert not list(blocks)
    assert_same_pairs(peer, cost, offsets, theirs, counts)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_nan_is_matched_last(matcher: str, device: str) -> None:
    peer, counts = MATCHERS[matcher], (3, 5)
    logits, *others = outputs_and_targets(peer, counts, 0, device, torch.float64)
    logits[:, :, ::3] = float("nan")
    theirs = by_transformers(peer, logits, *others)
    cost, offsets = by_boxloss(peer, logits, *others)
    assert_same_pairs(peer, cost, offsets, theirs, counts)
