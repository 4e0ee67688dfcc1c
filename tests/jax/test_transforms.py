# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What JAX makes of a call: vmap, scan, checkpoint, donation, threads, numbers of 32 bits."""

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import boxloss.jax
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from both import (
    DEVICE,
    assert_one_after_the_other,
    for_jax,
    of_classes,
    of_distributions,
    of_rotated,
    same,
    switched_x64,
)
from boxloss.jax import (
    box_loss,
    box_losses,
    hungarian_match,
    linear_sum_assignment,
    matching_cost,
    max_iou_match,
    rotated_box_loss,
)
from combinations import long_but, pairwise
from problems import problem

VALUES = for_jax(problem("lengths", DEVICE))
ROTATED = {"loss": "giou", "angle_unit": "degrees"}
PRED, TARGET, LENGTHS = (VALUES[name] for name in ("pred", "target", "lengths"))


def of_lengths(pred: jax.Array, target: jax.Array, lengths: jax.Array) -> jax.Array:
    return box_loss(pred, target, "ciou", lengths=lengths)


def many(array: jax.Array, count: int = 3) -> jax.Array:
    """Other boxes for each, where they are boxes."""
    offsets = jnp.arange(count, dtype=array.dtype).reshape(-1, *[1] * array.ndim)
    return array + offsets if jnp.issubdtype(array.dtype, jnp.floating) else array - offsets


@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None), (None, 0, 0), (1, 1, None)])
def test_vmap_is_one_call_after_the_other(axes: tuple[int | None, ...]) -> None:
    batched = [
        each if axis is None else jnp.moveaxis(many(each), 0, axis)
        for each, axis in zip((PRED, TARGET, LENGTHS), axes, strict=True)
    ]
    step = jax.value_and_grad(of_lengths, argnums=(0, 1))
    assert_one_after_the_other(step, axes, *batched)


def test_vmap_of_vmap() -> None:
    loss = partial(box_losses, lengths=LENGTHS, reduction="none")
    pred, target = many(many(PRED, 2)), many(many(TARGET, 2))
    assert_one_after_the_other(loss, (0, 0), pred[:, 0], target[:, 1])
    assert_one_after_the_other(jax.vmap(loss), (0, 0), pred, target)


def own_calls(function: Any, *arguments: Any) -> int:
    """Of the library, in a loop or not."""
    text = jax.jit(function).lower(*arguments).as_text()
    assert "while" not in text
    return text.count("custom_call @boxloss")


@pytest.mark.parametrize("layers", [(), (2,)])
def test_vmap_of_the_matcher_is_one_call_each(layers: tuple[int, ...]) -> None:
    """Of predictions for the same ground-truth boxes."""
    target, offsets = TARGET.reshape(-1, 4)[:7], jnp.array([0, 2, 2, 7])
    pred = jnp.broadcast_to(PRED, (*layers, *PRED.shape))

    def match(pred: jax.Array) -> Any:
        return hungarian_match(matching_cost(pred, target, offsets), offsets)

    assert_one_after_the_other(match, (0,), many(pred))
    assert_one_after_the_other(jax.vmap(match), (0,), many(many(pred, 2)))
    assert own_calls(jax.vmap(match), many(pred)) == 2


@pytest.mark.parametrize(
    "case",
    pairwise(
        batched=(("pred",), ("pred", "target"), ("pred_index",), ("weight",)),
        pairing=("indices", "sets"),
        given=(("pred_index", "target_index"), ("pred_index",)),
        reduction=("none", "mean"),
    ),
)
@pytest.mark.parametrize("own", long_but(({}, ROTATED), [{}]), ids=len)
def test_vmap_of_pairs_by_index_is_one_call(case: dict[str, Any], own: dict[str, str]) -> None:
    """Their sets are summed as they would be alone, so the bits are the same."""
    batched, reduction = case["batched"], case["reduction"]
    numbers = problem(case["pairing"], DEVICE, weight=torch.float32, given=case["given"], **own)
    values = {name: each for name, each in for_jax(numbers).items() if name not in own}
    if reduction == "mean":
        values["normalizer"] = jnp.float32(3)
    for name in batched:
        values[name] = many(values[name])

    def loss(floating: Any, others: Any) -> Any:
        if own:
            losses = rotated_box_loss(**floating, **others, **own, reduction=reduction)
            return losses.sum(), losses
        losses = box_losses(**floating, **others, reduction=reduction)
        return (losses.loss + 2 * losses.l1).sum(), losses

    names = ("pred", "target", "weight")
    parts = [{name: values[name] for name in names}]
    parts.append({name: each for name, each in values.items() if name not in names})
    axes = tuple({name: 0 if name in batched else None for name in part} for part in parts)
    step = jax.grad(loss, has_aux=True)
    assert_one_after_the_other(step, axes, *parts)
    assert own_calls(jax.vmap(step, in_axes=axes), *parts) == 2


