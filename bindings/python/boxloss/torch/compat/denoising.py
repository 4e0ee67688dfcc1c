# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Denoising queries of transformers' models: their pairs, and batches that have some."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .detr_layers import classes_of, queries_of
from .made_up import COUNTS, SIDE, MadeUp
from .proof import Case
from .targets import GroundTruth


def denoising_pairs(noise: dict[str, Any], truth: GroundTruth, layers: int) -> Tensor:
    """For get_cdn_matched_indices: (layers, images, queries), rows of the ground truth, or -1.

    Each group of denoising queries has all boxes again, as get_contrastive_denoising_training_group
    lays them out: as many for each image, the boxes, then the same as negative ones.
    """
    queries, _ = noise["dn_num_split"]
    groups = noise["dn_num_group"]
    if truth.counts:
        given = [len(each) for each in noise["dn_positive_idx"]]
        if given != [count * groups for count in truth.counts]:
            raise ValueError(
                f"dn_positive_idx has {given} queries with a box, in {groups} groups; labels have "
                f"{truth.counts} boxes"
            )
    most = queries // (2 * groups)  # of FixedTargets there may be more, which have no query
    first, end = truth.offsets[:-1, None], truth.offsets[1:, None]
    row = torch.arange(queries, device=first.device) % (2 * most) + first
    target = row.masked_fill_(row >= torch.minimum(end, first + most), -1)
    return target.expand(layers, -1, -1).contiguous()


def cases_of(model: Any, has_corners: bool = False) -> Iterator[Case]:
    config, queries = model.config, queries_of(model.config)
    for counts in (*COUNTS, (queries + 3, 1)):
        words, has_boxes = f"images with {counts} boxes", any(counts)
        if config.num_denoising:
            made = _made_up(model, counts, queries, has_corners, in_training=True)
            yield Case(f"in training, {words}", made, has_boxes)
        if not config.num_denoising or counts == COUNTS[0]:
            made = _made_up(model, counts, queries, has_corners, in_training=False)
            yield Case(f"in evaluation, {words}", made, has_boxes)


def _made_up(
    model: Any, counts: tuple[int, ...], queries: int, has_corners: bool, in_training: bool
) -> dict[str, Any]:
    """In training with denoising queries, before the others.

    Where boxes have corners, there is one before the first layer's; in evaluation only the last
    layer's.
    """
    config, random = model.config, MadeUp.of(model)
    images, classes = len(counts), classes_of(model)
    noise = _denoising(random, counts, queries, config) if in_training else None
    boxes = random.boxes(images, queries + (noise["dn_num_split"][0] if noise else 0))
    layers = config.decoder_layers if in_training or not has_corners else 1
    made = random.layers(boxes, layers + (has_corners and in_training), classes)
    scores, boxes_of_layers = (random.output(each.transpose(0, 1)) for each in made)
    own = boxes[:, -queries:]
    arguments = {
        "labels": random.labels(own, counts, min(classes, config.num_labels)),
        "outputs_class": scores,
        "outputs_coord": boxes_of_layers,
        "enc_topk_logits": random.output(2 * random.normal(images, queries, classes)),
        "enc_topk_bboxes": random.output(own + 0.02 * random.normal(*own.shape).abs()),
        "denoising_meta_values": noise,
        "layers": 1,
    }
    if has_corners:
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
