# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of D-FINE as transformers has it: RT-DETR's, and two losses of its distributions.

A side of a box is a distribution over bins ("corners"), as an offset from a reference box. Pairs
train it towards the two bins around the true side (fine-grained localization, FGL); all queries,
towards the last layer's (decoupled distillation, DDF). D-FINE, Peng et al. 2024, 4.2 and 4.3.
Nothing here waits for the device.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..distribution_loss import distribution_loss
from .constants import constant
from .rt_detr_criterion import RT_DETR, Kind, Losses, Pairs, rt_detr_loss
from .targets import FixedTargets, GroundTruth, Targets
from .versions import is_before

TEMPERATURE = 5

# Until 5.7 layers had losses only beside denoising queries, so an evaluation had none of them.
LAYERS_NEED_NOISE = is_before("transformers", 5, 7)


def d_fine_loss(
    logits: Tensor,
    labels: Targets | FixedTargets,
    device: torch.device,
    pred_boxes: Tensor,
    config: Any,
    outputs_class: Any = None,
    outputs_coord: Any = None,
    enc_topk_logits: Any = None,
    enc_topk_bboxes: Any = None,
    denoising_meta_values: dict[str, Any] | None = None,
    predicted_corners: Any = None,
    initial_reference_points: Any = None,
    kind: Kind = RT_DETR,
    **ignored: Any,
) -> Losses:
    """model.loss_function = d_fine_loss; gives what DFineForObjectDetectionLoss gives."""
    has_layers = config.auxiliary_loss and not (denoising_meta_values is None and LAYERS_NEED_NOISE)
    if not has_layers:
        boxes = pred_boxes.clamp(0, 1)
        outputs = logits, labels, device, boxes, config
        return rt_detr_loss(*outputs, denoising_meta_values=denoising_meta_values, kind=kind)

    # Layers first; by whether they are for denoising, the noisy ones first.
    queries = [each.transpose(0, 1) for each in (predicted_corners, initial_reference_points)]
    queries.append(outputs_class.transpose(0, 1))
    split = denoising_meta_values["dn_num_split"] if denoising_meta_values else [0, logits.shape[1]]
    parts = list(zip(*(each.split(split, dim=2) for each in queries), strict=True))

    edges = bin_edges(config, pred_boxes)

    def local_losses(
        iou: Tensor, pairs: Pairs, truth: GroundTruth, is_noisy: bool
    ) -> dict[str, Tensor]:
        corners, references, scores = parts[0 if is_noisy else 1]
        teacher = corners[-1].detach().contiguous()  # once, for forward and backward
        confidence = scores[-1].detach().amax(-1).to(iou.dtype).sigmoid()
        if not is_noisy:  # the teacher has no teacher
            corners, references = corners[:-1], references[:-1]
        layers = len(corners)
        given = corners, pairs.target_of_query[:layers]
        iou = iou[:layers]
        fgl = distribution_loss(
            *given,
            mode="fgl",
            quality=iou,
            reference=references.detach().contiguous(),
            target=truth.boxes,
            edges=edges,
            reg_scale=abs(config.reg_scale),
            normalizer=pairs.number,
        )
        ddf = distribution_loss(
            *given,
            mode="ddf",
            quality=iou,
            teacher=teacher,
            confidence=confidence,
            temperature=TEMPERATURE,
        )
        return {"loss_fgl": fgl, "loss_ddf": ddf}

    total, named, auxiliary = rt_detr_loss(
        logits,
        labels,
        device,
        pred_boxes,
        config,
        outputs_class,
        outputs_coord.clamp(0, 1),
        enc_topk_logits,
        enc_topk_bboxes.clamp(0, 1),
        denoising_meta_values,
        kind=replace(kind, more_losses=local_losses, layers=len(parts[1][0])),
    )
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

    return constant(("bins", upper, step, half, dtype), like, make)
