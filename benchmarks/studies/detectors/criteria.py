# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each detector's own criterion; what boxloss has in its place; and in that, plain torch.

The plain operators have boxloss' names and are written with care: each box meets its own, all
layers at once, and nobody waits for the device but for the cost, which SciPy wants, and for which
of YOLO's anchors are foreground. YOLO's assigner has its matrices, of all anchors and padded boxes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import accumulate, count
from types import SimpleNamespace
from typing import Any

import boxloss.torch
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...common.losses import installed, isolate_ultralytics, scipy_assignment, transformers_loss
from ...runner.run import UnavailableError
from ..assigners import STRIDES
from ..matched_pairs import giou_of, iou_and_union, pair_losses
from ..matcher import Cost, ciou, padded_cost
from .cases import BINS, Case

isolate_ultralytics()  # which boxloss' replacement may be the first to import

EPS = 1e-7
GAINS = {"box": 7.5, "cls": 0.5, "dfl": 1.5}  # Ultralytics', for training
Step = Callable[[], Tensor]  # the sum of all losses
Operators = Mapping[str, Callable[..., Any]]

# --- What the criteria take from boxloss, and the same in plain torch ---


def fused_operators(counts: tuple[int, ...], compiled: bool = False) -> Operators:
    """boxloss' own, to which `counts` are nothing new."""
    found = {name: getattr(boxloss.torch, name) for name in plain_operators(counts)}
    return _with_eager_host(found, "collate_ragged") if compiled else found


def plain_operators(counts: tuple[int, ...], compiled: bool = False) -> Operators:
    """For images that have `counts` ground-truth boxes."""
    found = {
        "collate_ragged": boxloss.torch.collate_ragged,  # one cat and one copy
        "matching_cost": partial(matching_cost, most=max(counts), fused=compiled),
        "hungarian_match": partial(hungarian_match, counts=counts),
        "box_losses": box_losses,
        "class_loss": class_loss,
        "box_loss": box_loss,
        "giou_loss": giou_loss,
        "ciou_loss": ciou_loss,
        "task_aligned_match": partial(task_aligned_match, most=max(counts)),
    }
    return _with_eager_host(found, "collate_ragged", "hungarian_match") if compiled else found


def _with_eager_host(found: Operators, *names: str) -> Operators:
    """With what is nothing to compile left out of the graphs: it builds lists, or is SciPy."""
    return {**found, **{name: torch.compiler.disable(found[name]) for name in names}}


def matching_cost(
    boxes: Tensor,
    true_boxes: Tensor,
    offsets: Tensor,
    *,
    logits: Tensor,
    labels: Tensor,
    most: int,
    fused: bool,
    iou_weight: float,
    l1_weight: float,
    class_weight: float,
    class_mode: str = "softmax",
    **ignored: Any,
) -> Tensor:
    """(layers, images, queries, most): each image's ground-truth boxes are padded."""
    rows = offsets[:-1, None] + torch.arange(most, device=offsets.device)
    rows = rows.clamp(max=len(true_boxes) - 1)
    cost = Cost("giou", iou_weight, l1_weight, class_weight, class_mode)
    return padded_cost(boxes.detach(), logits.detach(), true_boxes[rows], labels[rows], cost, fused)


def hungarian_match(
    cost: Tensor, offsets: Tensor, *, counts: tuple[int, ...], groups: int = 1
) -> boxloss.torch.MatchResult:
    """SciPy on each image of each layer, without padding; one copy there, and one back."""
    assert groups == 1
    assign = scipy_assignment()
    layers, images, queries, _ = cost.shape
    firsts = [*accumulate(counts, initial=0)]
    rows, columns = [], []
    of_query = np.full((layers * images, queries), -1)
    for block, costs in enumerate(cost.flatten(0, 1).cpu().numpy()):
        image = block % images
        row, column = assign(costs[:, : counts[image]])
        rows.append(row + block * queries)
        columns.append(column + firsts[image])
        of_query[block, row] = columns[-1]
    found = torch.from_numpy(np.concatenate([*rows, *columns, of_query.ravel()]))
    found = found.to(cost.device, non_blocking=True)
    pairs, rest = found.tensor_split([len(found) - of_query.size])
    pred_index, target_index = pairs.view(2, layers, -1)
    target_of_query = rest.view(layers, images, queries)
    return boxloss.torch.MatchResult(pred_index, target_index, target_of_query)


