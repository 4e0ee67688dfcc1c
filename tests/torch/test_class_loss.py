# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""class_loss beside its sources' formulas, and as torch's tensors, graphs and transforms reach it.

What a kernel makes of them tests/conformance proves.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from boxloss.torch import class_loss, use_implementation
from called import Called
from class_losses import MODES, NUMBERS, OF_QUALITY, by_query, class_problem, plain_class_loss
from combinations import pairwise
from comparison import UNIT_ROUNDOFF, assert_within
from devices import Implementation
from functorch.compile import make_boxed_func
from layouts import contiguous, in_planes, one_image, scattered, with_gaps
from problems import FLOATING, REDUCTIONS, Problem
from test_compile import assert_as_eager
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch.autograd import forward_ad, gradgradcheck
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

OPERATORS = torch.ops.boxloss
CPU = torch.device("cpu")
DOUBLE = torch.float64
SHAPES = ((5, 7), (3, 5, 7), (2, 3, 5, 7))
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def where(implementation_or_aten: Implementation) -> torch.device:
    return implementation_or_aten.device


def ours(values: Problem) -> Tensor:
    return class_loss(**values)


def incoming_for(loss: Tensor) -> Tensor:
    """Of one number for each loss; not contiguous."""
    numbers = torch.linspace(-1, 2, loss.numel()).reshape(loss.shape[::-1])
    return numbers.to(loss).permute(tuple(reversed(range(loss.dim()))))


def loss_and_gradient(function: Callable[[Problem], Tensor], values: Problem) -> list[Tensor]:
    logits = values["logits"].detach().requires_grad_()
    loss = function({**values, "logits": logits})
    return [loss.detach(), *torch.autograd.grad(loss, logits, incoming_for(loss))]


def assert_near(actual: Tensor, expected: Tensor, dtype: torch.dtype = DOUBLE) -> None:
    """Computed in `dtype`.

    Logits are at most 4, so that no number of an element is above 8, and some 64 roundings lie
    between the two ways; the double of the plain sum of 105 elements is no matter: 1000 of the
    largest number, for derivatives of higher orders, too.
    """
    expected = expected.detach().cpu().double()
    assert actual.shape == expected.shape
    largest = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    error = 1000 * UNIT_ROUNDOFF[dtype] * largest
    assert_within(actual, expected, error, "class_loss")


def one_class(values: Tensor) -> Tensor:
    """Other values: the first class', expanded."""
    return values[..., :1].clone().expand_as(values)


NORMALIZERS: dict[str, Any] = {
    "number": 3,
    "int64": torch.tensor(7),
    "float32": torch.tensor(2.5),
    "layers": torch.tensor([1.5, 0.25], dtype=DOUBLE),
}
TABLE = {
    "mode": MODES,
    "shape": SHAPES,
    "reduced": (*REDUCTIONS, *NORMALIZERS),
    "numbers": (None, (0.5, 0.0), (0.0, 1.25), (1.0, 3.0), (-1.0, 2.0)),
    "quality": ("of rows", "of queries", None),
    "weight": (None, *FLOATING),
    "logits": FLOATING,
    "layout": (contiguous, in_planes, scattered, one_image, one_class),
    "others": (contiguous, with_gaps),
    "integers": (torch.int32, torch.int64),
}


def case_problem(case: dict[str, Any], device: torch.device) -> Problem:
    mode, reduced = case["mode"], case["reduced"]
    values = class_problem(mode, device, case["logits"], case["shape"])
    values["logits"] = case["layout"](values["logits"])
    if mode in OF_QUALITY and case["quality"] == "of queries":
        values = by_query(values)
    elif mode == "bce" and case["quality"] is None:
        del values["quality"]
    if mode in NUMBERS and case["numbers"] and (mode != "ia_bce" or case["numbers"][0] >= 0):
        values |= dict(zip(("alpha", "gamma"), case["numbers"], strict=True))
    values["weight"] = None if case["weight"] is None else values["weight"].to(case["weight"])
    if reduced in NORMALIZERS:
        normalizer = NORMALIZERS[reduced]
        if reduced == "layers" and len(case["shape"]) < 4:
            normalizer = normalizer[0]
        is_tensor = isinstance(normalizer, Tensor)
        values["normalizer"] = normalizer.to(device) if is_tensor else normalizer
    else:
        values["reduction"] = reduced
    for name in ("target_index", "labels"):
        values[name] = values[name].to(case["integers"])
    for name in ("target_index", "labels", "quality", "query_quality", "weight"):
        if values.get(name) is not None:
            values[name] = case["others"](values[name])
    return values


