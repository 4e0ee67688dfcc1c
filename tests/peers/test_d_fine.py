# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.d_fine_criterion beside transformers' own criterion.

What it has of RT-DETR's is for that one's test, with bounds; the rest is here, in double.
"""

from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat.d_fine_criterion import d_fine_loss
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES
from detr_training import CLOSE
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    assert_reads_nothing,
    autocast,
    computed,
    default_dtype,
    moved,
    rounded,
    waits,
)
from test_rt_detr import Leaves, denoising_of, predictions
from torch import Tensor
from transformers import DFineConfig
from transformers.loss.loss_d_fine import DFineForObjectDetectionLoss

BINS = 32


def config(**options: Any) -> DFineConfig:
    return DFineConfig(num_labels=CLASSES, num_queries=QUERIES, max_num_bins=BINS, **options)


def distributions(counts: tuple[int, ...], denoising: dict[str, Any] | None, seed: int) -> Leaves:
    """RT-DETR's predictions, of one layer more than have corners."""
    values = predictions(counts, denoising, seed)
    images, _, queries, _ = values["outputs_class"].shape
    random = cases.generator(seed + 1)
    shape = images, LAYERS - 1, queries
    return {
        **values,
        "predicted_corners": 2 * cases.logits((*shape, 4 * (BINS + 1)), random),
        "initial_reference_points": cases.boxes(shape, random),
    }


def arguments_of(values: Leaves, denoising: dict[str, Any] | None) -> dict[str, Any]:
    """As the model calls it: the last outputs are among them all."""
    return {
        "logits": values["outputs_class"][:, -1],
        "pred_boxes": values["outputs_coord"][:, -1],
        "denoising_meta_values": denoising,
        **values,
    }


def run(
    criterion: Any,
    values: Leaves,
    counts: tuple[int, ...],
    denoising: dict[str, Any] | None,
    config: DFineConfig,
    dtype: torch.dtype,
    device: str = "cpu",
) -> cases.Results:
    """Total, losses by name, and the total's gradients. Halves are as autocast makes them."""
    leaves = {name: value.to(dtype, copy=True).requires_grad_() for name, value in values.items()}
    leaves, denoising = moved((leaves, denoising), device)
    labels = cases.cast(cases.true_boxes(counts, cases.generator(100)), computed(dtype))
    with autocast(device, dtype), default_dtype(computed(dtype)):
        total, losses, auxiliary = criterion(
            labels=moved(labels, device),
            device=torch.device(device),
            config=config,
            **arguments_of(leaves, denoising),
        )
    assert len(auxiliary or ()) == (LAYERS - 1 if config.auxiliary_loss else 0)
    total.backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return moved(total, "cpu"), moved(losses, "cpu"), moved(gradients, "cpu")


def assert_close(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert (ours[name] - value).norm() <= CLOSE * (1 + value.norm()), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("options", [{}, {"auxiliary_loss": False}, {"up": 0.01}], ids=str)
def test_losses_and_gradients(
    options: dict[str, Any], counts: tuple[int, ...], groups: int, device: str
) -> None:
    """With a small `up`, true sides lie outside of all bins."""
    denoising = denoising_of(counts, groups)
    arguments = distributions(counts, denoising, 0), counts, denoising, config(**options)
    ours = run(d_fine_loss, *arguments, torch.float64, device)
    theirs = run(DFineForObjectDetectionLoss, *arguments, torch.float64)
    assert any("fgl" in name for name in ours[1]) == config(**options).auxiliary_loss
    assert_close({"total": ours[0]}, {"total": theirs[0]})
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_is_as_near_as_the_original(dtype: torch.dtype) -> None:
    counts = (3, 0, 5)
    denoising = denoising_of(counts, 2)
    values = rounded(distributions(counts, denoising, 0), dtype)
    arguments = values, counts, denoising, config()
    exact = run(DFineForObjectDetectionLoss, *arguments, torch.float64)
    original = run(DFineForObjectDetectionLoss, *arguments, dtype)
    replaced = run(d_fine_loss, *arguments, dtype)
    assert_as_near(replaced[1:], original[1:], exact[1:])  # a sum is near by chance


def test_teacher_teaches_itself_nothing() -> None:
    """In a new network all layers have the teacher's corners."""
    counts = (3, 0, 5)
    denoising = denoising_of(counts, 2)
    values = distributions(counts, denoising, 0)
    values["predicted_corners"][:] = values["predicted_corners"][:, :1].clone()
    arguments = values, counts, denoising, config()
    _, ours, _ = run(d_fine_loss, *arguments, torch.float64)
    _, theirs, _ = run(DFineForObjectDetectionLoss, *arguments, torch.float64)
    assert_close(ours, theirs)
    assert all(not value for name, value in ours.items() if "ddf" in name)


def test_reads_nothing_on_the_host() -> None:
    denoising = denoising_of((3, 0, 5), 2)
    assert_reads_nothing(
        d_fine_loss,
        labels=cases.true_boxes((3, 0, 5), cases.generator(0)),
        device=torch.device("cpu"),
        config=config(),
        **arguments_of(distributions((3, 0, 5), denoising, 0), denoising),
    )


if torch.cuda.is_available():

    def test_never_waits() -> None:
        counts = (3, 0, 5)
        denoising = denoising_of(counts, 2)
        values = moved(arguments_of(distributions(counts, denoising, 0), denoising), "cuda")
        labels = moved(cases.true_boxes(counts, cases.generator(0)), "cuda")
        device = torch.device("cuda")
        times = waits(lambda: d_fine_loss(labels=labels, device=device, config=config(), **values))
        assert times == 0
