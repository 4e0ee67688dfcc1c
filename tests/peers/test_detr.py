# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.detr_criterion, and examples/detr.py's other way, beside transformers'."""

from pathlib import Path
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.detr_criterion import detr_loss
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
    default_dtype,
    moved,
    rounded,
    rounding_of,
    waits,
)
from torch import Tensor, distributed, multiprocessing
from transformers import DetrConfig
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

from examples import detr

Leaves = dict[str, Tensor]
CRITERIA = {"all layers": detr_loss, "adapted": detr.adapted}
WAYS = {"all layers": use_boxloss, "adapted": detr.adapt}


def config_of(**options: Any) -> DetrConfig:
    # Without a backbone of its own it would ask for timm's.
    return DetrConfig(
        backbone_config=detr.small_model().config.backbone_config,
        num_labels=CLASSES,
        decoder_layers=LAYERS,
        num_queries=QUERIES,
        **options,
    )


def predictions(images: int, seed: int) -> Leaves:
    random = cases.generator(seed)
    shape = (LAYERS, images, QUERIES)
    return {
        "outputs_class": cases.logits((*shape, CLASSES + 1), random),
        "outputs_coord": cases.boxes(shape, random),
    }


def run(
    criterion: Any,
    values: Leaves,
    labels: Targets,
    config: DetrConfig,
    dtype: torch.dtype,
    device: str = "cpu",
) -> cases.Results:
    """Total, losses by name, and the total's gradients. Halves are as autocast makes them."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in values.items()}
    leaves = moved(leaves, device)
    # The default is the dtype of the original's class weights.
    with default_dtype(computed(dtype)), autocast(device, dtype):
        total, losses, auxiliary = criterion(
            leaves["outputs_class"][-1],
            moved(cases.cast(labels, computed(dtype)), device),
            torch.device(device),
            leaves["outputs_coord"][-1],
            config,
            **leaves,
        )
    assert len(auxiliary or ()) == (LAYERS - 1 if config.auxiliary_loss else 0)
    total.backward()
    return moved((total, losses, {name: leaf.grad for name, leaf in leaves.items()}), "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(
    "options",
    [
        {"auxiliary_loss": True},
        {"auxiliary_loss": False},
        {
            "auxiliary_loss": True,
            "giou_cost": 3,
            "giou_loss_coefficient": 4,
            "eos_coefficient": 0.2,
        },
    ],
    ids=str,
)
@pytest.mark.parametrize("way", CRITERIA)
def test_losses_and_gradients(
    way: str,
    options: dict[str, Any],
    counts: tuple[int, ...],
    seed: int,
    dtype: torch.dtype,
    device: str,
) -> None:
    assert_near(way, options, counts, seed, dtype, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
def test_halves(counts: tuple[int, ...], seed: int, dtype: torch.dtype, device: str) -> None:
    assert_near("all layers", {"auxiliary_loss": True}, counts, seed, dtype, device)


def assert_near(
    way: str,
    options: dict[str, Any],
    counts: tuple[int, ...],
    seed: int,
    dtype: torch.dtype,
    device: str,
) -> None:
    config = config_of(**options)
    labels = cases.true_boxes(counts, cases.generator(seed + 100))
    arguments = rounded(predictions(len(counts), seed), dtype), labels, config
    total, losses, gradients = run(CRITERIA[way], *arguments, dtype, device)
    right, wanted, exact = run(ForObjectDetectionLoss, *arguments, torch.float64)

    unit = UNIT_ROUNDOFF[computed(dtype)]
    number, queries = max(sum(counts), 1), len(counts) * QUERIES
    pairs = sum(min(QUERIES, count) for count in counts)
    allowed = {
        "loss_ce": cases.cross_entropy_error(queries),
        "loss_bbox": cases.box_loss_error(pairs) / number,
        "loss_giou": cases.box_loss_error(pairs) / number,
        "cardinality_error": 4 * QUERIES * UNIT_ROUNDOFF[torch.float32] / unit,  # always float32
    }
    factors = {
        "loss_ce": 1,
        "loss_bbox": config.bbox_loss_coefficient,
        "loss_giou": config.giou_loss_coefficient,
    }
    assert losses.keys() == wanted.keys()
    total_allowed = unit * len(wanted) * right.item()
    for name, value in wanted.items():
        loss = "_".join(name.split("_")[:2])
        assert abs(losses[name].double() - value) <= unit * allowed[loss], name
        total_allowed += unit * allowed[loss] * factors.get(loss, 0)
    assert abs(total.double() - right) <= total_allowed

    errors = {
        "outputs_class": cases.cross_entropy_gradient_error(queries, config.eos_coefficient),
        "outputs_coord": cases.box_gradient_error(factors["loss_giou"], factors["loss_bbox"])
        / number,
    }
    for name, value in exact.items():
        distance = (gradients[name].double() - value).abs()
        assert torch.all(distance <= unit * errors[name] + rounding_of(value, dtype)), name


@pytest.mark.parametrize("way", CRITERIA)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int, dtype: torch.dtype, way: str) -> None:
    labels = cases.true_boxes((3, 0, 5), cases.generator(seed))
    arguments = rounded(predictions(3, seed), dtype), labels, config_of(auxiliary_loss=True)
    exact = run(ForObjectDetectionLoss, *arguments, torch.float64)
    original = run(ForObjectDetectionLoss, *arguments, dtype)
    replaced = run(CRITERIA[way], *arguments, dtype)
    assert_as_near(replaced[1:], original[1:], exact[1:])


# --- Several ranks ---


def compare_on_rank(rank: int, folder: Path) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    for counts, average in ((((3, 0, 5), (1,)), 4.5), (((1,), (0,)), 1.0)):
        mine = counts[rank]
        labels = cases.true_boxes(mine, cases.generator(rank))
        arguments = predictions(len(mine), rank), labels, config_of(auxiliary_loss=True)
        _, losses, _ = run(detr_loss, *arguments, torch.float64)
        # Without accelerate the original knows of this rank alone.
        _, wanted, _ = run(ForObjectDetectionLoss, *arguments, torch.float64)
        unit = UNIT_ROUNDOFF[torch.float64] / average
        for name, value in wanted.items():
            if "box" in name or "giou" in name:
                right = value * (max(sum(mine), 1) / average)
                assert abs(losses[name] - right) <= unit * cases.box_loss_error(sum(mine)), name
    distributed.barrier()  # no rank hangs up on the other
    distributed.destroy_process_group()


def test_ranks_average_the_number_of_boxes(tmp_path: Path) -> None:
    multiprocessing.spawn(compare_on_rank, (tmp_path,), nprocs=2)


# --- Models ---


@pytest.mark.parametrize("way", CRITERIA)
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_model(counts: tuple[int, ...], seed: int, way: str) -> None:
    assert_same_in_model(detr.small_model, WAYS[way], counts, seed)


@pytest.mark.parametrize("way", CRITERIA)
@pytest.mark.parametrize("seed", range(2))
def test_training(seed: int, way: str) -> None:
    assert_trains_the_same(detr, WAYS[way], seed)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(detr, 2, capsys)


def test_reads_nothing_on_the_host() -> None:
    values = predictions(3, 0)
    assert_reads_nothing(
        detr_loss,
        logits=values["outputs_class"][-1],
        labels=cases.true_boxes((3, 0, 5), cases.generator(0)),
        device=torch.device("cpu"),
        pred_boxes=values["outputs_coord"][-1],
        config=config_of(auxiliary_loss=True),
        **values,
    )


if torch.cuda.is_available():

    def test_never_waits() -> None:
        values = moved(predictions(3, 0), "cuda")
        labels = moved(cases.true_boxes((3, 0, 5), cases.generator(0)), "cuda")
        config, device = config_of(auxiliary_loss=True), torch.device("cuda")
        logits, pred_boxes = values["outputs_class"][-1], values["outputs_coord"][-1]
        times = waits(lambda: detr_loss(logits, labels, device, pred_boxes, config, **values))
        assert times == 0
