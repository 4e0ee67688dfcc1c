# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the criteria of Ultralytics' YOLOs have in common.

The original's assigner holds tensors of all anchors x boxes; here it is one operation, whose result
says for each anchor which row of the ground truth it learns, and scores are read where they lie.
Ultralytics is imported here, under its AGPL-3.0.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.weak import WeakIdKeyDictionary
from ultralytics.utils.loss import BboxLoss, DFLoss, v8DetectionLoss
from ultralytics.utils.tal import TaskAlignedAssigner

from ..class_loss import class_loss
from ..losses import ciou_loss
from ..task_aligned_match import task_aligned_match
from . import faults
from .faults import GroundTruth
from .parts import Parts, check_class, check_methods
from .targets import offsets_of, rows_of_batch
from .ultralytics_models import check_classes
from .versions import is_before

# Until 8.4.128 only sides below the first stride were enlarged to the second one.
ENLARGES_BELOW_FIRST = is_before("ultralytics", 8, 4, 128)

PARTS = Parts(
    {
        "ultralytics.utils.loss": (
            *("BboxLoss", "RotatedBboxLoss", "DFLoss", "v8DetectionLoss", "v8OBBLoss"),
            *("TaskAlignedAssigner", "RotatedTaskAlignedAssigner", "make_anchors", "xywh2xyxy"),
            *("bbox_iou", "probiou", "bbox2dist", "dist2bbox", "rbox2dist", "dist2rbox"),
        ),
        "ultralytics.utils.tal": ("bbox_iou", "probiou"),
    }
)

FAR = -1e6  # pixels, where no point is
EPS = 1e-9  # of the assigner, beside the highest metric


class Learned(NamedTuple):
    """What the anchors of all images learn of boxes.

    Attributes:
        losses: box, classes and sides, each with its gain.
        row: (images, anchors): of the ground truth, or -1.
        target: corners in pixels.
        offsets: (images + 1): image b has rows offsets[b] to offsets[b + 1].
        cells, strides: of the anchors.
    """

    losses: Tensor
    row: Tensor
    target: Tensor
    offsets: Tensor
    cells: Tensor
    strides: Tensor


def learn_boxes(criterion: Any, preds: dict[str, Any], batch: dict[str, Tensor]) -> Learned:
    check_parts(criterion)
    logits = preds["scores"].mT
    check_classes(criterion, logits)
    sides = preds["boxes"]
    its = grid(preds["feats"], criterion.stride)
    truth = with_corners(ground_truth(criterion, batch, len(logits), its.size))
    # In pixels, as all boxes here.
    pred = torch.addcmul(its.points, distances(criterion, sides.detach()), its.reach).mT
    found = match(criterion, logits, pred, its.points[:2], truth)
    own = found.of(sides)
    points, reach = its.at(found.place)
    pred = torch.addcmul(points, distances(criterion, own[None]).squeeze(0), reach).mT
    box = ciou_loss(
        pred,
        truth.boxes,
        target_index=found.chosen,
        weight=found.weight,
        normalizer=found.total / criterion.hyp.box,
    )
    classes = score_loss(criterion, logits, truth.labels, found)
    wanted = (truth.boxes[found.chosen].mT - points) / reach
    of_sides = side_loss(criterion, own, wanted, reach / its.size[:, None], found)
    losses = torch.stack((box, classes, of_sides))
    return Learned(losses, found.row, truth.boxes, truth.offsets, its.cells, its.strides)


class Found(NamedTuple):
    """Which anchors learn.

    Attributes:
        row, score: (images, anchors), row of the ground truth, or -1.
        place: of all images' anchors, as many as could learn, since to count would be to wait.
            What is left of them are anchors without a box: their weight is 0, their row -1.
        chosen, weight: row and score there.
        total: what losses are divided by.
    """

    row: Tensor
    score: Tensor
    place: Tensor
    chosen: Tensor
    weight: Tensor
    total: Tensor

    def of(self, outputs: Tensor) -> Tensor:
        """Those of (images, n, anchors) at all places: (n, places), 0 without a box."""
        return torch.where(self.chosen >= 0, columns(outputs, self.place), 0)


