# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Jagged nested tensors: their values are a list as the operators read it, with its offsets."""

from typing import Any

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


def _boxes(function: str, name: str, tensor: Tensor, numbers: int) -> Tensor:
    values = _values(function, name, tensor)
    if tensor.dim() != 3 or tensor.size(-1) != numbers:
        raise ValueError(
            f"{function}: {name} has shape {list(tensor.shape)}; nested it must be (images, boxes "
            f"of each, {numbers})"
        )
    return values


def is_nested(tensor: Any) -> bool:
    """Also of what stands for a tensor."""
    return isinstance(tensor, Tensor) and tensor.is_nested


def without_nested(
    function: str, pred: Tensor, target: Tensor, options: dict[str, Any]
) -> tuple[Tensor, Tensor, tuple[Any, ...], Tensor]:
    """A loss' arguments without nested tensors, and the structure that `nested` gives the results.

    pred or target is nested; options become those of the values. Of two structures only the total
    number of boxes is compared: torch cannot compare more of separately made ones without
    synchronization.
    """
    if not is_nested(target):
        raise ValueError(f"{function}: pred is nested, target is not; it must be nested as well")
    for name in ("lengths", "offsets", "zero_padded", "pred_index", "target_index"):
        if options[name] is not None and options[name] is not False:
            raise ValueError(f"{function}: {name} cannot be given with nested boxes")
    if options["mask"] is not None and not pred.is_nested:
        raise ValueError(f"{function}: mask cannot be given where target alone is nested")
    numbers = 5 if "angle_unit" in options else 4
    target_boxes = _boxes(function, "target", target, numbers)
    structure: Tensor = target.offsets()  # type: ignore[attr-defined]
    for name in ("weight", "mask"):
        if is_nested(options[name]):
            options[name] = _values(function, name, options[name])
    if pred.is_nested:
        pred = _boxes(function, "pred", pred, numbers)
    else:
        options["offsets"] = structure
    return pred, target_boxes, tuple(options.values()), structure


def nested(result: Any, structure: Tensor) -> Any:
    """One entry for each target box, image by image; what is reduced stays as it is."""
    if isinstance(result, tuple):
        return tuple(nested(each, structure) for each in result)
    if result.dim() == 0:
        return result
    return torch.nested.nested_tensor_from_jagged(result, structure)
