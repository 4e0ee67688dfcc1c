# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A small DETR in plain JAX, trained on coloured rectangles.

    python -m examples.jax_detr [--usual]

Matcher, assignment, losses, their gradients and the optimizer's step are one `jit`, without a
callback; `--usual` trains with the usual criterion in its place. Needs jax, optax; --usual SciPy.
"""

import argparse
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from examples.jax_criterion import Outputs, Targets, fused, usual

SIDE, PATCH = 32, 4  # of a picture, of a patch, in pixels
IMAGES, MOST = 16, 5  # in a batch; boxes of an image
QUERIES, LAYERS, WIDTH = 12, 2, 64
COLOURS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)  # each is a class

Weights = dict[str, Any]


def make_batch(random: np.random.Generator) -> tuple[Array, Targets]:
    """Pictures with one to MOST rectangles; the list of boxes always has room for all."""
    pictures = 0.1 * random.random((IMAGES, SIDE, SIDE, 3), np.float32)
    counts = random.integers(1, MOST + 1, IMAGES)
    offsets = np.concatenate(([0], counts.cumsum()))
    boxes = np.zeros((IMAGES * MOST, 4), np.float32)
    labels = random.integers(0, len(COLOURS), IMAGES * MOST)
    for image in range(IMAGES):
        for row in range(offsets[image], offsets[image + 1]):
            size = random.integers(6, 15, 2)
            x, y = random.integers(0, SIDE - size)
            pictures[image, y : y + size[1], x : x + size[0]] = COLOURS[labels[row]]
            boxes[row] = np.array([x + size[0] / 2, y + size[1] / 2, *size]) / SIDE
    return jnp.asarray(pictures), Targets(*map(jnp.asarray, (boxes, labels, offsets)))


def make_weights(key: Array) -> Weights:
    patches = (SIDE // PATCH) ** 2
    shapes = {
        "patch": (PATCH * PATCH * 3, WIDTH),
        "place": (patches, WIDTH),
        "query": (QUERIES, WIDTH),
        **{
            f"{name}{layer}": (WIDTH, WIDTH)
            for layer in range(LAYERS)
            for name in ("ask", "key", "value", "mix")
        },
        "class": (WIDTH, len(COLOURS)),
        "box": (WIDTH, 4),
    }
    keys = jax.random.split(key, len(shapes))
    embedded = ("place", "query")
    return {
        name: jax.random.normal(each, shape) * (1 if name in embedded else shape[0] ** -0.5)
        for each, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def model(weights: Weights, pictures: Array) -> Outputs:
    """Learned queries look at the picture's patches, layer after layer."""
    grid = SIDE // PATCH
    patches = pictures.reshape(IMAGES, grid, PATCH, grid, PATCH, 3).swapaxes(2, 3)
    patches = patches.reshape(IMAGES, grid * grid, -1)
    seen = jax.nn.relu(patches @ weights["patch"] + weights["place"])
    queries = jnp.broadcast_to(weights["query"], (IMAGES, QUERIES, WIDTH))
    layers = []
    for layer in range(LAYERS):
        ask, key, value, mix = (
            weights[f"{name}{layer}"] for name in ("ask", "key", "value", "mix")
        )
        attention = jax.nn.softmax((queries @ ask) @ (seen @ key).swapaxes(1, 2) / WIDTH**0.5)
        queries = queries + attention @ (seen @ value)
        queries = queries + jax.nn.relu(queries) @ mix
        layers.append((queries @ weights["class"] - 2, jax.nn.sigmoid(queries @ weights["box"])))
    logits, boxes = zip(*layers, strict=True)
    return Outputs(jnp.stack(logits), jnp.stack(boxes))


def train(steps: int, is_usual: bool = False) -> list[float]:
    """The losses of the steps."""
    criterion = partial(usual, most=MOST) if is_usual else fused
    optimizer = optax.adam(3e-3)

    def loss_of(weights: Weights, pictures: Array, targets: Targets) -> Array:
        return criterion(model(weights, pictures), targets)

    @jax.jit
    def step(weights: Weights, state: Any, pictures: Array, targets: Targets) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(weights, pictures, targets)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    weights = make_weights(jax.random.key(0))
    state = optimizer.init(weights)
    random = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        weights, state, loss = step(weights, state, *make_batch(random))
        losses.append(float(loss))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--usual", action="store_true", help="the usual criterion")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    start = time.perf_counter()
    losses = train(options.steps, options.usual)
    for step in range(0, options.steps, max(1, options.steps // 10)):
        print(f"step {step}: loss {losses[step]:.3f}")
    print(f"step {options.steps - 1}: loss {losses[-1]:.3f}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
