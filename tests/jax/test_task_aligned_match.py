# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The task-aligned match: the bits that torch has on the same device."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import for_jax
from boxloss.jax import box_loss, task_aligned_match
from problems import FORMATS, Problem
from task_aligned import problem
from test_matching import assert_the_match_is_torchs

HALF = torch.bfloat16
SHIFTS = torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]])
RAGGED, PADDED = problem(1), problem(1, is_padded=True)


def without_boxes() -> Problem:
    offsets = torch.zeros(4, dtype=torch.int64)
    return {"target": RAGGED["target"][:0], "labels": RAGGED["labels"][:0], "offsets": offsets}


def in_format(pred_format: str) -> torch.Tensor:
    first, last = RAGGED["pred"].chunk(2, -1)
    start = {"xyxy": first, "xywh": first, "cxcywh": (first + last) / 2}[pred_format]
    return torch.cat((start, last if pred_format == "xyxy" else last - first), -1)


PROBLEMS: dict[str, Problem] = {
    "ragged": RAGGED,
    "padded": PADDED,
    "many boxes": problem(2, boxes=40, images=5, min_side=16.0),
    "many padded boxes": problem(2, boxes=40, images=5, is_padded=True, topk=13, topk2=1),
    "some images without boxes": problem(3, boxes=1, images=6),
    "topk2": problem(4, topk=7, topk2=1),
    "topk2 is more": problem(4, topk=2, topk2=5),
    "exponents": problem(5, alpha=1, beta=2.5),
    "all anchors": problem(6, topk=2**52),
    "half scores": problem(7, scores=HALF),
    "float16": problem(7, scores=torch.float16, pred=torch.float16, is_padded=True),
    "half pred": problem(8, pred=HALF),
    "half points": {**RAGGED, "points": RAGGED["points"].to(HALF)},
    "half target": {**PADDED, "target": PADDED["target"].to(HALF)},
    "int16 target": {**RAGGED, "target": RAGGED["target"].short()},
    "points of each image": {**RAGGED, "points": RAGGED["points"] + SHIFTS},
    "labels of 32 bits": {**RAGGED, "labels": RAGGED["labels"].int()},
    "offsets of 32 bits": {**RAGGED, "offsets": RAGGED["offsets"].int()},
    **{each: {**RAGGED, "pred": in_format(each), "pred_format": each} for each in FORMATS},
    "no boxes": {**RAGGED, **without_boxes()},
    "padding alone": {**PADDED, "target": PADDED["target"] * 0},
    "no padding": {**PADDED, "target": PADDED["target"][:, :0], "labels": PADDED["labels"][:, :0]},
    "no images": {
        **{name: each[:0] for name, each in PADDED.items() if name not in ("points", "offsets")},
        "points": PADDED["points"],
        "offsets": None,
    },
    "no anchors": {
        **RAGGED,
        "scores": RAGGED["scores"][:, :0],
        "pred": RAGGED["pred"][:, :0],
        "points": RAGGED["points"][:0],
    },
}


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bits_are_torchs(name: str, x64: bool) -> None:
    assert_the_match_is_torchs("task_aligned_match", PROBLEMS[name], x64)


@pytest.mark.parametrize("name", ["scores", "pred", "points", "target"])
def test_float64(name: str) -> None:
    values = {**RAGGED, name: RAGGED[name].double()}
    assert_the_match_is_torchs("task_aligned_match", values)


VALUES = for_jax(RAGGED)


@pytest.mark.parametrize("values", [RAGGED, PADDED])
def test_jit_and_vmap(values: Problem) -> None:
    given = for_jax(values)
    first = given.pop("scores")
    scores = jnp.stack([first ** (i + 1) for i in range(3)])
    match = partial(task_aligned_match, **given, topk=5, topk2=3)
    batched = jax.jit(jax.vmap(match))(scores)
    for i in range(3):
        single = match(scores[i])
        assert (single.target_index >= 0).any()
        for ours, expected in zip(batched, single, strict=True):
            np.testing.assert_array_equal(ours[i], expected)


@pytest.mark.parametrize("offsets", [[0, 3, 2, 9], [0, 2, 2, 100], [-1, 2, 2, 9]])
def test_bad_offsets_give_nothing(offsets: list[int]) -> None:
    match = task_aligned_match(**{**VALUES, "offsets": jnp.array(offsets)})
    assert (match.target_index == -1).all()
    assert not match.score.any()
    assert not match.overlap.any()


@pytest.mark.parametrize("label", [-1, 4])
def test_the_box_of_a_bad_label_gets_no_anchor(label: int) -> None:
    assert (task_aligned_match(**VALUES).target_index == 0).any()
    bad = {**VALUES, "labels": VALUES["labels"].at[0].set(label)}
    found = task_aligned_match(**bad).target_index
    assert not (found == 0).any()
    assert (found == 1).any()


def test_it_has_no_gradient() -> None:
    """Where it is a part of what is differentiated."""

    def loss(pred: jax.Array, index: jax.Array) -> jax.Array:
        boxes = pred.reshape(-1, 4)
        return box_loss(boxes, VALUES["target"], "ciou", target_index=index.ravel())

    def matched(pred: jax.Array) -> jax.Array:
        match = task_aligned_match(**{**VALUES, "pred": pred})
        return loss(pred, match.target_index) + match.score.sum() + match.overlap.sum()

    expected = jax.grad(loss)(VALUES["pred"], task_aligned_match(**VALUES).target_index)
    assert expected.any()
    np.testing.assert_array_equal(jax.grad(matched)(VALUES["pred"]), expected)
