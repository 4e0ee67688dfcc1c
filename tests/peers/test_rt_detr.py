# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.rt_detr_criterion beside transformers' own criterion."""

from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.rt_detr_criterion import rt_detr_loss
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES, UNIT_ROUNDOFF, Targets
from detr_training import assert_same_in_model, assert_trains_the_same
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    assert_example_runs,
    assert_reads_nothing,
    autocast,
    computed,
    moved,
    rounded,
    rounding_of,
    waits,
)
from torch import Tensor
from transformers import RTDetrConfig
from transformers.loss.loss_rt_detr import RTDetrForObjectDetectionLoss

from examples import rt_detr

Leaves = dict[str, Tensor]


def denoising_of(counts: tuple[int, ...], groups: int) -> dict[str, Any] | None:
    """As RT-DETR numbers its denoising queries: positive ones, then as many negative ones."""
    most = max(counts)
    if not most or not groups:
        return None
    first = 2 * most * torch.arange(groups)[:, None]
    return {
        "dn_positive_idx": tuple((first + torch.arange(count)).flatten() for count in counts),
        "dn_num_group": groups,
        "dn_num_split": [2 * most * groups, QUERIES],
    }


def predictions(counts: tuple[int, ...], denoising: dict[str, Any] | None, seed: int) -> Leaves:
    random = cases.generator(seed)
    images, queries = len(counts), sum(denoising["dn_num_split"]) if denoising else QUERIES
    return {
        "outputs_class": cases.logits((images, LAYERS, queries, CLASSES), random),
        "outputs_coord": cases.boxes((images, LAYERS, queries), random),
        "enc_topk_logits": cases.logits((images, QUERIES, CLASSES), random),
        "enc_topk_bboxes": cases.boxes((images, QUERIES), random),
    }


def scores_of(name: str, values: Leaves) -> Tensor:
    """Those that a loss is computed from."""
    scores = values["outputs_class"]
    if "_dn_" in name:
        return scores[:, int(name[-1]), :-QUERIES]
    if name.endswith(f"_aux_{LAYERS - 1}"):  # behind the decoder's layers comes the encoder
        return values["enc_topk_logits"]
    return scores[:, int(name[-1]) if "_aux_" in name else LAYERS - 1, -QUERIES:]


