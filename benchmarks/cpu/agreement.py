# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What each loss should be, by the library's own oracle in fp64.

The conformance suite bounds every rounding; here only another formula would be found out, or a pair
that is left out.
"""

from __future__ import annotations

import torch
from boxloss.torch import use_implementation

from ..common.agreement import Truth, rounding_to
from ..common.cases import Case
from ..common.losses import Loss

LOSS_SHARE = 1e-5  # of the loss
GRADIENT_SHARE = 1e-3  # of each derivative, and of the largest one where they cancel


def oracle_truth(case: Case, loss_of: Loss) -> Truth:
    (target,) = case.layouts["dense"]
    pred = case.pred.detach().double().requires_grad_()
    with use_implementation("cpu/reference"):
        loss = loss_of(pred, target.double())
        (gradient,) = torch.autograd.grad(loss, pred)
    size = gradient.abs()
    allowed = GRADIENT_SHARE * (size + size.max()) + rounding_to(case.pred.dtype, gradient)
    return Truth(loss.item(), LOSS_SHARE * loss.item(), gradient, allowed)
