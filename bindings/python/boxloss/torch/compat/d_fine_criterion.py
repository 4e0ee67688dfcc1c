# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of D-FINE as transformers has it: RT-DETR's, and two losses of its distributions.

A side of a box is a distribution over bins ("corners"), as an offset from a reference box. Pairs
train it towards the two bins around the true side (fine-grained localization, FGL); all queries,
towards the last layer's (decoupled distillation, DDF). D-FINE, Peng et al. 2024, 4.2 and 4.3.
Nothing here waits for the device.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

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

    def local_losses(
        iou: Tensor, pairs: Pairs, truth: GroundTruth, is_noisy: bool
    ) -> dict[str, Tensor]:
        corners, references, scores = parts[0 if is_noisy else 1]
        teacher = corners[-1].detach().to(iou.dtype), scores[-1].detach().sigmoid().amax(-1)
        if not is_noisy:  # the teacher has no teacher
            corners, references = corners[:-1], references[:-1]
        layers = len(corners)
        corners = corners.to(iou.dtype)
        pred_index, target_index = pairs.pred_index[:layers], pairs.target_index[:layers]
        iou = iou[:layers]
        # What is no pair, -1, has an IoU of 0 and so no weight.
        true_boxes = functional.pad(truth.boxes.to(iou.dtype), (0, 0, 0, 1))[target_index]
        found = pred_index.clamp(min=0)
        references = references.detach().to(iou.dtype).flatten(0, 2)[found]
        fgl = localization(
            corners.flatten(0, 2)[found], offsets(references, true_boxes, config), iou, config
        )
        ddf = distillation(corners, *teacher, iou, pred_index, config)
        return {
            "loss_fgl": config.weight_loss_fgl * fgl / pairs.number,
            "loss_ddf": config.weight_loss_ddf * ddf,
        }

    total, named, auxiliary = rt_detr_loss(
        logits,
        labels,
        device,
        pred_boxes,
        config,
        as_many_layers(outputs_class, len(parts[1][0]), split[0]),
        as_many_layers(outputs_coord, len(parts[1][0]), split[0]).clamp(0, 1),
        enc_topk_logits,
        enc_topk_bboxes.clamp(0, 1),
        denoising_meta_values,
        kind=kind._replace(more_losses=local_losses),
    )
    corners, references, scores = parts[1]
    layers = zip(auxiliary or (), corners[:-1], references[:-1], strict=False)  # not the encoder
    for each, its_corners, its_points in layers:
        each |= {"pred_corners": its_corners, "ref_points": its_points}
        each |= {"teacher_corners": corners[-1], "teacher_logits": scores[-1]}
    return total, named, auxiliary


def as_many_layers(outputs: Tensor, layers: int, noisy: int) -> Tensor:
    """As many as there are corners: the first layer's box before its corners is one more.

    The original goes through all of them together, as far as there are corners; last come the
    model's own outputs, which are of no noisy query.
    """
    last = torch.cat([outputs[:, layers - 1 : layers, :noisy], outputs[:, -1:, noisy:]], 2)
    return torch.cat([outputs[:, : layers - 1], last], 1)


def localization(corners: Tensor, offset: Tensor, iou: Tensor, config: Any) -> Tensor:
    """For unimodal_distribution_focal_loss: (layers), summed over pairs."""
    edges = bin_edges(config, offset)
    offset = torch.minimum(torch.maximum(offset, edges[0]), edges[-1])
    left = torch.searchsorted(edges, offset, right=True).clamp(1, len(edges) - 1) - 1
    share = (offset - edges[left]) / (edges[left + 1] - edges[left])
    log_p = corners.unflatten(-1, (4, -1)).log_softmax(-1)
    of_left, of_right = (log_p.gather(-1, each[..., None])[..., 0] for each in (left, left + 1))
    entropy = (share - 1) * of_left - share * of_right
    return (entropy * iou[..., None]).flatten(1).sum(1)


def offsets(references: Tensor, true_boxes: Tensor, config: Any) -> Tensor:
    """For bbox2distance: of left, top, right and bottom, in the reference's size."""
    scale = abs(config.reg_scale)
    center, size = references.split(2, -1)
    true_center, true_size = true_boxes.split(2, -1)
    distances = true_size.repeat(1, 1, 2) / 2 + torch.cat(
        [center - true_center, true_center - center], -1
    )
    return distances / (size.repeat(1, 1, 2) / scale + 1e-16) - 0.5 * scale


def bin_edges(config: Any, like: Tensor) -> Tensor:
    """For weighting_function: narrow bins in the middle."""
    upper = abs(config.up) * abs(config.reg_scale)
    step = (upper + 1) ** (2 / (config.max_num_bins - 2))
    half = config.max_num_bins // 2
    place = torch.arange(1 - half, half, dtype=like.dtype, device=like.device)
    inner = place.sign() * (step ** place.abs() - 1)
    return functional.pad(functional.pad(inner, (1, 0), value=-2 * upper), (0, 1), value=2 * upper)


def distillation(
    corners: Tensor,
    teacher: Tensor,
    confidence: Tensor,
    iou: Tensor,
    pred_index: Tensor,
    config: Any,
) -> Tensor:
    """For loss_ddf: (layers). Pairs weigh by their IoU, others by the teacher's confidence."""
    layers, images, queries = corners.shape[:3]
    # What is no pair, -1, is written to a last row that nobody reads.
    weight = confidence.to(iou.dtype).expand(layers, -1, -1).flatten()
    weight = functional.pad(weight, (0, 1))
    is_pair = torch.zeros_like(weight)
    index = pred_index.flatten()
    weight[index] = iou.flatten()
    is_pair.index_fill_(0, index, 1)  # is_pair[index] = 1 would wait for a copy of the number
    weight, is_pair = (each[:-1].view(layers, images * queries) for each in (weight, is_pair))

    log_p, log_teacher = (
        (each / TEMPERATURE).unflatten(-1, (4, -1)).log_softmax(-1) for each in (corners, teacher)
    )
    divergence = functional.kl_div(log_p, log_teacher, reduction="none", log_target=True)
    loss = weight * TEMPERATURE**2 * divergence.sum((-2, -1)).flatten(1)

    # The means of pairs and of others, by the root of how many they are.
    pairs = 4 * is_pair.sum(1)
    others = 4 * (1 - is_pair).sum(1)
    of_pairs = (loss * is_pair).sum(1) / pairs.clamp(min=1)
    of_others = (loss * (1 - is_pair)).sum(1) / others.clamp(min=1)
    pairs, others = (pairs / images).sqrt(), (others / images).sqrt()
    return (of_pairs * pairs + of_others * others) / (pairs + others)
