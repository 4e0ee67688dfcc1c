# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Debug mode: every call checks what its tensors hold, which takes a wait for the device."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as inside_transform
from torch.overrides import is_tensor_like
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import arguments
from .boxes import (
    check_each_box,
    check_each_rotated_box,
    check_finite,
    check_format,
    check_labels,
    check_probabilities,
    check_units,
    refuse,
)
from .indices import check_index_values, check_offsets, raise_first

Values = dict[str, Any]

_lock = Lock()
_blocks = 0


@contextmanager
def debug() -> Iterator[None]:
    """Within this block each call checks what is in its tensors, in all threads.

    That is what `check_indices` and `check_boxes` find in the boxes that count, but for formats of
    rotated boxes; ground-truth boxes and predictions of different units; labels that are no class;
    scores of `task_aligned_match` that are no probabilities, logits that are; qualities that are
    not from 0 to 1, or, of `distribution_loss`, are negative; its edges that do not increase;
    weights, points, logits and costs that are NaN; a normalizer that is not above 0. Errors name
    the function, the argument, the row and its values::

        with boxloss.torch.debug():
            loss = criterion(outputs, targets)

    The environment variable BOXLOSS_DEBUG=1, read at import, is as a block around all. Each check
    waits for the device. What cannot be looked at is not checked: compiled code, the transforms of
    torch.func, CUDA graphs while they are captured, DTensors and tensors without data.

    Raises, in the calls: ValueError.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _blocks
    with _lock:
        _blocks += change
        arguments.debug_check = _check if _blocks else None


def _check(function: str, operator: Any, values: Values) -> None:
    if not _can_be_read(values):
        return
    plain = {
        name: value.detach().as_subclass(Tensor) if isinstance(value, Tensor) else value
        for name, value in values.items()
    }
    try:
        with torch.no_grad():
            _CHECKS[operator._schema.name.removeprefix("boxloss::")](plain)
    except ValueError as error:
        raise ValueError(f"{function}: {error}") from None


def _can_be_read(values: Values) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor  # takes a while

    if torch._C._get_tracing_state() or inside_transform():
        return False
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        return False
    tensors = [value for value in values.values() if is_tensor_like(value)]
    return all(
        isinstance(each, Tensor)
        and not each.is_meta
        and not isinstance(each, FakeTensor)
        and not is_traceable_wrapper_subclass(each)
        for each in tensors
    )


def _check_losses(values: Values) -> None:
    pred, target = values["pred"], values["target"]
    names = ("lengths", "offsets", "pred_index", "target_index")
    check_index_values(pred, target, *(values.get(name) for name in names))
    pairs, of_pred, of_target = _valid(values)
    _check_boxes(values, "pred", of_pred)
    _check_true_boxes(values, of_target)
    check_units("pred", pred[of_pred][:, :4], "target", target[of_target][:, :4])
    if (weight := values["weight"]) is not None:
        check_finite("weight", weight[..., None], pairs)
    if (normalizer := values["normalizer"]) is not None:
        _check_normalizer(normalizer, pairs.any(-1) if normalizer.dim() else pairs.any())


def _check_normalizer(normalizer: Tensor, is_used: Tensor) -> None:
    refuse("normalizer", normalizer, ~(normalizer > 0) & is_used, "it must be more than 0")


def _valid(values: Values) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs that count, in the loss' rows, and whose boxes these are of pred and of target."""
    pred, target = values["pred"], values["target"]
    if values["pred_index"] is not None or values["target_index"] is not None:
        return _valid_by_index(pred, target, values["pred_index"], values["target_index"])
    slots = torch.arange(pred.shape[1] if pred.dim() > 2 else 0, device=pred.device)
    if (offsets := values["offsets"]) is not None:
        of_target = _in_an_image(offsets, len(target))
        return of_target, slots < offsets.diff()[:, None], of_target
    if (lengths := values["lengths"]) is not None:
        valid = slots < lengths[:, None]
    elif values["mask"] is not None:
        valid = values["mask"]
    elif values["zero_padded"]:
        valid = (target != 0).any(-1)
    else:
        valid = torch.ones(pred.shape[:-1], dtype=torch.bool, device=pred.device)
    return valid, valid, valid


