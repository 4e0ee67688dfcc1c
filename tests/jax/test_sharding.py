# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Images on eight devices, which are the CPU."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from both import of_classes, of_distributions, of_rotated, same
from boxloss.jax import (
    box_loss,
    box_losses,
    class_loss,
    hungarian_match,
    linear_sum_assignment,
    matching_cost,
    max_iou_match,
    use_implementation,
)
from combinations import long_but
from jax.sharding import Mesh, NamedSharding, PartitionSpec

try:
    from jax import shard_map
except ImportError:  # before 0.8
    from jax.experimental.shard_map import shard_map

BY_IMAGE = PartitionSpec("images")
COLLECTIVES = ("all-gather", "all-to-all", "all-reduce", "collective-permute")


@pytest.fixture
def mesh() -> Mesh:
    assert len(jax.devices()) == 8
    return Mesh(np.array(jax.devices()), ("images",))


@pytest.fixture
def explicit() -> Mesh:
    """With sharding in types, as meshes are made by default."""
    if not hasattr(jax, "set_mesh"):
        pytest.skip("JAX has no sharding in types")
    return jax.make_mesh((8,), ("images",), axis_types=(jax.sharding.AxisType.Explicit,))


def arrays() -> tuple[jax.Array, ...]:
    """pred, target and lengths of 16 images."""
    keys = jax.random.split(jax.random.key(0), 3)
    boxes = [jax.random.uniform(key, (16, 5, 4), jnp.float32) for key in keys[:2]]
    return *boxes, jax.random.randint(keys[2], (16,), 0, 6)


