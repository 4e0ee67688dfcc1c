# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each detector's own criterion, what examples/ has in its place, and how a model calls either."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import count
from typing import Any

from torch import Tensor

from ..common.losses import UnavailableError, isolate_ultralytics, transformers_loss
from .cases import Case
from .dense_cases import BINS
from .detr_cases import GIOU_WEIGHT, L1_WEIGHT, DetrCase
from .plain import Operators

isolate_ultralytics()  # which the example may be the first to import

Step = Callable[[], Tensor]  # the sum of all losses


@dataclass(frozen=True)
class Detector:
    call: Callable[[Case, Any], Step]
    module: str
    own: str  # in that module
    example: str
    ours: str  # in that example


def own_criterion(case: Case) -> Step:
    detector = DETECTORS[case.kind]
    return detector.call(case, getattr(_installed(detector.module), detector.own))


def our_criterion(case: Case, operators: Operators) -> Step:
    detector = DETECTORS[case.kind]
    return detector.call(case, getattr(_example(detector.example, operators), detector.ours))


def own_matcher_and_boxes(case: DetrCase) -> Step:
    """Its criterion, told to compute nothing else."""
    config, labels = case.inputs["config"], case.inputs["labels"]
    module = _installed(DETECTORS[case.kind].module)
    if case.kind == "detr":
        matcher = module.HungarianMatcher(config.class_cost, config.bbox_cost, config.giou_cost)
        criterion = module.ImageLoss(matcher, config.num_labels, config.eos_coefficient, ["boxes"])
        weights = {"loss_bbox": L1_WEIGHT, "loss_giou": GIOU_WEIGHT}
    else:
        criterion = module.RTDetrLoss(config)
        criterion.losses = ["boxes"]
        weights = {}  # they are in there
    criterion.to(case.device)

    def step() -> Tensor:
        *auxiliary, last = case.layers()
        losses = criterion({**last, "auxiliary_outputs": auxiliary}, labels)
        return sum(weights.get(name[:9], 1) * each for name, each in losses.items())

    return step


def _detr(case: Case, criterion: Callable[..., Any]) -> Step:
    return lambda: criterion(device=case.device, **case.inputs, **case.leaves)[0]


def _rt_detr(case: Case, criterion: Callable[..., Any]) -> Step:
    def step() -> Tensor:
        scores, boxes = case.leaves["outputs_class"], case.leaves["outputs_coord"]
        last = {"logits": scores[:, -1], "pred_boxes": boxes[:, -1]}
        return criterion(device=case.device, **last, **case.inputs, **case.leaves)[0]

    return step


def _fcos(case: Case, head: type[Any]) -> Step:
    made = head(in_channels=32, num_anchors=1, num_classes=1, num_convs=1)  # its layers are idle
    return lambda: sum(made.compute_loss(head_outputs=case.leaves, **case.inputs).values())


def _retinanet(case: Case, head: type[Any]) -> Step:
    made = head(in_channels=32, num_anchors=1)
    made._loss_type = "giou"  # RetinaNet v2
    return lambda: made.compute_loss(head_outputs=case.leaves, **case.inputs)


def _yolo(case: Case, bbox_loss: type[Any]) -> Step:
    """With the distribution focal loss, on both sides."""
    made = bbox_loss(BINS)
    return lambda: sum(made(**case.inputs, **case.leaves))


_RT_DETR = Detector(
    _rt_detr,
    "transformers.loss.loss_rt_detr",
    "RTDetrForObjectDetectionLoss",
    "rt_detr",
    "criterion",
)
DETECTORS = {
    "detr": Detector(
        _detr,
        "transformers.loss.loss_for_object_detection",
        "ForObjectDetectionLoss",
        "detr",
        "criterion",
    ),
    "rtdetr": _RT_DETR,
    "rtdetr-dense": _RT_DETR,
    "fcos": Detector(_fcos, "torchvision.models.detection.fcos", "FCOSHead", "fcos", "Head"),
    "retinanet": Detector(
        _retinanet,
        "torchvision.models.detection.retinanet",
        "RetinaNetRegressionHead",
        "retinanet",
        "RegressionHead",
    ),
    "yolo": Detector(_yolo, "ultralytics.utils.loss", "BboxLoss", "yolo", "FusedBboxLoss"),
}


def _installed(module: str) -> Any:
    package, _, name = module.partition(".")
    if package == "transformers":
        return transformers_loss(name.partition(".")[2])
    try:
        return import_module(module)
    except (ImportError, RuntimeError) as error:  # the latter: made for another torch
        raise UnavailableError(f"{package} cannot be imported ({error})") from error


_copies = count()


def _example(name: str, operators: Operators) -> Any:
    """A copy of its own of examples.`name`, with `operators` where it calls boxloss."""
    original = find_spec(f"examples.{name}")
    # A name of its own, by which torch.compile looks up what a function reads.
    spec = spec_from_file_location(f"{__name__}.copy_{next(_copies)}_of_{name}", original.origin)
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (ImportError, RuntimeError) as error:
        raise UnavailableError(f"examples.{name} cannot be imported ({error})") from error
    vars(module).update({name: each for name, each in operators.items() if hasattr(module, name)})
    return module
