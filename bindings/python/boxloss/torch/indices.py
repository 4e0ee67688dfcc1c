# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A check of indices that the losses leave out, since it synchronizes with the device."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .losses import box_loss


def raise_first(is_bad: Tensor, text: Callable[..., str]) -> None:
    """Raises text(*position) of the first bad entry, if there is one."""
    bad = is_bad.nonzero()
    if len(bad):
        raise ValueError(text(*bad[0].tolist()))


def _on_meta(value: Any) -> Any:
    """A tensor without its data."""
    return value.detach().to("meta") if isinstance(value, Tensor) else value


def _check_rows(name: str, index: Tensor, boxes: Tensor) -> None:
    rows = boxes.shape[:-1].numel()
    raise_first(
        (index < -2) | (index >= rows),
        lambda *place: (
            f"{name}{list(place)} is {int(index[place])}; it must lie in [0, {rows}), or be -1 "
            "or -2 for no pair"
        ),
    )


def check_indices(
    pred: Tensor,
    target: Tensor,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    pred_index: Tensor | None = None,
    target_index: Tensor | None = None,
) -> None:
    """Raises if box_loss would clamp lengths or offsets, or leave out a pair for its index.

    box_loss never reads out of bounds, whatever their values; this reports wrong values. It
    synchronizes with the device: for debugging and tests, not for each step.

    Args:
        pred, target, lengths, offsets: as for box_loss.
        pred_index, target_index: likewise; -1 is padding, and -2 what `max_iou_match` ignores.

    Raises:
        ValueError: names the first bad entry, its value and what is allowed. Before that, box_loss'
            errors for shapes and dtypes.
    """
    names = ("lengths", "offsets", "pred_index", "target_index")
    indices = (lengths, offsets, pred_index, target_index)
    named = dict(zip(names, map(_on_meta, indices), strict=True))
    box_loss(_on_meta(pred), _on_meta(target), **named)  # checks shapes and dtypes
    check_index_values(pred, target, *indices)


def check_index_values(pred: Tensor, target: Tensor, *indices: Tensor | None) -> None:
    """Of tensors whose shapes and dtypes box_loss takes."""
    lengths, offsets, pred_index, target_index = indices
    if lengths is not None:
        slots = pred.shape[1]
        raise_first(
            (lengths < 0) | (lengths > slots),
            lambda b: f"lengths[{b}] is {int(lengths[b])}; it must lie in [0, {slots}]",
        )
    if offsets is not None:
        slots = pred.shape[1]
        check_offsets(offsets, target.shape[0])
        counts = offsets.diff()
        raise_first(
            counts > slots,
            lambda b: (
                f"offsets[{b}] and offsets[{b + 1}] give image {b} {int(counts[b])} boxes; "
                f"pred has {slots} slots"
            ),
        )
    if pred_index is not None:
        _check_rows("pred_index", pred_index, pred)
    if target_index is not None:
        _check_rows("target_index", target_index, target)


def check_offsets(offsets: Tensor, rows: int) -> None:
    """Those of a list of so many rows."""
    raise_first(
        (offsets < 0) | (offsets > rows),
        lambda b: f"offsets[{b}] is {int(offsets[b])}; it must lie in [0, {rows}]",
    )
    raise_first(
        offsets.diff() < 0,
        lambda b: (
            f"offsets[{b + 1}] is {int(offsets[b + 1])}, less than offsets[{b}], which is "
            f"{int(offsets[b])}; offsets must not decrease"
        ),
    )