def total(pred: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    losses = box_losses(pred, target, lengths=lengths, reduction="sum", pred_format="xyxy")
    return losses.loss + losses.l1


def test_shard_map_gathers_nothing(mesh: Mesh) -> None:
    def of_all(*own: jax.Array) -> jax.Array:
        return shard_map(
            lambda *own: jax.lax.psum(total(*own), "images"),
            mesh=mesh,
            in_specs=(BY_IMAGE,) * 3,
            out_specs=PartitionSpec(),
        )(*own)

    step = jax.jit(jax.value_and_grad(of_all, argnums=(0, 1)))
    loss, gradients = step(*arrays())
    expected, wanted = jax.value_and_grad(total, argnums=(0, 1))(*arrays())
    # Eight sums, each rounded to float32, and seven additions, of losses between -2 and 6.
    assert abs(loss - expected) <= 15 * 2**-24 * 6 * 16 * 5
    same(gradients, wanted)
    text = step.lower(*arrays()).compile().as_text()
    assert {word: text.count(f" {word}(") for word in COLLECTIVES} == {
        word: int(word == "all-reduce") for word in COLLECTIVES
    }


@pytest.mark.skipif(jax.__version_info__ < (0, 7), reason="JAX does not tell where it is sharded")
@pytest.mark.parametrize("pairing", ["dense", "lengths", "mask", "zero_padded"])
def test_jit_gathers_nothing_for_the_unreduced_loss(mesh: Mesh, pairing: str) -> None:
    """Of images, each on the device where it is; the caller's own sums are all-reduced."""
    pred, target, lengths = arrays()
    is_valid = jnp.arange(5) < lengths[:, None]
    of_pairing = {"lengths": {"lengths": lengths}, "mask": {"mask": is_valid}}.get(pairing, {})
    target = jnp.where(is_valid[..., None], target, 0) if pairing == "zero_padded" else target
    weight = jnp.arange(16 * 5.0).reshape(16, 5).astype(jnp.float32)

    def summed(floating: Any, others: Any) -> Any:
        losses = box_losses(
            **floating, **others, reduction="none", zero_padded=pairing == "zero_padded"
        )
        return losses.loss.sum() + losses.l1.sum(), losses

    step = jax.jit(jax.grad(summed, has_aux=True))
    given = {"pred": pred, "target": target, "weight": weight}, of_pairing
    sharded = jax.device_put(given, NamedSharding(mesh, BY_IMAGE))
    found = step(*sharded)
    same(found, step(*given))
    assert all(each.sharding.spec[:1] == ("images",) for each in jax.tree.leaves(found))
    text = step.lower(*sharded).compile().as_text()
    assert not any(f" {word}(" in text for word in COLLECTIVES)
    batched = jax.vmap(step)(*jax.tree.map(lambda each: jnp.stack([each, each]), given))
    same(jax.tree.map(lambda each: each[1], batched), found)


def test_sharded_arrays_are_gathered_for_a_sum(mesh: Mesh) -> None:
    sharded: Any = [jax.device_put(each, NamedSharding(mesh, BY_IMAGE)) for each in arrays()]
    step = jax.value_and_grad(total)
    same(jax.jit(step)(*sharded), step(*arrays()))


@pytest.mark.skipif(jax.__version_info__ < (0, 6, 2), reason="JAX itself has no such gradient")
def test_shard_map_without_jit(mesh: Mesh) -> None:
    def of_own(*own: jax.Array) -> Any:
        unreduced = box_losses(*own[:2], lengths=own[2], reduction="none")
        gradients = jax.grad(total, argnums=(0, 1))(*own), jax.grad(of_classes)(*own)
        return gradients, unreduced

    in_specs, out_specs = (BY_IMAGE,) * 3, BY_IMAGE
    mapped = shard_map(of_own, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    same(mapped(*arrays()), of_own(*arrays()))


def of_matched(pred: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    """By the matcher's indices."""
    boxes, offsets = target[0], jnp.minimum(jnp.arange(17), 5)
    match = hungarian_match(matching_cost(pred, boxes, offsets), offsets)
    index = {"pred_index": match.pred_index, "target_index": match.target_index}
    return box_loss(pred, target[0], **index)


def by_formula(pred: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    with use_implementation("jnp"):
        return total(pred, target, lengths)


LOSSES = {
    "mean": lambda pred, target, lengths: box_loss(pred, target),
    "unreduced": lambda pred, target, lengths: box_loss(pred, target, reduction="none").sum(),
    "lengths": total,
    "rotated": of_rotated,
    "matched": of_matched,
    "formula": by_formula,
    "one by one": lambda *own: jax.vmap(lambda a, b, c: total(a[None], b[None], c[None]))(
        *own
    ).sum(),
    "classes": of_classes,
    "classes, second order": lambda *own: jax.grad(of_classes)(*own).var(),
    "distributions": of_distributions,
    "distributions, second order": lambda *own: jax.grad(of_distributions)(*own).var(),
    "second order": lambda p, t, n: jax.grad(lambda p: box_loss(p, t))(p).var(),
}


@pytest.mark.parametrize("jit", [jax.jit, lambda function: function])
@pytest.mark.parametrize("name", long_but(LOSSES, [n for n in LOSSES if ", second" not in n]))
def test_a_gradient_is_sharded_as_its_input(
    explicit: Mesh, name: str, jit: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    if name == "unreduced" and jax.__version_info__ >= (0, 12):
        reason = "XLA of jax 0.12 has no call to Sharding on the host: docs/jax.md"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    gradient = jax.grad(LOSSES[name], argnums=(0, 1))
    wanted = jax.jit(gradient)(*arrays())
    with jax.set_mesh(explicit):
        pred, target, lengths = (
            jax.device_put(each, NamedSharding(explicit, spec))
            for each, spec in zip(arrays(), (BY_IMAGE, PartitionSpec(), BY_IMAGE), strict=True)
        )
        if name == "one by one":
            target = jax.sharding.reshard(target, BY_IMAGE)
        found = jit(gradient)(pred, target, lengths)
    for ours, theirs, own in zip(found, wanted, (pred, target), strict=True):
        # What XLA computes of it may be rounded in another order.
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
        assert jax.typeof(ours).sharding.spec == jax.typeof(own).sharding.spec


def test_an_unreduced_class_loss_is_sharded_as_its_logits(explicit: Mesh) -> None:
    logits, index = arrays()[0], jnp.zeros((16, 5), jnp.int32)
    wanted = class_loss(logits, index, index[0], mode="focal", reduction="none")
    with jax.set_mesh(explicit):
        sharded = jax.device_put(logits, NamedSharding(explicit, BY_IMAGE))
        found = class_loss(sharded, index, index[0], mode="focal", reduction="none")
    np.testing.assert_array_equal(found, wanted)
    assert jax.typeof(found).sharding.spec == PartitionSpec("images", None)


def test_matches_with_sharding_in_types(explicit: Mesh) -> None:
    pred, target, _ = arrays()
    offsets = jnp.array([0, 5])

    def match(pred: jax.Array) -> Any:
        cost = matching_cost(pred, target[0], offsets)
        assigned = max_iou_match(pred, target[0], offsets, high=0.5, low=0.3)
        return hungarian_match(cost, offsets), linear_sum_assignment(cost), assigned

    wanted = jax.vmap(match)(pred[:, None])
    with jax.set_mesh(explicit):
        sharded = jax.device_put(pred[:, None], NamedSharding(explicit, BY_IMAGE))
        found = jax.jit(jax.vmap(match))(sharded)
    same(found, wanted)
