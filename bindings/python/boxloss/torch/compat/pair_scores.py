# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Class losses in which few scores, those of pairs, are to be more than 0.

All are summed up as if there were no pair; then those of pairs change. No targets are written down.
"""

from torch import Tensor, where
from torch.nn import functional


def logits_of_pairs(scores: Tensor, labels: Tensor, target_of_query: Tensor) -> Tensor:
    """target_of_query's shape. A query that is in no pair, -1, has any."""
    own = functional.pad(labels, (0, 1))[target_of_query]
    return scores.gather(-1, own[..., None]).squeeze(-1)


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
    return loss + where(is_pair, change, 0).flatten(1).sum(1)


def miss(logits: Tensor, gamma: float) -> Tensor:
    return logits.sigmoid() ** gamma * softplus(logits)


def softplus(logits: Tensor) -> Tensor:
    """log(1 + exp(x)), in double, too."""
    return functional.softplus(logits, threshold=40)
