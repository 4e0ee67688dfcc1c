# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the matcher's cost, the assignment and the assigners are to torch: tables of operators.

And the losses of what they find, where it is no matter that they have a gradient.
"""

from collections.abc import Callable
from typing import Any

import boxloss.torch
import pytest
import torch
from boxloss.torch import use_implementation
from combinations import long_but
from losses_of_logits import by_query, class_problem, distribution_problem, moved
from matching import classes, cost_problem
from problems import Problem, boxes
from task_aligned import problem as task_aligned
from test_arguments import BAD_OFFSETS
from torch import Tensor
from torch._subclasses import FakeTensorMode

CPU, META = torch.device("cpu"), torch.device("meta")


def cost(device: torch.device, **options: Any) -> Problem:
    """Computed in double, and float32 nevertheless."""
    return cost_problem(device, torch.bfloat16, torch.float64, layers=(2, 3), **options)


def given_cost(device: torch.device) -> Problem:
    given = torch.randn(3, 9, generator=torch.Generator().manual_seed(8))
    return {**cost(device), "class_cost": given.to(device)}


def assignment(device: torch.device, layers: int | None = 2) -> Problem:
    shape = (6, 9) if layers is None else (layers, 6, 9)
    numbers = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    offsets = torch.tensor([0, 2, 2, 9])  # fewer boxes than queries, none, and more
    return {"cost": numbers.to(device), "offsets": offsets.to(device), "groups": 2}


def matrices(device: torch.device, **options: Any) -> Problem:
    return {
        "cost": assignment(device)["cost"],
        "lengths": torch.tensor([[6, 4], [5, 9]], device=device),
        **options,
    }


def anchors(device: torch.device, images: tuple[int, ...], rule: str) -> Problem:
    return {
        "anchors": boxes((*images, 50), device, seed=1),
        "target": boxes((9,), device, seed=2),
        "offsets": torch.tensor([0, 5, 5, 9], device=device),
        **{"high": 0.5, "low": 0.3, "low_quality": rule, "min_pos_iou": 0.1},
    }


def rotated_anchors(device: torch.device) -> Problem:
    return {
        **anchors(device, (3,), "overwrite"),
        "anchors": boxes((3, 50), device, box_format="degrees", seed=1),
        "target": boxes((9,), device, box_format="degrees", seed=2),
        "angle_unit": "degrees",
    }


def padded(device: torch.device) -> Problem:
    values = task_aligned(12, device, is_padded=True, topk2=1)
    return {**values, "labels": values["labels"].clamp(min=0)}  # of what is no box


# By function, some with words behind it.
PROBLEMS: dict[str, Callable[[torch.device], Problem]] = {
    "matching_cost": cost,
    "matching_cost softmax": lambda device: classes(cost(device)),
    "matching_cost focal": lambda device: classes(cost(device, class_mode="focal")),
    "matching_cost given": given_cost,
    "pairwise_iou": cost,
    "hungarian_match": assignment,
    "hungarian_match of one layer": lambda device: assignment(device, None),
    "linear_sum_assignment": lambda device: matrices(device, cost_limit=0.5),
    "linear_sum_assignment greatest": lambda device: matrices(device, maximize=True),
    "max_iou_match": lambda device: anchors(device, (), "argmax"),
    "max_iou_match of own anchors": lambda device: anchors(device, (3,), "force"),
    "task_aligned_match": lambda device: task_aligned(12, device, min_side=16.0),
    "task_aligned_match padded": padded,
    "max_iou_match rotated": rotated_anchors,
    "task_aligned_match rotated": lambda device: task_aligned(12, device, is_rotated=True),
    "class_loss": lambda device: class_problem("varifocal", device, torch.bfloat16),
    "class_loss of queries": lambda device: by_query(class_problem("mal", device)),
    "class_loss softmax": lambda device: class_problem("softmax", device, reduction="none"),
    "distribution_loss": lambda device: moved(distribution_problem("fgl", torch.bfloat16), device),
    "distribution_loss ddf": lambda device: moved(distribution_problem("ddf"), device),
}
CONSTANT = [name for name in PROBLEMS if "_loss" not in name]
MATCHES = [name for name in PROBLEMS if "match " in f"{name} " or "_assignment" in name]
RANGES_MAY_BE_ON_THE_CPU = [name for name in MATCHES if not name.endswith("padded")]
COMPILED = [name for name in CONSTANT if not name.endswith(("focal", "layer", "anchors", "padded"))]
every = pytest.mark.parametrize("name", PROBLEMS)
every_constant = pytest.mark.parametrize("name", CONSTANT)


def function_of(name: str) -> Callable[..., Any]:
    return getattr(boxloss.torch, name.partition(" ")[0])


def operator_of(name: str) -> Any:
    word = name.partition(" ")[0]
    return getattr(torch.ops.boxloss, "assign" if word == "hungarian_match" else word).default


def first_of(values: Problem) -> str:
    """What a network makes: it may require a gradient."""
    return next(n for n in ("scores", "cost", "anchors", "pred", "logits") if n in values)


def ranges_of(values: Problem) -> str:
    """What tells which boxes or columns are whose, or in use."""
    return "lengths" if "lengths" in values else "offsets"


def results_of(name: str, values: Problem) -> tuple[Tensor, ...]:
    results = function_of(name)(**values)
    return (results,) if isinstance(results, Tensor) else tuple(results)


def assert_same(results: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> None:
    for result, each in zip(results, wanted, strict=True):
        assert (result.dtype, result.device) == (each.dtype, each.device)
        assert torch.equal(result, each)


@every_constant
def test_results_are_contiguous_and_have_no_gradient(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    wanted = results_of(name, values)
    for argument, each in values.items():
        if isinstance(each, Tensor) and each.is_floating_point():
            results = results_of(name, {**values, argument: each.clone().requires_grad_()})
            assert_same(results, wanted)
            assert not any(result.requires_grad for result in results)
            assert all(result.is_contiguous() for result in results)


@every
def test_autocast_changes_nothing(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    with torch.autocast(device.type, torch.bfloat16):
        results = results_of(name, values)
    assert_same(results, results_of(name, values))


@every
def test_opcheck(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    values[first_of(values)] = values[first_of(values)].clone().requires_grad_()
    torch.library.opcheck(operator_of(name), (), values)


@every
def test_fake_and_meta(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    wanted = results_of(name, values)

    def check(tensor: Callable[[Tensor], Tensor], kind: str) -> None:
        others = {n: tensor(v) if isinstance(v, Tensor) else v for n, v in values.items()}
        for result, each in zip(results_of(name, others), wanted, strict=True):
            assert (result.shape, result.dtype) == (each.shape, each.dtype)
            assert result.device.type == kind

    with FakeTensorMode() as mode:
        check(mode.from_tensor, device.type)
    check(lambda each: each.to(META), "meta")
    if name in RANGES_MAY_BE_ON_THE_CPU:
        ranges = values[ranges_of(values)].cpu()
        values[ranges_of(values)] = ranges
        with FakeTensorMode() as mode:
            check(mode.from_tensor, device.type)
        check(lambda each: each if each is ranges else each.to(META), "meta")


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("name", long_but(COMPILED, [name for name in COMPILED if " " not in name]))
def test_compiles_whole(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    first, word = first_of(values), ranges_of(values)

    def step(values: Problem) -> Any:
        return function_of(name)(**{**values, first: 0.5 * values[first]})

    values[first] = values[first].clone().requires_grad_()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    places = (device, CPU) if name in RANGES_MAY_BE_ON_THE_CPU else (device,)
    for ranges in (values[word].to(place) for place in places):
        given = {**values, word: ranges}
        results, wanted = compiled(given), step(given)
        assert type(results) is type(wanted)
        assert_same(*((r,) if isinstance(r, Tensor) else tuple(r) for r in (results, wanted)))
        assert not any(each.requires_grad for each in results)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "columns": lambda each: each.mT.contiguous().mT,
    "wider rows": lambda each: torch.cat((each, each + 1), -1)[..., : each.shape[-1]],
    "every other row": lambda each: torch.stack((each, each + 1), -2)[..., 0, :],
    "first dimension last": lambda each: each.movedim(0, -1).contiguous().movedim(-1, 0),
    "expanded": lambda each: each[:1].expand(each.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@every_constant
def test_tensors_are_read_where_they_lie(device: torch.device, name: str, layout: str) -> None:
    values = PROBLEMS[name](device)
    for argument, each in values.items():
        if isinstance(each, Tensor) and each.is_floating_point():
            moved = LAYOUTS[layout](each)
            before = moved.clone()
            wanted = results_of(name, {**values, argument: before.contiguous()})
            assert_same(results_of(name, {**values, argument: moved}), wanted)
            assert torch.equal(moved, before)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@every
def test_integers_need_not_be_neighbours(
    device: torch.device, name: str, dtype: torch.dtype
) -> None:
    values = PROBLEMS[name](device)
    wanted = results_of(name, values)
    for argument in ("labels", "offsets", "lengths", "target_index"):
        if values.get(argument) is not None:
            apart = torch.stack((values[argument], values[argument] + 99), -1).to(dtype)[..., 0]
            assert_same(results_of(name, {**values, argument: apart}), wanted)


@pytest.mark.parametrize("name", RANGES_MAY_BE_ON_THE_CPU)
def test_offsets_and_lengths_may_be_on_the_cpu(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    wanted = results_of(name, values)
    given = {**values, ranges_of(values): values[ranges_of(values)].cpu()}
    assert_same(results_of(name, given), wanted)
    with torch.device("meta"):  # the default device is nobody's
        assert_same(results_of(name, given), wanted)


@pytest.mark.parametrize("name", MATCHES)
def test_aten_changes_no_match(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    wanted = results_of(name, values)
    with use_implementation("aten"):
        assert_same(results_of(name, values), wanted)


@pytest.mark.parametrize("offsets", BAD_OFFSETS.values())
@pytest.mark.parametrize("name", ["hungarian_match", "max_iou_match", "task_aligned_match"])
def test_wrong_offsets_give_nothing_on_a_gpu(
    gpu: torch.device, name: str, offsets: list[int]
) -> None:
    """Where nobody looks at them."""
    values = PROBLEMS[name](gpu)
    rows = len(values["labels"]) if "labels" in values else 9
    for place in (CPU, gpu):
        given = torch.tensor([each + rows - 9 if each == 10 else each for each in offsets])
        given = given.to(place)
        index, *others = results_of(name, {**values, "offsets": given})
        assert (index == -1).all()
        empty = -1 if name == "hungarian_match" else 0
        assert all((each == empty).all() for each in others)


# --- Function transforms ---


def differentiating(of: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, Callable[[], Any]]:
    def in_forward_mode() -> Tensor:
        with torch.autograd.forward_ad.dual_level():
            return of(torch.autograd.forward_ad.make_dual(x, x))

    total = torch.func.grad(lambda x: x.sum() + of(x).sum())
    return {
        "grad": lambda: total(x),
        "jvp": lambda: torch.func.jvp(of, (x,), (x,)),
        "vmap of grad": lambda: torch.vmap(total)(x[None]),
        "forward mode": in_forward_mode,
    }


@every_constant
def test_a_transform_that_differentiates_it_is_refused(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    first = first_of(values)

    def of(x: Tensor) -> Tensor:
        return results_of(name, {**values, first: x})[-1]

    is_match = name in MATCHES
    text = r"the transforms of torch\.func " if is_match else "it has no derivative; give"
    for kind, differentiate in differentiating(of, values[first]).items():
        if kind == "forward mode" and is_match:
            continue
        with pytest.raises(RuntimeError, match=f"^{name.partition(' ')[0]}: {text}"):
            differentiate()
    if is_match:
        with pytest.raises(RuntimeError, match=f"^{name.partition(' ')[0]}: {text}"):
            torch.vmap(of)(values[first][None])


@pytest.mark.parametrize("name", ["matching_cost softmax", "pairwise_iou"])
def test_other_transforms_of_a_cost(device: torch.device, name: str) -> None:
    values = PROBLEMS[name](device)
    pred = values["pred"]

    def of(pred: Tensor) -> Tensor:
        return results_of(name, {**values, "pred": pred})[0]

    scaled = torch.func.grad(lambda pred: (pred * of(pred.detach()).sum()).float().sum())(pred)
    assert torch.equal(scaled, of(pred).sum().to(pred).expand_as(pred))
    assert torch.equal(torch.vmap(of)(pred[None])[0], of(pred))