def run(
    criterion: Any,
    values: Leaves,
    labels: Targets,
    denoising: dict[str, Any] | None,
    config: RTDetrConfig,
    dtype: torch.dtype,
    device: str = "cpu",
) -> tuple[Tensor, dict[str, Tensor], Leaves]:
    """Total, losses by name, and the total's gradients. Halves are as autocast makes them."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in values.items()}
    leaves = moved(leaves, device)
    with autocast(device, dtype):
        total, losses, auxiliary = criterion(
            logits=leaves["outputs_class"][:, -1],
            labels=moved(cases.cast(labels, computed(dtype)), device),
            device=torch.device(device),
            pred_boxes=leaves["outputs_coord"][:, -1],
            config=config,
            denoising_meta_values=moved(denoising, device),
            **leaves,
        )
    assert len(auxiliary or ()) == (LAYERS if config.auxiliary_loss else 0)
    total.backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return moved(total, "cpu"), moved(losses, "cpu"), moved(gradients, "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(
    "options",
    [{}, {"auxiliary_loss": False}, {"use_focal_loss": False, "matcher_giou_cost": 3.0}],
    ids=str,
)
def test_losses_and_gradients(
    options: dict[str, Any],
    counts: tuple[int, ...],
    groups: int,
    seed: int,
    dtype: torch.dtype,
    device: str,
) -> None:
    config = RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES, **options)
    labels = cases.true_boxes(counts, cases.generator(seed + 100))
    denoising = denoising_of(counts, groups)
    values = rounded(predictions(counts, denoising, seed), dtype)
    arguments = values, labels, denoising, config
    total, losses, gradients = run(rt_detr_loss, *arguments, dtype, device)
    right, wanted, exact = run(RTDetrForObjectDetectionLoss, *arguments, torch.float64)

    roundoff = UNIT_ROUNDOFF[computed(dtype)]
    unit = roundoff / max(sum(counts), 1)
    allowed = {}
    assert losses.keys() == wanted.keys()
    for name, value in wanted.items():
        is_noisy = "_dn_" in name
        pairs = sum(counts) * groups if is_noisy else sum(min(QUERIES, count) for count in counts)
        loss = "_".join(name.split("_")[:2])
        if loss == "loss_vfl":
            scores = scores_of(name, values)
            allowed[name] = cases.varifocal_error(scores, pairs) * config.weight_loss_vfl
        else:
            factors = {"loss_bbox": config.weight_loss_bbox, "loss_giou": config.weight_loss_giou}
            allowed[name] = cases.box_loss_error(pairs) * factors[loss]
        allowed[name] *= unit / (groups if is_noisy else 1)
        assert losses[name].dtype == computed(dtype)
        assert abs(losses[name].double() - value) <= allowed[name], name
    total_allowed = sum(allowed.values()) + len(allowed) * roundoff * right.item()
    assert abs(total.double() - right) <= total_allowed

    of_boxes = cases.box_gradient_error(config.weight_loss_giou, config.weight_loss_bbox)
    assert gradients.keys() == exact.keys()
    for name, value in exact.items():
        error = cases.VARIFOCAL_GRADIENT_ERROR if value.shape[-1] == CLASSES else of_boxes
        distance = (gradients[name].double() - value).abs()
        assert torch.all(distance <= error * unit + rounding_of(value, dtype)), name


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int, dtype: torch.dtype) -> None:
    counts = (3, 0, 5)
    labels, denoising = cases.true_boxes(counts, cases.generator(seed)), denoising_of(counts, 2)
    values = rounded(predictions(counts, denoising, seed), dtype)
    arguments = values, labels, denoising, RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES)
    exact = run(RTDetrForObjectDetectionLoss, *arguments, torch.float64)
    original = run(RTDetrForObjectDetectionLoss, *arguments, dtype)
    replaced = run(rt_detr_loss, *arguments, dtype)
    assert_as_near(replaced[1:], original[1:], exact[1:])


def test_bounds_are_narrow() -> None:
    """Ten per cent more of one weight is far outside."""
    counts = (3, 0, 5)
    labels = cases.true_boxes(counts, cases.generator(100))
    arguments = predictions(counts, None, 0), labels, None
    config = RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES)
    heavier = RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES, weight_loss_giou=2.2)
    _, losses, gradients = run(rt_detr_loss, *arguments, config, torch.float32)
    _, others, apart = run(rt_detr_loss, *arguments, heavier, torch.float32)
    unit = UNIT_ROUNDOFF[torch.float32] / sum(counts)
    allowed = cases.box_loss_error(sum(counts)) * 2 * unit
    assert abs(losses["loss_giou"] - others["loss_giou"]) > 100 * allowed
    distance = (gradients["outputs_coord"] - apart["outputs_coord"]).abs().max()
    assert distance > 100 * cases.box_gradient_error(2, 5) * unit


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_model(counts: tuple[int, ...], seed: int) -> None:
    assert_same_in_model(rt_detr.small_model, use_boxloss, counts, seed)


@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int) -> None:
    assert_trains_the_same(rt_detr, use_boxloss, seed)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(rt_detr, 1, capsys)


def test_reads_nothing_on_the_host() -> None:
    denoising = denoising_of((3, 0, 5), 2)
    values = predictions((3, 0, 5), denoising, 0)
    assert_reads_nothing(
        rt_detr_loss,
        logits=values["outputs_class"][:, -1],
        labels=cases.true_boxes((3, 0, 5), cases.generator(0)),
        device=torch.device("cpu"),
        pred_boxes=values["outputs_coord"][:, -1],
        config=RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES),
        denoising_meta_values=denoising,
        **values,
    )


if torch.cuda.is_available():

    def test_never_waits() -> None:
        counts = (3, 0, 5)
        config = RTDetrConfig(num_labels=CLASSES, num_queries=QUERIES)
        denoising = denoising_of(counts, 2)
        values = moved(predictions(counts, denoising, 0), "cuda")
        labels, denoising = moved((cases.true_boxes(counts, cases.generator(0)), denoising), "cuda")
        logits, pred_boxes = values["outputs_class"][:, -1], values["outputs_coord"][:, -1]
        device = torch.device("cuda")
        options = {"denoising_meta_values": denoising, **values}
        times = waits(lambda: rt_detr_loss(logits, labels, device, pred_boxes, config, **options))
        assert times == 0
