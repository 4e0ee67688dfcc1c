# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One line that puts boxloss' criterion into a detector of another project."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn

from . import made_up
from .faults import check_targets
from .parts import Parts, everything_of
from .proof import Case, compare, record
from .replace import (
    Replacement,
    has_replacement,
    qualified_name,
    replace_class,
    restore_class,
)
from .versions import OLDEST, OLDEST_OF_MODELS, is_before, version

PAGE = "docs/coming-from.md in boxloss' repository"


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

    def __repr__(self) -> str:
        lines = [f"\n  {theirs}\n  by {ours}" for theirs, ours in self.names.items()]
        return f"boxloss {'replaces' if self._undo else 'replaced, and restored'}{''.join(lines)}"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Replaced has no {name}: {NO_MODEL}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"Replaced cannot be called: {NO_MODEL}")


NO_MODEL = (
    "use_boxloss(model) changes the model itself, and returns what it replaced; write it without "
    "'model = '"
)


def has_boxloss(model: Any) -> bool:
    """Whether `use_boxloss` has put boxloss into a model, or a YOLO("…"), and it is still there."""
    return has_replacement(_unwrapped(model))


def use_boxloss(model: Any, *, check: bool = True) -> Replaced:
    """Puts boxloss' criterion into a detector, in place of its own.

    The detectors are those of transformers, Ultralytics (whose licence is AGPL-3.0), torchvision
    and rfdetr that docs/detectors.md in boxloss' folder lists; nothing of these projects is
    imported that the model has not imported. A model may be wrapped: by PEFT, DataParallel,
    DistributedDataParallel, torch.compile, AveragedModel. Of an Ultralytics YOLO("…") or
    RTDETR("…") each training from then on has boxloss, and so if its model is given; where that
    cannot be, a warning says so. Of rfdetr the criterion is given, not the model.

    Before anything is replaced, both criteria are run on a made-up batch on the model's device, in
    less than a second; they must agree. The network is not run.

    Parameters, buffers and their names stay as they are. Deep copies keep boxloss; pickles and
    saved models hold the original criterion, and load without boxloss.

    Args:
        model: of one of these projects, or of a class derived from theirs that keeps what boxloss
            replaces.
        check: False replaces without comparing.

    Returns:
        What was replaced by what, and a way back.

    Raises:
        TypeError: a model that is not in the list. ValueError: its class, or its user, has already
            replaced a part that boxloss would replace; boxloss gives other losses or gradients; its
            project is older than any that boxloss knows; it has boxloss already; or what
            `check_targets` raises. The model is then as before.
    """
    model = _unwrapped(model)
    family = _find(model)
    if check:
        check_targets()  # else this model would be blamed
    expected = record(family.criterion, model, family.cases(model)) if check else []
    replaced = Replaced({}, [])
    parts = family.parts(model)
    known = parts.remember()
    try:
        for names, undo in family.replace(model):
            replaced.names[names[0]] = names[1]
            replaced._undo.append(undo)
        compare(expected, family.criterion, model)
    except Exception:
        replaced.restore()  # all or nothing
        parts.seen = known
        raise
    return replaced


Replacing = Iterator[tuple[tuple[str, str], Callable[[], None]]]


class Family(NamedTuple):
    """Models with one criterion.

    Attributes:
        replace: in a model; yields the names of both, and a way back.
        cases: made-up batches for a model.
        criterion: a model's present criterion, on a batch's arguments.
        parts: of its project that boxloss computes itself.
    """

    replace: Callable[[Any], Replacing]
    cases: Callable[[Any], Iterator[Case]]
    criterion: Callable[..., Any]
    parts: Callable[[Any], Parts]


def _unwrapped(model: Any) -> Any:
    """What torch, PEFT and Ultralytics wrap a model in calls it by one of these names."""
    while isinstance(model, nn.Module):
        is_of_peft = type(model).__module__.startswith("peft.")
        names = ("base_model", "model") if is_of_peft else ("_orig_mod", "module", "student_model")
        found = [name for name in names if name in model._modules]
        if not found:
            break
        model = model._modules[found[0]]
    return model


