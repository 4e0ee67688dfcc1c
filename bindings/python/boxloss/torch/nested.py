# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Jagged nested tensors: their values are a list as the operators read it, with its offsets."""

import torch
from torch import Tensor


def _values(function: str, name: str, tensor: Tensor) -> Tensor:
    if tensor.layout is not torch.jagged:
        raise TypeError(f"{function}: {name} has layout {tensor.layout}; it must be torch.jagged")
    if tensor.lengths() is not None:  # type: ignore[attr-defined]
        raise ValueError(
            f"{function}: {name} is nested and has gaps, as torch.nested.narrow leaves them; "
            "call .contiguous()"
        )
    return tensor.values()


def _boxes(function: str, name: str, tensor: Tensor) -> Tensor:
    if tensor.dim() != 3 or tensor.size(-1) != 4:
        raise ValueError(
            f"{function}: {name} has shape {list(tensor.shape)}; nested it must be (images, boxes "
            "of each, 4)"
        )
    return _values(function, name, tensor)


def _is_nested(tensor: Tensor | None) -> bool:
    return isinstance(tensor, Tensor) and tensor.is_nested


def without_nested(
    function: str,
    pred: Tensor,
    target: Tensor,
    weight: Tensor | None,
    mask: Tensor | None,
    offsets: Tensor | None,
    pred_index: Tensor | None,
    target_index: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """pred, target, weight, mask and offsets without nested tensors, and the results' structure.

    `nested` gives the results this structure; None if neither box tensor is nested. Of two
    structures only the total number of boxes is compared: torch cannot compare more of separately
    made ones without synchronization.
    """
    if not (_is_nested(pred) or _is_nested(target)):
        return pred, target, weight, mask, offsets, None
    if not _is_nested(target):
        raise ValueError(f"{function}: pred is nested, target is not; it must be nested as well")
    for name, given in (
        ("offsets", offsets),
        ("pred_index", pred_index),
        ("target_index", target_index),
    ):
        if given is not None:
            raise ValueError(f"{function}: {name} cannot be given with nested boxes")
    target_boxes = _boxes(function, "target", target)
    structure: Tensor = target.offsets()  # type: ignore[attr-defined]
    if weight is not None and weight.is_nested:
        weight = _values(function, "weight", weight)
    if mask is not None and mask.is_nested:
        mask = _values(function, "mask", mask)
    if not pred.is_nested:
        return pred, target_boxes, weight, mask, structure, structure
    return _boxes(function, "pred", pred), target_boxes, weight, mask, None, structure


def nested(result: Tensor, structure: Tensor) -> Tensor:
    """One entry for each target box, image by image; what is reduced stays as it is."""
    if result.dim() == 0:
        return result
    return torch.nested.nested_tensor_from_jagged(result, structure)
