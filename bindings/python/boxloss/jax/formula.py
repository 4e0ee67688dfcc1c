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

from ._library import Arrays, formula_program
from .arguments import compute_dtype


def losses_by_formula(
    name: str, words: tuple[str, ...], has_extras: bool, options: dict[str, Any], arrays: Arrays
) -> tuple[Array, ...]:
    """loss or, with extras, loss, l1 and iou, of the loss of that name, whose formula takes these
    words."""
    slots = _find_slots(options, arrays)
    dtype = compute_dtype(arrays["pred"], arrays["target"])
    # Invalid slots become a constant box before the formula: masking its result would still let
    # NaN into the gradient. It has area 1 in every format and at any angle, so that no eps makes it
    # 0 / 0.
    width = arrays["pred"].shape[-1]
    constant = (jnp.arange(width) >= 2).astype(dtype)

    def counted_values(boxes: Array, row: Array | None) -> list[Array]:
        own = _rows(boxes.reshape(-1, width) if row is not None else boxes, row).astype(dtype)
        counted = jnp.where(slots.counted[..., None], own, constant)
        return [counted[..., i] for i in range(width)]

    values = [
        *counted_values(arrays["pred"], slots.pred_row),
        *counted_values(arrays["target"], slots.target_row),
    ]
    chosen = (options[each] for each in (*words, "eps", "eps_mode", "parameters"))
    program = _program(name, *chosen, len(options["parameters"]))
    loss, *extras = _run(program, values)

    def counted(numbers: Array) -> Array:
        return jnp.where(slots.counted, numbers, 0)

    def reduced(numbers: Array) -> Array:
        if "weight" in arrays:
            row = slots.target_row if "offsets" in arrays else None
            numbers = numbers * _rows(arrays["weight"].astype(dtype), row)
        return _reduced(options, arrays, slots, counted(numbers))

    if not has_extras:
        return (reduced(loss),)
    l1, iou = extras
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
    sizes = {name: arrays[name].size // pred.shape[-1] for name in index}
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
    if row is None:
        return values
    if values.shape[0] == 0:  # of which JAX reads none
        return jnp.zeros((*row.shape, *values.shape[1:]), values.dtype)
    return values.at[row].get(mode="fill", fill_value=0)


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
def _program(name: str, *arguments: Any) -> list[list[str]]:
    return [line.split() for line in formula_program(name, *arguments).splitlines()]


def _log(x: Array) -> Array:
    """At 0 it has no derivative, of any order."""
    return jnp.where(x == 0, -jnp.inf, jnp.log(jnp.where(x == 0, 1, x)))


def _atan2(y: Array, x: Array) -> Array:
    """Nor has this where both are 0."""
    both = (x == 0) & (y == 0)
    return jnp.atan2(jnp.where(both, 0, y), jnp.where(both, 1, x))


def _share(part: Array, whole: Array) -> Array:
    """part / whole in [0, 1], with its whole derivative at the ends; 0 where whole is 0."""
    is_none = jnp.abs(whole) <= jnp.finfo(whole.dtype).tiny
    quotient = jnp.where(is_none, 0, part) / jnp.where(is_none, 1, whole)
    return jnp.where(quotient < 0, 0, jnp.where(quotient > 1, 1, quotient))


def _maximum(a: Array, b: Array) -> Array:
    """jnp.maximum's derivative compares a and b with the result. XLA may compute these once more,
    rounded otherwise, and then neither would be it."""
    return jnp.where(a == b, 0.5 * a + 0.5 * b, jnp.where(a < b, b, a))


def _minimum(a: Array, b: Array) -> Array:
    return jnp.where(a == b, 0.5 * a + 0.5 * b, jnp.where(b < a, b, a))


_FUNCTIONS = {
    "minimum": _minimum,
    "maximum": _maximum,
    "log": _log,
    "share": _share,
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


def class_loss_by_formula(options: dict[str, Any], arrays: Arrays) -> Array:
    """The class loss, likewise."""
    logits, index, labels = (arrays[name] for name in ("logits", "target_index", "labels"))
    dtype, classes = compute_dtype(logits), logits.shape[-1]
    is_row, counted = (index >= 0) & (index < labels.size), index != -2
    row = jnp.where(is_row, index, labels.size)
    label = _rows(labels, row)
    label = jnp.where(is_row & (label >= 0) & (label < classes), label, -1)
    x = jnp.where(counted[..., None], logits, 0).astype(dtype)  # as boxes, before the formula
    weight = arrays.get("weight", jnp.ones(classes)).astype(dtype)
    if options["mode"] == "softmax":
        losses, shares = _softmax_losses(x, label, weight, options["no_object_weight"])
    else:
        by_row = _rows(arrays["quality"], row) if "quality" in arrays else jnp.ones(row.shape)
        quality = arrays.get("query_quality", by_row).astype(dtype)
        losses = (weight * _logit_losses(options, x, label, quality)).sum(-1)
        shares = label >= 0
    losses, shares = (jnp.where(counted, each, 0) for each in (losses, shares))
    if options["reduction"] == "none":
        return losses
    of_set = (1, 2) if logits.ndim == 4 else None
    total, share = losses.sum(of_set), shares.sum(of_set)
    if options["reduction"] == "sum":
        return total
    is_share = share != 0 if options["mode"] == "softmax" else share > 1
    divisor = arrays.get("normalizer", jnp.where(is_share, share, 1))
    return total / divisor.astype(dtype)


def _softmax_losses(
    x: Array, label: Array, weight: Array, no_object_weight: float
) -> tuple[Array, Array]:
    """Of queries, and what each adds to the divisor."""
    classes = x.shape[-1]
    has_box = label >= 0
    wanted = jnp.where(has_box, label, classes - 1)
    share = _rows(weight, wanted) * jnp.where(has_box, 1, no_object_weight)
    is_wanted = wanted[..., None] == jnp.arange(classes)
    return -share * jnp.where(is_wanted, jax.nn.log_softmax(x), 0).sum(-1), share


def _logit_losses(options: dict[str, Any], x: Array, label: Array, quality: Array) -> Array:
    numbers = (options[name] for name in ("alpha", "gamma"))
    given = (None if number is None else (number,) for number in numbers)
    program = _program("class", options["mode"], *given)
    is_own = label[..., None] == jnp.arange(x.shape[-1])
    # A quality that is NaN, or an infinite loss, would get into other classes' gradients, too.
    wanted = jnp.where(is_own, quality[..., None], 1)
    others, _ = _run(program, [jnp.where(is_own, 0, x), wanted])
    _, own = _run(program, [jnp.where(is_own, x, 0), wanted])
    return jnp.where(is_own, own, others)


def distribution_loss_by_formula(options: dict[str, Any], arrays: Arrays) -> Array:
    """The loss of distributions, without a program: core has no formula of a logit for it."""
    logits, index, is_fgl = arrays["logits"], arrays["target_index"], options["mode"] == "fgl"
    dtype, bins = compute_dtype(logits), logits.shape[-1] // 4
    is_matched = (index >= 0) & (index < arrays["target"].shape[0]) if is_fgl else index >= 0
    counted = is_matched if is_fgl else index != -2
    temperature = 1.0 if is_fgl else options["temperature"]

    def logs(logits: Array) -> Array:
        """Of the probabilities of each side's bins."""
        x = jnp.where(counted[..., None], logits, 0).astype(dtype)
        return jax.nn.log_softmax(x.reshape(*x.shape[:-1], 4, bins) / temperature)

    own = logs(logits)
    if is_fgl:
        row = jnp.where(is_matched, index, arrays["target"].shape[0])
        left, right = _wanted_bins(options, arrays, _rows(arrays["target"], row), dtype)
        of_bins = jnp.take_along_axis(own, jnp.stack((left, left + 1), -1), -1)
        losses = -(of_bins * jnp.stack((1 - right, right), -1)).sum((-2, -1))
    else:
        teacher = logs(arrays["teacher"])
        losses = temperature**2 * (jnp.exp(teacher) * (teacher - own)).sum((-2, -1))
    quality = arrays.get("quality", jnp.ones(index.shape))
    losses *= jnp.where(is_matched, quality, arrays.get("confidence", 0)).astype(dtype)
    losses = jnp.where(counted, losses, 0)
    if options["reduction"] == "none":
        return losses
    of_set = (1, 2) if logits.ndim == 4 else None
    if options["reduction"] == "sum":
        return losses.sum(of_set)
    if is_fgl:
        count = is_matched.sum(of_set)
        divisor = jnp.where(count > 0, arrays.get("normalizer", count), 1)
        return losses.sum(of_set) / divisor.astype(dtype)
    parts = is_matched, counted & ~is_matched
    roots = [jnp.sqrt(part.sum(of_set).astype(dtype)) for part in parts]
    of_matched, of_others = (
        jnp.where(part, losses, 0).sum(of_set) / jnp.where(root > 0, 4 * root * sum(roots), 1)
        for part, root in zip(parts, roots, strict=True)
    )
    return of_matched + of_others


def _wanted_bins(
    options: dict[str, Any], arrays: Arrays, target: Array, dtype: Any
) -> tuple[Array, Array]:
    """The first of the two bins that each side lies between, and how much is to be in the other."""
    reference, target, edges = (
        each.astype(dtype) for each in (arrays["reference"], target, arrays["edges"])
    )
    shift, half = target[..., :2] - reference[..., :2], 0.5 * target[..., 2:]
    unit = reference[..., 2:] / options["reg_scale"] + 1e-16
    offset = jnp.concatenate(((half - shift) / unit, (half + shift) / unit), -1)
    offset = jnp.clip(offset - 0.5 * options["reg_scale"], edges[0], edges[-1])
    left = (edges[1:-1] <= offset[..., None]).sum(-1)
    return left, (offset - edges[left]) / (edges[left + 1] - edges[left])
