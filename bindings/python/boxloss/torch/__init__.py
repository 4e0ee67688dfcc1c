# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Box-regression losses for PyTorch.

The operator behind this module is ``torch.ops.boxloss.box_loss``; it follows the tensors' device.
"""

from . import _library as _library  # loads the operators: before everything that calls them
from .boxes import check_boxes
from .class_loss import class_loss
from .collate import collate_padded, collate_ragged
from .debugging import debug
from .distributed import global_normalizer
from .distribution_loss import distribution_loss
from .hungarian_match import MatchResult, hungarian_match
from .implementations import cpu_capability, implementations, use_implementation
from .indices import check_indices
from .linear_sum_assignment import Assignment, linear_sum_assignment
from .losses import (
    BoxLosses,
    box_loss,
    box_losses,
    ciou_loss,
    diou_loss,
    eiou_loss,
    giou_loss,
    iou_loss,
    siou_loss,
)
from .matches import collate_matches
from .matching_cost import matching_cost, pairwise_iou
from .max_iou_match import MaxIouMatch, max_iou_match
from .modules import (
    BoxLoss,
    CIoULoss,
    DIoULoss,
    EIoULoss,
    GIoULoss,
    IoULoss,
    RotatedBoxLoss,
    SIoULoss,
)
from .rotated_box_loss import rotated_box_loss
from .set_criterion import QueryLayers, SetLosses, set_criterion
from .task_aligned_match import TaskAlignedMatch, task_aligned_match
from .torchvision import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss

__all__ = ["BoxLoss", "BoxLosses", "RotatedBoxLoss", "box_loss", "box_losses", "rotated_box_loss"]
__all__ += ["ciou_loss", "diou_loss", "eiou_loss", "giou_loss", "iou_loss", "siou_loss"]
__all__ += ["CIoULoss", "DIoULoss", "EIoULoss", "GIoULoss", "IoULoss", "SIoULoss"]
__all__ += ["complete_box_iou_loss", "distance_box_iou_loss", "generalized_box_iou_loss"]
__all__ += ["MatchResult", "hungarian_match", "matching_cost", "pairwise_iou"]
__all__ += ["Assignment", "linear_sum_assignment"]
__all__ += ["MaxIouMatch", "TaskAlignedMatch", "max_iou_match", "task_aligned_match"]
__all__ += ["QueryLayers", "SetLosses", "class_loss", "distribution_loss", "set_criterion"]
__all__ += ["collate_matches", "collate_padded", "collate_ragged", "global_normalizer"]
__all__ += ["check_boxes", "check_indices", "debug"]
__all__ += ["cpu_capability", "implementations", "use_implementation"]
