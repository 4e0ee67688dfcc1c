# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.fcos beside torchvision's FCOS."""

from typing import Any

import pytest
import torch
from boxloss.torch.compat.fcos import Head
from dense_training import assert_as_near_under_autocast, assert_same_training
from surroundings import (
    DEVICES,
    HALVES,
    assert_example_runs,
    autocast,
    computed,
    default_dtype,
    moved,
    waits,
)
from torch import Tensor
from torch.nn.functional import pad
from torchvision.models.detection.fcos import FCOSHead

from examples import fcos
from examples.training import torchvision_batch

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40))
SIZE, SHORTEST = 8.0, 8.0  # of the anchors; of the sides of all boxes

# Of scores x, |x| <= X, a sigmoid p is right to X + 6 roundings, relative, and log(1 + e^x), which
# is at most X + 1, to 22 (X + 1). The focal loss is a q^2 l with q = 1 - p_t, which is wrong by
# X + 7, and l <= X + 1: wrong by 2 (X + 7) (X + 1) + 22 (X + 1). Of its gradient
# a (q^2 (p - t) + 2 q p (1 - p) l) that is 3 (X + 7) + 3 and
# 2 ((X + 7) + (2 X + 13)) (X + 1) / 4 + 22 (X + 1) / 2, which is less. So is what a centerness, a
# BCE towards a root of two quotients, is wrong by.
X = 6
SCORE_ROUNDINGS = 2 * (X + 7) * (X + 1) + 22 * (X + 1)

Losses = dict[str, Tensor]


def problem(counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> dict[str, Any]:
    """What FCOS hands to its head: of 256 anchors about 20 have one of their image's boxes."""
    torch.manual_seed(seed)
    with default_dtype(computed(dtype)):
        _, targets = torchvision_batch(fcos.SIDE, counts)
    images, anchors = len(counts), 256
    centres = torch.cartesian_prod(torch.arange(4, 128, 8), torch.arange(4, 128, 8)).to(dtype)
    points = torch.cat((centres - SIZE / 2, centres + SIZE / 2), 1)
    matched = []
    for target in targets:
        # One of the image's boxes, if the anchor lies within it: else its centerness were NaN.
        chosen = torch.randint(max(len(target["boxes"]), 1), (anchors,))
        first, last = pad(target["boxes"], (0, 0, 0, 1))[chosen].split(2, -1)
        inside = ((first < centres) & (centres < last)).all(1)
        matched.append(torch.where(inside, chosen, -1))
    outputs = {
        "cls_logits": torch.randn(images, anchors, 5),
        "bbox_regression": 0.5 + 2 * torch.rand(images, anchors, 4),  # sides of 8 to 40 pixels
        "bbox_ctrness": torch.randn(images, anchors, 1),
    }
    return {
        "targets": targets,
        "head_outputs": {name: each.to(dtype).requires_grad_() for name, each in outputs.items()},
        "anchors": [points] * images,
        "matched_idxs": matched,
    }


def run(head: type[FCOSHead], values: dict[str, Any], dtype: torch.dtype) -> tuple[Losses, Losses]:
    """Losses, and their sum's gradients by what the head gave."""
    made = head(in_channels=32, num_anchors=1, num_classes=5, num_convs=1)
    outputs = values["head_outputs"]
    with autocast(outputs["cls_logits"].device.type, dtype):
        losses = made.compute_loss(**values)
    sum(losses.values()).backward()
    return losses, {name: each.grad for name, each in outputs.items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_losses_and_gradients(
    counts: tuple[int, ...], seed: int, dtype: torch.dtype, device: str
) -> None:
    values = problem(counts, seed, dtype)
    losses, gradients = run(FCOSHead, moved(values, device), dtype)
    others, other_gradients = run(Head, moved(values, device), dtype)
    pairs = sum((each >= 0).sum().item() for each in values["matched_idxs"])
    assert (pairs > 0) == any(counts)

    # Both decode to the same bits. Then both are wrong by what tests/torch/comparison.py derives,
    # in u: a pair's loss <= 2 by 48, adding P of them by P of their sizes; a box' gradient by
    # 316 / side, and a delta's is the anchor's size times that, rounded once, over the number.
    u = UNIT_ROUNDOFF[dtype]
    number = max(pairs, 1)
    close = {"atol": 2 * (48 + 2 * number) * u, "rtol": 0}
    torch.testing.assert_close(others["bbox_regression"], losses["bbox_regression"], **close)
    close["atol"] = 2 * 316 * u * SIZE / SHORTEST / number
    name = "bbox_regression"
    torch.testing.assert_close(other_gradients[name], gradients[name], **close)
    assert (gradients[name].abs().amax() > 0) == (pairs > 0)

    # The rest is the same formulas. What each entry, and its gradient before the division, is wrong
    # by is SCORE_ROUNDINGS; N of them are added up in another order: by N u of their sum, for none
    # is negative.
    outputs = values["head_outputs"]
    for loss, output in (("classification", "cls_logits"), ("bbox_ctrness", "bbox_ctrness")):
        assert outputs[output].abs().max() <= X
        entries = outputs[output].numel() if loss == "classification" else pairs
        total = losses[loss].item() * number
        close["atol"] = 2 * entries * (SCORE_ROUNDINGS + total) * u / number
        torch.testing.assert_close(others[loss], losses[loss], **close)
        close["atol"] = 2 * SCORE_ROUNDINGS * u / number
        torch.testing.assert_close(other_gradients[output], gradients[output], **close)


@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int) -> None:
    assert_as_near_under_autocast(run, FCOSHead, Head, problem((3, 0, 5), seed, torch.bfloat16))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_boxes_of_halves_are_decoded_in_float32(dtype: torch.dtype) -> None:
    """The same numbers in float32 have the same loss, and the gradient that halves round."""
    values = problem((3, 0, 5), 0, dtype)
    of_halves, wide = (
        [each["bbox_regression"] for each in run(Head, these, dtype)]
        for these in (values, moved(values, "cpu", torch.float32))
    )
    assert torch.equal(of_halves[0], wide[0])
    assert torch.equal(of_halves[1], wide[1].to(dtype))


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int, counts: tuple[int, ...]) -> None:
    assert_same_training(fcos.train, seed, counts)


def test_nobody_waits_for_the_device() -> None:
    """On the Meta device, whose numbers nobody can ask for."""
    losses, _ = run(Head, moved(problem((3, 0, 5), 0, torch.float32), "meta"), torch.float32)
    assert all(each.shape == () for each in losses.values())


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(fcos, 1, capsys)


if torch.cuda.is_available():

    def test_nobody_waits_for_the_gpu() -> None:
        values = moved(problem((3, 0, 5), 0, torch.float32), "cuda")
        assert waits(lambda: run(Head, values, torch.float32)) == 0
