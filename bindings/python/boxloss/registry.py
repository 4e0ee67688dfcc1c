# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss in mmdetection's configs: dict(type="boxloss.GIoULoss", loss_weight=2.0).

mmengine looks for a scope's registries in this module of the package; nothing else imports it.
"""

from mmengine.registry import MODELS, TASK_UTILS, Registry

from .torch.compat.mmdet import CIoULoss, DIoULoss, GIoULoss, IoULoss, MMDetLoss, SIoULoss
from .torch.compat.mmdet_assigners import HungarianAssigner, MaxIoUAssigner

_of_losses = Registry("model", parent=MODELS, scope="boxloss")
for _loss in (CIoULoss, DIoULoss, GIoULoss, IoULoss, MMDetLoss, SIoULoss):
    _of_losses.register_module(module=_loss)

_of_assigners = Registry("task util", parent=TASK_UTILS, scope="boxloss")
for _assigner in (HungarianAssigner, MaxIoUAssigner):
    _of_assigners.register_module(module=_assigner)
