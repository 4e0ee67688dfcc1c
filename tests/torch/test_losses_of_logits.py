# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of logits as torch's tensors, graphs and transforms reach them.

The oracle is cpu/reference, which tests/core holds to numbers worked out by hand.
"""

import math
from typing import Any

import boxloss.torch
import pytest
import torch
from boxloss.torch import class_loss, use_implementation
from called import Called
from combinations import pairwise
from comparison import UNIT_ROUNDOFF, assert_within
from devices import Implementation, by_reference
from layouts import contiguous, in_planes, one_image, scattered, with_gaps
from losses_of_logits import (
    CLASS_MODES,
    FEW,
    MODES,
    OF_QUALITY,
    TABLE,
    class_problem,
    function_of,
    logits_problem,
    moved,
    plain,
    spoiled,
    with_options,
)
from problems import Problem
from test_compile import assert_as_eager, noting
from torch import Tensor
from torch.autograd import forward_ad, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

OPERATORS = torch.ops.boxloss
CPU = torch.device("cpu")
DOUBLE = torch.float64
each_mode = pytest.mark.parametrize("mode", MODES)
each_kind = pytest.mark.parametrize("mode", ["varifocal", "softmax", "fgl", "ddf"])


@pytest.fixture
def where(implementation_or_aten: Implementation) -> torch.device:
    return implementation_or_aten.device


def ours(values: Problem) -> Tensor:
    loss: Tensor = function_of(boxloss.torch, values)(**values)
    return loss


def incoming_for(loss: Tensor) -> Tensor:
    """Of one number for each loss; not contiguous."""
    numbers = torch.linspace(-1, 2, loss.numel()).reshape(loss.shape[::-1])
    return numbers.to(loss).permute(tuple(reversed(range(loss.dim()))))


def loss_and_gradient(values: Problem) -> list[Tensor]:
    logits = values["logits"].detach().requires_grad_()
    loss = ours({**values, "logits": logits})
    return [loss.detach(), *torch.autograd.grad(loss, logits, incoming_for(loss))]


def reference(values: Problem) -> list[Tensor]:
    with by_reference():
        return loss_and_gradient(plain(values))


def assert_near(actual: Tensor, expected: Tensor, dtype: torch.dtype = DOUBLE) -> None:
    """Computed in `dtype`.

    Some 64 roundings lie between the two ways, of numbers that are at most 16; the double of the
    plain sum of 105 elements is no matter: 1000 of the largest number, for derivatives of higher
    orders, too.
    """
    expected = expected.detach().cpu().double()
    assert actual.shape == expected.shape
    largest = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    assert_within(actual, expected, 1000 * UNIT_ROUNDOFF[dtype] * largest, "a loss of logits")


def one_of_each_query(values: Tensor) -> Tensor:
    """Other values: the first class' or bin's, expanded."""
    return values[..., :1].clone().expand_as(values)


LAYOUTS = (contiguous, in_planes, scattered, one_image, one_of_each_query)


def arranged(case: dict[str, Any], device: torch.device) -> Problem:
    """With NaN in what does not count, but where all images have the first one's logits."""
    options = dict(case)
    layout, of_others = (options.pop(each, contiguous) for each in ("layout", "of_others"))
    values = with_options(**options)
    values = moved(values if layout is one_image else spoiled(values), device)
    for name, each in values.items():
        if isinstance(each, Tensor) and each.dim() > 0:
            values[name] = (layout if name in ("logits", "teacher") else of_others)(each)
    return values


@pytest.mark.asan
@pytest.mark.parametrize(
    "case", [*pairwise(**TABLE, layout=LAYOUTS, of_others=(contiguous, with_gaps)), *FEW]
)
def test_options_are_the_references(where: torch.device, case: dict[str, Any]) -> None:
    values = arranged(case, where)
    dtype = values["logits"].dtype
    compute = DOUBLE if dtype == DOUBLE else torch.float32
    loss, gradient = loss_and_gradient(values)
    expected = reference(values)
    assert (loss.dtype, gradient.dtype) == (compute, dtype)
    assert_near(loss, expected[0], compute)
    assert_near(gradient, expected[1], compute)
    if case.get("layout") is in_planes and "labels" in values:
        assert gradient.stride() == values["logits"].stride()
    assert gradient.is_contiguous() or gradient.mT.is_contiguous()


