# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Faults in ground truth never train in silence, and nobody waits for a device to find them.

On the CPU a fault is an error at once. Elsewhere the device finds it, makes the step's loss NaN,
and tells the host; the first call after that raises. Compiled graphs check nothing; in a captured
one the loss is NaN for faults of ground truth that is given image by image.

A GPU makes one list of the ground truth and writes its finding into the host's memory, in one
launch of boxloss. Other devices compute it by torch's operators and copy it.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


class Rows(NamedTuple):
    """The ground truth of all images, image after image, and what is to be seen of it.

    Attributes:
        boxes: (T, 4), or with an angle (T, 5). labels: (T), int64. offsets: (images + 1), int64.
        name: what labels are called.
        classes: labels must be less, of each row (T) if they differ; 0 where nobody knows.
        has_sizes: boxes are cxcywh, not corners.
        image: (T): of each row, if that was given; it must be one of the images, and not decrease.
        stands_for: what each box, finite or not, stands for, if not for itself.
    """

    boxes: Tensor
    labels: Tensor
    offsets: Tensor
    name: str
    classes: int | Tensor
    has_sizes: bool
    image: Tensor | None = None
    stands_for: str = ""

    @property
    def has_classes(self) -> bool:
        return isinstance(self.classes, Tensor) or self.classes > 0

    def sizes(self) -> Tensor:
        low, high = self.boxes[:, :2], self.boxes[:, 2:4]
        return high if self.has_sizes else high - low


class _Answer(NamedTuple):
    """A place on the host that a device can write to: 0 as long as nothing is known, 1, or NaN."""

    tensor: Tensor
    value: ctypes.c_float  # the same memory: reading a tensor takes ten times as long
    is_pinned: bool


class _Step(NamedTuple):
    """What a device has been asked."""

    answer: _Answer
    copied: torch.Event | None  # of the answer; None: the device itself writes it
    device: torch.device
    rows: Callable[[], Rows]

    def is_answered(self) -> bool:
        return self.answer.value.value != 0 if self.copied is None else self.copied.query()

    def wait(self) -> None:
        if self.copied is not None:
            self.copied.synchronize()
        elif not self.is_answered():
            torch.cuda.synchronize(self.device)


class GroundTruth(NamedTuple):
    """All images' ground truth, image after image.

    Attributes:
        boxes: (T, 4). offsets: (images + 1), int64: image b has rows offsets[b] to offsets[b + 1].
        labels: (T), int64. counts: the number of rows of each image; empty where only the device
            knows it.
        factor: where a device looks for faults, 1, or NaN for a fault: what the losses are to be
            multiplied by.
        number: max(T, 1), or NaN for a fault, if it is known.
        is_box: (T), of lists that are filled up to as many rows in each image.
    """

    boxes: Tensor
    offsets: Tensor
    labels: Tensor
    counts: list[int]
    factor: Tensor | None
    number: Tensor | None = None
    is_box: Tensor | None = None

    @property
    def total(self) -> Tensor:
        """The number of boxes."""
        return self.offsets[-1] if self.counts else self.offsets[-1] - self.offsets[0]

    def divisor(self) -> Tensor:
        """max(the number of boxes, 1), or NaN for a fault: what losses are divided by."""
        if self.number is not None:
            return self.number
        return self.total.clamp(min=self.one)

    def checked(self, value: Tensor) -> Tensor:
        """The value, or NaN for a fault: of losses, or of what they are divided by."""
        return value if self.factor is None else value * self.factor

    @property
    def one(self) -> int | Tensor:
        """1, or NaN for a fault: the least of what losses are divided by."""
        return 1 if self.factor is None else self.factor


_collate_targets = torch.ops.boxloss._collate_targets.default
_asked: deque[_Step] = deque()
_free: dict[bool, list[_Answer]] = {True: [], False: []}  # those that have been read, if pinned
_lock = Lock()