def test_vmap_of_other_lists_is_one_call_after_the_other() -> None:
    costs = jnp.arange(3 * 6 * 7.0).reshape(3, 6, 7) % 11
    offsets = jnp.array([[0, 2, 2, 7], [0, 0, 3, 5], [1, 1, 1, 4]])
    assert_one_after_the_other(hungarian_match, (0, 0), costs, offsets)


def limited(cost: jax.Array, lengths: jax.Array | None = None) -> Any:
    return linear_sum_assignment(cost, lengths=lengths, cost_limit=6)


def whole_numbers(
    most: int, shape: tuple[int, ...], axis: int | None = None
) -> np.ndarray[Any, Any]:
    """With three calls' along an axis."""
    batched = shape if axis is None else (*shape[:axis], 3, *shape[axis:])
    return np.random.default_rng(1).integers(0, most, batched, endpoint=True)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, None), (None, 0), (2, 1)])
@pytest.mark.parametrize("matrices", [(), (2,)])
def test_vmap_of_an_assignment_is_one_call(
    matrices: tuple[int, ...], axes: tuple[int | None, ...]
) -> None:
    both = (9, (*matrices, 6, 7)), (6, (*matrices, 2))
    arrays = [whole_numbers(*each, axis) for each, axis in zip(both, axes, strict=False)]
    assert_one_after_the_other(limited, axes, *arrays)
    assert own_calls(jax.vmap(limited, in_axes=axes), *arrays) == 1


def test_vmap_of_vmap_of_an_assignment_is_one_call() -> None:
    """The outer one's are costs, the inner one's lengths."""
    inner = jax.vmap(limited, in_axes=(None, 0))
    arrays = whole_numbers(9, (3, 2, 6, 7)), whole_numbers(6, (5, 2, 2))
    assert_one_after_the_other(inner, (0, None), *arrays)
    assert own_calls(jax.vmap(inner, in_axes=(0, None)), *arrays) == 1


def test_a_checkpointed_scan() -> None:
    def whole(pred: jax.Array) -> jax.Array:
        step = jax.checkpoint(lambda c, target: (c, of_lengths(pred * c, target, LENGTHS)))
        return jax.lax.scan(step, jnp.float32(1), many(TARGET))[1].sum()

    expected = sum(jax.grad(of_lengths)(PRED, each, LENGTHS) for each in many(TARGET)[::-1])
    np.testing.assert_allclose(jax.grad(whole)(PRED), expected, rtol=1e-6)


def results_of_backward(function: Any, *arguments: Any) -> str:
    """What backward's call gives, in its HLO."""
    text = jax.jit(function).lower(*arguments).as_text()
    lines = [line for line in text.splitlines() if "@boxloss_jax_box_loss_backward" in line]
    assert len(lines) == 1
    return lines[0].partition('results = "')[2].partition('"')[0]


def test_only_wanted_gradients_are_computed() -> None:
    weight = jnp.ones(PRED.shape[:-1])

    def loss(pred: jax.Array, target: jax.Array, weight: jax.Array) -> jax.Array:
        return box_loss(pred, target, weight=weight)

    for wanted, words in ((0, "pred"), (1, "target"), ((0, 2), "pred weight")):
        assert results_of_backward(jax.grad(loss, wanted), PRED, TARGET, weight) == words


def test_by_what_a_kept_function_is_differentiated_may_change() -> None:
    loss = jax.jit(lambda pred, target: box_loss(pred, target), inline=True)
    step = jax.grad(loss, argnums=(0, 1))
    expected = jax.jit(step)(PRED, TARGET)
    assert expected[1].any()
    jax.grad(loss)(PRED, TARGET)
    same(step(PRED, TARGET), expected)


def test_an_integer_target_has_no_gradient() -> None:
    gradients = jax.grad(of_lengths, argnums=(0, 1), allow_int=True)(
        PRED, TARGET.astype(jnp.int32), LENGTHS
    )
    assert gradients[1].dtype == jax.dtypes.float0


def test_iou_has_no_gradient() -> None:
    gradient = jax.grad(lambda pred: box_losses(pred, TARGET).iou.sum())(PRED)
    same(gradient, jnp.zeros_like(PRED))


def test_without_numbers_of_64_bits() -> None:
    arrays = {name: np.asarray(value) for name, value in VALUES.items()}
    expected = box_loss(**VALUES, eps=1e-9, eps_mode="clamp")
    with switched_x64(False):
        assert jnp.asarray(arrays["lengths"]).dtype == jnp.int32
        same(box_loss(**arrays, eps=1e-9, eps_mode="clamp"), expected)
        loss = box_loss(arrays["pred"].astype(np.float64), arrays["target"], normalizer=3)
        assert loss.dtype == jnp.float32


