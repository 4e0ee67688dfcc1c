# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of DETR and its relatives: cost, assignment, losses of boxes and of classes."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .._options import BoxFormat, ClassLossMode, EpsMode, Loss
from .arguments import check_tensors, exportable
from .collate import collate_ragged
from .distributed import global_normalizer
from .hungarian_match import hungarian_match
from .matching_cost import matching_cost
from .query_losses import losses_of_pairs, losses_of_scores


@exportable
class QueryLayers(NamedTuple):
    """Outputs of decoder layers that have as many queries.

    Attributes:
        logits: (layers, images, queries, classes), or without layers. pred: likewise (..., 4).
        groups: how many queries a ground-truth box has: of consecutive queries, each of which is
            assigned by itself; or of known pairs.
        target_index: (layers, images, queries), or (images, queries) for all layers: the row of
            target that a query is known to belong to, -1 for none, as of queries for denoising.
            Without it they are assigned.
        shares_pairs: all layers have the pairs of the last one.
    """

    logits: Tensor
    pred: Tensor
    groups: int = 1
    target_index: Tensor | None = None
    shares_pairs: bool = False


@exportable
class SetLosses(NamedTuple):
    """What `set_criterion` returns; each loss (layers), of all QueryLayers one after the other.

    Attributes:
        total: (), the sum of all losses times their weights.
        class_loss, l1, iou_loss: without their weights. quality_loss: likewise, or None.
        target_of_query: of each QueryLayers (layers, images, queries): a row of target, -1 for
            none, -2 in an ignored image.
        number: (), what losses are divided by, before groups.
    """

    total: Tensor
    class_loss: Tensor
    l1: Tensor
    iou_loss: Tensor
    quality_loss: Tensor | None
    target_of_query: tuple[Tensor, ...]
    number: Tensor


def set_criterion(
    layers: QueryLayers | Sequence[QueryLayers],
    target: Tensor | Sequence[Tensor],
    labels: Tensor | Sequence[Tensor],
    offsets: Tensor | None = None,
    *,
    class_mode: ClassLossMode = "focal",
    cost_weights: tuple[float, float, float] = (2.0, 5.0, 2.0),
    loss_weights: tuple[float, float, float] = (1.0, 5.0, 2.0),
    alpha: float | None = None,
    gamma: float | None = None,
    no_object_weight: float = 0.1,
    quality_mode: ClassLossMode | None = None,
    quality_weight: float = 1.0,
    loss: Loss = "giou",
    box_format: BoxFormat = "cxcywh",
    eps: float = 0.0,
    eps_mode: EpsMode = "add",
    ignored: Tensor | None = None,
    normalizer: Tensor | Real | Literal["rank", "ranks"] = "rank",
) -> SetLosses:
    """The losses of all layers of a DETR, by the pairs of least cost.

    A composite of `matching_cost`, `hungarian_match`, `box_losses` and `class_loss`, whose pages
    say more. Nothing waits for a GPU, where the assignment is served there.

    Args:
        layers: a model's outputs; several QueryLayers where layers differ in queries.
        target, labels: the ground truth: for each image boxes (n, 4) and classes (n); or, with
            offsets, of all images (T, 4) and (T): `*FixedTargets`, too.
        offsets: (images + 1): image b owns rows offsets[b] to offsets[b + 1].
        class_mode: as of `class_loss`, with alpha, gamma and, for "softmax", no_object_weight. The
            cost's class term is "softmax" for "softmax", else "focal" with 0.25 and 2. What asks
            for a quality is given the IoU.
        cost_weights, loss_weights: of the class term, L1 and the loss of boxes.
        quality_mode, quality_weight: a second class loss, by the IoU.
        loss, box_format, eps, eps_mode: as of `box_losses`, for the cost as well.
        ignored: (images), bool: images without any loss.
        normalizer: what all losses but "softmax" are divided by, times groups: "rank": the number
            of boxes, at least 1; "ranks": its average over the ranks, likewise; or a number, or a
            tensor ().

    Raises:
        ValueError: a bad value or shape; images without as many labels as boxes. TypeError: a bad
            dtype, or no tensor. RuntimeError: tensors on several devices.
    """
    several = [layers] if isinstance(layers, QueryLayers) else [*layers]
    if not several:
        raise ValueError("set_criterion: layers is empty: it must hold one QueryLayers at least")
    boxes, classes, offsets = _in_one_list(target, labels, offsets)
    number = _number(normalizer, offsets, ignored, boxes)
    cost: dict[str, Any] = {"loss": loss, "eps": eps, "eps_mode": eps_mode}
    cost |= {"pred_format": box_format, "target_format": box_format}
    cost |= dict(zip(("class_weight", "l1_weight", "iou_weight"), cost_weights, strict=True))
    cost["class_mode"] = "softmax" if class_mode == "softmax" else "focal"
    own: dict[str, Any] = {"alpha": alpha, "gamma": gamma}
    if class_mode == "softmax":
        own["no_object_weight"] = no_object_weight
    found: list[list[Tensor]] = []
    pairs: list[Tensor] = []
    for each in several:
        logits, pred = (x if x.dim() == 4 else x[None] for x in (each.logits, each.pred))
        index = each.target_index
        if index is None:
            given = (pred[-1:], logits[-1:]) if each.shares_pairs else (pred, logits)
            costs = matching_cost(given[0], boxes, offsets, logits=given[1], labels=classes, **cost)
            index = hungarian_match(costs, offsets, groups=each.groups).target_of_query
        index = index.expand(logits.shape[:-1])
        counted = index
        if ignored is not None:
            index = index.masked_fill(ignored[:, None], -2)
            counted = index.clamp(min=-1)
        divisor = number * each.groups
        of_boxes = losses_of_pairs(
            pred, boxes, counted, divisor, loss, box_format=box_format, eps=eps, eps_mode=eps_mode
        )
        of_classes = [
            losses_of_scores(logits, index, classes, of_boxes.iou, divisor, mode, **numbers)
            for mode, numbers in ((class_mode, own), (quality_mode, {}))
            if mode is not None
        ]
        found.append([of_classes[0], of_boxes.l1, of_boxes.loss, *of_classes[1:]])
        pairs.append(index)
    losses = [torch.cat(parts) for parts in zip(*found, strict=True)]
    weights = [*loss_weights, quality_weight][: len(losses)]
    total = torch.stack(
        [weight * each.sum() for weight, each in zip(weights, losses, strict=True)]
    ).sum()
    quality = losses[3] if quality_mode is not None else None
    return SetLosses(total, losses[0], losses[1], losses[2], quality, tuple(pairs), number)