def check_targets() -> None:
    """Raises what devices have found in the ground truth of the steps before; waits for them.

    A criterion of `use_boxloss` raises it by itself, in a later step. Call this after the last one,
    or to find the faulty step, in each.

    Raises:
        ValueError: a label outside of the classes, or a box that is not finite or has a negative
            size, with its image, row and value; boxes of no image, or not in the order of images.
    """
    _raise_answers(waits=True)


def collate(
    boxes: Sequence[Tensor],
    labels: Sequence[Tensor],
    name: str,
    classes: int,
    has_sizes: bool,
) -> GroundTruth | None:
    """Of each image, in one launch. Raises a fault on the CPU; a later call, what a GPU finds.

    Returns:
        None where that does not serve, as for labels that are not as many as the boxes.
    """
    if not boxes or is_traced(boxes[0]) or any(each.requires_grad for each in boxes):
        return None
    if not _is_captured(boxes[0]):
        _raise_answers(waits=False)

    counts = [each.size(0) for each in boxes]

    def rows() -> Rows:
        offsets = torch.tensor([0, *counts]).cumsum(0)
        return Rows(torch.cat([*boxes]), torch.cat([*labels]), offsets, name, classes, has_sizes)

    return _in_one_launch((boxes, labels, None, classes, len(boxes), has_sizes), rows, counts)


def check(rows: Rows) -> tuple[Tensor, Tensor | None]:
    """Raises a fault on the CPU; elsewhere asks the device, whose answer a later call raises.

    Returns:
        Labels that may be indices, which one outside must not be: on a device it would end the
        process' work; in a graph, as they are. And elsewhere what the step's losses are to be
        multiplied by: 1, or NaN.
    """
    boxes, labels, classes = rows.boxes, rows.labels, rows.classes
    if not has_values(boxes):
        return labels, None
    _raise_answers(waits=False)
    if not isinstance(classes, Tensor):
        images = len(rows.offsets) - 1 if rows.image is not None else 1
        four = boxes
        if boxes.shape[1] == 5:
            four = torch.add(boxes[:, :4], boxes[:, 4:], alpha=0)  # not finite, if the angle is not
        given = [four], [labels], rows.image, classes, images, rows.has_sizes
        if (found := _in_one_launch(given, lambda: rows, [])) is not None:
            return found.labels, found.factor
    if boxes.is_cpu:
        if (fault := _words(rows)) is not None:
            raise ValueError(fault)
        return labels, None
    factor = _in_few_launches(rows)
    answer = _new_answer(boxes.is_cuda)
    answer.tensor.copy_(factor, non_blocking=True)
    copied = torch.Event(boxes.device)
    copied.record()
    _ask(_Step(answer, copied, boxes.device, lambda: rows))
    if isinstance(classes, Tensor):
        return torch.minimum(labels, classes - 1).clamp(min=0), factor
    return labels.clamp(0, classes - 1 if classes else None), factor


def _in_one_launch(
    given: tuple[Any, ...], rows: Callable[[], Rows], counts: list[int]
) -> GroundTruth | None:
    """None where no implementation of boxloss serves it."""
    boxes = given[0][0]
    if not (boxes.is_cpu or boxes.is_cuda):
        return None
    # A graph would write to one that others have by then.
    has_answer = boxes.is_cuda and not _is_captured(boxes)
    answer = _new_answer(is_pinned=True) if has_answer else None
    try:
        found = _collate_targets(*given, answer and answer.tensor)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError):  # not built; not served, or unlike tensors
        if answer is not None:
            _free[True].append(answer)
        return None
    if answer is not None:
        _ask(_Step(answer, None, boxes.device, rows))
    boxes, labels, offsets, factor, number = found
    if not boxes.is_cpu:
        return GroundTruth(boxes, offsets, labels, counts, factor, number)
    if math.isnan(number.item()):
        raise ValueError(_words(rows()))
    return GroundTruth(boxes, offsets, labels, counts, None, number)


def _ask(step: _Step) -> None:
    with _lock:
        _asked.append(step)


