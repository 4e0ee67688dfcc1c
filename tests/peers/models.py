# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A small random model of each kind that use_boxloss knows, a batch for it, and its loss."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import small_masks
import small_torchvision
import torch
from boxloss.torch.compat.versions import is_before
from called import Called
from combinations import long_but
from small_detrs import SMALL
from small_yolos import KINDS, random_batch
from small_yolos import small_model as small_yolo
from surroundings import moved
from torch import Tensor, nn
from ultralytics_rt_detr import small_model as small_rt_detr

from examples import faster_rcnn, fcos, retinanet
from examples.training import COUNTS, transformers_batch

Batch = dict[str, Any]


class Project(NamedTuple):
    """How its models are called."""

    batch: Callable[[tuple[int, ...]], Batch]
    loss: Callable[[nn.Module, Batch], Tensor]
    targets: str = ""  # the batch's name for them, a dictionary for each image
    labels: str = ""  # theirs


def transformers_arguments(counts: tuple[int, ...]) -> Batch:
    return dict(zip(("pixel_values", "labels"), transformers_batch(counts), strict=True))


def torchvision_arguments(counts: tuple[int, ...]) -> Batch:
    return dict(zip(("images", "targets"), small_torchvision.batch(64, counts), strict=True))


TRANSFORMERS = Project(
    transformers_arguments, lambda model, batch: model(**batch).loss, "labels", "class_labels"
)
TORCHVISION = Project(
    torchvision_arguments, lambda model, batch: sum(model(**batch).values()), "targets", "labels"
)
ULTRALYTICS = Project(random_batch, lambda model, batch: model(batch)[0].sum())
ORIENTED = ULTRALYTICS._replace(batch=partial(random_batch, kind="obb"))

Model = tuple[Callable[[], nn.Module], Project]
MODELS: dict[str, Model] = {
    **{name: (make_model, TRANSFORMERS) for name, make_model in SMALL.items()},
    **{
        f"YOLO{kind}": (partial(small_yolo, kind), ORIENTED if "obb" in kind else ULTRALYTICS)
        for kind in KINDS
    },
    "Ultralytics' RT-DETR": (small_rt_detr, ULTRALYTICS),
    "FCOS": (fcos.small_model, TORCHVISION),
    "RetinaNet": (retinanet.small_model, TORCHVISION),
    "RetinaNet, l1": (lambda: retinanet.small_model("l1"), TORCHVISION),
    "Faster R-CNN": (faster_rcnn.small_model, TORCHVISION),
    **{name: (make_model, TORCHVISION) for name, make_model in small_torchvision.SMALL.items()},
}


def rf_detr() -> Model:
    import rf_detr
    from criteria import arguments_of
    from criteria import made as a_case

    def arguments(counts: tuple[int, ...]) -> Batch:
        case = a_case(rf_detr.RF_DETR, counts)
        values = {name: each.requires_grad_() for name, each in case.values.items()}
        given = arguments_of(rf_detr.RF_DETR, case._replace(values=values))
        return moved(given, "cpu", torch.get_default_dtype())

    def loss(criterion: nn.Module, batch: Batch) -> Tensor:
        return rf_detr.total_of(criterion, criterion(**batch))

    make_model = partial(rf_detr.made, ia_bce_loss=True)
    return make_model, Project(arguments, loss, "targets", "labels")


if not is_before("transformers", 5, 1):  # which rfdetr needs
    MODELS["RF-DETR"] = rf_detr()
WITH_BOXES = tuple(MODELS)
MODELS |= {
    name: (make_model, Project(partial(small_masks.batch, name), TRANSFORMERS.loss))
    for name, make_model in small_masks.SMALL.items()
}
OF_TORCHVISION = [name for name, (_, project) in MODELS.items() if project is TORCHVISION]
each_model = pytest.mark.parametrize("name", MODELS)
# The others have a criterion of the same class, or the same parts.
DAILY = (
    *("DETR", "RT-DETR", "D-FINE", "LW-DETR", "YOLO11", "YOLO26", "YOLO11-obb", "RF-DETR"),
    *("Ultralytics' RT-DETR", "FCOS", "RetinaNet", "Faster R-CNN", "SSD"),
    *("Mask2Former", "OneFormer", "RfDetr"),
)
mostly_long = pytest.mark.parametrize("name", long_but(MODELS, DAILY))
mostly_long_with_boxes = pytest.mark.parametrize("name", long_but(WITH_BOXES, DAILY))


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name][0]().train()


def project_of(name: str) -> Project:
    return MODELS[name][1]


def batch_of(name: str) -> Batch:
    torch.manual_seed(1)
    return project_of(name).batch(COUNTS)


def loss_of(name: str, model: nn.Module, batch: Batch) -> Tensor:
    torch.manual_seed(0)  # for dropout and denoising
    return project_of(name).loss(model, copy.deepcopy(batch))


def loss(name: str, model: nn.Module) -> float:
    """After a backward pass."""
    value = loss_of(name, model, batch_of(name))
    value.backward()
    return value.item()


def calls(model: nn.Module, name: str) -> set[str]:
    """boxloss' operators in a training step."""
    with Called() as called:
        loss(name, model)
    return called.ours
