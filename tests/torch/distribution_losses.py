# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of distributions as their source computes them, in plain torch, and problems for them."""

from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch.compat.d_fine_criterion import bin_edges
from torch import Tensor
from torch.nn import functional

LAYERS, IMAGES, QUERIES, BINS, BOXES = 3, 2, 9, 33, 5
CONFIG = SimpleNamespace(up=0.5, reg_scale=4.0, max_num_bins=BINS - 1)


def distribution_problem(
    mode: str, dtype: torch.dtype = torch.float64, queries: int = QUERIES
) -> dict[str, Any]:
    """Numbers that every dtype holds; the last query of each image is left out."""
    random = torch.Generator().manual_seed(3)

    def uniform(*shape: int) -> Tensor:
        return torch.randint(1, 64, shape, generator=random, dtype=torch.float64) / 64

    rows = LAYERS, IMAGES, queries
    given: dict[str, Any] = {
        "logits": (16 * uniform(*rows, 4 * BINS) - 8).to(dtype),
        "target_index": torch.randint(-1, BOXES, rows, generator=random),
        "quality": uniform(*rows),
        "mode": mode,
    }
    if mode == "fgl":
        given["reference"], given["target"] = uniform(*rows, 4), uniform(BOXES, 4)
        given["edges"] = bin_edges(CONFIG, given["quality"])
    else:
        given["teacher"] = (16 * uniform(IMAGES, queries, 4 * BINS) - 8).to(dtype)
        given["confidence"] = uniform(IMAGES, queries)
    return given


def localization(corners: Tensor, offset: Tensor, iou: Tensor) -> Tensor:
    """transformers' unimodal_distribution_focal_loss: (layers), summed over pairs."""
    edges = bin_edges(CONFIG, offset)
    offset = torch.minimum(torch.maximum(offset, edges[0]), edges[-1])
    left = torch.searchsorted(edges, offset, right=True).clamp(1, len(edges) - 1) - 1
    share = (offset - edges[left]) / (edges[left + 1] - edges[left])
    log_p = corners.unflatten(-1, (4, -1)).log_softmax(-1)
    of_left, of_right = (log_p.gather(-1, each[..., None])[..., 0] for each in (left, left + 1))
    entropy = (share - 1) * of_left - share * of_right
    return (entropy * iou[..., None]).flatten(1).sum(1)


def offsets(references: Tensor, true_boxes: Tensor) -> Tensor:
    """Its bbox2distance: of left, top, right and bottom, in the reference's size."""
    center, size = references.split(2, -1)
    true_center, true_size = true_boxes.split(2, -1)
    distances = true_size.repeat(1, 1, 2) / 2 + torch.cat(
        [center - true_center, true_center - center], -1
    )
    scale = CONFIG.reg_scale
    return distances / (size.repeat(1, 1, 2) / scale + 1e-16) - 0.5 * scale


def distillation(corners: Tensor, teacher: Tensor, weight: Tensor, is_pair: Tensor) -> Tensor:
    """Its loss_ddf: (layers)."""
    log_p, log_teacher = (
        (each / 5).unflatten(-1, (4, -1)).log_softmax(-1) for each in (corners, teacher)
    )
    divergence = functional.kl_div(log_p, log_teacher, reduction="none", log_target=True)
    loss = weight * 25 * divergence.sum((-2, -1)).flatten(1)
    # The means of pairs and of others, by the root of how many they are.
    pairs, others = (4 * each.double().sum(1) for each in (is_pair, ~is_pair))
    of_pairs = (loss * is_pair).sum(1) / pairs.clamp(min=1)
    of_others = (loss * ~is_pair).sum(1) / others.clamp(min=1)
    pairs, others = (pairs / IMAGES).sqrt(), (others / IMAGES).sqrt()
    return (of_pairs * pairs + of_others * others) / (pairs + others)


def expected(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The sums or means of layers, and the gradient of their sum, in float64."""
    logits = given["logits"].detach().double().requires_grad_()
    is_pair = given["target_index"].flatten(1) >= 0
    quality = given["quality"].flatten(1)
    if given["mode"] == "fgl":
        box = given["target"][given["target_index"].flatten(1).clamp(min=0)]
        offset = offsets(given["reference"].flatten(1, 2), box)
        losses = localization(logits.flatten(1, 2), offset, torch.where(is_pair, quality, 0))
    else:
        weight = torch.where(is_pair, quality, given["confidence"].flatten())
        losses = distillation(logits, given["teacher"].double(), weight, is_pair)
    return losses.detach(), torch.autograd.grad(losses.sum(), logits)[0]


def moved(given: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in given.items()}