def _in_one_list(
    target: Tensor | Sequence[Tensor], labels: Tensor | Sequence[Tensor], offsets: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    if isinstance(target, Tensor) and isinstance(labels, Tensor):
        if offsets is None:
            raise ValueError("set_criterion: target is one tensor; then offsets must be given")
        if len(target) != len(labels):
            given = f"target has {len(target)} boxes, labels has {len(labels)}"
            raise ValueError(f"set_criterion: {given}; they must be as many")
        return target, labels, offsets
    if isinstance(target, Tensor) or isinstance(labels, Tensor) or offsets is not None:
        raise TypeError(
            "set_criterion: target and labels must be two tensors, with offsets, or a sequence of "
            "one tensor for each image, without"
        )
    if len(target) != len(labels):
        given = f"target has {len(target)} images, labels has {len(labels)}"
        raise ValueError(f"set_criterion: {given}; they must be as many")
    boxes, offsets = collate_ragged(target)
    for b, (each, own) in enumerate(zip(target, labels, strict=True)):
        check_tensors("set_criterion", **{f"labels[{b}]": own})
        if own.shape != each.shape[:1]:
            given = f"labels[{b}] has shape {tuple(own.shape)}, target[{b}] {len(each)} boxes"
            raise ValueError(f"set_criterion: {given}; they must be as many")
    return boxes, torch.cat([*labels]), offsets


def _number(
    normalizer: Tensor | Real | str, offsets: Tensor, ignored: Tensor | None, like: Tensor
) -> Tensor:
    if isinstance(normalizer, Tensor):
        return normalizer
    if isinstance(normalizer, str):
        if normalizer not in ("rank", "ranks"):
            raise ValueError(
                f"set_criterion: normalizer is '{normalizer}'; allowed: rank, ranks, a number, a "
                "tensor without dimensions"
            )
        counts = offsets.diff()
        if ignored is not None:
            counts = counts.masked_fill(ignored, 0)
        count = counts.sum().to(like.device)
        return (global_normalizer(count) if normalizer == "ranks" else count).clamp(min=1)
    return torch.full((), float(normalizer), device=like.device)
