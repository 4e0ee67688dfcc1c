# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matcher: the bits that torch has on the same device."""

from typing import Any

import boxloss.jax
import boxloss.torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import DEVICE, as_numpy, assert_same_bits, for_jax, on_device
from problems import Problem, boxes


def cost_problem(leading: tuple[int, ...] = (2,), **options: Any) -> Problem:
    """Three images of six queries, with two, no and five boxes."""
    return {
        "pred": boxes((*leading, 3, 6), DEVICE, box_format="cxcywh", seed=1),
        "target": boxes((7,), DEVICE, box_format="cxcywh", seed=2),
        "offsets": torch.tensor([0, 2, 2, 7], device=DEVICE),
        **options,
    }


def with_logits(leading: tuple[int, ...] = (2,), **options: Any) -> Problem:
    random = torch.Generator().manual_seed(3)
    return cost_problem(
        leading,
        logits=torch.randn((*leading, 3, 6, 5), generator=random).to(DEVICE),
        labels=torch.tensor([0, 1, 2, 3, 4, 0, 9], device=DEVICE),
        **options,
    )


def given_cost(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(4)).to(DEVICE)


@pytest.mark.parametrize(
    "values",
    [
        cost_problem(),
        cost_problem(()),
        cost_problem((2, 2), loss="ciou", eps=1e-6, eps_mode="clamp"),
        with_logits(class_mode="sigmoid", class_weight=3),
        with_logits((), class_mode="focal", focal_alpha=0.3, focal_gamma=1.5),
        cost_problem(class_cost=given_cost(2, 6, 7)),
        cost_problem(class_cost=given_cost(6, 7)),
        cost_problem((2, 3), class_cost=given_cost(3, 6, 7)),
        cost_problem((2, 3), class_cost=given_cost(2, 1, 6, 7)),
        cost_problem(iou_weight=1, l1_weight=0, pred_format="xyxy"),
        cost_problem(class_cost=torch.full((6, 7), torch.inf, device=DEVICE), nonfinite=9),
        cost_problem(offsets=torch.tensor([1, 3, 3, 6], dtype=torch.int32, device=DEVICE)),
        {**cost_problem(), "pred": boxes((3, 6), DEVICE, torch.bfloat16)},
        {**cost_problem(), "pred": boxes((3, 6), DEVICE, torch.float64)},
        {**cost_problem(), "pred": boxes((3, 0), DEVICE)},
        {**cost_problem(), "target": boxes((0,), DEVICE)},
    ],
)
def test_the_costs_bits_are_torchs(values: Problem) -> None:
    expected = boxloss.torch.matching_cost(**values)
    assert_same_bits(boxloss.jax.matching_cost(**for_jax(values)), expected, "cost")


def test_softmax_is_jaxs() -> None:
    """The log-softmax rounds in its own way; the rest is the kernel's, as for a given cost."""
    values = with_logits()
    logits, labels = (for_jax(values)[name] for name in ("logits", "labels"))
    chances = np.exp(np.asarray(jax.nn.log_softmax(logits)))
    term = np.where(labels < 5, -chances[..., np.clip(labels, 0, 4)], 0)
    expected = np.zeros((2, 6, 7), np.float32)
    without = np.asarray(boxloss.jax.matching_cost(**for_jax(cost_problem())))
    for image, (begin, end) in enumerate(((0, 2), (2, 2), (2, 7))):
        expected[..., begin:end] = without[..., begin:end] + term[:, image, :, begin:end]
    cost = np.asarray(boxloss.jax.matching_cost(**for_jax(values)))
    # One addition more, the kernel's exponential, and ours: a few roundings of numbers up to 600.
    np.testing.assert_allclose(cost, expected, rtol=4 * 2**-24, atol=4 * 2**-24)


def test_softmax_of_half_logits_is_taken_in_float32() -> None:
    values = for_jax(with_logits())
    half = values["logits"].astype(jnp.bfloat16)
    found, expected = (
        boxloss.jax.matching_cost(**{**values, "logits": logits})
        for logits in (half, half.astype(jnp.float32))
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("loss", ["iou", "ciou"])
def test_pairwise_ious_bits_are_torchs(loss: str) -> None:
    values = {**cost_problem(), "loss": loss, "target_format": "cxcywh"}
    expected = boxloss.torch.pairwise_iou(**values)
    assert_same_bits(boxloss.jax.pairwise_iou(**for_jax(values)), expected, "overlap")


def costs(*shape: int) -> torch.Tensor:
    """With ties, and some that are not finite."""
    random = torch.Generator().manual_seed(6)
    cost = torch.randint(0, 9, shape, generator=random).float()
    cost.view(-1)[::13] = torch.inf
    cost.view(-1)[5::17] = torch.nan
    return cost


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize(
    ("cost", "groups"),
    [
        (costs(6, 7), 1),
        (costs(3, 6, 7), 2),
        (costs(2, 40, 7).double(), 4),
        (costs(0, 6, 7), 1),
        (costs(6, 0), 1),
    ],
)
def test_the_assignment_is_torchs(cost: torch.Tensor, groups: int, x64: bool) -> None:
    offsets = torch.tensor([0, 0, 0, 0] if cost.shape[-1] == 0 else [0, 2, 2, 7])
    values = {"cost": cost, "offsets": offsets, "groups": groups}
    assert_the_match_is_torchs("hungarian_match", values, x64)


def assert_the_match_is_torchs(function: str, values: Problem, x64: bool = True) -> None:
    """Bit by bit; without x64 its indices are int32."""
    expected = getattr(boxloss.torch, function)(**on_device(values))
    arrays = {k: as_numpy(v) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    with switched_x64(x64):
        found = getattr(boxloss.jax, function)(**arrays)
    assert type(found).__name__ == type(expected).__name__
    assert found._fields == expected._fields
    for name, array, tensor in zip(expected._fields, found, expected, strict=True):
        is_narrow = tensor.dtype == torch.int64 and not x64
        assert_same_bits(array, tensor.int() if is_narrow else tensor, name)


def switched_x64(on: bool) -> Any:
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    return enable(on)


def test_offsets_that_lead_outside_give_no_pairs() -> None:
    for offsets in ([0, 3, 2, 7], [0, 2, 2, 8]):
        for found in boxloss.jax.hungarian_match(as_numpy(costs(6, 7)), jnp.array(offsets)):
            assert (found == -1).all()


def test_matcher_assignment_and_losses_are_one_jit() -> None:
    """And nothing of the matcher stands in the gradient's way."""
    values = for_jax(with_logits())
    pred = values.pop("pred")

    def criterion(pred: jax.Array) -> jax.Array:
        cost = boxloss.jax.matching_cost(pred, **values)
        match = boxloss.jax.hungarian_match(cost, values["offsets"])
        losses = boxloss.jax.box_losses(
            pred,
            values["target"],
            pred_index=match.pred_index,
            target_index=match.target_index,
            pred_format="cxcywh",
            target_format="cxcywh",
        )
        return (2 * losses.loss + 5 * losses.l1).sum()

    loss, gradient = jax.value_and_grad(criterion)(pred)
    jitted = jax.jit(jax.value_and_grad(criterion))(pred)
    assert loss == jitted[0]
    assert (gradient == jitted[1]).all()
    assert 0 < (gradient != 0).sum() < gradient.size
