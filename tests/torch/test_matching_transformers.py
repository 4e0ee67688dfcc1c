# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and hungarian_match beside the matchers of transformers."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from boxloss.torch import collate_matches, collate_ragged, hungarian_match, matching_cost
from comparison import UNIT_ROUNDOFF
from torch import Tensor

pytest.importorskip("scipy", reason="SciPy is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_rt_detr as rt_detr

LAYERS, QUERIES, CLASSES = 2, 20, 7
COUNTS = ((3, 0, 5, 1), (0, 0, 2), (25, 4), (0, 0))
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
    counts: tuple[int, ...], seed: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor, list[dict[str, Tensor]]]:
    """Logits and boxes of all layers; labels and boxes of each image, by transformers' names."""
    random = torch.Generator().manual_seed(seed)

    def boxes(*shape: int) -> Tensor:
        centre = 0.2 + 0.6 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
        size = 0.05 + 0.3 * torch.rand(*shape, 2, generator=random, dtype=torch.float64)
        return torch.cat((centre, size), -1).to(device, dtype)

    shape = (LAYERS, len(counts), QUERIES)
    logits = 2 * torch.randn(*shape, CLASSES, generator=random, dtype=torch.float64)
    targets = [
        {
            "boxes": boxes(count),
            "class_labels": torch.randint(CLASSES, (count,), generator=random).to(device),
        }
        for count in counts
    ]
    return logits.to(device, dtype), boxes(*shape), targets


def by_transformers(
    matcher: str, logits: Tensor, pred: Tensor, targets: list[dict[str, Tensor]]
) -> list[list[Any]]:
    """[layer][image] of pairs."""
    make, _, _ = MATCHERS[matcher]
    layers = zip(logits, pred, strict=True)
    return [make()({"logits": x, "pred_boxes": boxes}, targets) for x, boxes in layers]


def by_boxloss(
    matcher: str, logits: Tensor, pred: Tensor, targets: list[dict[str, Tensor]], **options: float
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
        **options,
    )
    return cost, offsets


def assert_same_pairs(
    cost: Tensor, offsets: Tensor, theirs: list[list[Any]], counts: tuple[int, ...]
) -> None:
    expected = collate_matches(theirs, counts, QUERIES)
    for result, wanted in zip(hungarian_match(cost, offsets), expected, strict=True):
        assert result.tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_is_theirs(
    device: torch.device,
    monkeypatch: pytest.MonkeyPatch,
    matcher: str,
    counts: tuple[int, ...],
    seed: int,
    dtype: torch.dtype,
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
    # logits of at most 9 leave 1 - p >= 1e-4, off by a unit roundoff u, so that focal's logarithm
    # is off by u / 1e-4, that is 6e-4, times 0.7 and the weight 2; all else is some tens of u.
    assert values[0].abs().max() < 9
    error = 1e-10 if dtype == torch.float64 else 1e-3
    blocks = iter(shown)
    for layer in cost.cpu().double():
        for first, last in pairwise(offsets.tolist()):
            wanted = next(blocks).double()
            distance = (layer[:, first:last] - wanted).abs()
            assert torch.all(distance <= error + UNIT_ROUNDOFF[torch.float32] * wanted.abs())
    assert not list(blocks)
    assert_same_pairs(cost, offsets, theirs, counts)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_nan_is_matched_last(device: torch.device, matcher: str) -> None:
    counts = (3, 5)
    logits, *others = outputs_and_targets(counts, 0, device, torch.float64)
    logits[:, :, ::3] = float("nan")
    theirs = by_transformers(matcher, logits, *others)
    cost, offsets = by_boxloss(matcher, logits, *others, nonfinite=torch.finfo(torch.float32).max)
    assert_same_pairs(cost, offsets, theirs, counts)
