# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A dense detector's training, with its own criterion and with boxloss in place; and its halves.

In double. A gradient through the network is a sum of some thousand terms, each right to some
hundreds of u = 1.1e-16: relative to the norm of all gradients 1e-13, in the first step. What is
apart moves the next steps apart, and in these small networks at most doubles in a step: 8 steps are
2^8 of it, 3e-11, and a threefold of that is CLOSE, relative to how far weights have moved. Another
eps, 1e-6 for 1e-7, or a float32 among the weights would be more than a hundredfold of it.
"""

from collections.abc import Callable
from typing import Any

import torch
from boxloss.torch.compat import use_boxloss
from surroundings import assert_as_near, default_dtype, moved
from torch import Tensor

from examples.training import keep

CLOSE = 1e-10


def weights(model: torch.nn.Module) -> Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def assert_same_training(
    train: Callable[..., Any],
    seed: int,
    counts: tuple[int, ...] = (3, 0, 5),
    close: float = CLOSE,
) -> None:
    """The same losses in each step, and the same weights after them."""
    with default_dtype(torch.float64):
        _, start = train(keep, seed, steps=0, counts=counts)
        losses, model = train(keep, seed, counts=counts)
        others, other = train(use_boxloss, seed, counts=counts)
    way = (weights(model) - weights(start)).norm().item()
    apart = (weights(other) - weights(model)).norm().item()
    assert len(losses) == len(others) == 8
    assert len(set(losses)) == (8 if any(counts) else 1)  # there is something to train
    assert way > 0
    assert apart <= close * way, (apart, way)
    torch.testing.assert_close(others, losses, rtol=close, atol=0)


def assert_as_near_under_autocast(
    run: Callable[..., Any], original: Any, replaced: Any, values: dict[str, Any]
) -> None:
    """`run` gives losses and gradients. The original is right in double, on the same numbers."""
    exact = run(original, moved(values, "cpu", torch.float64), torch.float64)
    halves = (run(each, moved(values, "cpu"), torch.bfloat16) for each in (replaced, original))
    assert_as_near(*halves, exact)
