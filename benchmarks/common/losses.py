# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The usual ways to compute the loss, which boxloss is compared with."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from ..runner.run import UnavailableError

EPS = 1e-5

Loss = Callable[..., Tensor]  # (predictions, *targets) -> scalar


def giou(pred: Tensor, target: Tensor) -> Tensor:
    """GIoU of floating-point boxes; uint8 ones must be cast first, for their areas would wrap."""
    px1, py1, px2, py2 = pred.unbind(-1)
    tx1, ty1, tx2, ty2 = target.unbind(-1)
    width = torch.minimum(px2, tx2) - torch.maximum(px1, tx1)
    height = torch.minimum(py2, ty2) - torch.maximum(py1, ty1)
    overlap = torch.where((width > 0) & (height > 0), width * height, 0.0)
    areas = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1)
    union = (areas - overlap).clamp(min=EPS)
    outer_width = torch.maximum(px2, tx2) - torch.minimum(px1, tx1)
    outer_height = torch.maximum(py2, ty2) - torch.minimum(py1, ty1)
    enclosing = (outer_width * outer_height).clamp(min=EPS)
    return overlap / union - (enclosing - union) / enclosing


def masked_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    counts = _counts(pred, lengths)
    # Both selections are needed: the first keeps garbage in unused slots out of the gradient (a
    # zero there times NaN is NaN), the second keeps the unused slots' losses out of the sum.
    guesses = torch.where(counts[..., None], pred.float(), 0.0)
    losses = torch.where(counts, 1 - giou(guesses, target.float()), 0.0)
    return losses.sum() / lengths.sum().clamp(min=1)


def loop_loss(pred: Tensor, *boxes: Tensor) -> Tensor:
    """Image by image, each with a tensor of its own ground-truth boxes."""
    total = torch.zeros((), device=pred.device)
    for guesses, truths in zip(pred, boxes, strict=True):
        total = total + (1 - giou(guesses[: len(truths)].float(), truths.float())).sum()
    return total / max(sum(map(len, boxes)), 1)


def load_compiled() -> Loss:
    return torch.compile(masked_loss, dynamic=False)


def installed(module: str) -> Any:
    """It, or UnavailableError."""
    try:
        return import_module(module)
    except (ImportError, RuntimeError) as error:  # the latter: made for another torch
        raise UnavailableError(f"{module} cannot be imported ({error})") from error


def torchvision_giou() -> Loss:
    """torchvision's generalized_box_iou_loss."""
    return torchvision_file("giou_loss").generalized_box_iou_loss


def torchvision_file(name: str) -> Any:
    """torchvision.ops.`name`, which has one of its losses, in plain torch. Importing torchvision as
    a whole fails beside any torch but the very build that its operators were compiled for: here its
    packages stay empty."""
    found = find_spec("torchvision")
    if found is None or not found.submodule_search_locations:
        raise UnavailableError("torchvision is not installed")
    folder = Path(next(iter(found.submodule_search_locations))).parent
    with patch.dict(sys.modules):
        for each in ("torchvision", "torchvision.ops", "torchvision.utils"):
            sys.modules[each] = module = ModuleType(each)
            module.__path__ = [str(folder / each.replace(".", "/"))]
        vars(module)["_log_api_usage_once"] = lambda function: None
        return import_module(f"torchvision.ops.{name}")


def transformers_loss(module: str) -> Any:
    """transformers.loss.`module`, of a detector with a matcher."""
    found = installed(f"transformers.loss.{module}")
    for needed, package in (
        ("linear_sum_assignment", "SciPy"),
        ("center_to_corners_format", "PIL"),
    ):
        if not hasattr(found, needed):
            raise UnavailableError(f"transformers' matchers need {package}")
    return found


def isolate_ultralytics() -> None:
    """It looks for a network, and for its settings in the user's home, when it is imported."""
    os.environ.setdefault("YOLO_OFFLINE", "true")
    if "YOLO_CONFIG_DIR" not in os.environ:
        os.environ["YOLO_CONFIG_DIR"] = tempfile.mkdtemp()


def scipy_assignment() -> Callable[[Any], tuple[Any, Any]]:
    """SciPy's linear_sum_assignment."""
    return installed("scipy.optimize").linear_sum_assignment


def load_torchvision() -> Loss:
    generalized_box_iou_loss = torchvision_giou()

    def torchvision_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        counts = _counts(pred, lengths)
        # torchvision adds its eps instead of clamping. Its default of 1e-7 vanishes beside the
        # areas of ground-truth boxes, which are one pixel or more; EPS would not.
        total = generalized_box_iou_loss(
            pred[counts].float(), target[counts].float(), reduction="sum"
        )
        return total / lengths.sum().clamp(min=1)

    return torchvision_loss


def load_triton(device: torch.device, layout: str) -> Loss:
    """This folder's, written by hand."""
    if device.type == "cpu":
        raise UnavailableError("Triton compiles for GPUs only")
    return getattr(installed("benchmarks.common.triton_kernels"), f"{layout}_loss")


def _counts(pred: Tensor, lengths: Tensor) -> Tensor:
    """(B, slots): which predictions have a ground-truth box."""
    return torch.arange(pred.shape[1], device=pred.device) < lengths[:, None]