def _find(model: Any) -> Family:
    if isinstance(model, Replaced):
        raise TypeError(f"model is a Replaced: {NO_MODEL}")
    for each in type(model).__mro__:
        project = each.__module__.partition(".")[0]
        if project not in OLDEST:
            continue  # a user's own class
        if project == "transformers" and _criterion_of(model) in _TRANSFORMERS:
            _check_version(project)
            return _transformers
        if project == "transformers" and each.__name__.endswith("ForObjectDetection"):
            _check_own(model.loss_function)
        if (project, each.__name__) in _CLASSES:
            _check_version(project, each.__name__)
            return _CLASSES[project, each.__name__]
        break
    names = [f"{project}'s {name}" for project, name in _CLASSES]
    raise TypeError(
        f"model is a {qualified_name(type(model))}; use_boxloss knows models of transformers with "
        f"one of the criteria {', '.join(_TRANSFORMERS)}, and {', '.join(names)}. For others, see "
        f"{PAGE}"
    )


def _check_version(project: str, name: str = "") -> None:
    oldest = OLDEST_OF_MODELS.get((project, name))
    known = "it" if oldest is None else f"its {name}"
    oldest = oldest or OLDEST[project]
    if is_before(project, *oldest):
        first = ".".join(map(str, oldest))
        raise ValueError(
            f"{project} is {version(project)}; use_boxloss knows {known} from {first} on"
        )


def _swap(
    module: nn.Module, ours: type[nn.Module], *, extends: bool = False
) -> tuple[tuple[str, str], Callable[[], None]]:
    return replace_class(module, ours, extends=extends), lambda: restore_class(module)


# --- transformers: a criterion is a function ---

_TRANSFORMERS = {
    "ForObjectDetectionLoss": "detr_criterion.detr_loss",
    "DeformableDetrForObjectDetectionLoss": "detr_criterion.deformable_detr_loss",
    "GroundingDinoForObjectDetectionLoss": "grounding_dino_criterion.grounding_dino_loss",
    "LwDetrForObjectDetectionLoss": "lw_detr_criterion.lw_detr_loss",
    "RTDetrForObjectDetectionLoss": "rt_detr_criterion.rt_detr_loss",
    "DFineForObjectDetectionLoss": "d_fine_criterion.d_fine_loss",
    "Deimv2ForObjectDetectionLoss": "deimv2_criterion.deimv2_loss",
}


def _criterion_of(model: Any) -> str | None:
    function: Any = getattr(model, "loss_function", None)
    function = function.original if isinstance(function, Replacement) else function
    module = sys.modules.get(getattr(function, "__module__", ""))
    name = getattr(function, "__name__", "")
    is_theirs = module is not None and module.__name__.startswith("transformers.loss.")
    return name if is_theirs and getattr(module, name, None) is function else None


def _check_own(function: Any) -> None:
    """Raises for a user's own criterion, not for one of theirs that boxloss does not have."""
    module = getattr(function, "__module__", None) or type(function).__module__
    if module.partition(".")[0] != "transformers":
        named = function if hasattr(function, "__qualname__") else type(function)
        raise ValueError(
            f"model.loss_function is {qualified_name(named)}, which boxloss would not call; it "
            "replaces transformers' own"
        )


@cache
def _parts_of(module_name: str) -> Parts:
    return Parts(everything_of(module_name, "transformers.loss."))


def _parts_of_transformers(model: Any) -> Parts:
    original = model.loss_function
    original = original.original if isinstance(original, Replacement) else original
    return _parts_of(original.__module__)


# Whose functions a criterion's module may have.
_NOBODYS = {"transformers", "torch", "scipy", "accelerate", *sys.stdlib_module_names}


def _check_parts(original: Any) -> None:
    """What the criterion calls must be transformers' own: boxloss calls none of it."""
    for name, part in vars(sys.modules[original.__module__]).items():
        home = getattr(part, "__module__", None)
        if isinstance(part, (type, FunctionType)) and home is not None:
            project = home.partition(".")[0]
            if project not in _NOBODYS:
                raise ValueError(
                    f"{original.__module__}.{name} is {qualified_name(part)}, which boxloss would "
                    "not call"
                )


def _use_in_transformers(model: Any) -> Replacing:
    original = model.loss_function
    if isinstance(original, Replacement):
        raise ValueError(f"model has boxloss already, by {qualified_name(original.function)}")
    _check_parts(original)
    module, _, name = _TRANSFORMERS[original.__name__].partition(".")
    function = getattr(import_module(f".{module}", __package__), name)
    was_set = "_loss_function" in vars(model)
    check = _parts_of(original.__module__).check
    ours = model.loss_function = Replacement(function, original, check)

    def undo() -> None:
        if model.loss_function is not ours:
            return
        if was_set:
            model.loss_function = original
        else:
            del model._loss_function

    yield (qualified_name(original), qualified_name(function)), undo