@pytest.mark.asan
@pytest.mark.parametrize("case", pairwise(**TABLE))
def test_options_are_the_formulas(where: torch.device, case: dict[str, Any]) -> None:
    values = case_problem(case, where)
    compute = DOUBLE if case["logits"] == DOUBLE else torch.float32
    loss, gradient = loss_and_gradient(ours, values)
    expected = loss_and_gradient(plain_class_loss, values)
    assert (loss.dtype, gradient.dtype) == (compute, case["logits"])
    assert_near(loss, expected[0], compute)
    assert_near(gradient, expected[1], compute)
    if case["layout"] is in_planes:
        assert gradient.stride() == values["logits"].stride()
    assert gradient.is_contiguous() or gradient.mT.is_contiguous()


@pytest.mark.parametrize("boxes", [0, -1, -2])
@each_mode
def test_a_mean_of_few_boxes(where: torch.device, mode: str, boxes: int) -> None:
    """Or of none, in the second layer. All weights together are less than 1."""
    values = class_problem(mode, where, DOUBLE)
    values["target_index"][1, 1:], values["weight"] = boxes, values["weight"] / 1024
    values["target_index"][1, 0] = min(boxes, -1)
    pairs = zip(*(loss_and_gradient(f, values) for f in (ours, plain_class_loss)), strict=True)
    for actual, expected in pairs:
        assert_near(actual, expected)


@each_mode
def test_large_halves_stay_finite(where: torch.device, mode: str) -> None:
    values = class_problem(mode, where, torch.float16)
    values["logits"] = 60000 * values["logits"].sign()
    logits = values["logits"].requires_grad_()
    loss = class_loss(**values)
    (first,) = torch.autograd.grad(loss.sum(), logits, retain_graph=True)
    (again,) = torch.autograd.grad(loss.sum(), logits, create_graph=True)
    (second,) = torch.autograd.grad(again.sum(), logits)
    for each in (loss, first, again, second):
        assert each.isfinite().all()
    torch.testing.assert_close(loss, plain_class_loss(values).to(loss), rtol=1e-6, atol=0)


NO_QUERIES = ((0, 7), (0, 5, 7), (3, 0, 7), (0, 3, 5, 7), (2, 0, 5, 7))
NO_CLASSES = ((5, 0), (2, 3, 5, 0))


@pytest.mark.parametrize(
    ("mode", "shape"),
    [*product(MODES, NO_QUERIES), *product(MODES[:-1], NO_CLASSES)],  # softmax needs a class
)
def test_no_logits_have_no_gradient_of_any_order(
    where: torch.device, mode: str, shape: tuple[int, ...]
) -> None:
    values = class_problem(mode, where, shape=shape)
    logits = values["logits"].requires_grad_()
    loss = class_loss(**values)
    assert loss.shape == (shape[:1] if len(shape) == 4 else ())
    assert not loss.any()
    (gradient,) = torch.autograd.grad(loss.sum(), logits, create_graph=True)
    assert gradient.shape == logits.shape
    assert torch.autograd.grad(gradient.sum(), logits)[0].shape == logits.shape


# --- Derivatives ---


def derivatives(function: Callable[[Problem], Tensor], values: Problem) -> list[Tensor]:
    """Of three orders; what comes in depends on the logits, too."""
    logits = values["logits"].detach().requires_grad_()
    result, found = function({**values, "logits": logits}).square().sum(), []
    for order in range(3):
        (gradient,) = torch.autograd.grad(result, logits, create_graph=order < 2)
        result = gradient.square().sum()
        found.append(gradient.detach())
    return found


@pytest.mark.parametrize(
    "case",
    pairwise(mode=MODES, reduction=REDUCTIONS, gamma=(None, 0.0, 1.25), layout=TABLE["layout"]),
)
def test_all_orders_are_the_formulas(where: torch.device, case: dict[str, Any]) -> None:
    """At 0, too. What does not count may be NaN."""
    mode = case["mode"]
    values = class_problem(mode, where, DOUBLE, reduction=case["reduction"])
    if mode in OF_QUALITY:
        values = by_query(values)
    if mode in NUMBERS:
        values["gamma"] = case["gamma"]
    values["logits"][..., ::3] = 0
    values["logits"] = case["layout"](values["logits"])
    if case["layout"] in (contiguous, in_planes):
        values["logits"][values["target_index"] == -2] = torch.nan
    actual, expected = (derivatives(each, values) for each in (ours, plain_class_loss))
    for a, e in zip(actual, expected, strict=True):
        assert_near(a, e)