def _valid_by_index(
    pred: Tensor, target: Tensor, pred_index: Tensor | None, target_index: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    both = [index for index in (pred_index, target_index) if index is not None]
    pairs = torch.stack([index >= 0 for index in both]).all(0)

    def rows(boxes: Tensor, index: Tensor | None) -> Tensor:
        if index is None:  # read pair by pair
            return pairs
        valid = torch.zeros(boxes.shape[:-1].numel(), dtype=torch.bool, device=boxes.device)
        valid[index[pairs].long()] = True
        return valid.view(boxes.shape[:-1])

    return pairs, rows(pred, pred_index), rows(target, target_index)


def _in_an_image(offsets: Tensor, count: int) -> Tensor:
    """Which of so many rows offsets give to an image."""
    rows = torch.arange(count, device=offsets.device)
    return (rows >= offsets[0]) & (rows < offsets[-1])


def _check_list(values: Values, other: str) -> Tensor:
    """A list of ground-truth boxes and what it is compared with; which of them are in an image."""
    target, offsets, boxes = values["target"], values["offsets"], values[other]
    check_offsets(offsets, len(target))
    valid = _in_an_image(offsets, len(target))
    _check_boxes(values, other)
    _check_true_boxes(values, valid)
    check_units(other, boxes.flatten(0, -2)[:, :4], "target", target[valid][:, :4])
    return valid


def _check_boxes(values: Values, name: str, valid: Tensor | None = None) -> None:
    """Rotated ones have five numbers, and one format."""
    boxes = values[name]
    if boxes.shape[-1] == 5:
        check_each_rotated_box(name, boxes, valid)
    else:
        check_each_box(name, boxes, values.get(f"{name}_format", "xyxy"), valid)


def _check_true_boxes(values: Values, valid: Tensor) -> None:
    _check_boxes(values, "target", valid)
    if (target := values["target"]).shape[-1] == 4:
        check_format("target", target, values.get("target_format", "xyxy"), valid)


def _check_cost(values: Values) -> None:
    valid = _check_list(values, "pred")
    if (logits := values.get("logits")) is not None:
        _check_logits(logits, values["class_mode"])
        check_labels("labels", values["labels"], logits.shape[-1], valid)


def _check_logits(logits: Tensor, mode: str, counted: Tensor | None = None) -> None:
    """Those of queries that count."""
    _check_numbers("logits", logits, counted)
    if mode == "softmax" and logits.shape[-1] > 1 and logits.numel():
        sums = logits.float().sum(-1)
        if bool(((logits >= 0) & (logits <= 1)).all() & ((sums - 1).abs() < 1e-2).all()):
            raise ValueError("logits are the softmax of some: each query's add up to 1")


def _check_numbers(name: str, values: Tensor, counted: Tensor | None) -> None:
    is_bad = values.isnan() if counted is None else values.isnan() & counted[..., None]
    refuse(name, values, is_bad, "it must be a number")


def _check_class_loss(values: Values) -> None:
    logits, index, labels = (values[name] for name in ("logits", "target_index", "labels"))
    has_box, is_used = index >= 0, _used_rows(index, len(labels))
    _check_logits(logits, values["mode"], index != -2)
    check_labels("labels", labels, logits.shape[-1], is_used)
    for name, valid in (("quality", is_used), ("query_quality", has_box)):
        if (quality := values[name]) is not None:
            _check_quality(name, quality, valid, values["mode"])
    if (weight := values["weight"]) is not None:
        check_finite("weight", weight[:, None])
    if (normalizer := values["normalizer"]) is not None:
        _check_normalizer(normalizer, torch.ones_like(normalizer, dtype=torch.bool))


def _used_rows(index: Tensor, count: int) -> Tensor:
    """Which of so many rows some query has, where target_index leads to no other."""
    words = f"it must lie in [0, {count}), or be -1 or -2 for no box"
    refuse("target_index", index, (index < -2) | (index >= count), words)
    is_used = torch.zeros(count, dtype=torch.bool, device=index.device)
    is_used[index[index >= 0].long()] = True
    return is_used


def _check_distribution_loss(values: Values) -> None:
    logits, index = values["logits"], values["target_index"]
    is_matched = index >= 0
    if values["mode"] == "fgl":
        _check_numbers("logits", logits, is_matched)
        _check_localization(values, is_matched)
    else:
        _check_numbers("logits", logits, index != -2)
        _check_distillation(values, is_matched)
    if (quality := values["quality"]) is not None:
        _check_not_negative("quality", quality, is_matched)


def _check_localization(values: Values, is_matched: Tensor) -> None:
    reference, target, edges = (values[name] for name in ("reference", "target", "edges"))
    is_used = _used_rows(values["target_index"], len(target))
    check_each_box("reference", reference, "cxcywh", is_matched)
    for check in (check_each_box, check_format):
        check("target", target, "cxcywh", is_used)
    check_units("reference", reference[is_matched], "target", target[is_used])
    check_finite("edges", edges[:, None])
    raise_first(
        edges.diff() <= 0,
        lambda i: (
            f"edges[{i + 1}] is {edges[i + 1]:.6g}, not more than edges[{i}], which is "
            f"{edges[i]:.6g}; edges must increase"
        ),
    )
    if (normalizer := values["normalizer"]) is not None:
        has_match = is_matched.flatten(1).any(-1) if normalizer.dim() else is_matched.any()
        _check_normalizer(normalizer, has_match)


def _check_distillation(values: Values, is_matched: Tensor) -> None:
    logits, index, teacher = (values[name] for name in ("logits", "target_index", "teacher"))
    counts, others = index != -2, (index != -2) & ~is_matched
    if logits.dim() == 4:  # confidence is of all layers
        others = others.any(0)
        counts = counts if teacher.dim() == 4 else counts.any(0)
    _check_numbers("teacher", teacher, counts)
    _check_not_negative("confidence", values["confidence"], others)


def _check_not_negative(name: str, weights: Tensor, valid: Tensor) -> None:
    is_bad = ~((weights >= 0) & weights.isfinite()) & valid
    refuse(name, weights, is_bad, "it must be finite and not negative")


def _check_quality(name: str, quality: Tensor, valid: Tensor, mode: str) -> None:
    rounding = 4 * torch.finfo(quality.dtype).eps
    least = 0 if mode in ("mal", "ia_bce") else -rounding  # of which these have a power
    is_bad = ~((quality >= least) & (quality <= 1 + rounding)) & valid
    refuse(name, quality, is_bad, "it must be from 0 to 1")


def _check_task_aligned(values: Values) -> None:
    scores, points, target = (values[name] for name in ("scores", "points", "target"))
    check_probabilities("scores", scores)
    check_finite("points", points)
    if values["offsets"] is None:
        to_radians = -math.pi / 180 if values["angle_unit"] == "degrees" else 1
        numbers = target.double()
        valid = numbers[..., :4].sum(-1) + numbers[..., 4:].sum(-1) * to_radians > 0
        _check_boxes(values, "pred")
        _check_true_boxes(values, valid)
        check_units("pred", values["pred"].flatten(0, -2)[:, :4], "target", target[valid][:, :4])
    else:
        valid = _check_list(values, "pred")
    check_labels("labels", values["labels"], scores.shape[-1], valid)
    check_units("points", points.flatten(0, -2), "target", target[valid][:, :4])


def _check_assignment(values: Values) -> None:
    cost, offsets = values["cost"], values["offsets"]
    check_offsets(offsets, cost.shape[-1])
    is_bad = (cost.isnan() | cost.isneginf()) & _in_an_image(offsets, cost.shape[-1])
    refuse("cost", cost, is_bad, "it must be finite, or inf for no pair")


def _check_linear_sum_assignment(values: Values) -> None:
    cost, maximize = values["cost"], values["maximize"]
    is_used = torch.ones_like(cost, dtype=torch.bool)
    if (lengths := values["lengths"]) is not None:
        for side, words in enumerate(("rows", "columns")):
            size, is_side = cost.shape[side - 2], torch.arange(2, device=cost.device) == side
            is_bad = ((lengths < 0) | (lengths > size)) & is_side
            refuse("lengths", lengths, is_bad, f"it must lie in [0, {size}], the {words} of cost")
        rows, columns = (torch.arange(size, device=cost.device) for size in cost.shape[-2:])
        is_used = rows[:, None] < lengths[..., :1, None]
        is_used = is_used & (columns < lengths[..., 1:, None])
    is_bad = cost.isnan() | (cost.isposinf() if maximize else cost.isneginf())
    words = f"it must be finite, or {'-' * maximize}inf for no pair"
    refuse("cost", cost, is_bad & is_used, words)


_CHECKS: dict[str, Callable[[Values], Any]] = {
    "assign": _check_assignment,
    "box_loss": _check_losses,
    "box_losses": _check_losses,
    "class_loss": _check_class_loss,
    "distribution_loss": _check_distribution_loss,
    "linear_sum_assignment": _check_linear_sum_assignment,
    "matching_cost": _check_cost,
    "max_iou_match": partial(_check_list, other="anchors"),
    "pairwise_iou": _check_cost,
    "rotated_box_loss": _check_losses,
    "task_aligned_match": _check_task_aligned,
}

_WORDS = {"": 0, "0": 0, "1": 1}
if (_word := os.environ.get("BOXLOSS_DEBUG", "")) not in _WORDS:
    raise ValueError(f"BOXLOSS_DEBUG is {_word!r}; it must be 0 or 1")
_count(_WORDS[_word])