def _losses_of_transformers(
    model: Any, outputs_class: Tensor, outputs_coord: Tensor, layers: int, **made: Any
) -> Any:
    """As models call it: the last layer's outputs are among those of all, if these are given."""
    last = {"logits": outputs_class, "pred_boxes": outputs_coord}
    made |= {name: each.select(layers, -1) for name, each in last.items()}
    if model.config.auxiliary_loss:
        made |= {"outputs_class": outputs_class, "outputs_coord": outputs_coord}
    total, by_name, _ = model.loss_function(
        device=outputs_class.device, config=model.config, **made
    )
    return {"loss": total, **by_name}


_transformers = Family(
    _use_in_transformers,
    lambda model: made_up.for_transformers(model, _criterion_of(model) or ""),
    _losses_of_transformers,
    _parts_of_transformers,
)

# --- Ultralytics: a model makes its criterion, and a YOLO("…") its models ---


def _of_ultralytics(model: Any) -> Any:
    """boxloss' module for it."""
    others = {"RTDETRDetectionModel": ".ultralytics_rt_detr", "OBBModel": ".oriented_yolo"}
    found = [others[each.__name__] for each in type(model).__mro__ if each.__name__ in others]
    return import_module(found[0] if found else ".yolo", __package__)


def _use_in_ultralytics(model: Any) -> Replacing:
    from .ultralytics_models import Trainings, owners

    ours = _of_ultralytics(model)
    names, undo = _swap(model, next(e for e in ours.MODELS if isinstance(model, e.__bases__[0])))

    def undo_both() -> None:
        undo()
        ours.restore_heads(getattr(model, "criterion", None))

    yield names, undo_both
    made = getattr(model, "criterion", None)
    if made is not None:
        ours.replace_heads(made)
    for owner in owners(model):
        restore_class(owner)  # from a training of before, which ended with another model
        (kind, trainings), leave = _swap(owner, Trainings, extends=True)
        yield (f"{kind}.train", f"{trainings}.train"), leave


def _losses_of_ultralytics(model: Any, **made_up: Any) -> Any:
    """Of a copy of its criterion, which may count its calls."""
    from .ultralytics_models import criterion_of, settings

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


def _parts_of_ultralytics(model: Any) -> Parts:
    parts: Parts = _of_ultralytics(model).PARTS
    return parts


_yolo = Family(_use_in_ultralytics, made_up.for_yolo, _losses_of_ultralytics, _parts_of_ultralytics)
_rt_detr = _yolo._replace(cases=made_up.for_ultralytics_rt_detr)


def _model_of(wrapper: Any) -> Any:
    """Which must be one that is known: classification and others have other criteria."""
    _find(wrapper.model)
    return wrapper.model


def _of_trainings(family: Family) -> Family:
    """Of what owns a model."""
    return Family(
        lambda wrapper: family.replace(_model_of(wrapper)),
        lambda wrapper: family.cases(_model_of(wrapper)),
        lambda wrapper, **made: family.criterion(wrapper.model, **made),
        lambda wrapper: family.parts(wrapper.model),
    )


# --- torchvision: losses and matching are methods of a model's parts ---


def _use_in_fcos(model: Any) -> Replacing:
    from .fcos import Head, Model

    yield _swap(model, Model)
    yield _swap(model.head, Head)


def _use_in_retinanet(model: Any) -> Replacing:
    from .retinanet import LOSSES, ClassificationHead, Model, RegressionHead

    yield _swap(model, Model)
    yield _swap(model.head.classification_head, ClassificationHead)
    head = model.head.regression_head
    if head._loss_type in LOSSES:
        yield _swap(head, RegressionHead)


def _use_in_faster_rcnn(model: Any) -> Replacing:
    from .faster_rcnn import Heads, Model, Proposals

    yield _swap(model, Model)
    yield _swap(model.rpn, Proposals)
    yield _swap(model.roi_heads, Heads)


def _use_in_ssd(model: Any) -> Replacing:
    from .ssd import Model

    yield _swap(model, Model)


def _losses_of_fcos(model: Any, **made: Any) -> Any:
    return model.compute_loss(
        made["targets"], made["head_outputs"], made["anchors"], made["anchors_of_levels"]
    )


