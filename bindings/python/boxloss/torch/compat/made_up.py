# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches for `proof`: what a model of its configuration could give its criterion.

Images without boxes among others, all of them, and where queries are matched more boxes than
queries. Boxes lie near predictions, so that rounding decides no match. What the pages list as a
difference between boxloss and an original is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .proof import Case

COUNTS = ((2, 0, 5), (0, 0))  # boxes of each image
SIDE = 2.0**-3  # the shortest
MOST = 100  # queries of transformers' models: originals compare all pairs with each other


class MadeUp:
    """Random numbers of its own, on a model's device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.generator = torch.Generator().manual_seed(0)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float32)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        drawn = torch.rand(shape, generator=self.generator, dtype=torch.float32)
        return low + (high - low) * drawn

    def integers(self, below: int, *shape: int) -> Tensor:
        return torch.randint(below, shape, generator=self.generator)

    def angles(self, *shape: int) -> Tensor:
        """As Ultralytics' labels have them."""
        return self.uniform(-math.pi / 4, 3 * math.pi / 4, *shape)

    def boxes(self, *shape: int) -> Tensor:
        """cxcywh, in an image whose sides are 1."""
        return torch.cat(
            (self.uniform(0.3, 0.7, *shape, 2), self.uniform(SIDE, 0.5, *shape, 2)), -1
        )

    def near(self, boxes: Tensor, count: int) -> Tensor:
        """`count` boxes near different ones of a list, and others when there are no more."""
        order = torch.randperm(len(boxes), generator=self.generator)[:count]
        chosen = torch.cat((boxes[order], self.boxes(count - len(order))))
        return (chosen + 0.02 * self.normal(count, 4)).clamp(min=SIDE / 2)

    def output(self, values: Tensor) -> Tensor:
        """As a network's output."""
        return values.to(self.device).requires_grad_()


# --- transformers ---

LIKE_D_FINE = "DFine", "Deimv2"


def for_transformers(model: Any, name: str) -> Iterator[Case]:
    """For a model whose criterion is the function `name`; "layers" is their dimension."""
    config = model.config
    if name == "LwDetrForObjectDetectionLoss":
        yield from _in_groups(model, name)
        return
    is_rt_detr = name.startswith(("RTDetr", *LIKE_D_FINE))
    queries = min(getattr(config, "num_queries", None) or config.num_detection_tokens, MOST)
    for counts in (*COUNTS, (queries + 3, 1)):
        words = f"in training, images with {counts} boxes"
        if not is_rt_detr:
            yield Case(words, _detr(model, counts, queries, name), any(counts))
            continue
        if config.num_denoising:
            yield Case(words, _rt_detr(model, counts, queries, name, True), any(counts))
        if not config.num_denoising or counts == COUNTS[0]:
            words = f"in evaluation, images with {counts} boxes"
            yield Case(words, _rt_detr(model, counts, queries, name, False), any(counts))


def _in_groups(model: Any, name: str) -> Iterator[Case]:
    """In training few queries, since the original compares all groups' pairs with each other."""
    for queries, groups, when in (
        (10, model.config.group_detr, "training"),
        (min(model.config.num_queries, MOST), 1, "evaluation"),
    ):
        for counts in (*COUNTS, (queries + 3, 1)):
            words = f"in {when}, images with {counts} boxes"
            yield Case(words, _detr(model, counts, queries, name, groups), any(counts))


HEADS = {"class_embed", "class_labels_classifier"}


def _classes(model: Any) -> int:
    """Of the scores that its head gives; its configuration may have another number."""
    found = [
        part.out_features
        for name, part in model.named_modules()
        if HEADS & {*name.split(".")} and hasattr(part, "out_features")
    ]
    return int(found[-1]) if found else int(model.config.num_labels)


def _labels(
    random: MadeUp,
    boxes: Tensor,
    counts: tuple[int, ...],
    classes: int,
    name: str = "class_labels",
) -> Any:
    return [
        {
            name: random.integers(classes, count).to(random.device),
            "boxes": random.near(each, count).to(random.device),
        }
        for each, count in zip(boxes, counts, strict=True)
    ]