LN3, LN4 = math.log(3), math.log(4)


@pytest.mark.parametrize(
    ("mode", "options", "wanted"),
    [
        ("focal", {"alpha": 0.2, "gamma": 3.0}, 2 * 0.2 / 64 * (LN4 - LN3)),
        ("varifocal", {}, 2 * (LN4 - LN3 / 4) / 4),
        ("mal", {"gamma": 2.0}, 2 * (LN4 - LN3 / 16)),
        ("ia_bce", {}, 2 * (LN4 - 0.75**0.25 * 0.25**0.75 * LN3)),
        ("bce", {"reduction": "mean"}, LN4 - LN3 / 4),
        ("softmax", {"no_object_weight": 0.3}, 2 * 0.3 * LN4),
    ],
)
def test_words_and_numbers_by_hand(
    where: torch.device, mode: str, options: Problem, wanted: float
) -> None:
    """Of two queries with the probability 3/4, by softmax without a box. All implementations are
    told by the same lines."""
    classes, row = (2, -1) if mode == "softmax" else (1, 0)
    logits = torch.tensor([[LN3, 0.0]] * 2, device=where)[:, :classes]
    index = torch.tensor([row, row], device=where)
    given = {"quality": torch.tensor([0.25], device=where)} if mode in OF_QUALITY else {}
    given |= {"mode": mode, "reduction": "sum", **options}
    found = class_loss(logits, index, torch.zeros_like(index[:1]), **given)
    assert found.item() == pytest.approx(wanted)


