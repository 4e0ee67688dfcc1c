# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a good engineer does without boxloss: a model's criterion in vectorized plain torch.

It is boxloss.torch.compat's, for all layers at once, with the plain operators of the study
`detectors`; in float32, whatever autocast made of the outputs. RF-DETR has none: with SciPy in
place of its own solver on the GPU it would be slower than the original.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from boxloss.torch.compat.replace import qualified_name
from torch import Tensor
from torch.utils._pytree import tree_map

from ...runner.run import UnavailableError
from ..detectors.criteria import compat_with, plain_operators

# By the name of the model's class; boxloss' module, and what in it is the criterion.
OF_TRANSFORMERS = {
    "DetrForObjectDetection": ("detr_criterion", "detr_loss"),
    "DeformableDetrForObjectDetection": ("detr_criterion", "deformable_detr_loss"),
    "RTDetrForObjectDetection": ("rt_detr_criterion", "rt_detr_loss"),
}


def use_plain_torch(model: Any, counts: tuple[int, ...]) -> None:
    """For images that have `counts` ground-truth boxes. UnavailableError for other detectors."""
    operators, name = plain_operators(counts), type(model).__name__
    if name in OF_TRANSFORMERS:
        module, criterion = OF_TRANSFORMERS[name]
        model.loss_function = in_float32(getattr(compat_with(module, operators), criterion))
    elif name == "DetectionModel":
        made = compat_with("yolo", operators).DetectionLoss(model)
        made.loss = in_float32(made.loss)
        model.criterion = made
    else:
        raise UnavailableError(
            f"there is no vectorized criterion for {qualified_name(type(model))}"
        )


def in_float32(criterion: Callable[..., Any]) -> Callable[..., Any]:
    def widened(value: Any) -> Any:
        is_narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if is_narrow else value

    def wide(*arguments: Any, **options: Any) -> Any:
        return criterion(*tree_map(widened, arguments), **tree_map(widened, options))

    return wide
