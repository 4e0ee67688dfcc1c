# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Box-regression losses for JAX: custom calls of XLA.

Functions are `boxloss.torch`'s, with their arguments, results and errors. Docstrings here say what
differs; what differs for all of them is in docs/jax.md in boxloss' folder. What a signature has as
ArrayLike is an array of JAX or NumPy (a normalizer may be a number, too); all else is static.
Lengths, offsets, indices and labels are int32 or int64.
"""

from . import _library as _library  # loads the handlers: before everything that calls them
from .class_loss import class_loss
from .distribution_loss import distribution_loss
from .hungarian_match import MatchResult, hungarian_match
from .implementations import use_implementation
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
from .matching_cost import matching_cost, pairwise_iou
from .max_iou_match import MaxIouMatch, max_iou_match
from .rotated_box_loss import rotated_box_loss
from .task_aligned_match import TaskAlignedMatch, task_aligned_match

__all__ = ["BoxLosses", "box_loss", "box_losses", "rotated_box_loss"]
__all__ += ["ciou_loss", "diou_loss", "eiou_loss", "giou_loss", "iou_loss", "siou_loss"]
__all__ += ["MatchResult", "hungarian_match", "matching_cost", "pairwise_iou"]
__all__ += ["Assignment", "linear_sum_assignment"]
__all__ += ["MaxIouMatch", "TaskAlignedMatch", "max_iou_match", "task_aligned_match"]
__all__ += ["class_loss", "distribution_loss", "use_implementation"]