def _new_answer(is_pinned: bool) -> _Answer:
    with _lock:
        answer = _free[is_pinned].pop() if _free[is_pinned] else None
    if answer is None:
        tensor = torch.empty((), dtype=torch.float32, device="cpu", pin_memory=is_pinned)
        value = ctypes.c_float.from_address(tensor.data_ptr())
        answer = _Answer(tensor, value, is_pinned)
    answer.value.value = 0
    return answer


def has_values(tensor: Tensor) -> bool:
    """Whether its values can be read: not while a graph is traced or captured."""
    return not (is_traced(tensor) or _is_captured(tensor))


def is_traced(tensor: Tensor) -> bool:
    is_fake = tensor.is_meta or isinstance(tensor, FakeTensor)
    return is_fake or torch.compiler.is_compiling()


def _is_captured(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


def _raise_answers(waits: bool) -> None:
    while True:
        with _lock:
            if not _asked or not (waits or _asked[0].is_answered()):
                return
            step = _asked.popleft()
        step.wait()
        is_faulty = math.isnan(step.answer.value.value)
        _free[step.answer.is_pinned].append(step.answer)
        if is_faulty:
            fault = _words(step.rows()) or "a fault in tensors that have changed since"
            raise ValueError(f"in a step before: {fault}")


def _in_few_launches(rows: Rows) -> Tensor:
    """1 or NaN: the root of what must not be negative is NaN, as is 0 times infinity."""
    roots = [rows.sizes().flatten(), rows.labels]
    roots += [each.square().flatten() for each in (rows.boxes[:, :2], rows.boxes[:, 4:])]
    if rows.has_classes:
        roots.append(rows.classes - 1 - rows.labels)
    if rows.image is not None:
        roots += [rows.image.diff(), rows.image, len(rows.offsets) - 2 - rows.image]
    return (torch.cat(roots).sqrt().sum() * 0 + 1).float()


def _words(rows: Rows) -> str | None:
    """The first fault."""
    moved: Any = {
        name: each.cpu() for name, each in rows._asdict().items() if isinstance(each, Tensor)
    }
    rows = rows._replace(**moved)
    if rows.image is not None:
        images = len(rows.offsets) - 1
        outside = ~((rows.image >= 0) & (rows.image < images))
        if outside.any():
            row = int(outside.nonzero()[0])
            number = rows.image[row].item()
            return f"batch_idx[{row}] is {number}; it must lie in [0, {images}), the batch's images"
        if (rows.image[1:] < rows.image[:-1]).any():
            return "batch_idx decreases; the boxes of a batch must be in the order of its images"
    labels, classes = rows.labels, rows.classes
    outside = (labels < 0) | (labels >= classes) if rows.has_classes else labels < 0
    not_finite = ~rows.boxes.isfinite().all(1)
    low, high = rows.boxes[:, :2], rows.boxes[:, 2:4]
    negative = high < (0 if rows.has_sizes else low)  # not subtracted: uint8 has no sign
    faulty = outside | not_finite | negative.any(1)
    if not faulty.any():
        return None
    row = int(faulty.nonzero()[0])
    image = int(torch.searchsorted(rows.offsets, row, right=True)) - 1
    where = f"image {image}, row {row - int(rows.offsets[image])}"
    if not 0 <= image < len(rows.offsets) - 1:
        where = f"row {row}, padding, which must be 0 everywhere,"
    if outside[row]:
        limit = int(classes[row]) if isinstance(classes, Tensor) else classes
        allowed = f"lie in [0, {limit})" if rows.has_classes else "not be negative"
        return f"{rows.name}: {where} is {int(labels[row])}; a label must {allowed}"
    if rows.stands_for:
        return f"{rows.stands_for}: {where} has a value that is not finite"
    form = "centre and size" if rows.has_sizes else "corners"
    form += " and angle" if rows.boxes.shape[1] == 5 else ""
    values = [float(f"{value:.6g}") for value in rows.boxes[row].tolist()]
    wrong = "all must be finite" if not_finite[row] else "its sizes must not be negative"
    return f"boxes: {where} is {values} ({form}); {wrong}"
