# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What takes the place of other projects' losses and matchers, with their signatures.

Nothing of those projects is imported. What computes another loss than theirs has no adapter.
"""

from .detr import HungarianMatcher, detr_loss_boxes
from .mmdet import MMDetLoss

__all__ = ["HungarianMatcher", "MMDetLoss", "detr_loss_boxes"]
