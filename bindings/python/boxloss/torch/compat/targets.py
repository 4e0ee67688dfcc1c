# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A batch's ground truth as detectors are given it: boxes and labels for each image.

As lenient as the criteria that are replaced where that is harmless, and never silent about a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..arguments import check_tensors, whole
from ..collate import collate_ragged, on_host
from . import faults
from .faults import GroundTruth
from .mask_lists import check_one_size, check_shapes, check_values, masks_of, spread


class FixedTargets:
    """A batch's ground truth in as many rows in each step, for `labels` of a model of transformers.

    A graph of a whole training step needs it: how many boxes there are, only the device knows. It
    lies in one tensor, so that `to` is one copy; DataLoaders pin it, Trainers move it.

    Attributes:
        boxes: (T, 4), cxcywh, image after image. Rows behind the last image's are padding: zeros.
        class_labels: (T), int64; 0 in padding.
        offsets: (images + 1), int64, on the boxes' device: image b has rows offsets[b] to
            offsets[b + 1]. Rows before offsets[0] are padding, too.
        most: no image has more rows; T if it is not given.
        masks: (T, height, width), if there are some; another tensor.
    """

    def __init__(
        self,
        boxes: Tensor,
        class_labels: Tensor,
        offsets: Tensor,
        most: int | None = None,
        masks: Tensor | None = None,
    ) -> None:
        """Raises ValueError: shapes that do not fit. TypeError: boxes that are no floating-point
        numbers of 16 bits or more; labels or offsets that are no integers."""
        shapes = [tuple(each.shape) for each in (boxes, class_labels, offsets)]
        if shapes[0] != (len(boxes), 4) or shapes[1] != (len(boxes),) or len(shapes[2]) != 1:
            raise ValueError(
                "boxes, class_labels and offsets have shapes {}, {} and {}; they must have (T, 4), "
                "(T) and (images + 1)".format(*shapes)
            )
        if not boxes.is_floating_point() or boxes.itemsize == 1:
            raise TypeError(f"boxes is {boxes.dtype}; it must be a floating-point dtype")
        for name, each in (("class_labels", class_labels), ("offsets", offsets)):
            if each.is_floating_point() or each.dtype == torch.bool:
                raise TypeError(f"{name} is {each.dtype}; it must be an integer dtype")
        numbers = boxes.flatten().clone().view(torch.int64)
        self._packed = torch.cat([numbers, class_labels.long(), offsets.long()])
        self._rows, self._dtype = len(boxes), boxes.dtype
        self.most = len(boxes) if most is None else most
        self.masks = masks

    @property
    def boxes(self) -> Tensor:
        return self._packed[: self._end].view(self._dtype).view(-1, 4)

    @property
    def class_labels(self) -> Tensor:
        return self._packed[self._end : self._end + self._rows]

    @property
    def offsets(self) -> Tensor:
        return self._packed[self._end + self._rows :]

    @property
    def _end(self) -> int:
        """Of the boxes."""
        return self._rows * self._dtype.itemsize // 2

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.boxes, self.class_labels, self.offsets))

    def to(self, device: Any, non_blocking: bool = False) -> FixedTargets:
        return self._each(lambda given: given.to(device=device, non_blocking=non_blocking))

    def pin_memory(self, device: Any = None) -> FixedTargets:
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> FixedTargets:
        other = object.__new__(FixedTargets)
        masks = None if self.masks is None else change(self.masks)
        vars(other).update(vars(self), _packed=change(self._packed), masks=masks)
        return other

    @staticmethod
    def of(
        labels: Targets,
        rows: int | None = None,
        *,
        max_boxes: int | None = None,
        num_labels: int = 0,
        drop_smallest: bool = False,
    ) -> FixedTargets:
        """Of one dictionary for each image, as transformers has them; no synchronization.

        Args:
            labels: of each image "boxes": (n, 4), and "class_labels": (n); and maybe "masks": (n,
                height, width), all of one size.
            rows: for all images together.
            max_boxes: or for each image: rows are as many for each.
            num_labels: labels must be less; 0 where nobody knows. A graph checks nothing, so it is
                done here.
            drop_smallest: an image with more than max_boxes keeps the largest, in their order.

        Raises:
            ValueError: there are more boxes than fit; and what the criterion raises. TypeError:
                rows or max_boxes is no integer, or not one of them is given.
        """
        return fixed_targets(labels, rows, max_boxes, num_labels, drop_smallest)