@each_mode
def test_large_halves_stay_finite(where: torch.device, mode: str) -> None:
    values = logits_problem(mode, where, torch.float16)
    values["logits"] = 60000 * values["logits"].sign()
    logits = values["logits"].requires_grad_()
    loss = ours(values)
    (first,) = torch.autograd.grad(loss.sum(), logits, retain_graph=True)
    (again,) = torch.autograd.grad(loss.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(again.sum(), logits)
    for each in (loss, first, again, second):
        assert each.isfinite().all()
    torch.testing.assert_close(loss, reference(values)[0].to(loss), rtol=1e-6, atol=0)


# --- Derivatives ---


@pytest.mark.parametrize(
    "case",
    pairwise(layout=LAYOUTS, **{n: TABLE[n] for n in ("mode", "reduced", "numbers", "quality")}),
)
def test_all_orders_are_the_transforms(where: torch.device, case: dict[str, Any]) -> None:
    """Three orders, whose first is the kernel's, and torch.func's of torch's own operators. What
    comes in depends on the logits, too."""
    values = arranged(case, where)
    logits = values["logits"]

    def square(logits: Tensor) -> Tensor:
        return ours({**values, "logits": logits}).square().sum()

    leaf = logits.detach().requires_grad_()
    result, expected = square(leaf), grad(square)
    for order in range(3):
        (gradient,) = torch.autograd.grad(result, leaf, create_graph=order < 2)
        result = gradient.square().sum()
        assert_near(gradient, expected(logits))
        expected = grad(lambda x, of=expected: of(x).square().sum())


# With these a mode has no factor that is taken to be constant.
DIFFERENTIABLE = {"varifocal": {"gamma": 0.0}, "mal": {"gamma": 0.0}, "ia_bce": {"alpha": 0.0}}


@each_mode
def test_second_derivatives_are_differences_of_the_first(device: torch.device, mode: str) -> None:
    values = logits_problem(mode, device, rows=(1, 3), **DIFFERENTIABLE.get(mode, {}))
    logits = values["logits"].requires_grad_()
    assert gradgradcheck(lambda logits: ours({**values, "logits": logits}), logits)


@pytest.mark.parametrize("mode", CLASS_MODES)
def test_transforms_are_finite_where_kernels_are(device: torch.device, mode: str) -> None:
    """Masked logits are -inf."""
    values = class_problem(mode, device, reduction="sum")
    finite = 0
    for size in (math.inf, 3e38, 500.0):
        logits = size * values["logits"].sign()
        logits[..., ::2] = values["logits"][..., ::2]
        values["logits"] = logits
        loss, gradient = loss_and_gradient(values)
        _, back = vjp(lambda x: ours({**values, "logits": x}), logits)
        is_finite = gradient.isfinite()
        finite += int(is_finite.sum())
        found = back(incoming_for(loss))[0][is_finite]
        torch.testing.assert_close(found, gradient[is_finite], rtol=1e-5, atol=1e-6)
    assert finite > logits.numel()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@each_mode
def test_transforms_are_the_fused_results(device: torch.device, mode: str) -> None:
    values = logits_problem(mode, device, reduction="none")
    logits, index = values["logits"], values["target_index"]

    def function(logits: Tensor, index: Tensor = index) -> Tensor:
        return ours({**values, "logits": logits, "target_index": index})

    loss, gradient = loss_and_gradient(values)
    found, back = vjp(function, logits)
    assert_near(found, loss)
    assert_near(back(incoming_for(loss))[0], gradient)
    direction = torch.linspace(-1, 1, logits.numel()).to(logits).reshape(logits.shape)
    _, tangent = jvp(function, (logits,), (direction,))
    assert_near((tangent * incoming_for(loss)).sum(), (gradient * direction).sum())
    with forward_ad.dual_level():
        dual = function(forward_ad.make_dual(logits, direction))
        assert_near(forward_ad.unpack_dual(dual).tangent, tangent)
    assert_near(jacfwd(function)(logits), jacrev(function)(logits))
    both = (torch.stack((logits, -logits)), torch.stack((index, index.flip(-1))))
    one_by_one = [function(*each) for each in zip(*both, strict=True)]
    assert_near(vmap(function)(*both), torch.stack(one_by_one))
    of_each = grad(lambda *given: (incoming_for(loss) * function(*given)).sum())
    one_by_one = [of_each(*each) for each in zip(*both, strict=True)]
    assert_near(one_by_one[0], gradient)
    of_ones = back(torch.ones_like(loss))[0]
    assert_near(vmap(of_each)(*both), torch.stack(one_by_one))
    rows = torch.stack((incoming_for(loss), torch.ones_like(loss)))
    for layout in (contiguous, in_planes):
        leaf = layout(logits).clone().requires_grad_()
        (batched,) = torch.autograd.grad(function(leaf), leaf, rows, is_grads_batched=True)
        assert_near(batched, torch.stack((gradient, of_ones)))


@each_kind
def test_only_logits_have_a_gradient(where: torch.device, mode: str) -> None:
    given = {} if mode == "ddf" else {"normalizer": torch.tensor(2.0, device=where)}
    values = logits_problem(mode, where, **given)
    others = [v for n, v in values.items() if isinstance(v, Tensor) and v.is_floating_point()][1:]
    for each in others:
        each.requires_grad_()
    assert not ours(values).requires_grad
    logits = values["logits"].requires_grad_()
    (gradient,) = torch.autograd.grad(ours(values).sum(), logits, create_graph=True)
    found = torch.autograd.grad(gradient.sum(), [logits, *others], allow_unused=True)
    assert [each is None for each in found] == [False, *[True] * len(others)]


def test_hooks_of_logits_see_one_gradient(where: torch.device) -> None:
    values = class_problem("focal", where, DOUBLE)
    _, gradient = loss_and_gradient(values)
    logits = values["logits"].requires_grad_()
    logits.register_hook(lambda gradient: 2 * gradient)
    for creates_graph in (False, True):
        loss = ours(values)
        incoming = incoming_for(loss)
        (found,) = torch.autograd.grad(loss, logits, incoming, create_graph=creates_graph)
        assert_near(found.detach(), 2 * gradient)


@each_kind
def test_inputs_changed_before_backward_are_noticed(device: torch.device, mode: str) -> None:
    for name, each in logits_problem(mode, device).items():
        if isinstance(each, Tensor):
            values = logits_problem(mode, device)
            values["logits"] = 1 * values["logits"].requires_grad_()
            loss = ours(values).sum()
            values[name].detach().mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()


# --- What runs, and what it allocates ---


@pytest.mark.parametrize(
    ("mode", "layout"), [("softmax", contiguous), ("softmax", in_planes), ("ddf", contiguous)]
)
def test_one_operator_each(device: torch.device, mode: str, layout: Any) -> None:
    values = logits_problem(mode, device, torch.bfloat16)
    logits = values["logits"] = layout(values["logits"]).requires_grad_()
    name = f"_{function_of(boxloss.torch, values).__name__}"
    with Called() as called:
        loss = ours(values)
    assert called.names == [name]
    with Called() as called:
        torch.autograd.grad(loss, logits, torch.ones_like(loss.detach()))
    views = {"detach", "transpose", "mT", "ones_like", "zeros_like"}
    assert [each for each in called.names if each not in views] == [f"{name}_backward"]


def test_aten_is_torchs_operators_in_both(device: torch.device) -> None:
    values = class_problem("focal", device)
    values["logits"].requires_grad_()
    for name in ("boxloss", "aten"):
        for first, second in ((name, "boxloss"), ("boxloss", name)):
            with torch.profiler.profile() as profile:
                with use_implementation(first):
                    loss = ours(values).sum()
                with use_implementation(second):
                    loss.backward()
            names = {event.name for event in profile.events()}
            assert ("aten::log1p" in names) == (name == "aten")
            # What would wait for a device.
            assert names.isdisjoint({"aten::item", "aten::nonzero", "aten::_local_scalar_dense"})


@pytest.mark.parametrize(
    ("mode", "layout"),
    [
        *((mode, layout) for mode in ("focal", "softmax") for layout in LAYOUTS[:3]),
        *(("fgl", contiguous), ("ddf", contiguous)),
    ],
)
def test_nothing_of_the_logits_size_but_the_gradient(mode: str, layout: Any) -> None:
    values = logits_problem(mode, CPU, torch.float16, (2, 3, 200))
    logits = values["logits"] = layout(values["logits"]).requires_grad_()
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        torch.autograd.grad(ours(values).sum(), logits)
    events = profile.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    assert [size for size in sizes if size > logits.numel() / 4] == [2 * logits.numel()]


# --- Graphs ---


def planes_step(raw: Tensor, values: Problem) -> tuple[Tensor, ...]:
    """Of logits as a head's convolutions give them."""
    return (ours({**values, "logits": (2 * raw).mT}),)


def step(raw: Tensor, values: Problem) -> tuple[Tensor, ...]:
    return (ours({**values, "logits": 2 * raw}),)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    ("mode", "of"),
    [("mal", planes_step), *((mode, step) for mode in ("mal", "softmax", "fgl", "ddf"))],
)
def test_changing_sizes_compile_once(device: torch.device, mode: str, of: Any) -> None:
    seen: list[str] = []
    compiled = torch.compile(of, fullgraph=True, dynamic=True, backend=noting(seen))
    for rows, number in (((2, 3, 8), 3.0), ((3, 4, 9), 2.5), ((2, 8, 4), 0.5)):
        given = {} if mode == "ddf" else {"normalizer": number}
        values = logits_problem(mode, device, torch.float32, rows, **given)
        raw = values["logits"] if of is step else values["logits"].mT.contiguous()
        assert_as_eager(compiled, of, raw, values)
    name = f"boxloss._{function_of(boxloss.torch, values).__name__}"
    assert seen == [f"{name}.default", f"{name}_backward.default"]


