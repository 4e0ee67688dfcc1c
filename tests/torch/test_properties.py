# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A pairing, whatever pairs it has, is the dense loss of its pairs."""

import pytest
import torch
from boxloss.torch import box_losses
from comparison import LOSS, UNIT_ROUNDOFF
from formulas import LOSSES
from hypothesis import given
from hypothesis import strategies as st
from problems import INDICES, PAIRINGS, Problem, pairs_of, problem
from torch import Tensor

# Twice a loss' own bound: the distance of two computations of one number. Of iou_log it is twice
# as large: 17 of the quotient, and the rounding of a logarithm of up to 16.
APART = 2 * 2 * LOSS * UNIT_ROUNDOFF[torch.float32]


def drawn(data: st.DataObject, pairing: str, values: Problem) -> Problem:
    """The same boxes with any lengths, offsets, indices, mask or padding."""
    device = values["pred"].device

    def numbers(low: int, high: int, count: int) -> Tensor:
        some = data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
        return torch.tensor(some, device=device)

    if pairing == "lengths":
        return {**values, "lengths": numbers(-1, 6, 3)}
    if pairing == "offsets":
        return {**values, "offsets": numbers(-1, 14, 4).sort().values}
    if pairing in ("indices", "sets"):
        shape = values["pred_index"].shape
        index = {name: numbers(-2, 17, shape.numel()).reshape(shape) for name in INDICES}
        return {**values, **index}
    counts = numbers(0, 1, 15).bool().reshape(3, 5)
    if pairing == "mask":
        return {**values, "mask": counts}
    return {**values, "target": values["target"].where(counts[..., None], 0)}


@pytest.mark.parametrize("pairing", PAIRINGS[1:])
@given(data=st.data(), loss=st.sampled_from(LOSSES))
def test_a_pairing_is_the_dense_loss_of_its_pairs(
    device: torch.device, pairing: str, loss: str, data: st.DataObject
) -> None:
    values = drawn(data, pairing, problem(pairing, device, reduction="none", loss=loss))
    actual = box_losses(**values)
    pairs = torch.tensor(pairs_of(values), dtype=torch.int64, device=device).reshape(-1, 3)
    slots, rows, places = pairs.unbind(-1)
    operands = values["pred"].reshape(-1, 4)[slots], values["target"].reshape(-1, 4)[rows]
    dense = box_losses(*operands, loss, reduction="none")
    for result, each in zip(actual, dense, strict=True):
        expected = torch.zeros_like(result.flatten()).index_put((places,), each)
        # l1 is a sum of four differences below 64.
        bound = APART if result is not actual.l1 else 2 * 4 * 4 * 64 * UNIT_ROUNDOFF[torch.float32]
        assert torch.all((result.flatten() - expected).abs() <= bound)
        assert torch.equal(result.flatten() == 0, expected == 0)
