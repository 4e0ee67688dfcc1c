# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A small model's losses, gradients and training, with its own criterion and with another.

In double, where each box' gradient is right to about 316 * 2 u = 7e-14 of its size
(tests/torch/comparison.py) and all else is rounded less. Through the network they are added with
both signs; a hundredfold of that, relative to the norm of all gradients, is CLOSE.

In training, gradients are 1e-13 of their norm apart in the first step. What is apart moves the next
steps apart, and in these small networks at most doubles in a step: 8 steps are 2^8 of it, 3e-11,
and a threefold of that is CLOSE_IN_THE_END, relative to how far weights have moved. Another eps,
1e-6 for 1e-7, or a float32 among the weights would be more than a hundredfold of it.
"""

from collections.abc import Callable
from typing import Any

import torch
from boxloss.torch.compat import use_boxloss
from surroundings import default_dtype
from torch import Tensor

from examples.training import Replace, keep

CLOSE = 1e-11
CLOSE_IN_THE_END = 1e-10


def weights(model: torch.nn.Module) -> Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def assert_same_training(
    train: Callable[..., Any],
    seed: int,
    close: float = CLOSE_IN_THE_END,
    change: Replace = use_boxloss,
    **options: Any,
) -> None:
    """The same losses in each step, and the same weights after them."""
    with default_dtype(torch.float64):
        _, start = train(keep, seed, steps=0, **options)
        losses, model = train(keep, seed, steps=8, **options)
        others, other = train(change, seed, steps=8, **options)
    way = (weights(model) - weights(start)).norm().item()
    apart = (weights(other) - weights(model)).norm().item()
    is_trained = any(options.get("counts", [1]))
    assert len(losses) == len(others) == 8
    assert len(set(losses)) == (8 if is_trained else 1)  # there is something to train
    assert way > (5e-3 if is_trained else 0)
    assert apart <= close * way, (apart, way)
    torch.testing.assert_close(others, losses, rtol=close, atol=0)
