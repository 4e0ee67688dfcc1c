# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' models before a training, and what makes models: YOLO("…") and RTDETR("…").

Each training makes a model of its own, and an average of it, which is validated. Ultralytics is
imported here, under its AGPL-3.0.
"""

import gc
import warnings
from types import SimpleNamespace
from typing import Any

from ultralytics.engine.model import Model
from ultralytics.utils import DEFAULT_CFG_DICT, LOGGER

from ..._version import __version__
from .replace import has_replacement
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
