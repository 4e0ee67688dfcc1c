# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Box-regression losses for PyTorch.

The operator behind this module is ``torch.ops.boxloss.box_loss``; it follows the tensors' device.
"""

from . import _library as _library  # loads the operators: before everything that calls them
from .collate import collate_padded, collate_ragged
from .distributed import global_normalizer
from .implementations import implementations, use_implementation
from .indices import check_indices
from .losses import box_loss, giou_loss
from .modules import BoxLoss, GIoULoss
from .torchvision import generalized_box_iou_loss

__all__ = [
    "BoxLoss",
    "GIoULoss",
    "box_loss",
    "check_indices",
    "collate_padded",
    "collate_ragged",
    "generalized_box_iou_loss",
    "giou_loss",
    "global_normalizer",
    "implementations",
    "use_implementation",
]
