# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and hungarian_match beside the matchers of transformers."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch import collate_matches, collate_ragged, hungarian_match, matching_cost
from detr_cases import CLASSES, COUNTS, LARGEST_LOGIT, LAYERS, QUERIES, Targets
from surroundings import DEVICES, moved
from torch import Tensor
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_rt_detr as rt_detr

WEIGHTS = {"class": 2.0, "bbox": 5.0, "giou": 2.5}


def detr_matcher() -> Any:
    return detr.HungarianMatcher(**{f"{name}_cost": value for name, value in WEIGHTS.items()})


def rt_detr_matcher(use_focal_loss: bool) -> Any:
    weights = {f"matcher_{name}_cost": value for name, value in WEIGHTS.items()}
    config = SimpleNamespace(
        use_focal_loss=use_focal_loss, matcher_alpha=0.3, matcher_gamma=1.5, **weights
    )
    return rt_detr.RTDetrHungarianMatcher(config)


# A matcher, the module that asks SciPy, and how the cost is called here.
MATCHERS = {
    "DETR": (detr_matcher, detr, {}),
    "RT-DETR": (
        lambda: rt_detr_matcher(True),
        rt_detr,
        {"class_mode": "focal", "focal_alpha": 0.3, "focal_gamma": 1.5},
    ),
    "RT-DETR, softmax": (lambda: rt_detr_matcher(False), rt_detr, {}),
}


def outputs_and_targets(
    counts: tuple[int, ...], seed: int, device: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Targets]:
    """Logits and boxes of all layers; labels and boxes of each image, by transformers' names."""
    random = cases.generator(seed)
    shape = (LAYERS, len(counts), QUERIES)
    values = cases.logits((*shape, CLASSES), random), cases.boxes(shape, random)
    return moved((*values, cases.true_boxes(counts, random)), device, dtype)


def by_transformers(
    matcher: str, logits: Tensor, pred: Tensor, targets: Targets
) -> list[list[Any]]:
    """[layer][image] of pairs."""
    make, _, _ = MATCHERS[matcher]
    layers = zip(logits, pred, strict=True)
    return [make()({"logits": x, "pred_boxes": boxes}, targets) for x, boxes in layers]


def by_boxloss(
    matcher: str, logits: Tensor, pred: Tensor, targets: Targets
) -> tuple[Tensor, Tensor]:
    """The cost and its offsets."""
    target, offsets = collate_ragged([each["boxes"] for each in targets])
    cost = matching_cost(
        pred,
        target,
        offsets,
        logits=logits,
        labels=torch.cat([each["class_labels"] for each in targets]),
        iou_weight=WEIGHTS["giou"],
        l1_weight=WEIGHTS["bbox"],
        class_weight=WEIGHTS["class"],
        **MATCHERS[matcher][2],
    )
    return cost, offsets


def assert_same_pairs(
    cost: Tensor, offsets: Tensor, theirs: list[list[Any]], counts: tuple[int, ...]
) -> None:
    pred_index, target_index = collate_matches(theirs, counts, QUERIES)
    result = hungarian_match(cost, offsets)
    of_query = torch.full((LAYERS * len(counts) * QUERIES,), -1)
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
    values = outputs_and_targets(counts, seed, device, dtype)
    _, module, _ = MATCHERS[matcher]
    shown: list[Any] = []  # to SciPy: an image of a layer at a time
    solve = module.linear_sum_assignment
    monkeypatch.setattr(
        module, "linear_sum_assignment", lambda cost: (shown.append(cost), solve(cost))[1]
    )
    theirs = by_transformers(matcher, *values)
    cost, offsets = by_boxloss(matcher, *values)

    # In double nothing but the result rounds, once, to float32. In float32 theirs is the worse:
    # logits of at most 6 leave 1 - p >= 2e-3, off by a unit roundoff u, so that focal's logarithm
    # is off by u / 2e-3, that is 3e-5, times 0.7 and the weight 2; all else is some tens of u.
    assert LARGEST_LOGIT <= 6
    error = 1e-10 if dtype == torch.float64 else 1e-4
    blocks = iter(shown)
    for layer in cost.cpu().double():
        for first, last in pairwise(offsets.tolist()):
            wanted = next(blocks).double()
            distance = (layer[:, first:last] - wanted).abs()
            assert torch.all(distance <= error + 2.0**-24 * wanted.abs())
    assert not list(blocks)
    assert_same_pairs(cost, offsets, theirs, counts)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_nan_is_matched_last(matcher: str, device: str) -> None:
    counts = (3, 5)
    logits, *others = outputs_and_targets(counts, 0, device, torch.float64)
    logits[:, :, ::3] = float("nan")
    theirs = by_transformers(matcher, logits, *others)
    cost, offsets = by_boxloss(matcher, logits, *others)
    assert_same_pairs(cost, offsets, theirs, counts)
