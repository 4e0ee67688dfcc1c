# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""All variants compute one loss, and one that does not is found out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.losses import Loss, UnavailableError, giou, masked_loss
from benchmarks.face_detector.agreement import check, probe_predictions
from benchmarks.face_detector.data import RandomPictures
from benchmarks.face_detector.variants import VARIANTS, as_list, padded_with_lengths

SEED = 0
SLOTS = 16
DTYPES = (torch.float32, torch.bfloat16)


@pytest.fixture(scope="module")
def boxes() -> list[Tensor]:
    pictures = RandomPictures("train", SEED, SLOTS)
    return [pictures[index][1] for index in range(64)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VARIANTS)
def test_variants_agree(name: str, dtype: torch.dtype, boxes: list[Tensor]) -> None:
    variant = VARIANTS[name]
    if variant.slow_to_start:
        pytest.skip(f"{name} takes long to start")
    try:
        loss = variant.load()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    pred = probe_predictions(boxes, SLOTS, dtype, SEED)
    value = check(name, loss, pred, variant.collate(boxes, SLOTS), boxes)
    assert 0 < value < 2


@pytest.mark.parametrize(
    "name", ["loop", "mask", "boxloss-padded", "boxloss-lengths", "boxloss-ragged"]
)
def test_a_batch_without_boxes_costs_nothing(name: str) -> None:
    none = [torch.empty(0, 4, dtype=torch.uint8)] * 3
    variant = VARIANTS[name]
    pred = probe_predictions(none, SLOTS, torch.float32, SEED)
    assert check(name, variant.load(), pred, variant.collate(none, SLOTS), none) == 0


def giou_itself(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    return 1 - masked_loss(pred, target, lengths)


def areas_in_uint8(pred: Tensor, *boxes: Tensor) -> Tensor:
    guesses = torch.cat([row[: len(b)] for row, b in zip(pred, boxes, strict=True)]).float()
    truths = torch.cat(boxes)
    wrapped = (truths[:, 2] - truths[:, 0]) * (truths[:, 3] - truths[:, 1])
    true_area = (truths[:, 2:] - truths[:, :2]).float().prod(dim=1)
    return (1 - giou(guesses, truths.float()) * wrapped / true_area).sum() / len(truths)


def mask_by_multiplication(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    counts = torch.arange(pred.shape[1]) < lengths[:, None]
    losses = (1 - giou(pred.float(), target.float())) * counts
    return losses.sum() / lengths.sum()


def mask_after_the_formula(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    counts = torch.arange(pred.shape[1]) < lengths[:, None]
    losses = torch.where(counts, 1 - giou(pred.float(), target.float()), 0.0)
    return losses.sum() / lengths.sum()


def gradient_missing_in_one_picture(pred: Tensor, target: Tensor, lengths: Tensor) -> Tensor:
    some = int(lengths.argmax())
    kept = torch.cat([pred[:some], pred[some : some + 1].detach(), pred[some + 1 :]])
    return masked_loss(kept, target, lengths)


@pytest.mark.parametrize(
    ("wrong", "collate", "complaint"),
    [
        (giou_itself, padded_with_lengths, "loss"),
        (areas_in_uint8, as_list, "loss"),
        (mask_by_multiplication, padded_with_lengths, "loss nan"),
        (mask_after_the_formula, padded_with_lengths, "gradient nan"),
        (gradient_missing_in_one_picture, padded_with_lengths, "gradient 0"),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_loss_is_reported(
    wrong: Loss, collate: type, complaint: str, dtype: torch.dtype, boxes: list[Tensor]
) -> None:
    pred = probe_predictions(boxes, SLOTS, dtype, SEED)
    with pytest.raises(DisagreementError, match=rf"^culprit: {complaint}.*fp64 gives -?\d"):
        check("culprit", wrong, pred, collate(boxes, SLOTS), boxes)