def _losses_of_retinanet(model: Any, **made: Any) -> Any:
    return model.compute_loss(made["targets"], made["head_outputs"], made["anchors"])


def _matches_of_faster_rcnn(model: Any, **made: Any) -> Any:
    """Labels, and what positive ones are matched with; of the others that is never read."""
    targets = made["targets"]
    boxes, labels = ([each[name] for each in targets] for name in ("boxes", "labels"))
    of_anchors, matched = model.rpn.assign_targets_to_anchors(made["anchors"], targets)
    index, of_proposals = model.roi_heads.assign_targets_to_proposals(
        made["proposals"], boxes, labels
    )
    return {
        "labels of anchors": of_anchors,
        "boxes of anchors": _positive(matched, of_anchors),
        "labels of proposals": of_proposals,
        "boxes of proposals": _positive(index, of_proposals),
    }


def _positive(values: list[Tensor], labels: list[Tensor]) -> list[Tensor]:
    return [each[of > 0] for each, of in zip(values, labels, strict=True)]


def _parts_in(module: str) -> Callable[[Any], Parts]:
    """PARTS of one of boxloss' modules, which is imported when a model is there."""
    return lambda _: import_module(f".{module}", __package__).PARTS


_faster_rcnn = Family(
    _use_in_faster_rcnn,
    made_up.for_torchvision,
    _matches_of_faster_rcnn,
    _parts_in("faster_rcnn"),
)


class _Gives(nn.Module):
    """A part of a network, with an output that is made up."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, *_: Any) -> Any:
        return self.output


def _losses_of_ssd(model: Any, **made: Any) -> Any:
    """Of its `forward`, which matches, with a made-up output of each part of the network."""
    images = [torch.empty(3, 1, 1) for _ in made["targets"]]
    batch = SimpleNamespace(tensors=torch.empty(0), image_sizes=[(1, 1) for _ in images])
    outputs = {
        "transform": (batch, made["targets"]),
        "backbone": torch.empty(0),
        "head": made["head_outputs"],
        "anchor_generator": made["anchors"],
    }
    parts = {name: _Gives(output) for name, output in outputs.items()}
    with patch.dict(model._modules, parts), patch.dict(vars(model), training=True):
        return model.forward(images, made["targets"])


# --- rfdetr: the criterion itself, since a training makes its own ---


def _for_detection(criterion: Any) -> Any:
    from .rf_detr_criterion import check_parts

    check_parts(criterion)
    return criterion


def _use_in_rf_detr(criterion: Any) -> Replacing:
    from .rf_detr_criterion import Criterion

    yield _swap(_for_detection(criterion), Criterion)


def _losses_of_rf_detr(criterion: Any, in_training: bool, **made: Any) -> Any:
    before, criterion.training = criterion.training, in_training
    try:
        return criterion(**made)
    finally:
        criterion.training = before


_CLASSES: dict[tuple[str, str], Family] = {
    ("ultralytics", "DetectionModel"): _yolo,
    ("ultralytics", "SegmentationModel"): _yolo,
    ("ultralytics", "PoseModel"): _yolo,
    ("ultralytics", "OBBModel"): _yolo,
    ("ultralytics", "YOLO"): _of_trainings(_yolo),
    ("ultralytics", "RTDETRDetectionModel"): _rt_detr,
    ("ultralytics", "RTDETR"): _of_trainings(_rt_detr),
    ("torchvision", "FCOS"): Family(
        _use_in_fcos, made_up.for_torchvision, _losses_of_fcos, _parts_in("fcos")
    ),
    ("torchvision", "RetinaNet"): Family(
        _use_in_retinanet, made_up.for_torchvision, _losses_of_retinanet, _parts_in("retinanet")
    ),
    ("torchvision", "FasterRCNN"): _faster_rcnn,
    ("torchvision", "MaskRCNN"): _faster_rcnn,
    ("torchvision", "KeypointRCNN"): _faster_rcnn,
    ("torchvision", "SSD"): Family(
        _use_in_ssd, made_up.for_torchvision, _losses_of_ssd, _parts_in("ssd")
    ),
    ("rfdetr", "SetCriterion"): Family(
        _use_in_rf_detr,
        lambda criterion: made_up.for_rf_detr(_for_detection(criterion)),
        _losses_of_rf_detr,
        _parts_in("rf_detr_criterion"),
    ),
}
