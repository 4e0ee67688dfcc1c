# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A library whose IoU loss is boxloss' where that can compute it, and else the library's own.

python -m examples.optional
"""

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor


def own_iou_loss(pred: Tensor, target: Tensor) -> Tensor:
    low, high = torch.maximum(pred, target), torch.minimum(pred, target)
    common = (high[:, 2:] - low[:, :2]).clamp(min=0).prod(1)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(1) for boxes in (pred, target)]
    return (1 - common / (sum(areas) - common + 1e-7)).sum() / max(1, len(pred))


@cache
def iou_loss_on(device: torch.device) -> Callable[[Tensor, Tensor], Tensor]:
    try:
        from boxloss.torch import iou_loss

        boxes = torch.zeros(1, 4, device=device)
        iou_loss(boxes, boxes)  # an error if nothing in boxloss serves the device
    except (ImportError, RuntimeError) as error:
        warnings.warn(f"without boxloss on {device}: {error}", stacklevel=2)
        return own_iou_loss
    return iou_loss


if __name__ == "__main__":
    pred = torch.rand(8, 4).cumsum(1).requires_grad_()
    loss = iou_loss_on(pred.device)(pred, torch.rand(8, 4).cumsum(1))
    loss.backward()
    print(f"{loss:.4f}")
