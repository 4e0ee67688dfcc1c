# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Box-regression losses for JAX: custom calls of XLA.

Functions are `boxloss.torch`'s: theirs are the arguments, results and errors, in pages under docs,
too. Docstrings here say what differs, and for all of them:

- What a signature has as ArrayLike is an array of JAX or NumPy; a normalizer may be a number, too.
  Lengths, offsets, indices and labels are int32 or int64.
- All else is static: under jit it is no argument of it.
- Indices in results are int32, or int64 with jax_enable_x64.
- Losses are differentiable in reverse mode, any number of times. Forward mode is a TypeError: for
  it `use_implementation` has the formula.
- Where values of an array are an error of torch's on the CPU, the result is as torch has it on a
  GPU, since values are not known while JAX traces.
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