# --- The private operators ---


def backward_arguments(values: Problem, **changed: Any) -> tuple[Any, ...]:
    arguments = OPERATORS._class_loss_backward.default._schema.arguments
    defaults = {"no_object_weight": 1.0, "reduction": "mean", "transposed": False}
    forward = {**defaults, **values}
    loss, scale = OPERATORS._class_loss(
        *(forward.get(a.name) for a in OPERATORS._class_loss.default._schema.arguments)
    )
    given = {**forward, "grad": loss, "scale": scale, **changed}
    return tuple(given.get(each.name) for each in arguments)


def test_the_private_backward_refuses_what_forward_did_not_give(device: torch.device) -> None:
    values = class_problem("bce", device)
    ones = torch.ones(2, device=device)
    for name in ("boxloss", "aten"):
        with use_implementation(name):
            for changed, error, text in (
                ({"grad": ones[:1]}, ValueError, r"grad has shape \[1\]; it must be \[2\], the sh"),
                ({"scale": ones.double()}, TypeError, "scale is float64; it must be float32, as"),
                ({"scale": ones.to("meta")}, RuntimeError, "scale is on meta, logits is on "),
            ):
                with pytest.raises(error, match=f"^class_loss: {text}"):
                    OPERATORS._class_loss_backward(*backward_arguments(values, **changed))