def match(
    criterion: Any, logits: Tensor, pred: Tensor, points: Tensor, truth: GroundTruth
) -> Found:
    """By predictions in pixels; points are (2, anchors)."""
    assigner = criterion.assigner
    row, score, _ = task_aligned_match(
        logits.detach().sigmoid(),
        pred,
        points.mT,
        truth.boxes,
        truth.offsets,
        truth.labels,
        topk=assigner.topk,
        topk2=getattr(assigner, "topk2", None),
        alpha=assigner.alpha,
        beta=assigner.beta,
        **small_sides(assigner),
    )
    # As wide as boxes, or losses that nearly cancel each other out would have different factors.
    total = score.sum().clamp(min=truth.one).to(truth.boxes.dtype)
    most = min(assigner.topk * len(truth.boxes), score.numel())  # each box chose topk at most
    weight, place = score.flatten().topk(most, sorted=False)
    return Found(row, score, place, row.flatten()[place], weight, total)


def distances(criterion: Any, sides: Tensor) -> Tensor:
    """bbox_decode's, in strides: (images, 4, anchors) of (images, 4 * bins, anchors)."""
    if not criterion.use_dfl:
        return sides
    images, _, anchors = sides.shape
    shares = sides.reshape(4 * images, criterion.reg_max, anchors).softmax(1)
    # Not as a matrix product, which may round to TF32.
    bins = criterion.proj.to(sides.dtype)[:, None]
    return (shares * bins).sum(1).view(images, 4, anchors)


