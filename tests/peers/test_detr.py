# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""examples/detr.py, both ways, beside transformers' own criterion."""

from typing import Any

import detr_cases as cases
import pytest
import torch
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES, UNIT_ROUNDOFF, Targets
from detr_training import assert_same_in_model, assert_trains_the_same
from torch import Tensor

pytest.importorskip("scipy", reason="SciPy is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
from transformers import DetrConfig
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

from examples import detr

Leaves = dict[str, Tensor]
CRITERIA = {"all layers": detr.criterion, "adapted": detr.adapted}


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
    criterion: Any, values: Leaves, labels: Targets, config: DetrConfig, dtype: torch.dtype
) -> tuple[Tensor, dict[str, Tensor], Leaves]:
    """Total, losses by name, and the total's gradients."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in values.items()}
    with cases.default_dtype(dtype):  # of the original's class weights
        total, losses, auxiliary = criterion(
            leaves["outputs_class"][-1],
            cases.cast(labels, dtype),
            torch.device("cpu"),
            leaves["outputs_coord"][-1],
            config,
            **leaves,
        )
    assert len(auxiliary or ()) == (LAYERS - 1 if config.auxiliary_loss else 0)
    total.backward()
    return total, losses, {name: leaf.grad for name, leaf in leaves.items()}


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
    way: str, options: dict[str, Any], counts: tuple[int, ...], seed: int, dtype: torch.dtype
) -> None:
    config = config_of(**options)
    labels = cases.true_boxes(counts, cases.generator(seed + 100))
    arguments = predictions(len(counts), seed), labels, config
    total, losses, gradients = run(CRITERIA[way], *arguments, dtype)
    right, wanted, exact = run(ForObjectDetectionLoss, *arguments, torch.float64)

    unit = UNIT_ROUNDOFF[dtype]
    number, queries = max(sum(counts), 1), len(counts) * QUERIES
    pairs = sum(min(QUERIES, count) for count in counts)
    allowed = {
        "loss_ce": cases.cross_entropy_error(queries),
        "loss_bbox": cases.box_loss_error(pairs) / number,
        "loss_giou": cases.box_loss_error(pairs) / number,
        "cardinality_error": 4.0 * QUERIES,
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
        distance = (gradients[name].double() - value).abs().max()
        assert distance <= unit * errors[name], name


@pytest.mark.parametrize("way", CRITERIA)
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_model(counts: tuple[int, ...], seed: int, way: str) -> None:
    assert_same_in_model(detr, CRITERIA[way], counts, seed)


@pytest.mark.parametrize("way", CRITERIA)
@pytest.mark.parametrize("seed", range(2))
def test_training(seed: int, way: str) -> None:
    assert_trains_the_same(detr, CRITERIA[way], seed)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    detr.main()
    assert len(capsys.readouterr().out.splitlines()) == 9
