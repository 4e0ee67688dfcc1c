# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A check that the losses themselves leave out, because it has to wait for the device."""

from collections.abc import Callable

from torch import Tensor


def _raise_first(is_bad: Tensor, text: Callable[[int], str]) -> None:
    bad = is_bad.nonzero()
    if len(bad):
        raise ValueError(text(int(bad[0])))


def check_indices(
    pred: Tensor,
    target: Tensor,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
) -> None:
    """Raises where lengths or offsets hold values that giou_loss would clamp.

    giou_loss reads nothing out of bounds whatever they hold; this says *that* they are wrong. It
    synchronises with the device: for debugging and tests, not for each step.

    Args:
        pred: (images, slots, 4), as for giou_loss.
        target: (images, slots, 4); with offsets (T, 4).
        lengths: as for giou_loss.
        offsets: as for giou_loss.

    Raises:
        ValueError: names the first bad entry, its value and what is allowed.
    """
    slots = pred.shape[1]
    if lengths is not None:
        _raise_first(
            (lengths < 0) | (lengths > slots),
            lambda b: f"lengths[{b}] is {int(lengths[b])}; it must lie in [0, {slots}]",
        )
    if offsets is not None:
        rows = target.shape[0]
        _raise_first(
            (offsets < 0) | (offsets > rows),
            lambda b: f"offsets[{b}] is {int(offsets[b])}; it must lie in [0, {rows}]",
        )
        counts = offsets.diff()
        _raise_first(
            counts < 0,
            lambda b: (
                f"offsets[{b + 1}] is {int(offsets[b + 1])}, less than offsets[{b}], which is "
                f"{int(offsets[b])}; offsets must not decrease"
            ),
        )
        _raise_first(
            counts > slots,
            lambda b: (
                f"offsets[{b}] and offsets[{b + 1}] give image {b} {int(counts[b])} boxes; "
                f"pred has {slots} slots"
            ),
        )
