# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does boxloss save in JAX, beside jax.jit of the formula?

The loss alone: pairs in a dense array, and images of 4,096 slots with eight boxes each, boxloss'
all in one list, the formula's padded and masked. The criterion: matcher, assignment, losses and
their gradient for a DETR's six layers, beside jax.numpy and SciPy, which JAX calls on the host;
examples/jax_criterion.py has both. A call's wall time ends when its results are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from ..runner.agreement import DisagreementError
from ..runner.run import PASSES, Run

PAIRS = 100, 1_000, 10_000, 262_144
MANY = 4_194_304  # on a GPU
IMAGES, SLOTS, BOXES = 64, 4_096, 8  # of the ragged batch
LAYERS, BATCH, QUERIES, CLASSES, MOST = 6, 8, 300, 80, 7  # of the criterion
DTYPES = {"f32/f32": ("float32", "float32"), "bf16/u8": ("bfloat16", "uint8")}
NEAR = 1e-4  # relative: float32 sums of so many pairs, and the usual code's casts

Functions = dict[str, Callable[[Any], Any]]  # losses of what is differentiated


def measure(run: Run) -> None:
    import jax

    platform = "gpu" if run.on_gpu else "cpu"
    with jax.default_device(jax.devices(platform)[0]):
        for columns, functions, argument in cases(run):
            found = {name: jax.jit(jax.value_and_grad(each)) for name, each in functions.items()}
            check(columns, {name: each(argument) for name, each in found.items()})
            forward = {name: jax.jit(each) for name, each in functions.items()}
            for each, calls in zip(PASSES, (forward, found), strict=True):
                waiting = {name: partial(call, one, argument) for name, one in calls.items()}
                run.time(columns | {"pass": each}, waiting, ("wall",))


def call(function: Callable[[Any], Any], argument: Any) -> None:
    import jax

    jax.block_until_ready(function(argument))


def check(columns: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    losses = {name: float(loss) for name, (loss, _) in found.items()}
    one, other = losses.values()
    if not abs(one - other) <= NEAR * abs(other):
        raise DisagreementError(f"{columns}: {losses}")


def cases(run: Run) -> Iterator[tuple[dict[str, Any], Functions, Any]]:
    sizes = PAIRS[:2] if run.quick else PAIRS + (MANY,) * run.on_gpu
    for dtypes in DTYPES:
        for size in sizes:
            yield {"case": "dense", "boxes": size, "dtypes": dtypes}, *dense(size, dtypes)
    images, slots = (4, 16) if run.quick else (IMAGES, SLOTS)
    for dtypes in DTYPES:
        columns = {"case": "ragged", "boxes": images * slots, "dtypes": dtypes}
        yield columns, *ragged(images, slots, dtypes)
    queries = 20 if run.quick else QUERIES
    yield {"case": "criterion", "boxes": BATCH * MOST, "dtypes": "f32/f32"}, *criterion(queries)


def boxes(shape: tuple[int, ...], seed: int, dtype: str) -> Any:
    """Of 8 to 72 pixels in a picture of 256; made on the CPU, the same for every device."""
    import jax.numpy as jnp

    generator = torch.Generator().manual_seed(seed)
    corner = 180 * torch.rand(*shape, 2, generator=generator)
    side = 8 + 64 * torch.rand(*shape, 2, generator=generator)
    return jnp.asarray(torch.cat([corner, corner + side], -1).round().numpy()).astype(dtype)


def dense(size: int, dtypes: str) -> tuple[Functions, Any]:
    import jax.numpy as jnp
    from boxloss.jax import box_loss

    from ..common.jax_loss import giou

    of_pred, of_target = DTYPES[dtypes]
    target = boxes((size,), 2, of_target)

    def formula(pred: Any) -> Any:
        return (1 - giou(pred.astype(jnp.float32), target.astype(jnp.float32))).mean()

    functions = {"boxloss": lambda pred: box_loss(pred, target), "jax.jit": formula}
    return functions, boxes((size,), 1, of_pred)


def ragged(images: int, slots: int, dtypes: str) -> tuple[Functions, Any]:
    import jax.numpy as jnp
    from boxloss.jax import box_loss

    from ..common.jax_loss import loss

    of_pred, of_target = DTYPES[dtypes]
    target = boxes((images, BOXES), 2, of_target)
    padded = jnp.pad(target, ((0, 0), (0, slots - BOXES), (0, 0)))
    listed, offsets = target.reshape(-1, 4), BOXES * jnp.arange(images + 1)
    lengths = jnp.full(images, BOXES)
    functions = {
        "boxloss": lambda pred: box_loss(pred, listed, offsets=offsets),
        "jax.jit": lambda pred: loss(pred, padded, lengths),
    }
    return functions, boxes((images, slots), 1, of_pred)


def criterion(queries: int) -> tuple[Functions, Any]:
    import jax.numpy as jnp

    from examples.jax_criterion import Outputs, Targets, fused, usual

    def in_parts(shape: tuple[int, ...], seed: int) -> Any:
        corners = boxes(shape, seed, "float32") / 256
        low, high = corners[..., :2], corners[..., 2:]
        return jnp.concatenate([(low + high) / 2, high - low], -1)

    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(LAYERS, BATCH, queries, CLASSES, generator=generator) - 4
    labels = torch.randint(CLASSES, (BATCH * MOST,), generator=generator)
    offsets = MOST * jnp.arange(BATCH + 1)
    targets = Targets(in_parts((BATCH * MOST,), 4), jnp.asarray(labels.numpy()), offsets)
    outputs = Outputs(jnp.asarray(logits.numpy()), in_parts((LAYERS, BATCH, queries), 5))
    functions = {
        "boxloss": partial(fused, targets=targets),
        "jax.jit": partial(usual, targets=targets, most=MOST),
    }
    return functions, outputs
