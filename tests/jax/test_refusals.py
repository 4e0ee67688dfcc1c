# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused, while JAX traces, too: in torch's words, but for what frameworks convert."""

import math
from typing import Any

import boxloss.jax
import boxloss.torch
import jax
import pytest
import test_arguments as of_losses
import test_matching_cost as of_costs
import torch
from both import for_jax
from problems import Problem, boxes, problem
from task_aligned import problem as task_aligned

CPU = torch.device("cpu")
NAN = math.nan
PRED, TARGET, OFFSETS = boxes((3, 6), CPU, seed=1), boxes((9,), CPU, seed=2), torch.arange(4)
ANCHORS = {"anchors": TARGET, "target": TARGET, "offsets": OFFSETS}
COST = torch.ones(6, 9)
RAGGED, PADDED = task_aligned(1), task_aligned(1, is_padded=True)
OTHERS = (torch.complex64, torch.int8, torch.uint16)

# A valid call of each function, and what is changed in it.
VALID: dict[str, Problem] = {
    "box_loss": {"pred": TARGET, "target": TARGET},
    "box_losses": {"pred": TARGET, "target": TARGET},
    "matching_cost": of_costs.GOOD,
    "pairwise_iou": {"pred": PRED, "target": TARGET, "offsets": OFFSETS},
    "hungarian_match": {"cost": COST, "offsets": OFFSETS},
    "max_iou_match": {**ANCHORS, "high": 0.4, "low": 0.2},
    "task_aligned_match": RAGGED,
}
CHANGES: dict[str, list[Problem]] = {
    "box_loss": [
        *(
            {**problem(pairing, CPU), **changed}
            for pairing, changed, _ in of_losses.VALUE_ERRORS + of_losses.TYPE_ERRORS
        ),
        *({name: TARGET.to(dtype)} for name in ("pred", "target") for dtype in OTHERS),
        {"loss": "gio"},
        {"loss": None},
        {"pred_format": 3},
        {"eps": "a"},
        {"eps": 10**400},
        {**problem("mask", CPU), "mask": torch.ones((3, 5), dtype=torch.int8)},
        {"normalizer": torch.tensor(2, dtype=torch.uint8)},
        {"normalizer": 2, "reduction": "sum"},
    ],
    "box_losses": [
        {"pred_format": "xywh"},
        {"eps": -1},
        {"target": TARGET[:2]},
        {"target": TARGET.bool()},
    ],
    "matching_cost": [
        *(changed for changed, _ in of_costs.VALUE_ERRORS + of_costs.TYPE_ERRORS),
        {"iou_weight": "a"},
        {"class_weight": None},
    ],
    "pairwise_iou": [
        {"loss": "gio"},
        {"pred_format": "xy"},
        {"target_format": "xy"},
        {"eps": -1},
        {"eps_mode": "max"},
        {"pred": PRED[0]},
        {"pred": PRED.int()},
        {"target": TARGET[None]},
        {"target": TARGET.bool()},
        {"offsets": OFFSETS[1:]},
        {"offsets": OFFSETS.short()},
    ],
    "hungarian_match": [
        {"cost": COST.half()},
        {"cost": COST.bool()},
        {"cost": COST[0]},
        {"cost": COST[None, None]},
        {"offsets": OFFSETS.short()},
        {"offsets": OFFSETS[None]},
        {"offsets": OFFSETS[:0]},
        {"groups": 4},
        {"groups": 0},
        {"groups": -1},
        {"groups": "a"},
        {"groups": 1.5},
        {"groups": None},
    ],
    "max_iou_match": [
        {"anchors": TARGET.long()},
        {"target": TARGET.bool()},
        {"offsets": OFFSETS.short()},
        {"anchors": TARGET[0]},
        {"anchors": TARGET[None, None]},
        {"anchors": TARGET[:, :3]},
        {"target": TARGET[None]},
        {"target": TARGET.T},
        {"offsets": OFFSETS[None]},
        {"offsets": OFFSETS[:0]},
        {"anchors": PRED[:2]},
        {"low": 0.8},
        {"high": NAN},
        {"high": None},
        {"low": "a"},
        {"high": 10**400},
        {"min_pos_iou": NAN},
        {"low_quality": "all"},
        {"low_quality": 3},
    ],
    "task_aligned_match": [
        {"scores": RAGGED["scores"].long()},
        {"points": RAGGED["points"].int()},
        {"pred": RAGGED["pred"].bool()},
        {"target": RAGGED["target"].bool()},
        {"labels": RAGGED["labels"].float()},
        {"offsets": RAGGED["offsets"].short()},
        {"scores": RAGGED["scores"][0]},
        {"pred": RAGGED["pred"][:1]},
        {"points": RAGGED["points"][1:]},
        {"points": RAGGED["points"][None]},
        {"target": RAGGED["target"][:, :3]},
        {"target": PADDED["target"]},
        {"offsets": None},
        {"offsets": RAGGED["offsets"][1:]},
        {"labels": RAGGED["labels"][1:]},
        {**PADDED, "labels": PADDED["labels"][:1]},
        {**PADDED, "labels": PADDED["labels"][..., None]},
        {**PADDED, "target": PADDED["target"][:1]},
        {"topk": 0},
        {"topk": 1.5},
        {"topk": None},
        {"topk2": 0},
        {"topk2": "a"},
        {"alpha": -0.5},
        {"beta": math.inf},
        {"min_side": NAN},
        {"min_side": None},
        {"small_side": -1.0},
        {"min_side": 2.0, "small_side": 3.0},
        {"pred_format": "xxyy"},
    ],
}


def refusals_of(name: str, values: Problem) -> list[tuple[type[Exception], str]]:
    """Of torch, of JAX, and of JAX while it traces."""
    given = for_jax(values)
    static = {key: each for key, each in given.items() if not isinstance(each, jax.Array)}
    arrays = {key: each for key, each in given.items() if isinstance(each, jax.Array)}

    def ours(arrays: dict[str, jax.Array]) -> Any:
        return getattr(boxloss.jax, name)(**arrays, **static)

    found = []
    for call in (lambda _: getattr(boxloss.torch, name)(**values), ours, jax.jit(ours)):
        with pytest.raises((ValueError, TypeError)) as error:
            call(arrays)
        found.append((error.type, str(error.value)))
    return found


@pytest.mark.parametrize("name", VALID)
def test_what_is_changed_was_valid(name: str) -> None:
    getattr(boxloss.torch, name)(**VALID[name])
    getattr(boxloss.jax, name)(**for_jax(VALID[name]))


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        pytest.param(name, changed, id=f"{name}-{'-'.join(changed)}")
        for name, changes in CHANGES.items()
        for changed in changes
    ],
)
def test_both_refuse_the_same_in_the_same_words(name: str, changed: Problem) -> None:
    theirs, *ours = refusals_of(name, {**VALID[name], **changed})
    assert theirs[1].startswith(f"{name}: ")
    assert ours == [theirs] * 2
