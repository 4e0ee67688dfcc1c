# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A dense detector's training, with its own box loss and with an example's.

In double. A gradient through the network is a sum of some thousand terms, each right to some
hundreds of u = 1.1e-16: relative to the norm of all gradients 1e-13, in the first step. What is
apart moves the next steps apart, and in these small networks at most doubles in a step: 8 steps are
2^8 of it, 3e-11, and a threefold of that is CLOSE, relative to how far weights have moved. Another
eps, 1e-6 for 1e-7, or a float32 among the weights would be more than a hundredfold of it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

CLOSE = 1e-10


def weights(model: torch.nn.Module) -> Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def assert_same_training(
    train: Callable[..., Any], original: Any, replaced: Any, seed: int, close: float = CLOSE
) -> None:
    """The same losses in each step, and the same weights after them."""
    _, start = train(original, seed, steps=0, dtype=torch.float64)
    losses, model = train(original, seed, dtype=torch.float64)
    others, other = train(replaced, seed, dtype=torch.float64)
    moved = (weights(model) - weights(start)).norm().item()
    apart = (weights(other) - weights(model)).norm().item()
    assert len(losses) == len(others) == 8
    assert len(set(losses)) == len(losses)  # there is something to train
    assert apart <= close * moved, (apart, moved)
    torch.testing.assert_close(others, losses, rtol=max(close, 2.0**-23), atol=0)
