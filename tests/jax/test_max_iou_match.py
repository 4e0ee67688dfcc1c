# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Max-IoU matching: the bits that torch has on the same device."""

import math
from functools import partial
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import DEVICE, for_jax
from boxloss._options import LowQuality
from boxloss.jax import box_loss, max_iou_match
from problems import Problem, boxes
from test_matching import assert_the_match_is_torchs

ANCHORS, TARGET = boxes((300,), DEVICE, seed=1), boxes((9,), DEVICE, seed=2)
RULES = get_args(LowQuality)
OFFSETS = torch.tensor([1, 4, 4, 8])  # an image without boxes; the first and last are nobody's


def problem(**changed: Any) -> Problem:
    given = {"anchors": ANCHORS, "target": TARGET, "offsets": OFFSETS, "high": 0.4, "low": 0.2}
    return {**given, **changed}


def with_ties(rule: str) -> Problem:
    """A box of NaN among them: all rules differ."""
    target = (TARGET / 4).round()
    target[2, 1] = math.nan
    anchors = (ANCHORS / 4).round()
    return problem(anchors=anchors, target=target, high=0.9, low=0.6, low_quality=rule)


OF_IMAGES = boxes((3, 40), DEVICE, seed=3)
PROBLEMS: dict[str, Problem] = {
    **{rule: with_ties(rule) for rule in RULES},
    "least": problem(low_quality="argmax", min_pos_iou=0.5, high=0.9),
    "whole numbers": problem(high=1, low=0, low_quality="argmax"),
    "anchors of images": problem(anchors=OF_IMAGES, low_quality="force"),
    "offsets of 32 bits": problem(offsets=OFFSETS.int()),
    "bfloat16": problem(anchors=ANCHORS.bfloat16()),
    "float16 and uint8": problem(anchors=OF_IMAGES.half(), target=TARGET.byte()),
    "int64": problem(target=TARGET.long()),
    "no boxes": problem(target=TARGET[:0], offsets=OFFSETS * 0, low_quality="argmax"),
    "no anchors": problem(anchors=ANCHORS[:0]),
    "no images": problem(offsets=OFFSETS[:1]),
    "anchors of no images": problem(anchors=OF_IMAGES[:0], offsets=OFFSETS[:1]),
}


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bits_are_torchs(name: str, x64: bool) -> None:
    assert_the_match_is_torchs("max_iou_match", PROBLEMS[name], x64)


@pytest.mark.parametrize("name", ["anchors", "target"])
def test_float64(name: str) -> None:
    values = problem()
    assert_the_match_is_torchs("max_iou_match", {**values, name: values[name].double()})


def test_the_rules_differ() -> None:
    found = [max_iou_match(**for_jax(with_ties(rule))).target_index for rule in RULES]
    assert len({each.tobytes() for each in map(np.asarray, found)}) == len(RULES)


VALUES = for_jax(problem(low_quality="argmax"))
MATCH = partial(max_iou_match, high=0.4, low=0.2, low_quality="argmax")


def test_jit_and_vmap() -> None:
    target, offsets = VALUES["target"], VALUES["offsets"]
    anchors = jnp.stack([VALUES["anchors"] + i for i in range(3)])
    batched = jax.jit(jax.vmap(lambda each: MATCH(each, target, offsets)))(anchors)
    for i in range(3):
        single = MATCH(anchors[i], target, offsets)
        assert (single.target_index >= 0).any()
        for ours, expected in zip(batched, single, strict=True):
            np.testing.assert_array_equal(ours[i], expected)


@pytest.mark.parametrize("offsets", [[0, 3, 2, 9], [0, 2, 2, 10], [-1, 2, 2, 9]])
def test_bad_offsets_give_nothing(offsets: list[int]) -> None:
    match = max_iou_match(**{**VALUES, "offsets": jnp.array(offsets)})
    assert (match.target_index == -1).all()
    assert (match.iou == 0).all()


def test_it_has_no_gradient() -> None:
    """Where it is a part of what is differentiated."""
    anchors, target, offsets = VALUES["anchors"], VALUES["target"], VALUES["offsets"]

    def loss(anchors: jax.Array, index: jax.Array) -> jax.Array:
        return box_loss(jnp.tile(anchors, (3, 1)), target, target_index=index.ravel())

    def matched(anchors: jax.Array) -> jax.Array:
        match = MATCH(anchors, target, offsets)
        return loss(anchors, match.target_index) + match.iou.sum()

    expected = jax.grad(loss)(anchors, MATCH(anchors, target, offsets).target_index)
    assert expected.any()
    np.testing.assert_array_equal(jax.grad(matched)(anchors), expected)
