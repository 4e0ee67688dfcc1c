# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A small model's losses, gradients and training, with its own criterion and with another.

In double, where each box' gradient is right to about 316 * 2 u = 7e-14 of its size
(tests/torch/comparison.py) and all else is rounded less. Through the network they are added with
both signs; a hundredfold of that, relative to the norm of all gradients, is `CLOSE`. The examples
clip that norm to 0.1 and take 8 steps of 0.1: each moves weights by at most 0.01 and, for the norm
is as wrong as the gradients are, 0.02 * CLOSE apart. What is apart grows from step to step, by
GROWTH at most: see below.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from surroundings import default_dtype
from torch import Tensor

from examples.training import Replace, keep, transformers_batch

CLOSE = 1e-11
STEPS, STEP = 8, 0.01
GROWTH = 100


def assert_same_in_model(
    small_model: Callable[[], Any],
    replace: Replace,
    counts: tuple[int, ...],
    seed: int,
    in_training: bool = True,
) -> None:
    with default_dtype(torch.float64):
        torch.manual_seed(seed)
        model = small_model().train(in_training)
        images, labels = transformers_batch(counts)
        results = []
        for change in (keep, replace):
            change(model)
            model.zero_grad()
            torch.manual_seed(seed)  # for dropout and denoising
            output = model(pixel_values=images, labels=labels)
            output.loss.backward()
            results.append((output, {n: p.grad for n, p in model.named_parameters()}))
    (original, exact), (output, gradients) = results
    assert output.loss_dict.keys() == original.loss_dict.keys()
    for name, value in original.loss_dict.items():
        assert abs(output.loss_dict[name] - value) <= CLOSE * (1 + value), name
    assert abs(output.loss - original.loss) <= CLOSE * original.loss
    auxiliary = (each.auxiliary_outputs or () for each in (original, output))
    for theirs, ours in zip(*auxiliary, strict=True):
        assert theirs.keys() == ours.keys()
        assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    norm = torch.stack([each.norm() for each in exact.values() if each is not None]).norm()
    assert norm > 0.1
    for name, gradient in exact.items():
        if gradient is None:
            assert gradients[name] is None or not gradients[name].any(), name
        else:
            assert (gradients[name] - gradient).norm() <= CLOSE * norm, name


def assert_trains_the_same(example: ModuleType, replace: Replace, seed: int) -> None:
    small_model = example.small_model

    def moved_model() -> Any:
        model = small_model()
        random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 1e-9 * (2 * torch.rand(parameter.shape, generator=random) - 1)
        return model

    with default_dtype(torch.float64):
        torch.manual_seed(seed)
        before = small_model()
        original, theirs = example.train(keep, seed, STEPS)
        replaced, ours = example.train(replace, seed, STEPS)
        with patch.object(example, "small_model", moved_model):
            _, others = example.train(keep, seed, STEPS)

    # They do learn, and another start ends less than a tenth of GROWTH as far away.
    assert distance(before, theirs) > 5e-3
    assert original[-1] < original[0]
    assert distance(theirs, others) < GROWTH / 10 * 1e-9
    allowed = STEPS * 2 * STEP * CLOSE * GROWTH
    assert distance(theirs, ours) <= allowed
    # The gradient's norm is some tens; 1e3 leaves room for the root of the number of weights.
    for one, other in zip(original, replaced, strict=True):
        assert abs(one - other) <= CLOSE * one + 1e3 * allowed


def distance(one: torch.nn.Module, other: torch.nn.Module) -> float:
    """The largest, of all weights."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(_largest(a - b) for a, b in pairs)


def _largest(values: Tensor) -> float:
    return values.abs().max().item()
