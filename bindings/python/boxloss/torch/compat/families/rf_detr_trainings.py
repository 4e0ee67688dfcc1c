# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""rfdetr's RFDETRNano() and its relatives, each of whose trainings makes a criterion of its own."""

import inspect
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from rfdetr.detr import RFDETR
from rfdetr.models import build_criterion_from_config
from rfdetr.utilities.logger import get_logger

from ...._version import __version__
from ..family import Family, Swapped, nothing, swap
from ..parts import Parts
from ..proof import Case
from ..replace import has_replacement
from ..versions import version
from . import rf_detr


class Trainings(RFDETR):
    """Puts boxloss into the criterion of each training, by a callback of its trainer, which is
    pickled for other processes as it is; a criterion is pickled as the original."""

    def train(self, *given: Any, **options: Any) -> Any:
        try:
            from pytorch_lightning.callbacks import LambdaCallback
            from rfdetr import training
        except ModuleNotFoundError:
            return super().train(*given, **options)  # says what to install
        build_trainer = training.build_trainer

        def with_boxloss(*given: Any, **named: Any) -> Any:
            training.build_trainer = build_trainer  # others may train meanwhile
            trainer = build_trainer(*given, **named)
            # Before the average of weights copies the module.
            trainer.callbacks.insert(0, LambdaCallback(setup=put_boxloss_into))
            return trainer

        with patch.object(training, "build_trainer", with_boxloss):
            return super().train(*given, **options)


def put_boxloss_into(trainer: Any, module: Any, stage: str) -> None:
    """In each process of a training, before its first step."""
    from ..detectors import use_boxloss

    if not has_replacement(module.criterion):
        ((theirs, ours),) = use_boxloss(module.criterion).names.items()
        get_logger().info(f"boxloss {__version__}: {ours} for {theirs}")


def criterion_of(model: Any) -> Any:
    """As a training makes it."""
    config = model.get_train_config(dataset_dir=".", output_dir=".")
    criterion, _ = build_criterion_from_config(model.model_config, config)
    if has_replacement(model):
        list(rf_detr.replace(criterion))
    return criterion


def check_train() -> None:
    """Whether a training asks for its trainer where `Trainings` stands."""
    names = inspect.unwrap(RFDETR.train).__code__.co_names
    if not {"rfdetr.training", "build_trainer"} <= {*names}:
        raise ValueError(
            f"rfdetr is {version('rfdetr')}, whose train() does not import build_trainer from "
            "rfdetr.training, where boxloss is put in; give use_boxloss the criterion"
        )


def parts(model: Any) -> Parts:
    """First of all: a refusal says why before anything is compared."""
    check_train()
    rf_detr.check_parts(criterion_of(model))
    return rf_detr.PARTS


def replace(model: Any) -> Iterator[Swapped]:
    (kind, ours), undo = swap(model, Trainings)
    yield (f"{kind}.train", f"{ours}.train"), undo


def cases(model: Any) -> Iterator[Case]:
    return rf_detr.cases(criterion_of(model))


def losses_of(model: Any, **made: Any) -> Any:
    return rf_detr.losses_of(criterion_of(model), **made)


FAMILY = Family(replace, cases, parts, losses_of, fix=nothing)
