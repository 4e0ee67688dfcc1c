# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Nothing to compute: a mean or sum of 0, which can still be differentiated."""

import pytest
import torch
from comparison import run
from devices import Implementation
from problems import REDUCTIONS, Problem

pytestmark = pytest.mark.asan


def empty_problems(device: torch.device) -> dict[str, Problem]:
    def boxes(*shape: int) -> torch.Tensor:
        # Not empty where slots or rows are left: NaN that must reach nothing.
        return torch.full((*shape, 4), float("nan"), device=device)

    def indices(*numbers: int) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=device)

    def grid(*shape: int) -> Problem:
        return {"pred": boxes(*shape), "target": boxes(*shape)}

    no_mask = torch.ones(2, 0, dtype=torch.bool, device=device)
    return {
        "no boxes": grid(0),
        "no images": grid(0, 5),
        "no slots": grid(2, 0),
        "no boxes in four dimensions": grid(2, 0, 3),
        "no boxes, strides that do not merge": {
            name: boxes(0, 6, 7)[:, :3, :5] for name in ("pred", "target")
        },
        "zero_padded, no slots": {**grid(2, 0), "zero_padded": True},
        "zero_padded, no images": {**grid(0, 5), "zero_padded": True},
        "mask, no slots": {**grid(2, 0), "mask": no_mask},
        "lengths, no images": {**grid(0, 5), "lengths": indices()},
        "lengths, no slots": {**grid(2, 0), "lengths": indices(3, 0)},
        "lengths of zero": {**grid(2, 5), "lengths": indices(0, 0)},
        "offsets, no rows": {"pred": boxes(2, 5), "target": boxes(0), "offsets": indices(0, 0, 0)},
        "offsets, no images": {"pred": boxes(0, 5), "target": boxes(3), "offsets": indices(0)},
        "offsets, no slots": {"pred": boxes(2, 0), "target": boxes(3), "offsets": indices(0, 1, 3)},
        "offsets, nothing": {"pred": boxes(0, 0), "target": boxes(0), "offsets": indices(0)},
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "normalizer"])
@pytest.mark.parametrize("name", empty_problems(torch.device("meta")))
def test_zero_with_zero_gradients(
    implementation: Implementation, name: str, reduction: str, weighted: bool
) -> None:
    values = empty_problems(implementation.device)[name]
    loss_shape = values["target"].shape[:-1]
    if reduction == "normalizer":
        values["normalizer"] = torch.tensor(2.0, device=implementation.device)
    else:
        values["reduction"] = reduction
    if weighted:
        values["weight"] = torch.full(loss_shape, 2.0, device=implementation.device)
    result = run(values)
    assert result["loss"].shape == (loss_shape if reduction == "none" else ())
    assert not result["loss"].any()
    for gradient in ("pred", "target", *(["weight"] if weighted else [])):
        assert result[gradient].shape == values[gradient].shape
        assert not result[gradient].any()


@pytest.mark.parametrize("name", empty_problems(torch.device("meta")))
def test_twice_differentiable(device: torch.device, name: str) -> None:
    values = empty_problems(device)[name]
    values["pred"].requires_grad_()
    loss = torch.ops.boxloss.giou_loss(**values)
    (gradient,) = torch.autograd.grad(loss, values["pred"], create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), values["pred"])
    assert not gradient.any()
    assert not second.any()