def _layers(random: MadeUp, boxes: Tensor, layers: int, classes: int) -> tuple[Tensor, Tensor]:
    """Scores and boxes of all layers, which are near each other."""
    shape = layers, *boxes.shape[:2]
    moved = boxes + 0.02 * random.normal(*shape, 4)
    return 2 * random.normal(*shape, classes), moved.clamp(min=SIDE / 2)


def _detr(
    model: Any, counts: tuple[int, ...], queries: int, name: str, groups: int = 1
) -> dict[str, Any]:
    config, random = model.config, MadeUp(_device(model))
    boxes = random.boxes(len(counts), queries)
    classes = _classes(model)  # of DETR one is "no object"
    layers = getattr(config, "decoder_layers", 2) if config.auxiliary_loss else 1
    encoder: tuple[str, ...] = ("enc_outputs_class", "enc_outputs_coord")
    text = {}
    if name == "GroundingDinoForObjectDetectionLoss":
        encoder = ("encoder_logits", "encoder_pred_boxes") if config.two_stage else ()
        text = _text(random.device, len(counts), queries, config.max_text_len)
        classes = config.max_text_len
    elif name != "LwDetrForObjectDetectionLoss":
        encoder = ()
    made = _layers(random, boxes.repeat(1, groups, 1), layers + bool(encoder), classes)
    if text:
        made[0].masked_fill_(~text["text_mask"].cpu(), -torch.inf)
    of_layers = zip(("outputs_class", "outputs_coord"), made, strict=True)
    of_encoder = zip(encoder, made, strict=False)  # which not all have
    names = len(text["label_maps"][0]) if text else min(classes, config.num_labels)
    return {
        "labels": _labels(random, boxes, counts, names),
        **{each: random.output(values[:layers]) for each, values in of_layers},
        **{each: random.output(values[layers]) for each, values in of_encoder},
        **text,
        "layers": 0,
    }


def _text(device: torch.device, images: int, queries: int, tokens: int) -> dict[str, Any]:
    """Prompts of four classes of one or two tokens, in another order for each image."""
    maps = torch.zeros(4, tokens, dtype=torch.int64)
    for row, place in ((0, 1), (1, 3), (1, 4), (2, 6), (3, 8), (3, 9)):
        maps[row, place] = 1
    mask = torch.arange(tokens) < 12 - torch.arange(images)[:, None]
    return {
        "label_maps": tuple(maps.roll(image, 0).to(device) for image in range(images)),
        "text_mask": mask[:, None].repeat(1, queries, 1).to(device),
    }


def _rt_detr(
    model: Any, counts: tuple[int, ...], queries: int, name: str, in_training: bool
) -> dict[str, Any]:
    """In training with denoising queries, before the others."""
    config, random = model.config, MadeUp(_device(model))
    images, classes = len(counts), _classes(model)
    noise = _denoising(random, counts, queries, config) if in_training else None
    boxes = random.boxes(images, queries + (noise["dn_num_split"][0] if noise else 0))
    # D-FINE predicts a box before the first layer's corners; in evaluation only the last layer.
    is_d_fine = name.startswith(LIKE_D_FINE)
    layers = config.decoder_layers if in_training or not is_d_fine else 1
    more = is_d_fine and in_training
    made = _layers(random, boxes, layers + more, classes)
    scores, boxes_of_layers = (random.output(each.transpose(0, 1)) for each in made)
    own = boxes[:, -queries:]
    arguments = {
        "labels": _labels(random, own, counts, min(classes, config.num_labels)),
        "outputs_class": scores,
        "outputs_coord": boxes_of_layers,
        "enc_topk_logits": random.output(2 * random.normal(images, queries, classes)),
        "enc_topk_bboxes": random.output(own + 0.02 * random.normal(*own.shape).abs()),
        "denoising_meta_values": noise,
        "layers": 1,
    }
    if is_d_fine:
        shape = images, layers, boxes.shape[1]
        bins = 4 * (config.max_num_bins + 1)
        arguments["predicted_corners"] = random.output(random.normal(*shape, bins))
        points = boxes[:, None].expand(*shape, 4) + 0.02 * random.normal(*shape, 4)
        arguments["initial_reference_points"] = points.clamp(min=SIDE / 2).to(random.device)
    return arguments


