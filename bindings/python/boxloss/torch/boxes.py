# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A check of boxes, labels and scores that no function makes, since it waits for the device."""

from collections.abc import Callable, Sequence
from typing import get_args

import torch
from torch import Tensor

from .._options import BoxFormat
from .arguments import check_tensors, whole
from .indices import raise_first


def check_boxes(
    boxes: Tensor,
    box_format: BoxFormat = "xyxy",
    *,
    valid: Tensor | None = None,
    labels: Tensor | None = None,
    classes: int | None = None,
    scores: Tensor | None = None,
) -> None:
    """Raises if a box is not finite or inverted, or if all seem to be of another format.

    Also if a label is none of the classes, or a score no probability. Boxes seem to be of another
    format if a quarter of them leave the image, and in that format none does. Where no number is
    above 1 the image is taken to be [0, 1]; in pixels only where it begins is known.

    It synchronizes with the device: for debugging and tests, and in each call where debug mode is
    on (`debug`).

    Args:
        boxes: (..., 4), of any dtype.
        box_format: "xyxy" (two corners), "xywh" (corner and size) or "cxcywh" (centre and size).
        valid: bool (...): true for the boxes that count; all do where it is not given.
        labels: the boxes' classes (...), integers.
        classes: the number of classes; where it is not given, that of `scores`.
        scores: probabilities (..., classes), as `task_aligned_match` takes them; its leading
            dimensions need not be the boxes'.

    Raises:
        ValueError: names the first bad row, its values and what is allowed; or a shape. TypeError:
            a bad dtype, or no tensor.
    """
    if box_format not in get_args(BoxFormat):
        allowed = ", ".join(map(repr, get_args(BoxFormat)))
        raise ValueError(f"box_format is {box_format!r}; allowed: {allowed}")
    given = {"boxes": boxes, "valid": valid, "labels": labels, "scores": scores}
    check_tensors("check_boxes", **{name: each for name, each in given.items() if each is not None})
    if valid is not None and valid.dtype != torch.bool:
        raise TypeError(f"check_boxes: valid is {_name(valid)}; it must be bool")
    if labels is not None and (labels.is_floating_point() or labels.is_complex()):
        raise TypeError(f"check_boxes: labels is {_name(labels)}; it must be an integer dtype")
    if scores is not None and not scores.is_floating_point():
        raise TypeError(f"check_boxes: scores is {_name(scores)}; it must be a floating dtype")
    if classes is not None:
        classes = whole(classes, "classes")
    if boxes.dim() == 0 or boxes.shape[-1] != 4:
        raise ValueError(f"boxes has shape {list(boxes.shape)}; it must be (..., 4)")
    for name, each in (("valid", valid), ("labels", labels)):
        if each is not None and each.shape != boxes.shape[:-1]:
            raise ValueError(
                f"{name} has shape {list(each.shape)}; it must be {list(boxes.shape[:-1])}"
            )
    check_each_box("boxes", boxes, box_format, valid)
    check_format("boxes", boxes, box_format, valid)
    if scores is not None:
        check_probabilities("scores", scores)
        classes = scores.shape[-1] if classes is None else classes
    if labels is not None:
        if classes is None:
            raise ValueError("labels need classes, their number, or scores")
        check_labels("labels", labels, classes, valid)


def _name(values: Tensor) -> str:
    return str(values.dtype).removeprefix("torch.")


def _among(is_bad: Tensor, valid: Tensor | None) -> Tensor:
    return is_bad if valid is None else is_bad & valid


def in_words(name: str, values: Tensor, row: Sequence[int]) -> str:
    """That this row of an argument has these values."""
    own = values[tuple(row)]
    digits = ".6g" if own.is_floating_point() else "d"
    words = ", ".join(f"{number:{digits}}" for number in own.reshape(-1).tolist())
    return f"{name}{list(row) or ''} is {f'[{words}]' if own.dim() else words}"


def refuse(name: str, values: Tensor, is_bad: Tensor, words: str) -> None:
    """Raises that the first bad row of an argument must be something else."""
    raise_first(is_bad, lambda *row: f"{in_words(name, values, row)}; {words}")


def check_finite(name: str, values: Tensor, valid: Tensor | None = None) -> None:
    """Of rows."""
    if values.is_floating_point():
        refuse(name, values, _among(~values.isfinite().all(-1), valid), "it must be finite")


