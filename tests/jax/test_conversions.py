# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What only JAX' functions convert, and refuse in words of their own. Needs no torch."""

from typing import Any

import boxloss.jax
import jax
import jax.numpy as jnp
import pytest

BOXES, OFFSETS = jnp.ones((4, 4), jnp.float32), jnp.asarray([0, 4])
VALID: dict[str, dict[str, Any]] = {
    "box_loss": {"pred": BOXES, "target": BOXES},
    "hungarian_match": {"cost": BOXES, "offsets": OFFSETS},
    "linear_sum_assignment": {"cost": BOXES},
    "max_iou_match": {
        "anchors": BOXES,
        "target": BOXES,
        "offsets": OFFSETS,
        "high": 0.5,
        "low": 0.4,
    },
    "task_aligned_match": {
        "scores": BOXES[None],
        "pred": BOXES[None],
        "points": BOXES[:, :2],
        "target": BOXES,
        "offsets": OFFSETS,
        "labels": OFFSETS[:1].repeat(4),
    },
}


@pytest.mark.parametrize(
    ("name", "changed", "error", "words"),
    [
        ("box_loss", {"pred": [[1.0] * 4]}, TypeError, "pred is list; it must be an array of JAX"),
        ("box_loss", {"normalizer": True}, TypeError, "normalizer is bool; it must be an array"),
        ("hungarian_match", {"cost": 1}, TypeError, "cost is int; it must be an array of JAX or"),
        ("linear_sum_assignment", {"lengths": [4, 4]}, TypeError, "lengths is list; it must be an"),
        ("linear_sum_assignment", {"maximize": 1}, TypeError, "maximize is int; it must be True"),
        ("linear_sum_assignment", {"cost_limit": "1"}, TypeError, "cost_limit is str; it must be"),
        ("max_iou_match", {"anchors": [[1.0] * 4]}, TypeError, "anchors is list; it must be an ar"),
        ("task_aligned_match", {"offsets": [0, 1]}, TypeError, "offsets is list; it must be an ar"),
        ("hungarian_match", {"groups": 2**53}, ValueError, r"groups is \d+; it must be .* 2\^53"),
        ("task_aligned_match", {"topk": 2**70}, ValueError, r"topk is \d+; it must be .* 2\^53"),
        ("box_loss", {"zero_padded": 1}, TypeError, "zero_padded is int; it must be True or False"),
        ("box_loss", {"normalizer": -1e39}, ValueError, r".* less than 3.4\d*e\+38 .*, as float32"),
    ],
)
def test_what_jax_does_not_convert(
    name: str, changed: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"^{name}: {words}"):
        getattr(boxloss.jax, name)(**{**VALID[name], **changed})


def test_an_unknown_option() -> None:
    with pytest.raises(TypeError, match=r"box_losses\(\) got an unexpected keyword argument 'a'"):
        boxloss.jax.box_losses(BOXES, BOXES, a=1)


def test_what_is_traced_is_no_option() -> None:
    with pytest.raises(TypeError, match=r"^box_loss: eps is \w*Tracer; it must be a number"):
        jax.jit(lambda eps: boxloss.jax.box_loss(BOXES, BOXES, eps=eps))(1e-7)
