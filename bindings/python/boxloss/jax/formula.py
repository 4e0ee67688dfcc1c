# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses in jax.numpy, with the same rules: for derivatives that custom calls do not have.

The formula of a pair is core's own, as a program that the library writes.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ._library import formula_program
from .arguments import compute_dtype

Arrays = dict[str, Array]


def losses_by_formula(options: dict[str, Any], arrays: Arrays) -> tuple[Array, ...]:
    """loss or, with extras, loss, l1 and iou."""
    slots = _find_slots(options, arrays)
    dtype = compute_dtype(arrays["pred"], arrays["target"])
    # Invalid slots become a constant box before the formula: masking its result would still let
    # NaN into the gradient. It has area 1 in every format, so that no eps makes it 0 / 0.
    constant = jnp.array([0, 0, 1, 1], dtype)

    def counted_values(boxes: Array, row: Array | None) -> list[Array]:
        own = _rows(boxes.reshape(-1, 4) if row is not None else boxes, row).astype(dtype)
        counted = jnp.where(slots.counted[..., None], own, constant)
        return [counted[..., i] for i in range(4)]

    values = [
        *counted_values(arrays["pred"], slots.pred_row),
        *counted_values(arrays["target"], slots.target_row),
    ]
    words = ("loss", "pred_format", "target_format", "eps", "eps_mode", "parameters")
    loss, l1, iou = _run(_program(*(options[word] for word in words)), values)

    def counted(numbers: Array) -> Array:
        return jnp.where(slots.counted, numbers, 0)

    def reduced(numbers: Array) -> Array:
        if "weight" in arrays:
            row = slots.target_row if "offsets" in arrays else None
            numbers = numbers * _rows(arrays["weight"].astype(dtype), row)
        return _reduced(options, arrays, slots, counted(numbers))

    if not options["extras"]:
        return (reduced(loss),)
    own_iou = _by_row(arrays, slots, counted(jax.lax.stop_gradient(iou)))
    return reduced(loss), reduced(l1), own_iou


class _Slots(NamedTuple):
    """Which slots or pairs are valid, and the rows that they read if not by position; invalid ones
    read the row after the last, which is zeros."""

    counted: Array
    pred_row: Array | None = None
    target_row: Array | None = None


def _find_slots(options: dict[str, Any], arrays: Arrays) -> _Slots:
    pred, target = arrays["pred"], arrays["target"]
    if options["zero_padded"]:
        return _Slots((target != 0).any(-1))
    if "lengths" in arrays:
        return _Slots(jnp.arange(pred.shape[1]) < arrays["lengths"][:, None])
    if "mask" in arrays:
        return _Slots(arrays["mask"])
    if "offsets" in arrays:
        rows = target.shape[0]
        begin = arrays["offsets"][:-1].clip(0, rows)
        end = jnp.minimum(jnp.maximum(arrays["offsets"][1:], begin), rows)
        row = begin[:, None] + jnp.arange(pred.shape[1])
        counted = row < end[:, None]
        return _Slots(counted, target_row=jnp.where(counted, row, rows))
    index = {name: arrays.get(f"{name}_index") for name in ("pred", "target")}
    sizes = {name: arrays[name].size // 4 for name in index}
    counted = jnp.array(True)
    for name, row in index.items():
        if row is not None:
            counted = counted & (row >= 0) & (row < sizes[name])
    if counted.ndim == 0:
        return _Slots(jnp.ones(pred.shape[:-1], bool))
    return _Slots(
        counted,
        *(
            None if row is None else jnp.where(counted, row, sizes[name])
            for name, row in index.items()
        ),
    )


def _rows(values: Array, row: Array | None) -> Array:
    return values if row is None else values.at[row].get(mode="fill", fill_value=0)


def _by_row(arrays: Arrays, slots: _Slots, numbers: Array) -> Array:
    """One for each row of the unreduced loss, from one for each slot."""
    if "offsets" not in arrays:
        return numbers
    rows = jnp.zeros(arrays["target"].shape[0], numbers.dtype)
    return rows.at[slots.target_row].set(numbers, mode="drop")


def _reduced(options: dict[str, Any], arrays: Arrays, slots: _Slots, numbers: Array) -> Array:
    if options["reduction"] == "none":
        return _by_row(arrays, slots, numbers)
    in_sets = slots.counted.ndim == 2 and ("pred_index" in arrays or "target_index" in arrays)
    total = numbers.sum(-1 if in_sets else None)
    if options["reduction"] == "sum":
        return total
    count = slots.counted.sum(-1 if in_sets else None)
    divisor = jax.lax.stop_gradient(arrays.get("normalizer", count))
    return total / jnp.where(count > 0, divisor, 1).astype(total.dtype)


@lru_cache
def _program(*words: Any) -> list[list[str]]:
    return [line.split() for line in formula_program(*words).splitlines()]


def _log(x: Array) -> Array:
    """At 0 it has no derivative, of any order."""
    return jnp.where(x == 0, -jnp.inf, jnp.log(jnp.where(x == 0, 1, x)))


def _atan2(y: Array, x: Array) -> Array:
    """Nor has this where both are 0."""
    both = (x == 0) & (y == 0)
    return jnp.atan2(jnp.where(both, 0, y), jnp.where(both, 1, x))


_FUNCTIONS = {
    "log": _log,
    "atan2": _atan2,
    "stop_gradient": jax.lax.stop_gradient,
}


def _run(program: list[list[str]], values: list[Any]) -> list[Array]:
    """What it returns; the result of each line joins the values."""
    values = list(values)
    for word, *operands in program:
        numbers = [values[int(o[1:])] if o[0] == "%" else float(o) for o in operands]
        if word == "return":
            return numbers
        function = _FUNCTIONS.get(word) or getattr(jnp, word)
        values.append(function(*numbers))
    raise AssertionError("the program does not return")