def check_each_box(
    name: str, boxes: Tensor, box_format: BoxFormat, valid: Tensor | None = None
) -> None:
    """Whether it is finite, and not inverted."""
    check_finite(name, boxes, valid)
    raise_first(
        _among(_is_inverted(boxes, box_format), valid),
        lambda *row: (
            f"{in_words(name, boxes, row)}, which is inverted as {box_format!r}"
            + _as_others(box_format, "is", lambda other: _is_inverted(boxes, other), valid)
        ),
    )


def check_each_rotated_box(name: str, boxes: Tensor, valid: Tensor | None = None) -> None:
    """Whether it is finite, and has no negative side."""
    check_finite(name, boxes, valid)
    is_bad = _among((boxes[..., 2:4] < 0).any(-1), valid)
    refuse(name, boxes, is_bad, "width and height must not be negative")


def check_format(
    name: str, boxes: Tensor, box_format: BoxFormat, valid: Tensor | None = None
) -> None:
    """Whether many leave the image, of ground-truth boxes, and none does in another format.

    Ground-truth boxes that are not clipped may leave it, too, but hardly all fit another format as
    well.
    """
    if box_format == "xyxy":
        return

    def is_bad(other: BoxFormat) -> Tensor:
        return _is_inverted(boxes, other) | _leaves_the_image(boxes, other, valid)

    leaving = _among(_leaves_the_image(boxes, box_format, valid), valid)
    bad, count = int(leaving.sum()), int(_among(torch.ones_like(leaving), valid).sum())
    if 0 < count <= 4 * bad and (others := _as_others(box_format, "does", is_bad, valid)):
        raise_first(
            leaving,
            lambda *row: (
                f"{in_words(name, boxes, row)}, which as {box_format!r} leaves the image, as {bad} "
                f"of {count} boxes do{others}"
            ),
        )


def check_units(name: str, boxes: Tensor, other_name: str, others: Tensor) -> None:
    """Whether one of them is in [0, 1], the other in pixels."""
    units = {name: _unit(boxes), other_name: _unit(others)}
    if set(units.values()) == {"[0, 1]", "pixels"}:
        both = " and ".join(f"{each} in {unit}" for each, unit in units.items())
        raise ValueError(f"{both}: they must have the same unit")


def check_labels(name: str, labels: Tensor, classes: int, valid: Tensor | None = None) -> None:
    is_bad = _among((labels < 0) | (labels >= classes), valid)
    refuse(name, labels, is_bad, f"it must lie in [0, {classes})")


def check_probabilities(name: str, scores: Tensor) -> None:
    words = "it must be a probability, in [0, 1]: of logits take the sigmoid"
    refuse(name, scores, ~((scores >= 0) & (scores <= 1)), words)


def _is_inverted(boxes: Tensor, box_format: BoxFormat) -> Tensor:
    least = boxes[..., :2] if box_format == "xyxy" else 0
    return (boxes[..., 2:] < least).any(-1)


def _leaves_the_image(boxes: Tensor, box_format: BoxFormat, valid: Tensor | None) -> Tensor:
    """By more than rounding, or than a pixel."""
    wide = boxes if boxes.dtype == torch.float64 else boxes.float()
    first, last = wide[..., :2], wide[..., 2:]
    if box_format == "cxcywh":
        first, last = first - last / 2, first + last / 2
    elif box_format == "xywh":
        last = first + last
    if _among((wide > 1).any(-1), valid).any():  # in pixels
        return (first < -1).any(-1)
    return ((first < -1e-3) | (last > 1 + 1e-3)).any(-1)


def _as_others(
    box_format: BoxFormat, verb: str, is_bad: Callable[[BoxFormat], Tensor], valid: Tensor | None
) -> str:
    """In which other formats no box is bad, as the end of a sentence."""
    fitting = [
        repr(other)
        for other in get_args(BoxFormat)
        if other != box_format and not _among(is_bad(other), valid).any()
    ]
    return f"; as {' or '.join(fitting)} none {verb}" if fitting else ""


def _unit(rows: Tensor) -> str:
    """[0, 1], pixels, or what may be either."""
    if rows.numel() == 0:
        return ""
    largest = rows.amax(-1)
    if bool((rows >= 0).all() & (largest.amax() <= 1) & (largest.amax() > 0)):
        return "[0, 1]"
    return "pixels" if bool(largest.amin() > 2) else ""