@pytest.mark.parametrize("mode", ["focal", "bce", "softmax"])
def test_second_derivatives_are_differences_of_the_first(device: torch.device, mode: str) -> None:
    """Of the modes without a factor that is taken to be constant."""
    values = class_problem(mode, device, DOUBLE, (2, 3, 4), reduction="none")
    values["labels"] %= 4
    values["target_index"] = values["target_index"].clip(-2, 2)
    logits = values["logits"].requires_grad_()
    assert gradgradcheck(lambda logits: ours({**values, "logits": logits}), logits)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@each_mode
def test_transforms_are_the_fused_results(device: torch.device, mode: str) -> None:
    values = class_problem(mode, device, DOUBLE, reduction="none")
    logits, index = values["logits"], values["target_index"]

    def function(logits: Tensor, index: Tensor = index) -> Tensor:
        return ours({**values, "logits": logits, "target_index": index})

    loss, gradient = loss_and_gradient(ours, values)
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
    for planes in (False, True):
        leaf = (in_planes(logits) if planes else logits).clone().requires_grad_()
        (batched,) = torch.autograd.grad(function(leaf), leaf, rows, is_grads_batched=True)
        assert_near(batched, torch.stack((gradient, of_ones)))


def test_only_logits_have_a_gradient(where: torch.device) -> None:
    values = class_problem("varifocal", where, DOUBLE, normalizer=torch.tensor(2.0, device=where))
    leaves = [values[name].requires_grad_() for name in ("weight", "quality", "normalizer")]
    assert not class_loss(**values).requires_grad
    logits = values["logits"].requires_grad_()
    (gradient,) = torch.autograd.grad(class_loss(**values).sum(), logits, create_graph=True)
    found = torch.autograd.grad(gradient.sum(), [logits, *leaves], allow_unused=True)
    assert [each is None for each in found] == [False, True, True, True]


def test_hooks_of_logits_see_one_gradient(where: torch.device) -> None:
    values = class_problem("focal", where, DOUBLE)
    _, gradient = loss_and_gradient(ours, values)
    logits = values["logits"].requires_grad_()
    logits.register_hook(lambda gradient: 2 * gradient)
    for creates_graph in (False, True):
        loss = class_loss(**values)
        incoming = incoming_for(loss)
        (found,) = torch.autograd.grad(loss, logits, incoming, create_graph=creates_graph)
        assert_near(found.detach(), 2 * gradient)


@pytest.mark.parametrize("name", ["target_index", "labels", "quality", "weight", "logits"])
def test_inputs_changed_before_backward_are_noticed(device: torch.device, name: str) -> None:
    values = class_problem("varifocal", device)
    leaf = values["logits"].requires_grad_()
    values["logits"] = 1 * leaf
    loss = class_loss(**values).sum()
    values[name].detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# --- What runs, and what it allocates ---


@pytest.mark.parametrize("layout", [contiguous, in_planes])
def test_one_operator_each(device: torch.device, layout: Callable[[Tensor], Tensor]) -> None:
    values = class_problem("softmax", device, torch.bfloat16)
    logits = values["logits"] = layout(values["logits"]).requires_grad_()
    with torch.autocast(device.type, torch.bfloat16), Called() as called:
        loss = class_loss(**values)
    assert called.names == ["_class_loss"]
    with torch.no_grad():
        assert class_loss(**values).grad_fn is None
    with torch.inference_mode():
        assert torch.equal(class_loss(**values), loss)
    with Called() as called:
        torch.autograd.grad(loss, logits, torch.ones_like(loss.detach()))
    views = {"detach", "transpose", "mT", "ones_like", "zeros_like"}
    assert [name for name in called.names if name not in views] == ["_class_loss_backward"]


def test_aten_is_torchs_operators_in_both(device: torch.device) -> None:
    values = class_problem("focal", device)
    values["logits"].requires_grad_()
    for name in ("boxloss", "aten"):
        for first, second in ((name, "boxloss"), ("boxloss", name)):
            with torch.profiler.profile() as profile:
                with use_implementation(first):
                    loss = class_loss(**values).sum()
                with use_implementation(second):
                    loss.backward()
            names = {event.name for event in profile.events()}
            assert ("aten::log1p" in names) == (name == "aten")
            # What would wait for a device.
            assert names.isdisjoint({"aten::item", "aten::nonzero", "aten::_local_scalar_dense"})


@pytest.mark.parametrize("layout", [contiguous, in_planes, scattered])
@each_mode
def test_nothing_of_the_logits_size_but_the_gradient(
    mode: str, layout: Callable[[Tensor], Tensor]
) -> None:
    values = class_problem(mode, CPU, torch.float16, (2, 3, 50, 80))
    logits = values["logits"] = layout(values["logits"]).requires_grad_()
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        torch.autograd.grad(class_loss(**values).sum(), logits)
    events = profile.profiler.kineto_results.events()
    sizes = [event.nbytes() for event in events if event.name() == "[memory]"]
    assert [size for size in sizes if size > logits.numel() / 4] == [2 * logits.numel()]


