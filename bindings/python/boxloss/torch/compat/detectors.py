# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One line that puts boxloss' criterion into a detector of another project."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from torch import nn

from .replace import Replacement, qualified_name, replace_class, restore_class

PAGE = "docs/coming-from.md"

# The versions of other projects that tests/peers compares with, or a GPU's figures are of.
TESTED = {
    "transformers": ("5.23",),
    "ultralytics": ("8.4",),
    "torchvision": ("0.26", "0.29"),
}


@dataclass(frozen=True)
class Replaced:
    """What `use_boxloss` has replaced.

    Attributes:
        names: the original by its full name, and what stands in its place.
    """

    names: dict[str, str]
    _undo: list[Callable[[], None]] = field(repr=False)

    def restore(self) -> None:
        """Gives the model its own criterion back. A deep copy keeps boxloss'."""
        while self._undo:
            self._undo.pop()()


def use_boxloss(model: Any) -> Replaced:
    """Puts boxloss' criterion into a detector, in place of its own.

    The detectors are those of transformers, Ultralytics and torchvision that `docs/detectors.md`
    lists; nothing of these projects is imported that the model has not imported. Call it before
    DistributedDataParallel and torch.compile. Of an Ultralytics YOLO("…") each training from then
    on has boxloss; on several GPUs Ultralytics trains in processes that know nothing of it.

    Parameters, buffers and their names stay as they are. Deep copies keep boxloss; pickles and
    saved models hold the original criterion, and load without boxloss.

    Args:
        model: of one of these projects, or of a class derived from theirs that keeps what boxloss
            replaces.

    Returns:
        What was replaced by what, and a way back.

    Raises:
        TypeError: a model that is not in the list. ValueError: its class, or its user, has already
            replaced a part that boxloss would replace, or it has boxloss.

    Warns:
        UserWarning: once, for a version of the other project that was not tested.
    """
    project, use = _find(model)
    replaced = Replaced({}, [])
    try:
        for names, undo in use(model):
            replaced.names[names[0]] = names[1]
            replaced._undo.append(undo)
    except Exception:
        replaced.restore()  # all or nothing
        raise
    _warn_of_version(project, getattr(sys.modules[project], "__version__", "unknown"))
    return replaced


Use = Callable[[Any], Iterator[tuple[tuple[str, str], Callable[[], None]]]]


def _find(model: Any) -> tuple[str, Use]:
    for each in type(model).__mro__:
        project = each.__module__.partition(".")[0]
        if project not in TESTED:
            continue  # a user's own class
        if project == "transformers" and _criterion_of(model) in _TRANSFORMERS:
            return project, _use_in_transformers
        if (project, each.__name__) in _CLASSES:
            return project, _CLASSES[project, each.__name__]
        break
    names = [*_TRANSFORMERS, *(f"{project}'s {name}" for project, name in _CLASSES)]
    raise TypeError(
        f"model is a {qualified_name(type(model))}; use_boxloss knows models of transformers with "
        f"one of the criteria {', '.join(_TRANSFORMERS)}, and "
        f"{', '.join(names[len(_TRANSFORMERS) :])}, before DistributedDataParallel and "
        f"torch.compile. For others, see {PAGE}"
    )


@cache
def _warn_of_version(project: str, version: str) -> None:
    if not version.startswith(tuple(f"{each}." for each in TESTED[project])):
        warnings.warn(
            f"use_boxloss was tested with {project} {' and '.join(TESTED[project])}, not with "
            f"{version}: compare a few losses, or see {PAGE}",
            stacklevel=3,
        )


def _swap(module: nn.Module, ours: type[nn.Module]) -> tuple[tuple[str, str], Callable[[], None]]:
    return replace_class(module, ours), lambda: restore_class(module)


# --- transformers: a criterion is a function ---

_TRANSFORMERS = {
    "ForObjectDetectionLoss": "detr_criterion.detr_loss",
    "DeformableDetrForObjectDetectionLoss": "detr_criterion.deformable_detr_loss",
    "RTDetrForObjectDetectionLoss": "rt_detr_criterion.rt_detr_loss",
    "DFineForObjectDetectionLoss": "d_fine_criterion.d_fine_loss",
}


def _criterion_of(model: Any) -> str | None:
    function: Any = getattr(model, "loss_function", None)
    function = function.original if isinstance(function, Replacement) else function
    is_theirs = getattr(function, "__module__", "").startswith("transformers.loss.")
    return function.__name__ if is_theirs else None


def _use_in_transformers(model: Any) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    original = model.loss_function
    if isinstance(original, Replacement):
        raise ValueError(f"model has boxloss already, by {qualified_name(original.function)}")
    module, _, name = _TRANSFORMERS[original.__name__].partition(".")
    function = getattr(import_module(f".{module}", __package__), name)
    ours = model.loss_function = Replacement(function, original)

    def undo() -> None:
        if model.loss_function is ours:
            model.loss_function = original

    yield (qualified_name(original), qualified_name(function)), undo


# --- Ultralytics: a model makes its criterion, and a YOLO("…") its models ---


def _use_in_yolo(model: Any) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    from . import yolo

    names, undo = _swap(model, yolo.Model)
    yolo.renew_criterion(model)

    def undo_both() -> None:
        undo()
        yolo.renew_criterion(model)

    yield names, undo_both


def _use_in_yolo_trainings(
    wrapper: Any,
) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    """Each training makes a model of its own."""
    from ultralytics.utils.torch_utils import unwrap_model

    yield from _find(wrapper.model)[1](wrapper.model)

    def on_train_start(trainer: Any) -> None:
        use_boxloss(unwrap_model(trainer.model))

    wrapper.add_callback("on_train_start", on_train_start)
    names = qualified_name(type(wrapper)) + ".train", qualified_name(use_boxloss)
    yield names, lambda: wrapper.callbacks["on_train_start"].remove(on_train_start)


# --- torchvision: losses and matching are methods of a model's parts ---


def _use_in_fcos(model: Any) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    from .fcos import Head

    yield _swap(model.head, Head)


def _use_in_retinanet(model: Any) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    from .retinanet import LOSSES, Model, RegressionHead

    yield _swap(model, Model)
    head = model.head.regression_head
    if head._loss_type in LOSSES:
        yield _swap(head, RegressionHead)


def _use_in_faster_rcnn(model: Any) -> Iterator[tuple[tuple[str, str], Callable[[], None]]]:
    from .faster_rcnn import Heads, Proposals

    yield _swap(model.rpn, Proposals)
    yield _swap(model.roi_heads, Heads)


_CLASSES: dict[tuple[str, str], Use] = {
    ("ultralytics", "DetectionModel"): _use_in_yolo,
    ("ultralytics", "YOLO"): _use_in_yolo_trainings,
    ("torchvision", "FCOS"): _use_in_fcos,
    ("torchvision", "RetinaNet"): _use_in_retinanet,
    ("torchvision", "FasterRCNN"): _use_in_faster_rcnn,
}
