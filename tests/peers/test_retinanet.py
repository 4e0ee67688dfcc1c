# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.retinanet beside torchvision's RetinaNet."""

from functools import partial
from typing import Any

import pytest
import torch
from boxloss.torch.compat.retinanet import LOSSES, RegressionHead
from dense_training import assert_as_near_under_autocast, assert_same_training
from surroundings import (
    DEVICES,
    assert_example_runs,
    autocast,
    computed,
    default_dtype,
    moved,
    waits,
)
from torch import Tensor
from torchvision.models.detection._utils import BoxCoder
from torchvision.models.detection.retinanet import RetinaNetRegressionHead

from examples import retinanet
from examples.training import torchvision_batch

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
# Images without boxes among others, all of them, and many boxes: 1/n is different for each image.
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40, 2))
ANCHORS = 300
SIZE, SHORTEST, FURTHEST = 24.0, 8.0, 96.0  # of anchors; of all sides; of all coordinates


def problem(counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> dict[str, Any]:
    """What RetinaNet hands to its head; -1 and -2 are anchors without a box."""
    torch.manual_seed(seed)
    with default_dtype(computed(dtype)):
        _, targets = torchvision_batch(retinanet.SIDE, counts)
        centres = 16 + 32 * torch.rand(ANCHORS, 2)
        sides = SIZE * (0.6 + 0.4 * torch.rand(ANCHORS, 2))
    points = torch.cat((centres - sides / 2, centres + sides / 2), 1)
    matched = []
    for count in counts:
        chosen = torch.randint(max(count, 1), (ANCHORS,))
        none = (torch.rand(ANCHORS) > 0.05) | (count == 0)
        matched.append(torch.where(none, -torch.randint(1, 3, (ANCHORS,)), chosen))
    deltas = 0.4 * (torch.rand(len(counts), ANCHORS, 4) - 0.5)
    return {
        "targets": targets,
        "head_outputs": {"bbox_regression": deltas.to(dtype).requires_grad_()},
        "anchors": [points] * len(counts),
        "matched_idxs": matched,
    }


def run(
    head: type[RetinaNetRegressionHead], values: dict[str, Any], dtype: torch.dtype, loss: str
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The loss, and its gradient."""
    made = head(in_channels=16, num_anchors=1)
    made._loss_type = loss
    deltas = values["head_outputs"]["bbox_regression"]
    with autocast(deltas.device.type, dtype):
        value = made.compute_loss(**values)
    value.backward()
    return {"loss": value.detach()}, {"deltas": deltas.grad}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_loss_and_gradients(
    counts: tuple[int, ...], seed: int, dtype: torch.dtype, loss: str, device: str
) -> None:
    values = problem(counts, seed, dtype)
    (value, gradient), (other, other_gradient) = (
        moved((results["loss"], gradients["deltas"]), "cpu")
        for results, gradients in (
            run(head, moved(values, device), dtype, loss)
            for head in (RetinaNetRegressionHead, RegressionHead)
        )
    )
    numbers = torch.tensor([(each >= 0).sum() for each in values["matched_idxs"]])
    assert (numbers > 0).tolist() == [count > 0 for count in counts]

    # As in test_fcos.py, in u, for GIoU: 48 a loss <= 2, and P of them P of their sizes; 316 / side
    # a gradient. Decoding has exp, whose last bits depend on where in a vector a number stands: a
    # corner is off by 4 of a coordinate's u, four corners by 16 / side * coordinate of all lengths,
    # which are products of at most 3 in a gradient. DIoU's terms, of squares, are as exact. CIoU
    # has, besides, v, right to about 30, over 1 - iou + v, at least 0.1 and right to 20: 250 / side
    # more.
    u = UNIT_ROUNDOFF[dtype]
    decoding = 3 * 16 * FURTHEST / SHORTEST
    formula = 316 + 250 * (loss == "ciou")
    pairs = int(numbers.sum())
    torch.testing.assert_close(
        other, value, rtol=0, atol=2 * 2.5 * (48 + 250 * (loss == "ciou") + decoding + pairs) * u
    )
    # The largest delta's derivative is exp(0.2) of the anchor's size; two corners add up.
    largest = 2 * 1.3 * SIZE / SHORTEST
    each = largest * (formula + decoding) * u / (numbers.clamp(min=1) * len(counts))
    assert torch.all((other_gradient - gradient).abs() <= 2 * each[:, None, None])
    assert ((gradient != 0).flatten(1).any(1) == (numbers > 0)).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int, loss: str) -> None:
    values = problem((3, 0, 5), seed, torch.bfloat16)
    heads = RetinaNetRegressionHead, RegressionHead
    assert_as_near_under_autocast(partial(run, loss=loss), *heads, values)


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int, loss: str, counts: tuple[int, ...]) -> None:
    train = partial(retinanet.train, loss=loss)
    assert_same_training(train, seed, counts)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(retinanet, 1, capsys)


if torch.cuda.is_available():

    def test_waits_once() -> None:
        """For the number of pairs. torchvision's decoding waits on its own."""
        values = moved(problem((3, 0, 5), 0, torch.float32), "cuda")
        times = waits(lambda: run(RegressionHead, values, torch.float32, "giou"))
        coder, boxes = BoxCoder((1, 1, 1, 1)), torch.ones(1, 4, device="cuda")
        assert times == 1 + waits(lambda: coder.decode_single(boxes, boxes))
