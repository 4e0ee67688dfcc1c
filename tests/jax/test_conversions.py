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
}


@pytest.mark.parametrize(
    ("name", "changed", "error", "words"),
    [
        ("box_loss", {"pred": [[1.0] * 4]}, TypeError, "pred is list; it must be an array of JAX"),
        ("box_loss", {"normalizer": True}, TypeError, "normalizer is bool; it must be an array"),
        ("hungarian_match", {"groups": 2**53}, ValueError, r"groups is \d+; it must be .* 2\^53"),
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
