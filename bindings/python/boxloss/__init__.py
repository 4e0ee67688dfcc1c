# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Fused matching and box-regression losses for object detectors.

For PyTorch: ``import boxloss.torch``, for JAX ``import boxloss.jax``.
"""

import typing as _typing
from pathlib import Path as _Path

from ._backends import load_backend as load_backend
from ._version import __version__ as __version__

cmake_prefix_path = str(_Path(__file__).parent)
"""What CMAKE_PREFIX_PATH needs for find_package(boxloss), as torch.utils.cmake_prefix_path."""

_IN_TORCH = """
Assignment BoxLoss BoxLosses CIoULoss DIoULoss EIoULoss GIoULoss IoULoss MatchResult MaxIouMatch
QueryLayers RotatedBoxLoss SIoULoss SetLosses TaskAlignedMatch box_loss box_losses check_boxes
check_indices ciou_loss class_loss collate_matches collate_padded collate_ragged
complete_box_iou_loss cpu_capability debug diou_loss distance_box_iou_loss distribution_loss
eiou_loss generalized_box_iou_loss giou_loss global_normalizer hungarian_match implementations
iou_loss linear_sum_assignment matching_cost max_iou_match pairwise_iou rotated_box_loss
set_criterion siou_loss task_aligned_match use_implementation
"""

if not _typing.TYPE_CHECKING:  # spelled as type checkers know it, to which every name would exist

    def __getattr__(name: str) -> None:
        # An ImportError even for getattr: `from boxloss import` hides an AttributeError's words.
        if name in _IN_TORCH.split():
            raise ImportError(f"{name} is for PyTorch: from boxloss.torch import {name}")
        if name in ("use_boxloss", "has_boxloss"):
            raise ImportError(f"{name} is for PyTorch: from boxloss.torch.compat import {name}")
        raise AttributeError(f"module 'boxloss' has no attribute {name!r}")
