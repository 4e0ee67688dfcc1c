# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match against the rule in plain torch (task_aligned.py), and what it is to torch."""

import math
import random

import pytest
import torch
from boxloss.torch import (
    TaskAlignedMatch,
    box_losses,
    check_indices,
    task_aligned_match,
)
from devices import Implementation
from task_aligned import OVERLAP_ERROR, Problem, plain, problem
from torch import Tensor

CPU = torch.device("cpu")


def on(device: torch.device, values: Problem) -> Problem:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in values.items()}


def check(values: Problem, device: torch.device = CPU) -> int:
    """Gives how many anchors rounding may have decided."""
    results = task_aligned_match(**on(device, values))
    assert isinstance(results, TaskAlignedMatch)
    wanted = plain(values)
    shape = values["scores"].shape[:2]
    for result, dtype in zip(results, (torch.int64, torch.float32, torch.float32), strict=True):
        assert (result.shape, result.dtype, result.device.type) == (shape, dtype, device.type)
        assert result.is_contiguous()
        assert not result.requires_grad
    index, score, overlap = (each.cpu() for each in results)
    same = index == wanted.target_index
    assert (same | wanted.is_open).all()
    assert (score[index < 0] == 0).all()
    assert (overlap[index < 0] == 0).all()
    overlap_error = (overlap - wanted.overlap).abs()
    assert (overlap_error[same] <= OVERLAP_ERROR).all()
    # Boxes that have what they should have. A score is one metric over another times an overlap.
    wrong = index[~same], wanted.target_index[~same]
    whole = same & ~torch.isin(wanted.target_index, torch.cat(wrong))
    beta = values.get("beta", 6.0)
    relative = (2 * beta + 1) * OVERLAP_ERROR / wanted.overlap.clamp(min=1e-3) + 1e-6
    if values["scores"].dtype in (torch.float16, torch.bfloat16):
        relative = relative + 2 * torch.finfo(values["scores"].dtype).eps
    score_error = (score - wanted.score).abs()
    assert (score_error[whole] <= (relative * wanted.score)[whole] + 1e-9).all()
    return int((~same).sum())


def some_options(seed: int) -> Problem:
    pick = random.Random(seed).choice
    options: Problem = {
        "images": pick([1, 2, 5]),
        "boxes": pick([1, 5, 12, 40]),
        "is_padded": pick([False, True]),
        "scores": pick([torch.float32, torch.float32, torch.float16, torch.bfloat16]),
        "topk": pick([1, 7, 10, 13, 10_000]),
        "topk2": pick([None, None, 1, 4]),
        "alpha": pick([0.5, 0.5, 1.0, 0.0, 0.7]),
        "beta": pick([6.0, 6.0, 1.0, 2.5]),
        "min_side": pick([0.0, 16.0, 16.0, 40.0]),
    }
    options["small_side"] = pick([None, options["min_side"] / 2])
    if pick([False, False, False, True]):
        options["pred"] = torch.float64
    return options


def test_is_the_rule(device: torch.device) -> None:
    different = anchors = 0
    for seed in range(100):
        values = problem(seed, **some_options(seed))
        different += check(values, device)
        anchors += values["scores"][..., 0].numel()
    assert different <= 1e-4 * anchors


def test_every_implementation(implementation: Implementation) -> None:
    if "kokkos" in implementation.name:
        with pytest.raises(TypeError, match=f"^task_aligned_match: {implementation.name} does not"):
            task_aligned_match(**problem(0, implementation.device))
        return
    for seed in range(4):
        check(problem(seed, topk2=(None, 1)[seed % 2], min_side=16.0), implementation.device)


@pytest.mark.parametrize("pred_format", ["xyxy", "xywh", "cxcywh"])
def test_formats(device: torch.device, pred_format: str) -> None:
    values = problem(1)
    first, last = values["pred"].chunk(2, -1)
    if pred_format != "xyxy":
        values["pred"] = torch.cat((first, last - first), -1)
    if pred_format == "cxcywh":
        values["pred"] = torch.cat(((first + last) / 2, last - first), -1)
    check({**values, "pred_format": pred_format}, device)


def test_points_of_each_image(device: torch.device) -> None:
    values = problem(3)
    shifted = values["points"] + torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]])
    check({**values, "points": shifted}, device)


def test_points_in_any_order(device: torch.device) -> None:
    values = problem(4, size=256)
    order = torch.randperm(len(values["points"]), generator=torch.Generator().manual_seed(4))
    check({**values, "points": values["points"][order]}, device)


def test_nan_is_no_candidate(device: torch.device) -> None:
    values = problem(6, boxes=30)
    values["scores"][:, ::7] = math.nan
    values["pred"][:, 1::7, 2] = math.nan
    values["points"][2::7, 0] = math.nan
    values["target"][::5, 3] = math.nan
    values["scores"][:, 3::7, 0] = math.nan  # of a class: a box of another has the anchor
    check(values, device)
    index = task_aligned_match(**on(device, values)).target_index
    assert (index[:, ::7] < 0).all()
    assert (index[:, 1::7] < 0).all()
    assert (index[:, 2::7] < 0).all()


def test_the_losses_take_it(device: torch.device) -> None:
    values = on(device, problem(7))
    index, score, overlap = task_aligned_match(**values)
    assert (index >= 0).any()
    rows = torch.arange(index.numel(), device=device)
    pairs = {"pred_index": rows, "target_index": index.flatten()}
    check_indices(values["pred"], values["target"], **pairs)
    losses = box_losses(values["pred"], values["target"], "ciou", reduction="none", **pairs)
    own = index.flatten() >= 0
    error = (1 - losses.loss - overlap.flatten())[own]
    assert (error.abs() <= 2 * OVERLAP_ERROR).all()
    assert (losses.loss[~own] == 0).all()
    assert (score <= overlap.amax() + 1e-6).all()


def test_on_a_gpu_a_label_that_names_no_class_gets_no_anchor(gpu: torch.device) -> None:
    """Nobody looks at it."""
    values = on(gpu, problem(12, images=2))
    right = task_aligned_match(**values).target_index
    labels = values["labels"].clone()
    labels[0], labels[1] = 4, -1
    index = task_aligned_match(**{**values, "labels": labels}).target_index
    assert not torch.isin(index, torch.tensor([0, 1], device=gpu)).any()
    assert torch.isin(right, torch.tensor([0, 1], device=gpu)).any()


def test_padding_of_doubles_is_told_in_double() -> None:
    """A label of padding may be anything, but this box is none: its sum is 1e-12."""
    target = torch.tensor([[[-1, -1, 1, 1 + 1e-12]]], dtype=torch.float64)
    labels = torch.tensor([[9]])
    scores, pred, points = torch.ones(1, 2, 3), torch.ones(1, 2, 4), torch.zeros(2, 2)
    with pytest.raises(ValueError, match="9"):
        task_aligned_match(scores, pred, points, target, None, labels)
    task_aligned_match(scores, pred, points, target.float(), None, labels)