def _denoising(
    random: MadeUp, counts: tuple[int, ...], queries: int, config: Any
) -> dict[str, Any] | None:
    """As get_contrastive_denoising_training_group: a group is all boxes, then as many others."""
    most = max(counts)
    groups = max(config.num_denoising // most, 1) if most else 0
    if not groups:
        return None
    first = 2 * most * torch.arange(groups)[:, None]
    places = [(first + torch.arange(count)).flatten().to(random.device) for count in counts]
    return {
        "dn_positive_idx": places,
        "dn_num_group": groups,
        "dn_num_split": [2 * most * groups, queries],
    }


def _device(model: Any) -> torch.device:
    device = next(model.parameters()).device
    return torch.device("cpu") if device.type == "meta" else device


# --- rfdetr ---


def for_rf_detr(criterion: Any) -> Iterator[Case]:
    """For a SetCriterion: the last layer, another one and the encoder, on the CPU."""
    queries = 10
    for in_training in (True, False):
        for counts in (*COUNTS, (queries + 3, 1)):
            words = f"in {'training' if in_training else 'evaluation'}, images with {counts} boxes"
            groups = criterion.group_detr if in_training else 1
            made = _rf_detr(counts, queries, groups, criterion.num_classes)
            yield Case(words, {"in_training": in_training, **made}, any(counts))


def _rf_detr(counts: tuple[int, ...], queries: int, groups: int, classes: int) -> dict[str, Any]:
    random = MadeUp(torch.device("cpu"))
    boxes = random.boxes(len(counts), queries)
    made = zip(*_layers(random, boxes.repeat(1, groups, 1), 3, classes), strict=True)
    last, other, encoder = (
        {"pred_logits": random.output(scores), "pred_boxes": random.output(its_boxes)}
        for scores, its_boxes in made
    )
    return {
        "outputs": {**last, "aux_outputs": [other], "enc_outputs": encoder},
        "targets": _labels(random, boxes, counts, classes, "labels"),
    }


# --- Ultralytics ---


def for_yolo(model: Any) -> Iterator[Case]:
    """For a DetectionModel, or one with masks, keypoints or oriented boxes: pictures that are not
    squares, boxes that are small ones among them."""
    has_more = _masks(model) or _keypoints(model)
    for counts in (*COUNTS, (PLACES[0] * PLACES[1] if has_more else 40,)):
        yield Case(f"images with {counts} boxes", _yolo(model, counts), any(counts))


def _masks(model: Any) -> int:
    """How many a head puts together to one."""
    return getattr(model.model[-1], "nm", 0) if hasattr(model.model[-1], "npr") else 0


def _keypoints(model: Any) -> tuple[int, ...]:
    """How many, and the numbers of each."""
    return tuple(getattr(model.model[-1], "kpt_shape", ()))


def _yolo(model: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    head, random = model.model[-1], MadeUp(_device(model))
    masks, keypoints = _masks(model), _keypoints(model)
    is_oriented = hasattr(head, "ne")
    strides = [int(each) for each in head.stride]
    grids = [(4 * strides[-1] // each, 5 * strides[-1] // each) for each in strides]
    of_masks = tuple(2 * side for side in grids[0])
    sides = 4 * head.reg_max
    if masks or keypoints:
        boxes, near = _apart(random, counts, grids)
    else:
        boxes, near = torch.cat([random.boxes(count) for count in counts]), None
        if len(counts) > 1:
            boxes[::3, 2:] *= 0.2
    total = sum(counts)
    if is_oriented:
        boxes = torch.cat((boxes, random.angles(total, 1)), 1)
        # Pixels; Ultralytics leaves out what is below 2.
        boxes[:1, 2], boxes[1:2, 3] = 2.2 / (5 * strides[-1]), 1.8 / (4 * strides[-1])
    batch = {
        "batch_idx": torch.arange(len(counts))
        .repeat_interleave(torch.tensor(counts))
        .to(torch.float32),
        "cls": random.integers(head.nc, total, 1).to(torch.float32),
        "bboxes": boxes,
    }
    if keypoints:
        number, numbers = keypoints
        visible = random.integers(3, total, number, numbers - 2)
        batch["keypoints"] = torch.cat((random.uniform(0, 1, total, number, 2), visible), -1)
    if masks:
        from .ultralytics_models import criterion_of, settings

        made = criterion_of(model)
        one = getattr(made, "one2many", made)
        overlaps = getattr(one, "overlap", settings(model).overlap_mask)
        highest = counts if overlaps else total * (1,)
        each = [random.integers(most + 1, 1, *of_masks) for most in highest]
        none = torch.zeros(0, *of_masks, dtype=torch.float32)
        batch["masks"] = torch.cat([*each, none])
    from ultralytics.utils.loss import v8DetectionLoss

    def preds() -> Any:
        anchors = sum(height * width for height, width in grids)
        # Distances of 1 to 4 cells, or distributions around them: most predictions overlap boxes,
        # as those of which a box has too few are a difference that the pages list.
        distances = random.uniform(1, 4, len(counts), 4, 1, anchors)
        if near is not None:
            distances = near * random.uniform(0.8, 1.2, *near.shape)
        if head.reg_max > 1:
            bins = torch.arange(head.reg_max)[:, None]
            distances = (
                random.normal(len(counts), 4, head.reg_max, anchors) - 3 * (bins - distances).abs()
            )
        scores = random.normal(len(counts), head.nc, anchors)
        values = torch.cat((distances.flatten(1, 2), scores), 1)
        maps = [
            each.unflatten(2, grid)
            for each, grid in zip(values.split([h * w for h, w in grids], 2), grids, strict=True)
        ]
        if not hasattr(v8DetectionLoss, "loss"):  # until 8.4
            return [random.output(each) for each in maps]
        made = {"boxes": values[:, :sides], "scores": values[:, sides:]}
        if is_oriented:
            # No pair is nearly equal: an eps of 1e-7 beside the square of a ProbIoU loss above 0.1,
            # as all are, moves it by less than 1e-7 / (2 * 0.1^2) = 5e-6 of it.
            made["angle"] = random.angles(len(counts), 1, anchors)
        if keypoints:
            made["kpts"] = random.normal(len(counts), number * numbers, anchors)
        if masks:
            made["mask_coefficient"] = random.normal(len(counts), masks, anchors)
            made["proto"] = random.normal(len(counts), masks, *of_masks)
        outputs = {name: random.output(each) for name, each in made.items()}
        return {**outputs, "feats": [each.to(random.device) for each in maps]}

    has_two = getattr(head, "one2one_cv2", None) is not None  # fusing leaves one of them
    found = {"one2many": preds(), "one2one": preds()} if has_two else preds()
    return {"preds": found, "batch": {name: each.to(random.device) for name, each in batch.items()}}


PLACES = 3, 4  # of boxes that do not overlap: rows, and columns


def _middles(rows: int, columns: int) -> Tensor:
    """Of an image's parts, row by row: x and y."""
    y, x = (torch.arange(each, dtype=torch.float32) + 0.5 for each in (rows, columns))
    return torch.cartesian_prod(y / rows, x / columns).flip(1)


def _apart(
    random: MadeUp, counts: tuple[int, ...], grids: list[tuple[int, int]]
) -> tuple[Tensor, Tensor]:
    """Boxes, and for each anchor the distances, in cells, of the sides of the box that it is near:
    (images, 4, 1, anchors). So all anchors in a box overlap it, and no other. Of those that do not
    Ultralytics' masks and keypoints learn some, which the pages list as a difference."""
    rows, columns = PLACES
    middles = _middles(rows, columns)
    boxes, distances = [], []
    for count in counts:
        centres = middles + random.uniform(-0.02, 0.02, *middles.shape)
        sizes = random.uniform(0.3, 0.8, *middles.shape) / torch.tensor([columns, rows])
        boxes.append(torch.cat((centres, sizes), 1)[:count])
        for height, width in grids:
            points = _middles(height, width)
            x, y = (points * torch.tensor([columns, rows])).long().unbind(1)
            place = y * columns + x
            apart, halves = points - centres[place], sizes[place] / 2
            sides = torch.cat((halves + apart, halves - apart), 1)
            distances.append((sides * torch.tensor([width, height] * 2)).clamp(min=0.1))
    return torch.cat(boxes), torch.cat(distances).view(len(counts), -1, 4).mT[:, :, None]


def for_ultralytics_rt_detr(model: Any) -> Iterator[Case]:
    """For an RTDETRDetectionModel, which has the encoder as its first layer."""
    queries, layers, classes = 20, 3, model.model[-1].nc
    for counts in (*COUNTS, (queries + 3, 1)):
        for groups in (0, 2) if any(counts) else (0,):
            words = f"images with {counts} boxes, {groups} groups of denoising queries"
            random = MadeUp(_device(model))
            boxes = random.boxes(len(counts), queries)
            scores, boxes_of_layers = map(random.output, _layers(random, boxes, layers, classes))
            truth = [random.near(each, count) for each, count in zip(boxes, counts, strict=True)]
            index = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
            arguments: dict[str, Any] = {
                "preds": (boxes_of_layers, scores),
                "batch": {
                    "cls": random.integers(classes, sum(counts)).to(random.device),
                    "bboxes": torch.cat(truth).to(random.device),
                    "batch_idx": index.to(random.device),
                    "gt_groups": list(counts),
                },
            }
            if groups:
                most = max(counts)
                noisy = random.boxes(len(counts), 2 * most * groups)
                made = map(random.output, _layers(random, noisy, layers, classes))
                arguments |= zip(("dn_scores", "dn_bboxes"), made, strict=True)
                first = 2 * most * torch.arange(groups)[:, None]
                arguments["dn_meta"] = {
                    "dn_pos_idx": [(first + torch.arange(each)).flatten() for each in counts],
                    "dn_gt_idx": list(torch.arange(sum(counts)).split(counts)),
                    "dn_num_group": groups,
                }
            yield Case(words, arguments, any(counts))


# --- torchvision ---

SIZE = torch.tensor([160.0, 128.0], dtype=torch.float32)  # of images, in pixels
LEVELS = ((8, (24.0, 32.0, 48.0)), (16, (64.0,)))  # the strides of anchors, and their sides


def for_torchvision(model: Any) -> Iterator[Case]:
    """For all of torchvision's detectors, which have different parts of it."""
    for counts in (*COUNTS, (12,)):
        yield Case(f"images with {counts} boxes", _torchvision(model, counts), any(counts))


def _torchvision(model: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    random = MadeUp(_device(model))
    levels = [_anchors(stride, sides) for stride, sides in LEVELS]
    anchors = torch.cat(levels)
    head = getattr(getattr(model, "head", None), "classification_head", None)
    classes: int = getattr(head, "num_classes", getattr(head, "num_columns", 2))  # SSD's name
    boxes = [_corners(random.boxes(count)) for count in counts]
    jitter = [4 * random.normal(4 * len(each), 4) for each in boxes]
    near = [each.repeat(4, 1) + moved for each, moved in zip(boxes, jitter, strict=True)]
    outputs = {"cls_logits": classes, "bbox_regression": 4, "bbox_ctrness": 1}
    return {
        "targets": [
            {
                "boxes": each.to(random.device),
                "labels": random.integers(classes, len(each)).to(random.device),
            }
            for each in boxes
        ],
        "anchors": [anchors.to(random.device) for _ in counts],
        "anchors_of_levels": [len(each) for each in levels],
        "proposals": [
            torch.cat((each, _corners(random.boxes(20)))).to(random.device) for each in near
        ],
        "head_outputs": {
            name: random.output(random.normal(len(counts), len(anchors), width).abs())
            for name, width in outputs.items()
        },
    }


def _anchors(stride: int, sides: tuple[float, ...]) -> Tensor:
    width, height = (int(each) // stride for each in SIZE)
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    centres = (stride * (torch.stack((x, y), -1).view(-1, 1, 2) + 0.5)).to(torch.float32)
    halves = torch.tensor(sides, dtype=torch.float32)[:, None] / 2
    return torch.cat((centres - halves, centres + halves), -1).flatten(0, 1)


def _corners(boxes: Tensor) -> Tensor:
    """In pixels."""
    centres, sizes = boxes.split(2, -1)
    return torch.cat((centres - sizes / 2, centres + sizes / 2), -1) * SIZE.repeat(2)