def test_eps_arrives_whole() -> None:
    """As a double: no float32 is near it, and the loss of a point and itself is 1 - 0 / eps."""
    point = jnp.zeros((1, 4), jnp.float64)
    loss = jax.jit(partial(box_loss, eps=1e-300, loss="giou"))(point, point)
    assert loss == 1


def test_threads() -> None:
    step = jax.jit(jax.value_and_grad(of_lengths))
    expected = step(PRED, TARGET, LENGTHS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: step(PRED, TARGET, LENGTHS), range(800)):
            same(found, expected)


def test_export() -> None:
    """For two platforms; what JAX cannot promise to serve later has to be named."""

    def step(pred: jax.Array, offsets: jax.Array) -> Any:
        match = hungarian_match(matching_cost(pred, TARGET[0], offsets), offsets)
        assigned = max_iou_match(pred, TARGET[0], offsets, high=0.5, low=0.3)
        gradient = jax.grad(of_lengths)(pred, TARGET, LENGTHS)
        pairs = linear_sum_assignment(pred)
        return match, assigned, box_losses(pred, TARGET), gradient, pairs

    arrays = PRED, jnp.array([0, 2, 2, 5])
    with pytest.raises(ValueError, match="boxloss_jax_"):
        jax.export.export(jax.jit(step))(*arrays)
    names = ("matching_cost", "assign", "linear_sum_assignment", "max_iou_match")
    names += ("box_loss", "box_losses", "box_loss_backward")
    exported = jax.export.export(
        jax.jit(step),
        platforms=("cpu", "cuda"),
        disabled_checks=[
            jax.export.DisabledSafetyCheck.custom_call(f"boxloss_jax_{name}") for name in names
        ],
    )(*arrays)
    found = jax.export.deserialize(exported.serialize()).call(*arrays)
    same(found, step(*arrays))
    assert isinstance(found[2], boxloss.jax.BoxLosses)


def gradient_of(function: Any, pred: jax.Array) -> jax.Array:
    return jax.grad(function)(pred, TARGET, LENGTHS)


ARRAYS = {"target": TARGET[0], "offsets": jnp.array([0, 2, 2, 5])}
CALLED: dict[str, Any] = {
    "loss": lambda pred: box_loss(pred, TARGET),
    "unreduced": jax.grad(lambda pred: box_loss(pred, TARGET, reduction="none").sum()),
    "gradient": jax.grad(lambda pred: box_loss(pred, TARGET)),
    "by index": jax.grad(lambda pred: box_loss(pred, TARGET[0], pred_index=jnp.arange(5))),
    "second": jax.grad(lambda pred: jax.grad(lambda p: box_loss(p, TARGET))(pred).var()),
    "matcher": lambda pred: hungarian_match(matching_cost(pred, **ARRAYS), ARRAYS["offsets"]),
    "assignment": linear_sum_assignment,
    "assigner": lambda pred: max_iou_match(pred, **ARRAYS, high=0.5, low=0.3),
}
for name, each in zip(
    ("rotated", "classes", "distributions"), (of_rotated, of_classes, of_distributions), strict=True
):
    CALLED[name] = partial(gradient_of, each)
    CALLED[f"{name}, second"] = jax.grad(lambda pred, each=each: gradient_of(each, pred).var())


# Of the other second derivatives compilations take long.
mostly = pytest.mark.parametrize(
    "name", long_but(CALLED, [name for name in CALLED if ", second" not in name])
)


@mostly
def test_no_tracer_is_kept(name: str) -> None:
    gc.freeze()  # JAX looks at all that is not, once for each function
    with jax.check_tracer_leaks(True):
        jax.jit(lambda pred: CALLED[name](pred))(PRED)
        jax.jit(lambda pred: jax.vmap(CALLED[name])(pred))(many(PRED))


@mostly
def test_programs_of_calls_without_jit_are_compiled_once(name: str) -> None:
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **__: compiled.append(event) if "backend_compile" in event else None
    )
    for _ in range(2):
        before = len(compiled)
        CALLED[name](PRED)
        jax.vmap(CALLED[name])(many(PRED))
    assert len(compiled) == before


def test_a_symbolic_shape_is_refused() -> None:
    (images,) = jax.export.symbolic_shape("images")
    boxes = jax.ShapeDtypeStruct((images, 5, 4), jnp.float32)
    text = r"box_loss: pred has shape \[images, 5, 4\]; it must be of numbers"
    with pytest.raises(TypeError, match=text):
        jax.export.export(jax.jit(boxloss.jax.giou_loss))(boxes, boxes)
