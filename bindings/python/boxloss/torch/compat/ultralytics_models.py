# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' models, which make their criterion, and what makes models: YOLO("…"), RTDETR("…").

Each training makes a model of its own, and an average of it, which is validated. Ultralytics is
imported here, under its AGPL-3.0.
"""

import copy
import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from ultralytics.engine.model import Model
from ultralytics.utils import DEFAULT_CFG_DICT, LOGGER

from ..._version import __version__
from .family import Family, Swapped, swap
from .parts import Parts
from .proof import Case
from .replace import has_replacement, qualified_name, replace_class, restore_class
from .versions import is_before

# Until then the processes of several GPUs got the trainer's arguments alone, not its callbacks.
DROPS_CALLBACKS = is_before("ultralytics", 8, 4, 145)


def settings(model: Any) -> SimpleNamespace:
    """What a criterion reads of model.args, with Ultralytics' defaults for what is not there: a
    checkpoint that was loaded keeps four, and a model that a trainer has just made has none."""
    own = getattr(model, "args", None) or {}
    return SimpleNamespace(**{**DEFAULT_CFG_DICT, **(own if isinstance(own, dict) else vars(own))})


def criterion_of(model: Any) -> Any:
    """If it has one yet. That of a checkpoint may be for a device that is not here."""
    made = getattr(model, "criterion", None)
    place = getattr(getattr(made, "one2many", made), "device", None)
    return None if place not in (None, next(model.parameters()).device) else made


def family(
    kinds: tuple[type, ...],
    ours: type,
    check_parts: Callable[[Any], None],
    cases: Callable[[Any], Iterable[Case]],
    parts: Parts,
    oldest: tuple[int, ...] = (),
    fix: Callable[[Any, int], Iterator[Swapped]] | None = None,
) -> Family:
    """Of models of these classes, whose criterion is made when the first loss is asked for; `ours`
    takes the place of its heads' losses."""

    def replaced(criterion: Any) -> Any:
        return replace_heads(criterion, ours, check_parts)

    models = [_with_heads(kind, replaced, ours.__module__) for kind in kinds]

    def replace(model: Any) -> Iterator[Swapped]:
        names, undo = swap(model, next(e for e in models if isinstance(model, e.__bases__[0])))

        def undo_both() -> None:
            undo()
            made = getattr(model, "criterion", None)
            for each in (made, *getattr(made, "__dict__", {}).values()):
                restore_class(each)

        yield names, undo_both
        if getattr(model, "criterion", None) is not None:
            replaced(model.criterion)
        for owner in owners(model):
            restore_class(owner)  # from a training of before, which ended with another model
            (kind, trainings), leave = swap(owner, Trainings, extends=True)
            yield (f"{kind}.train", f"{trainings}.train"), leave

    return Family(replace, cases, parts, losses_of, oldest, fix)


def _with_heads(kind: Any, replaced: Callable[[Any], Any], module: str) -> type:
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def init_criterion(self: Any) -> Any:  # in a graph its tensors would be the next step's, too
        return replaced(kind.init_criterion(self))

    return type(kind.__name__, (kind,), {"init_criterion": init_criterion, "__module__": module})


def heads(criterion: Any, kind: type) -> list[Any]:
    """The losses of its heads: itself, or what one of two heads has as attributes."""
    parts = [criterion, *getattr(criterion, "__dict__", {}).values()]
    return [each for each in parts if isinstance(each, kind)]


def replace_heads(criterion: Any, ours: type, check_parts: Callable[[Any], None]) -> Any:
    theirs = ours.__bases__[0]
    found = heads(criterion, theirs)
    if not found:
        raise ValueError(
            f"its criterion is a {qualified_name(type(criterion))}; it has no {theirs.__name__}, "
            "which is what boxloss replaces"
        )
    for each in found:
        check_parts(each)
        replace_class(each, ours)
    return criterion


def losses_of(model: Any, **made_up: Any) -> Any:
    """Of a copy of its criterion, which may count its calls."""
    made = criterion_of(model)
    if made is None:
        own = vars(model).copy()
        model.args = settings(model)
        if "nc" not in own:  # of an RT-DETR that has not been trained
            model.nc = model.model[-1].nc
        try:
            made = model.init_criterion()
        finally:
            vars(model).clear()
            vars(model).update(own)
    losses = copy.deepcopy(made)(**made_up)
    return losses if isinstance(losses, dict) else dict(zip(("loss", "parts"), losses, strict=True))


def check_classes(criterion: Any, scores: Tensor) -> None:
    """Of a head that has come later there may be others."""
    if scores.shape[-1] != criterion.nc:
        raise ValueError(
            f"scores have {scores.shape[-1]} classes, the criterion's nc is {criterion.nc}"
        )


def owners(model: Any) -> list[Any]:
    """Each YOLO("…") whose model this is. Their trainings make others, and know only them."""
    return [
        each
        for each in gc.get_objects()
        if issubclass(type(each), Model) and vars(each).get("_modules", {}).get("model") is model
    ]


class Trainings(Model):
    """Puts boxloss into the model of each training."""

    def train(self, *given: Any, **options: Any) -> Any:
        device = options.get("device", self.overrides.get("device"))
        several = len(device) > 1 if isinstance(device, (list, tuple)) else "," in str(device)
        if DROPS_CALLBACKS and several and not (given or options.get("trainer")):
            warnings.warn(
                f"on devices {device} this version of Ultralytics trains in processes that know "
                "nothing of boxloss, and so with its own criterion. Give train() a trainer that "
                "calls use_boxloss(self.model) in its set_model_attributes",
                stacklevel=2,
            )
        self.callbacks["on_train_start"].insert(0, put_boxloss_into)
        try:
            return super().train(*given, **options)
        finally:
            while put_boxloss_into in self.callbacks["on_train_start"]:
                self.callbacks["on_train_start"].remove(put_boxloss_into)

    def tune(self, *given: Any, **options: Any) -> Any:
        warnings.warn(
            "tune() trains in other processes, which know nothing of boxloss, and so with "
            "Ultralytics' own criterion. Call train() for each set of hyperparameters",
            stacklevel=2,
        )
        return super().tune(*given, **options)


def put_boxloss_into(trainer: Any) -> None:
    """At the start of its training. A process of several GPUs finds this function by its name."""
    from .detectors import use_boxloss

    names: dict[str, str] = {}
    for each in (trainer.model, getattr(trainer.ema, "ema", None)):
        if each is not None and not has_replacement(each):
            names |= use_boxloss(each).names
    replaced = ", ".join(f"{ours} for {theirs}" for theirs, ours in names.items())
    LOGGER.info(f"boxloss {__version__}: {replaced or 'the model has it already'}")
