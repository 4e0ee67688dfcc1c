# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Replacements for other projects' losses and matchers, with their signatures.

Nothing of those projects is imported. There are adapters only for losses that are the same.
"""

from .detr import HungarianMatcher, detr_loss_boxes
from .mmdet import MMDetLoss

__all__ = ["HungarianMatcher", "MMDetLoss", "detr_loss_boxes"]
