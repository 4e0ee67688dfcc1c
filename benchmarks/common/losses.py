# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The usual ways to compute the loss, which boxloss is compared with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

EPS = 1e-5

Loss = Callable[..., Tensor]  # (predictions, *targets) -> scalar


class UnavailableError(Exception):
    """Says why a peer cannot run here."""


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


def load_compiled() -> Loss:
    return torch.compile(masked_loss, dynamic=False)


def torchvision_giou() -> Loss:
    """torchvision's generalized_box_iou_loss."""
    try:
        from torchvision.ops import generalized_box_iou_loss
    except ImportError as error:
        raise UnavailableError(f"torchvision is not installed ({error})") from error
    except RuntimeError as error:  # how a torchvision made for another torch build fails
        raise UnavailableError(f"torchvision does not fit this PyTorch ({error})") from error
    return generalized_box_iou_loss  # type: ignore[no-any-return]


def transformers_loss(module: str) -> Any:
    """transformers.loss.`module`, of a detector with a matcher."""
    try:
        found = import_module(f"transformers.loss.{module}")
    except ImportError as error:
        raise UnavailableError(f"transformers is not installed ({error})") from error
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
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError as error:
        raise UnavailableError(f"SciPy is not installed ({error})") from error
    return linear_sum_assignment  # type: ignore[no-any-return]


def load_torchvision() -> Loss:
    generalized_box_iou_loss = torchvision_giou()

    def torchvision_loss(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
        counts = _counts(pred, lengths)
        # torchvision adds its eps instead of clamping. Its default of 1e-7 vanishes beside the
        # areas of true boxes, which are one pixel or more; EPS would not.
        total = generalized_box_iou_loss(
            pred[counts].float(), target[counts].float(), reduction="sum"
        )
        return total / lengths.sum().clamp(min=1)

    return torchvision_loss


def _counts(pred: Tensor, lengths: Tensor) -> Tensor:
    """(B, slots): which predictions have a true box."""
    return torch.arange(pred.shape[1], device=pred.device) < lengths[:, None]
