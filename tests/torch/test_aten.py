# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""aten: torch's own operators, on any device."""

from collections.abc import Iterator

import pytest
import torch
from boxloss.torch import (
    box_loss,
    giou_loss,
    implementations,
    matching_cost,
    pairwise_iou,
    use_implementation,
)
from matching import classes, cost_problem
from problems import Problem, problem

OPERATORS = torch.ops.boxloss
DOUBLE = torch.float64
# Devices of torch's that no implementation serves. Nobody needs one: the kernel that torch has for
# it runs on tensors of the CPU as well.
OTHERS = ("MPS", "XPU", "XLA", "HPU", "PrivateUse1")
# All operators but those that tell or choose implementations.
WITH_TENSORS = sorted(
    operator
    for operator in torch._C._dispatch_get_all_op_names()
    if operator.startswith("boxloss::") and "Tensor" in str(torch._C._get_schema(operator, ""))
)


@pytest.fixture
def aten() -> Iterator[None]:
    with use_implementation("aten"):
        yield


def operators_in(function: object, values: Problem) -> set[str]:
    """The names of all operators that forward and backward run."""
    values["pred"] = values["pred"].detach().requires_grad_()
    with torch.profiler.profile() as profile:
        function(**values).sum().backward()  # type: ignore[operator]
    return {event.name for event in profile.events()}


@pytest.mark.parametrize("dtypes", [(DOUBLE, torch.float32), (torch.float32, DOUBLE)])
def test_it_computes_in_double_where_either_is(dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    values = problem("dense", torch.device("cpu"), *dtypes)
    expected = box_loss(**values)
    with use_implementation("aten"):
        actual = box_loss(**values)
    torch.testing.assert_close(actual, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("eps_mode", ["add", "clamp"])
@pytest.mark.parametrize("name", ["boxloss", "aten"])
def test_without_eps_disjoint_boxes_have_no_gradient_by_iou_log(
    device: torch.device, name: str, eps_mode: str
) -> None:
    pred = torch.tensor([[0.0, 0, 1, 1], [0, 0, 2, 2]], device=device).requires_grad_()
    target = torch.tensor([[5.0, 5, 6, 6], [0, 0, 2, 1]], device=device)
    options = {"reduction": "none", "eps": 0.0, "eps_mode": eps_mode}
    with use_implementation(name if name == "aten" else device.type):
        loss = box_loss(pred, target, "iou_log", **options)
        (first,) = torch.autograd.grad(loss.sum(), pred, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), pred)
    assert loss.tolist() == [torch.inf, pytest.approx(0.6931472)]
    for gradient in (first, second):
        assert (gradient[0] == 0).all()
        assert gradient[1].isfinite().all()
    assert first[1, 3].item() == pytest.approx(0.5)  # of log(y2)


def test_torchs_operators_compute(device: torch.device) -> None:
    values = problem("offsets", device)
    assert "aten::maximum" not in operators_in(box_loss, values)
    with use_implementation("aten"):
        for function in (box_loss, giou_loss):
            assert {"aten::maximum", "MaximumBackward0"} <= operators_in(function, values)
    assert "aten::maximum" not in operators_in(box_loss, values)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_graph_takes_the_choice_of_its_run(device: torch.device) -> None:
    values = problem("mask", device)
    compiled = torch.compile(box_loss, fullgraph=True, backend="aot_eager")
    assert "aten::maximum" not in operators_in(compiled, values)
    with use_implementation("aten"):
        assert {"aten::maximum", "MaximumBackward0"} <= operators_in(compiled, values)


@pytest.mark.usefixtures("aten")
def test_opcheck(device: torch.device) -> None:
    values = problem("sets", device, weight=torch.float32, reduction="none")
    pred, target = values.pop("pred").requires_grad_(), values.pop("target")
    torch.library.opcheck(OPERATORS.box_losses.default, (pred, target), values)


def cost_values(device: torch.device) -> Problem:
    return classes(cost_problem(device, DOUBLE, class_mode="focal"))


def test_torchs_operators_compute_the_matchers_cost(device: torch.device) -> None:
    values = cost_values(device)
    boxes_of_it = {name: values[name] for name in ("pred", "target", "offsets")}
    for function, given in ((matching_cost, values), (pairwise_iou, boxes_of_it)):
        for name in ("boxloss", "aten"):
            with use_implementation(name), torch.profiler.profile() as profile:
                function(**given)
            names = {event.name for event in profile.events()}
            assert ("aten::maximum" in names) == (name == "aten")
            # What would wait for a device.
            assert names.isdisjoint({"aten::item", "aten::nonzero", "aten::_local_scalar_dense"})


@pytest.mark.usefixtures("aten", "fresh_compiler")
def test_the_matchers_cost_in_a_compiled_graph(device: torch.device) -> None:
    values = cost_values(device)
    arguments = tuple(values.pop(name) for name in ("pred", "target", "offsets"))
    torch.library.opcheck(OPERATORS.matching_cost.default, arguments, values)
    compiled = torch.compile(matching_cost, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*arguments, **values), matching_cost(*arguments, **values))


def test_it_is_listed_last() -> None:
    assert implementations()[-1] == "aten"


def test_blocks_nest_with_those_for_a_memory() -> None:
    def chosen() -> tuple[str, str]:
        names = []
        for neutral in ("cpu", "boxloss"):
            names.append(OPERATORS.use_implementation(neutral))
            OPERATORS.use_implementation(names[-1])
        return names[0], names[1]

    assert chosen() == ("cpu", "boxloss")
    with use_implementation("cpu/reference"):
        with use_implementation("aten"):
            assert chosen() == ("cpu/reference", "aten")
            with use_implementation("boxloss"):
                assert chosen() == ("cpu/reference", "boxloss")
            assert chosen() == ("cpu/reference", "aten")
        assert chosen() == ("cpu/reference", "boxloss")
    assert chosen() == ("cpu", "boxloss")


def test_it_goes_before_what_is_chosen_for_a_memory() -> None:
    values = problem("dense", torch.device("cpu"))
    with use_implementation("aten"), use_implementation("cpu/reference"):
        assert "aten::maximum" in operators_in(box_loss, values)


@pytest.mark.parametrize("key", ["CPU", "CUDA", *OTHERS])
@pytest.mark.parametrize("operator", WITH_TENSORS)
def test_every_device_of_torchs_has_a_kernel(operator: str, key: str) -> None:
    table = torch._C._dispatch_dump_table(operator)
    (line,) = [line for line in table.splitlines() if line.startswith(f"{key}: ")]
    has_own = torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)
    assert has_own == (key not in ("XLA", "HPU"))
    assert line.endswith("[kernel]" if has_own else "[default backend kernel]")
