# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches for transformers' models."""

from collections.abc import Iterator
from typing import Any

import torch

from .made_up import COUNTS, MOST, SIDE, MadeUp, cases_of
from .proof import Case

HEADS = {"class_embed", "class_labels_classifier"}


def classes_of(model: Any) -> int:
    """Of the scores that its head gives; its configuration may have another number."""
    found = [
        part.out_features
        for name, part in model.named_modules()
        if HEADS & {*name.split(".")} and hasattr(part, "out_features")
    ]
    return int(found[-1]) if found else int(model.config.num_labels)


def queries_of(config: Any) -> int:
    return min(getattr(config, "num_queries", None) or config.num_detection_tokens, MOST)


def made_up(
    model: Any,
    counts: tuple[int, ...],
    queries: int,
    *,
    groups: int = 1,
    noisy: int = 0,
    layers: int = 0,
    encoder: tuple[str, ...] = (),
    classes: int = 0,
    axis: int = 0,
) -> dict[str, Any]:
    """What a criterion is given, but for the configuration.

    Args:
        noisy: queries for denoising, before the others.
        layers, classes: by default those of the model, of DETR with "no object".
        encoder: what its scores and boxes are called, where there are some.
        axis: where layers lie.
    """
    config, random = model.config, MadeUp.of(model)
    boxes = random.boxes(len(counts), noisy + queries)
    classes = classes or classes_of(model)
    layers = layers or (getattr(config, "decoder_layers", 2) if config.auxiliary_loss else 1)
    made = random.layers(boxes.repeat(1, groups, 1), layers + bool(encoder), classes)
    outputs = {
        name: random.output(each[:layers].transpose(0, axis))
        for name, each in zip(("outputs_class", "outputs_coord"), made, strict=True)
    }
    of_encoder = {
        name: random.output(each[layers, :, noisy:])
        for name, each in zip(encoder, made, strict=False)
    }
    labels = random.labels(boxes[:, noisy:], counts, min(classes, config.num_labels))
    return {"labels": labels, **outputs, **of_encoder, "layers": axis}


def cases(model: Any) -> Iterator[Case]:
    """Where training and evaluation are one to the criterion."""
    queries = queries_of(model.config)
    return cases_of(
        lambda counts: made_up(model, counts, queries), (queries + 3, 1), "in training, "
    )


def denoising_cases(model: Any, has_corners: bool = False) -> Iterator[Case]:
    has_noise = model.config.num_denoising
    for counts in (*COUNTS, (queries_of(model.config) + 3, 1)):
        words, has_boxes = f"images with {counts} boxes", any(counts)
        if has_noise:
            made = _with_denoising(model, counts, has_corners, in_training=True)
            yield Case(f"in training, {words}", made, has_boxes)
        if not has_noise or counts == COUNTS[0]:
            made = _with_denoising(model, counts, has_corners, in_training=False)
            yield Case(f"in evaluation, {words}", made, has_boxes)


def _with_denoising(
    model: Any, counts: tuple[int, ...], has_corners: bool, in_training: bool
) -> dict[str, Any]:
    """Where boxes have corners, there is one before the first layer's; in evaluation only the last
    layer's."""
    queries = queries_of(model.config)
    noise = _denoising(model, counts, queries) if in_training else None
    layers = model.config.decoder_layers if in_training or not has_corners else 1
    made = made_up(
        model,
        counts,
        queries,
        noisy=noise["dn_num_split"][0] if noise else 0,
        layers=layers + (has_corners and in_training),
        encoder=("enc_topk_logits", "enc_topk_bboxes"),
        axis=1,
    )
    if has_corners:
        random, boxes = MadeUp.of(model), made["outputs_coord"][:, :layers].detach().cpu()
        bins = 4 * (model.config.max_num_bins + 1)
        made["predicted_corners"] = random.output(random.normal(*boxes.shape[:3], bins))
        points = (boxes + 0.02 * random.normal(*boxes.shape)).clamp(min=SIDE / 2)
        made["initial_reference_points"] = points.to(random.device)
    return made | {"denoising_meta_values": noise}


def _denoising(model: Any, counts: tuple[int, ...], queries: int) -> dict[str, Any] | None:
    """As get_contrastive_denoising_training_group: a group is all boxes, then as many others."""
    most = max(counts)
    groups = max(model.config.num_denoising // most, 1) if most else 0
    if not groups:
        return None
    first = 2 * most * torch.arange(groups)[:, None]
    device = MadeUp.of(model).device
    return {
        "dn_positive_idx": [(first + torch.arange(each)).flatten().to(device) for each in counts],
        "dn_num_group": groups,
        "dn_num_split": [2 * most * groups, queries],
    }