def fixed_targets(
    labels: Targets,
    rows: int | None = None,
    max_boxes: int | None = None,
    num_labels: int = 0,
    drop_smallest: bool = False,
    told: str = "labels[{}] has {} boxes",
    masks: str = "masks",
    areas: Callable[[Mapping[str, Tensor]], Tensor] = lambda image: areas_of(image["boxes"]),
) -> FixedTargets:
    """`FixedTargets.of`, with the words for an image {} that has {} and for masks, and the areas of
    an image."""
    if (rows is None) == (max_boxes is None):
        raise TypeError("one of rows and max_boxes must be given")
    truth = ground_truth_of(labels, "class_labels", num_labels, has_sizes=True)
    boxes, counts = truth.checked(truth.boxes), truth.counts
    if max_boxes is None:
        most, rows = max(counts), whole(rows, "rows")
        if len(boxes) > rows:
            raise ValueError(f"labels has {len(boxes)} boxes; rows is {rows}")
    else:
        most = max_boxes = whole(max_boxes, "max_boxes")
        rows = most * len(counts)
    kept = Kept.of(counts, truth.offsets, most, told, lambda b: areas(labels[b]), drop_smallest)
    pixels = None
    if any("masks" in each for each in labels):
        lists = masks_of(labels)
        check_shapes(lists, truth.labels.split(counts), masks)
        check_one_size(lists, masks)
        spreads = torch.cat([*map(spread, lists)])
        _, factor = check_values(spreads, truth.labels, truth.offsets, 0, masks)
        boxes = truth._replace(factor=factor).checked(boxes)
        pixels = kept.rows(lists, rows)
    boxes, classes = (kept.rows(each, rows) for each in (boxes, truth.labels))
    return FixedTargets(boxes, classes, kept.offsets, max_boxes, pixels)


def areas_of(boxes: Tensor) -> Tensor:
    """Of cxcywh."""
    return boxes[:, 2:4].prod(1)


class Kept(NamedTuple):
    """Which rows of crowded images are kept, of others all; and where each image's begin then."""

    counts: list[int]
    own: dict[int, Tensor]
    offsets: Tensor

    @staticmethod
    def of(
        counts: list[int],
        offsets: Tensor,
        most: int,
        told: str,
        areas: Callable[[int], Tensor],
        drop_smallest: bool,
    ) -> Kept:
        """At most so many of each image, the largest by its areas; errors say that {} has {}."""
        crowded = [b for b, count in enumerate(counts) if count > most]
        if not crowded:
            return Kept(counts, {}, offsets)
        if not drop_smallest:
            b = crowded[0]
            raise ValueError(f"{told.format(b, counts[b])}; max_boxes is {most}")
        own = {b: areas(b).topk(most).indices.sort().values for b in crowded}
        kept = on_host(accumulate((min(n, most) for n in counts), initial=0), offsets.device)
        return Kept(counts, own, kept.to(offsets.device, non_blocking=True))

    def rows(self, given: Tensor | Sequence[Tensor], count: int, padding: int = 0) -> Tensor:
        """So many of all images' (T, ...), or each one's (n, ...), and padding. Copied once."""
        if self.own:
            given = given.split(self.counts) if isinstance(given, Tensor) else given
            given = [each[self.own[b]] if b in self.own else each for b, each in enumerate(given)]
        parts = [given] if isinstance(given, Tensor) else given
        free = count - sum(map(len, parts))
        padded = parts[0].new_full([1] * parts[0].dim(), padding).expand(free, *parts[0].shape[1:])
        return torch.cat([*parts, padded])


Targets = Sequence[Mapping[str, Tensor]]


def check_classes(config: Any, classes: int) -> None:
    """Raises where logits have other classes than the configuration."""
    if classes != config.num_labels:
        raise ValueError(f"logits have {classes} classes, config.num_labels is {config.num_labels}")