def columns(sides: Tensor, place: Tensor) -> Tensor:
    """Those of (images, n, anchors) at places of (images * anchors): (n, places).

    By numbers of one list, since torch sorts the gradient of what has several indices.
    """
    _, rows, anchors = sides.shape
    first = torch.add(place, place // anchors, alpha=(rows - 1) * anchors)
    lower = torch.arange(0, rows * anchors, anchors, device=place.device)
    index = lower[:, None] + first
    return sides.flatten().index_select(0, index.flatten()).view(index.shape)


def focal_loss(criterion: Any, sides: Tensor, wanted: Tensor, weight: Tensor) -> Tensor:
    """DFLoss: the cross-entropy towards two bins, of which the nearer has the larger share.

    Args:
        sides: (4 * bins, pairs). wanted: (4, pairs), in strides. weight: (pairs), of each side.
    """
    bins = criterion.reg_max
    wanted = wanted.clamp(0, bins - 1 - 0.01)
    apart = (wanted[:, None] - criterion.proj[:, None]).abs()
    minus_share = (apart - 1).clamp(max=0) * weight
    logarithms = sides.unflatten(0, (4, bins)).log_softmax(1, dtype=minus_share.dtype)
    return (logarithms * minus_share).sum()


def side_loss(criterion: Any, own: Tensor, wanted: Tensor, unit: Tensor, found: Found) -> Tensor:
    """Of distances (4, places), in strides; `unit` is a stride's part of the image."""
    weight = found.weight.to(found.total) * (criterion.hyp.dfl / 4) / found.total
    if criterion.use_dfl:
        return focal_loss(criterion, own, wanted, weight)
    return ((own - wanted) * unit).abs().mul(weight).sum()


def score_loss(criterion: Any, logits: Tensor, labels: Tensor, found: Found) -> Tensor:
    """Of all anchors, of which those with a box are to have its score."""
    row, score, total = found.row, found.score, found.total / criterion.hyp.cls
    of_classes = getattr(criterion, "class_weights", None)
    bce = criterion.bce
    is_plain = type(bce) is nn.BCEWithLogitsLoss and bce.reduction == "none"
    if is_plain and bce.weight is None and bce.pos_weight is None:
        return class_loss(
            logits,
            row,
            labels,
            mode="bce",
            query_quality=score,
            weight=None if of_classes is None else of_classes.flatten(),
            normalizer=total,
        )
    # Somebody's own, which takes what Ultralytics' gives it.
    wanted = torch.zeros_like(pad(logits, (0, 1)))
    column = torch.where(row < 0, logits.shape[-1], pad(labels, (0, 1))[row])
    wanted = wanted.scatter_(-1, column[..., None], score[..., None].to(wanted))[..., :-1]
    entropy = bce(logits, wanted)
    return (entropy if of_classes is None else entropy * of_classes).sum() / total


def ground_truth(
    criterion: Any, batch: dict[str, Tensor], images: int, scale: Tensor
) -> GroundTruth:
    """A batch is a list already, image after image; its boxes times `scale` are in pixels.

    Of `pad_batch` its "offsets" say which rows are an image's.
    """
    image, label, boxes = (each.to(criterion.device) for each in rows_of_batch(batch))
    if boxes.shape[1:] != scale.shape:
        raise ValueError(
            f"bboxes has shape {tuple(boxes.shape)}; for this model it must be (n, {len(scale)})"
        )
    boxes = boxes.to(torch.promote_types(boxes.dtype, torch.float32))
    boxes = boxes * scale.to(boxes)
    image, label = image.flatten(), label.flatten().long()
    if "offsets" in batch:
        offsets = batch["offsets"].to(criterion.device)
    else:
        offsets = offsets_of(image, images)
    rows = faults.Rows(boxes, label, offsets, "cls", criterion.nc, True, image)
    label, factor = faults.check(rows)
    return GroundTruth(boxes, offsets, label, [], factor)


def with_corners(truth: GroundTruth) -> GroundTruth:
    center, side = truth.boxes.split(2, 1)
    corners = torch.cat((center.sub(side, alpha=0.5), center.add(side, alpha=0.5)), 1)
    # Padding, to Ultralytics; here a box that holds no point.
    boxes = torch.where(corners.sum(1, keepdim=True) > 0, corners, FAR)
    return GroundTruth(boxes, *truth[1:])


class Grid(NamedTuple):
    """All maps' anchors, N.

    Attributes:
        cells, strides: (N, 2) and (N, 1), make_anchors'.
        table: (8, N): points and reach.
        points, reach: (4, N): in pixels, a box is its point twice and distances * reach.
        size: (4): an image's width and height, twice.
    """

    cells: Tensor
    strides: Tensor
    table: Tensor
    size: Tensor

    @property
    def points(self) -> Tensor:
        return self.table[:4]

    @property
    def reach(self) -> Tensor:
        return self.table[4:]

    def at(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Points and reach, (4, places)."""
        points, reach = self.table.index_select(1, place % len(self.cells)).split(4)
        return points, reach


def make_grid(maps: list[Tensor], stride: Tensor) -> Grid:
    first = maps[0]
    sides = [each.shape[2:] for each in maps]
    middles = torch.arange(max(map(max, sides)), device=first.device, dtype=first.dtype) + 0.5
    centres, strides = [], []
    for (height, width), step in zip(sides, stride, strict=True):
        x, y = middles[:width].expand(height, -1), middles[:height, None].expand(-1, width)
        centres.append(torch.stack((x, y), -1).flatten(0, 1))
        strides.append(step.to(first).expand(height * width, 1))
    cells, steps = torch.cat(centres), torch.cat(strides)
    points, right = (cells * steps).mT, steps.mT
    table = torch.cat((points, points, -right, -right, right, right))
    down, across = (side * stride[0] for side in sides[0])
    return Grid(cells, steps, table, torch.stack((across, down, across, down)).to(first.device))


_kept: Any = WeakIdKeyDictionary()  # by the strides, of which a model has one tensor


def grid(maps: list[Tensor], stride: Tensor) -> Grid:
    """That of the step before, where maps are as large: it takes twenty launches."""
    first = maps[0]
    is_known = first.is_cpu or first.is_cuda  # whose streams are known
    if not is_known or not faults.has_values(first) or stride.is_inference():
        return make_grid(maps, stride)
    stream = torch.cuda.current_stream(first.device) if first.is_cuda else None
    shapes = [each.shape[2:] for each in maps]
    about = shapes, first.dtype, first.device, stream, stride._version
    found = _kept.get(stride)
    if found is None or found[0] != about:
        with torch.inference_mode(False):  # training could not save tensors of that mode
            found = about, make_grid(maps, stride)
        _kept[stride] = found
    return found[1]


def small_sides(assigner: Any) -> dict[str, Any]:
    """How it enlarges small boxes; until 8.4 it did not."""
    if not hasattr(assigner, "stride"):
        return {}
    side = getattr(assigner, "stride_val", None) or assigner.stride[1]
    return {
        "min_side": side,
        "small_side": assigner.stride[0] if ENLARGES_BELOW_FIRST else side,
    }


METHODS = "preprocess", "parse_output", "bbox_decode", "get_assigned_targets_and_loss"


def check_parts(
    loss: Any,
    theirs: type = v8DetectionLoss,
    assigner: type = TaskAlignedAssigner,
    box_loss: type = BboxLoss,
    methods: tuple[str, ...] = METHODS,
) -> None:
    """What boxloss has no call for must be Ultralytics' own, as it is when it is called."""
    PARTS.check()
    check_class(loss.assigner, assigner)
    check_class(loss.bbox_loss, box_loss)
    if loss.use_dfl:
        check_class(loss.bbox_loss.dfl_loss, DFLoss)
    if loss.assigner.eps != EPS:
        raise ValueError(f"the assigner's eps is {loss.assigner.eps}; boxloss has {EPS} there")
    check_methods(loss, theirs, methods)
