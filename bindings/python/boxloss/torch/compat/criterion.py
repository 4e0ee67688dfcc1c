# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the criteria of all DETRs do with layers of queries: cost, assignment, losses.

Nothing here waits for the device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from ..._options import ClassLossMode, ClassMode
from ..hungarian_match import MatchResult, hungarian_match
from ..matching_cost import matching_cost
from ..query_losses import losses_of_pairs, losses_of_scores
from .cache import apart
from .faults import GroundTruth


class Layers(NamedTuple):
    """Outputs of layers of as many queries.

    Attributes:
        names: the suffixes of their losses' names.
        scores: (layers, images, queries, classes). boxes: (layers, images, queries, 4).
        target_of_query: (layers, images, queries): each query's row of the ground truth, or -1,
            where that is known.
    """

    names: Sequence[str]
    scores: Tensor
    boxes: Tensor
    target_of_query: Tensor | None = None


class Pairs(NamedTuple):
    """Of each query its row of the ground truth, or -1, and its IoU, or 0: (layers, images,
    queries); and what losses are divided by."""

    target_of_query: Tensor
    iou: Tensor
    number: Tensor


class Learned(NamedTuple):
    """What losses of scores are computed from; those of boxes may have other pairs. `matched` is
    where pairs were not known."""

    layers: Layers
    truth: GroundTruth
    pairs: Pairs
    of_boxes: Pairs
    matched: MatchResult | None


def of_scores(learned: Learned, mode: ClassLossMode, **options: Any) -> Tensor:
    """`class_loss`, with its options."""
    scores, labels = learned.layers.scores, learned.truth.labels
    return losses_of_scores(scores, learned.pairs[0], labels, *learned.pairs[1:], mode, **options)


def cost_of(
    iou: float, l1: float, classes: float, mode: ClassMode, alpha: float = 0.25, gamma: float = 2.0
) -> dict[str, Any]:
    """Arguments of `matching_cost`."""
    weights = {"iou_weight": iou, "l1_weight": l1, "class_weight": classes}
    return weights | {"class_mode": mode, "focal_alpha": alpha, "focal_gamma": gamma}


def match(layers: Layers, truth: GroundTruth, cost: Mapping[str, Any], groups: int) -> MatchResult:
    scores, boxes = layers.scores, layers.boxes
    if left := boxes.shape[2] % groups:
        scores, boxes = scores[:, :, :-left], boxes[:, :, :-left]
    if "class_cost" not in cost:
        cost = {"logits": scores, "labels": truth.labels, **cost}
    costs = matching_cost(boxes, truth.boxes, truth.offsets, **cost)
    if truth.is_box is not None:
        costs = costs.masked_fill(~truth.is_box, torch.inf)
    return hungarian_match(costs, truth.offsets, groups=groups)


def learn(
    layers: Layers,
    truth: GroundTruth,
    number: Tensor,
    cost: Mapping[str, Any],
    more_losses: Callable[[Learned], dict[str, Tensor]],
    *,
    pairs_of_boxes: Callable[[Tensor, GroundTruth], tuple[Tensor, Tensor]] | None = None,
    groups: int = 1,
) -> dict[str, Tensor]:
    """Losses by name, each (layers), divided by `number`, and not weighted.

    Args:
        cost: arguments of `matching_cost`; its eps and eps_mode are those of the box losses, too.
        more_losses: by name, (layers), or of the first ones.
        pairs_of_boxes: by pairs, and the ground truth: other pairs, and what their losses are
            divided by.
        groups: of consecutive queries, each of which has all boxes. What is left is in no pair.
    """
    known, matched, others = layers.target_of_query, None, None
    if known is None:
        matched = match(layers, truth, cost, groups)
        known, others = matched.target_of_query, pairs_of_boxes
        if left := layers.boxes.shape[2] - known.shape[2]:
            known = pad(known, (0, left), value=-1)
    row, divisor = (known, number) if others is None else others(known, truth)
    eps = {name: cost[name] for name in ("eps", "eps_mode") if name in cost}
    giou, l1, iou = losses_of_pairs(layers.boxes, truth.boxes, row, divisor, **eps)
    pairs = of_boxes = Pairs(row, iou, divisor)
    if others is not None:
        own = losses_of_pairs(layers.boxes.detach(), truth.boxes, known, number, "iou")
        pairs = Pairs(known, own.iou, number)
    learned = Learned(layers, truth, pairs, of_boxes, matched)
    return {"loss_bbox": l1, "loss_giou": giou, **more_losses(learned)}


def by_name(
    found: Iterable[tuple[Sequence[str], Mapping[str, Tensor]]], values: Tensor
) -> dict[str, Tensor]:
    """Of all losses in one list, each by itself."""
    names = [
        loss + layer
        for layers, losses in found
        for loss, its in losses.items()
        for layer in layers[: len(its)]
    ]
    return dict(zip(names, apart(values), strict=True))


def unweighted(
    layers: Sequence[str], losses: Mapping[str, Tensor], found: Tensor, lengths: Tensor
) -> dict[str, Tensor]:
    """Losses by name, and a figure for the log: by how much, (layers, images), the number of
    queries that have found something is not that of boxes."""
    errors = (found - lengths).abs().float().mean(1)
    named = by_name([(layers, losses)], torch.cat([*losses.values()]))
    return named | by_name([(layers, {"cardinality_error": errors})], errors)


def scores_of_pairs(learned: Learned) -> tuple[Tensor, Tensor]:
    """All, at least float32, whatever autocast made of them; and each query's own, or any if it is
    in no pair."""
    scores = learned.layers.scores.to(learned.pairs.iou.dtype)
    own = pad(learned.truth.labels, (0, 1))[learned.pairs.target_of_query]
    return scores, scores.gather(-1, own[..., None]).squeeze(-1)


def pair_losses(
    scores: Tensor,
    logits: Tensor,
    wanted: Tensor,
    weight: Tensor | float,
    is_pair: Tensor,
    of_others: Tensor | float = 1.0,
    gamma: float = 2.0,
) -> Tensor:
    """(layers), sums: weight * BCE of pairs, of_others * p**gamma * BCE towards 0 of others.

    All are summed up as if there were no pair; then those of pairs change. No targets are written
    down.
    """
    loss = of_others * miss(scores, gamma).flatten(1).sum(1)
    towards = softplus(logits, threshold=40) - wanted * logits
    change = weight * towards - of_others * miss(logits, gamma)
    return loss + torch.where(is_pair, change, 0).flatten(1).sum(1)


def miss(logits: Tensor, gamma: float) -> Tensor:
    return logits.sigmoid() ** gamma * softplus(logits, threshold=40)  # in double, too
