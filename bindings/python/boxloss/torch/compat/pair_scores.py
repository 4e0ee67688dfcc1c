# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses in which few scores, those of pairs, are to be more than 0.

All are summed up as if there were no pair; then those of pairs change. No targets are written down.
"""

from torch import Tensor, where
from torch.nn import functional


def logits_of_pairs(
    scores: Tensor, labels: Tensor, pred_index: Tensor, target_index: Tensor
) -> Tensor:
    """(layers, pairs). What is no pair, -1, has that of another."""
    return scores.flatten(0, 2)[pred_index.clamp(min=0), labels[target_index]]


def pair_losses(
    scores: Tensor,
    logits: Tensor,
    wanted: Tensor,
    weight: Tensor | float,
    is_pair: Tensor,
    of_others: Tensor | float = 1.0,
    gamma: float = 2.0,
) -> Tensor:
    """(layers), sums: weight * BCE of pairs, of_others * p**gamma * BCE towards 0 of others."""
    loss = of_others * miss(scores, gamma).flatten(1).sum(1)
    change = weight * (softplus(logits) - wanted * logits) - of_others * miss(logits, gamma)
    return loss + where(is_pair, change, 0).sum(1)


def miss(logits: Tensor, gamma: float) -> Tensor:
    return logits.sigmoid() ** gamma * softplus(logits)


def softplus(logits: Tensor) -> Tensor:
    """log(1 + exp(x)), in double, too."""
    return functional.softplus(logits, threshold=40)