def rows_of_batch(batch: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Of Ultralytics' batch, a list of all images' boxes: image, label and box of each."""
    given = {name: batch[name] for name in ("batch_idx", "cls", "bboxes")}
    check_tensors("batch", **given)
    image, label, boxes = given.values()
    counts = image.numel(), label.numel(), len(boxes)
    if len({*counts}) > 1:
        raise ValueError(
            "batch_idx, cls and bboxes have {}, {} and {} rows; each box must have one of "
            "each".format(*counts)
        )
    return image, label, boxes


def offsets_of(image: Tensor, images: int) -> Tensor:
    """Where each image's rows begin, by the image of each row; these must not decrease."""
    firsts = torch.arange(images + 1, device=image.device, dtype=image.dtype)
    return torch.searchsorted(image, firsts)


def collate_boxes(targets: Targets) -> tuple[Tensor, Tensor]:
    """All boxes and offsets. Images may differ in dtype, and have shape (0,) for no boxes."""
    boxes = [each["boxes"] for each in targets]
    if not boxes:
        return collate_ragged(boxes)  # which refuses that
    filled = [each for each in boxes if each.numel()] or boxes[:1]
    dtype = reduce(torch.promote_types, (each.dtype for each in filled))
    none = filled[0].new_empty((0, 4), dtype=dtype)
    return collate_ragged([each.to(dtype) if each.numel() else none for each in boxes])


def _labels_of_boxes(
    targets: Targets, name: str, counts: list[int], drops_labels: bool
) -> Iterator[Tensor]:
    for b, (each, count) in enumerate(zip(targets, counts, strict=True)):
        given = each[name].flatten()
        if len(given) != count and not (drops_labels and len(given) > count):
            raise ValueError(f"targets[{b}] has {len(given)} {name}, {count} boxes")
        if count and (given.is_floating_point() or given.dtype == torch.bool):
            raise TypeError(f"targets[{b}]: {name} is {given.dtype}; it must be an integer dtype")
        if count:
            yield given[:count].long()


def ground_truth_of(
    targets: Targets | FixedTargets,
    name: str,
    classes: int | Sequence[int] | None,
    *,
    drops_labels: bool = False,
    has_sizes: bool = False,
) -> GroundTruth:
    """The ground truth as one list, checked; no synchronization with a GPU.

    Args:
        targets: for each image "boxes": (n, 4), or (0,) for none, and labels: (n), or (n, 1).
            Images may differ in dtype.
        name: what labels are called there.
        classes: labels must be less, of each image if they differ; 0 where the criterion does not
            know how many there are; None where faults have been looked for already.
        drops_labels: labels behind the last box belong to nothing; otherwise they are an error.
        has_sizes: boxes are cxcywh, not corners.

    Raises:
        ValueError: labels that are not as many as boxes; what `faults.check` finds. TypeError:
            labels that are no integers.
    """
    if isinstance(targets, FixedTargets):
        boxes, labels, offsets = targets.boxes, targets.class_labels, targets.offsets
        return _checked(boxes, labels, offsets, [], name, classes, has_sizes)
    for b, each in enumerate(targets):
        check_tensors(f"targets[{b}]", boxes=each["boxes"], **{name: each[name]})
    if isinstance(classes, int):
        given, theirs = ([each[key] for each in targets] for key in ("boxes", name))
        if (found := faults.collate(given, theirs, name, classes, has_sizes)) is not None:
            return found
    boxes, offsets = collate_boxes(targets)
    counts = [len(each["boxes"]) for each in targets]
    labels = torch.cat([offsets[:0], *_labels_of_boxes(targets, name, counts, drops_labels)])
    return _checked(boxes, labels, offsets, counts, name, classes, has_sizes)


def _checked(
    boxes: Tensor,
    labels: Tensor,
    offsets: Tensor,
    counts: list[int],
    name: str,
    classes: int | Sequence[int] | None,
    has_sizes: bool,
) -> GroundTruth:
    factor = None
    if classes is not None:
        limit = _limit(classes, counts, boxes.device)
        labels, factor = faults.check(faults.Rows(boxes, labels, offsets, name, limit, has_sizes))
    return GroundTruth(boxes, offsets, labels, counts, factor)


def _limit(classes: int | Sequence[int], counts: list[int], device: torch.device) -> int | Tensor:
    """One for all rows, or each one's."""
    if isinstance(classes, int):
        return classes
    if len({*classes}) == 1 and classes[0]:
        return classes[0]
    of_rows = [each for each, count in zip(classes, counts, strict=True) for _ in range(count)]
    return on_host(of_rows, device).to(device, non_blocking=True)