# --- Graphs ---


def planes_step(raw: Tensor, values: Problem) -> tuple[Tensor, ...]:
    """Of logits as a head's convolutions give them."""
    return (class_loss(**{**values, "logits": (2 * raw).mT}),)


def step(raw: Tensor, values: Problem) -> tuple[Tensor, ...]:
    return (class_loss(**{**values, "logits": 2 * raw}),)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("of", [step, planes_step])
@each_mode
def test_changing_sizes_compile_once(device: torch.device, mode: str, of: Any) -> None:
    seen: list[str] = []

    def noting(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        seen.extend(str(n.target) for n in graph.graph.nodes if "boxloss" in str(n.target))
        return make_boxed_func(graph)

    backend = aot_autograd(fw_compiler=noting)
    compiled = torch.compile(of, fullgraph=True, dynamic=True, backend=backend)
    for shape, number in (((2, 3, 5, 7), 3.0), ((3, 4, 6, 9), 2.5), ((2, 7, 4, 5), 0.5)):
        values = class_problem(mode, device, shape=shape, normalizer=number)
        raw = values["logits"] if of is step else values["logits"].mT.contiguous()
        assert_as_eager(compiled, of, raw, values)
    assert seen == ["boxloss._class_loss.default", "boxloss._class_loss_backward.default"]


@pytest.mark.long
@pytest.mark.usefixtures("fresh_compiler", "cpp_compiler")
def test_a_training_step(device: torch.device) -> None:
    values = class_problem("ia_bce", device, torch.bfloat16)
    compiled = torch.compile(planes_step, fullgraph=True)
    assert_as_eager(compiled, planes_step, values["logits"].mT.contiguous(), values)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_backward_pass_alone_compiles(device: torch.device) -> None:
    values = class_problem("mal", device)
    expected = loss_and_gradient(ours, {**values, "reduction": "none"})
    logits = values["logits"].requires_grad_()
    loss = class_loss(**{**values, "reduction": "none"})
    with torch._dynamo.config.patch(compiled_autograd=True):
        run = torch.compile(lambda loss: loss.backward(incoming_for(loss)), backend="aot_eager")
        run(loss)
    assert torch.equal(logits.grad, expected[1])


class Criterion(torch.nn.Module):
    def forward(
        self, logits: Tensor, target_index: Tensor, labels: Tensor, quality: Tensor
    ) -> Tensor:
        return class_loss(logits, target_index, labels, mode="mal", quality=quality)


def test_export(device: torch.device) -> None:
    images, queries = map(torch.export.Dim, ("images", "queries"))
    names = ("logits", "target_index", "labels", "quality")
    both = {1: images, 2: queries}
    shapes = dict.fromkeys(names[:2], both) | dict.fromkeys(names[2:])
    problems = [class_problem("mal", device, shape=shape) for shape in (SHAPES[2], (2, 4, 6, 7))]
    given = [{name: values[name] for name in names} for values in problems]
    program = torch.export.export(Criterion(), (), given[0], dynamic_shapes=shapes)
    assert "boxloss.class_loss.default" in [str(node.target) for node in program.graph.nodes]
    for each in given:
        assert torch.equal(program.module()(**each), Criterion()(**each))


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
    ones, cube = torch.ones(2, device=device), torch.ones(2, 3, 5, device=device)
    meta = torch.device("meta")
    for name in ("boxloss", "aten"):
        with use_implementation(name):
            for changed, error, text in (
                ({"grad": ones[:1]}, ValueError, r"grad has shape \[1\]; it must be \[2\], the sh"),
                ({"grad": cube}, ValueError, r"grad has shape \[2, 3, 5\]; it must be \[2\], the"),
                ({"scale": ones.sum()}, ValueError, r"scale has shape \[\]; it must be \[2\], as"),
                ({"grad": ones.double()}, TypeError, "grad is float64; it must be float32, as"),
                ({"scale": ones.double()}, TypeError, "scale is float64; it must be float32, as"),
                ({"scale": ones.to(meta)}, RuntimeError, "scale is on meta, grad is on "),
            ):
                with pytest.raises(error, match=f"^class_loss: {text}"):
                    OPERATORS._class_loss_backward(*backward_arguments(values, **changed))


def test_the_private_backward_cannot_be_differentiated_in_silence(device: torch.device) -> None:
    values = class_problem("bce", device)
    arguments = backward_arguments(values)
    values["logits"].requires_grad_()
    gradient = OPERATORS._class_loss_backward(*arguments)
    with pytest.raises(RuntimeError, match="boxloss::_class_loss_backward"):
        gradient.sum().backward()
