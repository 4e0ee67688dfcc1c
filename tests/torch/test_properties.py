# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What must hold for any boxes."""

import pytest
import torch
from boxloss.torch import giou_loss
from comparison import LOSS, roundoff
from hypothesis import given
from hypothesis import strategies as st
from problems import INDICES, PAIRINGS, pairs_of, problem
from torch import Tensor

# Twice a loss' own bound: the distance of two computations of one number.
APART = 2 * LOSS * roundoff(torch.float32)

# Multiples of 1/8 below 512: sums and differences with each other are exact in float32.
coordinates = st.integers(0, 8 * 512).map(lambda n: n / 8)
axes = st.tuples(coordinates, coordinates).map(sorted)
box = st.tuples(axes, axes).map(lambda axes: [axes[0][0], axes[1][0], axes[0][1], axes[1][1]])
pairs = st.lists(st.tuples(box, box), min_size=1, max_size=8)


def as_tensors(pairs: list, device: torch.device) -> tuple[Tensor, Tensor]:
    """pred and target."""
    values = torch.tensor(pairs, device=device, dtype=torch.float32)
    return values[:, 0].contiguous(), values[:, 1].contiguous()


def losses(pred: Tensor, target: Tensor) -> Tensor:
    return giou_loss(pred, target, reduction="none")


@given(pairs=pairs)
def test_between_0_and_2(device: torch.device, pairs: list) -> None:
    loss = losses(*as_tensors(pairs, device))
    assert torch.all(loss >= -APART / 2)
    assert torch.all(loss <= 2 + APART / 2)


@given(pairs=pairs)
def test_symmetric(device: torch.device, pairs: list) -> None:
    pred, target = as_tensors(pairs, device)
    assert torch.all((losses(pred, target) - losses(target, pred)).abs() <= APART)


@given(pairs=pairs, x=st.integers(-4096, 4096), y=st.integers(-4096, 4096))
def test_the_same_wherever_the_boxes_lie(device: torch.device, pairs: list, x: int, y: int) -> None:
    # The shift is exact, so that the very same sides come out and the bits cannot change.
    pred, target = as_tensors(pairs, device)
    shift = torch.tensor([x, y, x, y], device=device) / 8
    assert torch.equal(losses(pred + shift, target + shift), losses(pred, target))


@given(pairs=pairs, power=st.integers(-8, 8))
def test_the_same_at_every_scale(device: torch.device, pairs: list, power: int) -> None:
    # Without eps nothing but the exponents changes. Boxes without area have no loss then.
    pred, target = as_tensors(pairs, device)
    factor = 2.0**power
    scaled = giou_loss(factor * pred, factor * target, reduction="none", eps=0.0)
    assert torch.equal(
        scaled.nan_to_num(), giou_loss(pred, target, reduction="none", eps=0.0).nan_to_num()
    )


@given(pairs=pairs)
def test_identical_boxes(device: torch.device, pairs: list) -> None:
    # I = U = C = A: the loss is 1 - A / (A + eps) = eps / (A + eps), which is 1 for no area.
    pred, _ = as_tensors(pairs, device)
    area = ((pred[:, 2] - pred[:, 0]) * (pred[:, 3] - pred[:, 1])).double()
    wanted = 1e-7 / (area + 1e-7)
    assert torch.all((losses(pred, pred) - wanted).abs() <= APART / 2)


@given(pairs=pairs, seed=st.integers(0, 100))
def test_each_pair_for_itself(device: torch.device, pairs: list, seed: int) -> None:
    pred, target = as_tensors(pairs, device)
    order = torch.randperm(len(pred), generator=torch.Generator().manual_seed(seed)).to(device)
    reordered = losses(pred[order], target[order])
    assert torch.all((reordered - losses(pred, target)[order]).abs() <= APART)


@given(pairs=pairs)
def test_formats_of_the_same_box(device: torch.device, pairs: list) -> None:
    pred, target = as_tensors(pairs, device)
    first, second = pred[:, :2], pred[:, 2:]
    expected = losses(pred, target)
    for name, values in {
        "xywh": torch.cat((first, second - first), -1),
        "cxcywh": torch.cat(((first + second) / 2, second - first), -1),
    }.items():
        loss = giou_loss(values, target, pred_format=name, reduction="none")
        assert torch.equal(loss, expected), name


@pytest.mark.parametrize("pairing", PAIRINGS)
@given(data=st.data())
def test_a_pairing_is_the_dense_loss_of_its_pairs(
    device: torch.device, pairing: str, data: st.DataObject
) -> None:
    values = problem(pairing, device, reduction="none")
    if pairing == "lengths":
        lengths = data.draw(st.lists(st.integers(-1, 6), min_size=3, max_size=3))
        values["lengths"] = torch.tensor(lengths, device=device)
    if pairing == "offsets":
        offsets = sorted(data.draw(st.lists(st.integers(-1, 14), min_size=4, max_size=4)))
        values["offsets"] = torch.tensor(offsets, device=device)
    if pairing in ("indices", "sets"):
        for name, index in {n: values[n] for n in INDICES}.items():
            number = index.numel()
            some = data.draw(st.lists(st.integers(-2, 17), min_size=number, max_size=number))
            values[name] = torch.tensor(some, device=device).reshape(index.shape)
    if pairing in ("mask", "zero_padded"):
        bits = data.draw(st.lists(st.booleans(), min_size=15, max_size=15))
        counts = torch.tensor(bits, device=device).reshape(3, 5)
        values["target"][~counts] = 0
        if pairing == "mask":
            values["mask"] = counts
    loss = giou_loss(**values).flatten()
    pairs = torch.tensor(pairs_of(values), dtype=torch.int64, device=device).reshape(-1, 3)
    slots, rows, places = pairs.unbind(-1)
    dense = losses(values["pred"].reshape(-1, 4)[slots], values["target"].reshape(-1, 4)[rows])
    expected = torch.zeros_like(loss).index_put((places,), dense)
    assert torch.all((loss - expected).abs() <= APART)
    assert torch.equal(loss == 0, expected == 0)
