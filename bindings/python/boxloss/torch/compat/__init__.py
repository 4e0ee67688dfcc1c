# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Replacements for other projects' losses and matchers, with their signatures.

`use_boxloss` puts them into a model. Nothing of those projects is imported that the model has not
imported. There are replacements only for losses that are the same, up to what each docstring says.
"""

from .detectors import Replaced, has_boxloss, register_family, use_boxloss
from .detr import HungarianMatcher, detr_loss_boxes
from .family import Family, swap
from .faults import check_targets
from .fixed_shapes import collate_fixed, pad_batch
from .linear_assignment import (
    assignment_to_indices,
    batch_linear_assignment,
    linear_sum_assignment,
)
from .mmdet import MMDetLoss
from .parts import Parts
from .proof import Case
from .targets import FixedTargets

__all__ = [
    "Case",
    "Family",
    "FixedTargets",
    "HungarianMatcher",
    "MMDetLoss",
    "Parts",
    "Replaced",
    "assignment_to_indices",
    "batch_linear_assignment",
    "check_targets",
    "collate_fixed",
    "detr_loss_boxes",
    "has_boxloss",
    "linear_sum_assignment",
    "pad_batch",
    "register_family",
    "swap",
    "use_boxloss",
]