def box_losses(
    pred: Tensor,
    target: Tensor,
    loss: str,
    *,
    target_index: Tensor,
    normalizer: Tensor,
    pred_index: Tensor | None = None,
    **ignored: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """GIoU's loss and L1 of each layer, and the IoU of each pair, which gets no gradient."""
    if pred_index is None:  # -1 is none: there both boxes are the same, and have no loss
        is_pair = target_index >= 0
        target = functional.pad(target, (0, 0, 0, 1), value=0.5)
        pred = torch.where(is_pair[..., None], pred, 0.5)
        pred_index = torch.arange(is_pair.numel(), device=pred.device).view_as(is_pair)
        giou, l1, iou = pair_losses(pred, target, pred_index, target_index % len(target))
        iou = torch.where(is_pair, iou, 0)
    else:
        giou, l1, iou = pair_losses(pred, target, pred_index, target_index)
    return giou / normalizer, l1 / normalizer, iou


def class_loss(
    logits: Tensor,
    target_index: Tensor,
    labels: Tensor,
    *,
    mode: str,
    query_quality: Tensor | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    no_object_weight: float = 1.0,
    normalizer: Tensor | None = None,
    **ignored: Any,
) -> Tensor:
    """As detectors write it: targets of the logits' size. (layers), if there are layers."""
    has_box, classes = target_index >= 0, logits.shape[-1]
    own = functional.pad(labels, (0, 1))[target_index.clamp(min=-1)]

    def total(losses: Tensor) -> Tensor:
        return losses.flatten(1).sum(1) if logits.dim() == 4 else losses.sum()

    if mode == "softmax":
        weight = torch.ones(classes, dtype=logits.dtype, device=logits.device)
        weight[-1].fill_(no_object_weight)
        own = torch.where(has_box, own, classes - 1)
        losses = functional.cross_entropy(
            logits.flatten(0, -2), own.flatten(), weight, reduction="none"
        )
        return total(losses.view_as(own)) / total(weight[own])
    is_own = torch.zeros_like(logits).scatter_(-1, own[..., None], has_box[..., None].to(logits))
    quality = is_own
    if query_quality is not None:
        quality = torch.where(is_own > 0, query_quality[..., None], 0)
    losses = functional.binary_cross_entropy_with_logits(logits, quality, reduction="none")
    if mode == "varifocal":
        weight = alpha * logits.detach().sigmoid().pow(gamma)
        losses = losses * torch.where(is_own > 0, quality, weight)
    elif mode == "focal":
        miss = logits.sigmoid()
        miss = miss + is_own - 2 * miss * is_own
        losses = losses * miss.pow(gamma) * (1 - alpha + (2 * alpha - 1) * is_own)
    losses = torch.where((target_index == -2)[..., None], 0, losses)
    return total(losses) / normalizer


def box_loss(
    pred: Tensor,
    true_boxes: Tensor,
    loss: str,
    *,
    pred_format: str,
    target_index: Tensor,
    weight: Tensor,
    reduction: str,
) -> Tensor:
    assert (loss, pred_format, reduction) == ("giou", "cxcywh", "sum")
    center, side = pred.split(2, 1)
    pred = torch.cat((center - side / 2, center + side / 2), 1)
    return _masked_giou(pred, true_boxes, target_index, weight)


def giou_loss(
    pred: Tensor, true_boxes: Tensor, *, target_index: Tensor, normalizer: Tensor
) -> Tensor:
    return _masked_giou(pred, true_boxes, target_index, 1) / normalizer


def ciou_loss(
    pred: Tensor, target: Tensor, *, target_index: Tensor, weight: Tensor, normalizer: Tensor
) -> Tensor:
    other = target[target_index.clamp(min=0)]  # of those without a box the weight is 0
    return ((1 - ciou(pred, other, EPS)) * weight).sum() / normalizer


def task_aligned_match(
    scores: Tensor,
    pred: Tensor,
    points: Tensor,
    target: Tensor,
    offsets: Tensor,
    labels: Tensor,
    *,
    topk: int,
    topk2: int,
    alpha: float,
    beta: float,
    min_side: float,
    most: int,
    **ignored: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Each image's ground-truth boxes are padded."""
    assert topk2 == topk
    rows = offsets[:-1, None] + torch.arange(most, device=offsets.device)
    is_box = (rows < offsets[1:, None])[..., None]
    rows = rows.clamp(max=len(target) - 1)
    boxes, of_class = target[rows], labels[rows]
    centres, sides = boxes[..., :2] + boxes[..., 2:], boxes[..., 2:] - boxes[..., :2]
    half = sides.clamp(min=min_side)[:, :, None] / 2
    is_inside = ((points - centres[:, :, None] / 2).abs() < half).all(-1) & is_box
    overlap = ciou(pred[:, None], boxes[:, :, None], EPS).clamp(min=0).where(is_inside, 0)
    own = scores.mT.gather(1, of_class[..., None].expand(-1, -1, len(points)))
    metric = own.pow(alpha) * overlap.pow(beta)

    best = metric.topk(topk)
    chosen = torch.zeros_like(metric).scatter_(-1, best.indices, (best.values > 0).to(metric))
    owner = torch.where(chosen.sum(1) > 1, overlap.argmax(1), chosen.argmax(1))
    box = torch.arange(most, device=owner.device)[:, None]
    is_owned = (box == owner[:, None]) & chosen.any(1, keepdim=True) & (metric > 0)
    metric, overlap = metric.where(is_owned, 0), overlap.where(is_owned, 0)
    score = metric * overlap.amax(-1, True) / (metric.amax(-1, True) + 1e-9)
    row = torch.where(is_owned.any(1), owner + offsets[:-1, None], -1)
    return row, score.amax(1), overlap.amax(1)


def _masked_giou(
    pred: Tensor, true_boxes: Tensor, target_index: Tensor, weight: Tensor | int
) -> Tensor:
    """Of all pairs, by a mask; -1 is none."""
    foreground = target_index >= 0
    truths = functional.pad(true_boxes, (0, 0, 0, 1))[target_index]
    # Selected twice, or else what is not finite in the background would reach the gradient.
    one = torch.where(foreground[:, None], pred, 0.0)
    losses = 1 - giou_of(one, truths, *iou_and_union(one, truths, EPS), EPS)
    return torch.where(foreground, losses * weight, 0.0).sum()


# --- Criteria, and how a model calls them ---


@dataclass(frozen=True)
class Detector:
    call: Callable[[Case, Any], Step]
    own: str  # module and name
    ours: str  # likewise, in boxloss.torch.compat.families


def our_step(case: Case, operators: Operators) -> Step:
    """boxloss.torch.compat's, with these operators where it calls boxloss."""
    if "labels" in case.inputs:  # a DETR's
        scipy_assignment()  # or UnavailableError
    detector = detector_of(case)
    module, _, name = detector.ours.partition(".")
    return detector.call(case, getattr(compat_with(module, operators), name))


def own_step(case: Case) -> Step:
    detector = detector_of(case)
    path, _, name = detector.own.rpartition(".")
    of_transformers = path.removeprefix("transformers.loss.")
    module = installed(path) if of_transformers == path else transformers_loss(of_transformers)
    return detector.call(case, getattr(module, name))


def _detr(case: Case, criterion: Callable[..., Any]) -> Step:
    return lambda: criterion(device=case.device, **case.inputs, **case.leaves)[0]


def _rt_detr(case: Case, criterion: Callable[..., Any]) -> Step:
    def step() -> Tensor:
        scores, boxes = case.leaves["outputs_class"], case.leaves["outputs_coord"]
        last = {"logits": scores[:, -1], "pred_boxes": boxes[:, -1]}
        return criterion(device=case.device, **last, **case.inputs, **case.leaves)[0]

    return step


def _fcos(case: Case, head: type[Any]) -> Step:
    made = head(in_channels=32, num_anchors=1, num_classes=1, num_convs=1)  # its layers are idle
    return lambda: sum(made.compute_loss(head_outputs=case.leaves, **case.inputs).values())


def _retinanet(case: Case, head: type[Any]) -> Step:
    made = head(in_channels=32, num_anchors=1)
    made._loss_type = "giou"  # RetinaNet v2
    return lambda: made.compute_loss(head_outputs=case.leaves, **case.inputs)


def _yolo(case: Case, criterion: type[Any]) -> Step:
    logits = case.leaves["scores"]
    stride = torch.tensor([float(each) for each in STRIDES], device=logits.device)
    head = SimpleNamespace(stride=stride, nc=logits.shape[1], reg_max=BINS)
    args, parameters = SimpleNamespace(**GAINS), lambda: iter([logits])
    made = criterion(SimpleNamespace(parameters=parameters, args=args, model=[head]))
    feats = [logits.new_zeros(1, 1, *each) for each in case.inputs["cells"]]
    preds = {**case.leaves, "feats": feats}
    return lambda: made.loss(preds, case.inputs["batch"])[0].sum()


DETECTORS = {
    "detr": Detector(
        _detr,
        "transformers.loss.loss_for_object_detection.ForObjectDetectionLoss",
        "detr.detr_loss",
    ),
    "rtdetr": Detector(
        _rt_detr,
        "transformers.loss.loss_rt_detr.RTDetrForObjectDetectionLoss",
        "rt_detr.rt_detr_loss",
    ),
    "fcos": Detector(_fcos, "torchvision.models.detection.fcos.FCOSHead", "fcos.Head"),
    "retinanet": Detector(
        _retinanet,
        "torchvision.models.detection.retinanet.RetinaNetRegressionHead",
        "retinanet.RegressionHead",
    ),
    "yolo": Detector(_yolo, "ultralytics.utils.loss.v8DetectionLoss", "yolo.DetectionLoss"),
}


def detector_of(case: Case) -> Detector:
    return DETECTORS[case.kind.removesuffix("-dense")]


_copies = count()


# What calls operators for a family.
SHARED = (
    *("boxloss.torch.query_losses", "boxloss.torch.compat.criterion"),
    *("boxloss.torch.compat.families.detr", "boxloss.torch.compat.yolo"),
)


def compat_with(name: str, operators: Operators) -> Any:
    """A copy of its own of boxloss.torch.compat.families.`name`, with `operators` in it and in what
    it shares with others."""
    path = f"boxloss.torch.compat.families.{name}"
    places = (*SHARED, path)
    before = _taken_out(places)
    try:
        module = import_module(path)
    except (ImportError, RuntimeError) as error:
        raise UnavailableError(f"{path} cannot be imported ({error})") from error
    finally:
        copies = _taken_out(places)
        for place, each in before.items():
            parent, _, own = place.rpartition(".")
            sys.modules[place] = each
            setattr(sys.modules[parent], own, each)
    for place, copy in copies.items():
        # A name of its own, by which torch.compile looks up what a function reads.
        copy.__name__ = f"{place}_copy_{next(_copies)}"
        sys.modules[copy.__name__] = copy
        vars(copy).update({key: each for key, each in operators.items() if hasattr(copy, key)})
    return module


def _taken_out(places: Sequence[str]) -> dict[str, Any]:
    """Those modules that are there; "from .. import" would find one in its package, too."""
    found = {place: sys.modules.pop(place) for place in places if place in sys.modules}
    for parent, _, own in (place.rpartition(".") for place in found):
        delattr(sys.modules[parent], own)
    return found
