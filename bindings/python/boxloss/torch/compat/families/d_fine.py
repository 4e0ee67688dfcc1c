# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""D-FINE as transformers has it: RT-DETR's criterion, and two losses of its distributions.

A side of a box is a distribution over bins ("corners"), as an offset from a reference box. Pairs
train it towards the two bins around the true side (fine-grained localization, FGL); all queries,
towards the last layer's (decoupled distillation, DDF). D-FINE, Peng et al. 2024, 4.2 and 4.3.
Nothing here waits for the device.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...distribution_loss import distribution_loss
from ..cache import cached
from ..criterion import Learned
from ..denoising import fix_denoising
from ..transformers_batches import denoising_cases
from ..transformers_models import Given, Losses, criterion, family
from ..versions import is_before
from . import rt_detr
from .rt_detr import Kind

TEMPERATURE = 5
BOXES = "outputs_coord", "enc_topk_bboxes"
QUERIES = "predicted_corners", "initial_reference_points", "outputs_class"

# Until 5.7 layers had losses only beside denoising queries, so an evaluation had none of them.
LAYERS_NEED_NOISE = is_before("transformers", 5, 7)


@criterion("outputs_class", "outputs_coord")
def d_fine_loss(given: Given) -> Losses:
    """model.loss_function = d_fine_loss; gives what DFineForObjectDetectionLoss gives."""
    return losses_of(given, Kind())


def losses_of(given: Given, kind: Kind) -> Losses:
    """What a criterion gives, of boxes in the image."""
    config, noise = given["config"], given.get("denoising_meta_values")
    is_layered = config.auxiliary_loss and not (noise is None and LAYERS_NEED_NOISE)
    clamped = BOXES if is_layered else ("pred_boxes",)
    given = given | {name: given[name].clamp(0, 1) for name in clamped}
    if not is_layered:
        return rt_detr.losses_of(given | {"outputs_class": None}, kind)

    # Layers first; by whether they are for denoising, the noisy ones first.
    queries = [given[name].transpose(0, 1) for name in QUERIES]
    split = noise["dn_num_split"] if noise else [0, given["logits"].shape[1]]
    parts = list(zip(*(each.split(split, dim=2) for each in queries), strict=True))

    edges = bin_edges(config, given["pred_boxes"])

    def local_losses(learned: Learned) -> dict[str, Tensor]:
        is_noisy = learned.layers.target_of_query is not None
        target_of_query, iou, number = learned.of_boxes
        corners, references, scores = parts[0 if is_noisy else 1]
        teacher = corners[-1].detach().contiguous()  # once, for forward and backward
        confidence = scores[-1].detach().amax(-1).to(iou.dtype).sigmoid()
        if not is_noisy:  # the teacher has no teacher
            corners, references = corners[:-1], references[:-1]
        layers = len(corners)
        pairs = corners, target_of_query[:layers]
        iou = iou[:layers]
        fgl = distribution_loss(
            *pairs,
            mode="fgl",
            quality=iou,
            reference=references.detach().contiguous(),
            target=learned.truth.boxes,
            edges=edges,
            reg_scale=abs(config.reg_scale),
            normalizer=number,
        )
        ddf = distribution_loss(
            *pairs,
            mode="ddf",
            quality=iou,
            teacher=teacher,
            confidence=confidence,
            temperature=TEMPERATURE,
        )
        return {"loss_fgl": fgl, "loss_ddf": ddf}

    kind = replace(kind, more_losses=local_losses, layers=len(parts[1][0]))
    total, named, auxiliary = rt_detr.losses_of(given, kind)
    corners, references, scores = parts[1]
    layers = zip(auxiliary or (), corners[:-1], references[:-1], strict=False)  # not the encoder
    for each, its_corners, its_points in layers:
        each |= {"pred_corners": its_corners, "ref_points": its_points}
        each |= {"teacher_corners": corners[-1], "teacher_logits": scores[-1]}
    return total, named, auxiliary


def bin_edges(config: Any, like: Tensor) -> Tensor:
    """For weighting_function: narrow bins in the middle. At least in float32."""
    upper = abs(config.up) * abs(config.reg_scale)
    step = (upper + 1) ** (2 / (config.max_num_bins - 2))
    half = config.max_num_bins // 2
    dtype = torch.promote_types(like.dtype, torch.float32)

    def make() -> Tensor:
        place = torch.arange(1 - half, half, dtype=dtype, device=like.device)
        inner = place.sign() * (step ** place.abs() - 1)
        return pad(pad(inner, (1, 0), value=-2 * upper), (0, 1), value=2 * upper)

    return cached(("bins", upper, step, half, dtype), like, make)


FAMILY = family(d_fine_loss, partial(denoising_cases, has_corners=True), fix=fix_denoising)
