# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What only a GPU has: streams, graphs, several devices, and more boxes than 32 bits can count."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import formula
import pytest
import torch
from boxloss.torch import giou_loss, use_implementation
from devices import GPU_NAMES, device_or_skip
from problems import PAIRINGS, Problem, boxes, problem
from torch import Tensor

Function = Callable[..., Tensor]
LONG = 50_000_000  # GPU cycles: some 30 ms, more than enough for a misplaced kernel to run first


def loss_and_gradient(values: Problem) -> tuple[Tensor, Tensor]:
    pred = values["pred"].detach().requires_grad_()
    loss = giou_loss(**{**values, "pred": pred})
    (gradient,) = torch.autograd.grad(loss, pred)
    return loss.detach(), gradient


def busy(gpu: torch.device) -> None:
    """Keeps the current stream busy for a while."""
    torch.cuda._sleep(LONG)


def test_runs_on_the_current_stream(gpu: torch.device) -> None:
    expected, expected_gradient = loss_and_gradient(problem("dense", gpu))
    values = problem("dense", gpu)
    right, values["pred"] = values["pred"], torch.full_like(values["pred"], float("nan"))
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()

    with torch.cuda.stream(stream):
        busy(gpu)
        values["pred"].copy_(right)  # any other stream still sees NaN
        loss, gradient = loss_and_gradient(values)
    stream.synchronize()

    assert torch.equal(loss, expected)
    assert torch.equal(gradient, expected_gradient)


def test_two_streams_at_once(gpu: torch.device) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    problems = [
        {"pred": boxes((200_000,), gpu, seed=seed), "target": boxes((200_000,), gpu, seed=seed + 2)}
        for seed in range(2)
    ]
    expected = [giou_loss(**values) for values in problems]
    torch.cuda.synchronize()
    losses: list[list[Tensor]] = [[], []]

    for _ in range(200):
        for stream, values, into in zip(streams, problems, losses, strict=True):
            with torch.cuda.stream(stream):
                into.append(giou_loss(**values))
    torch.cuda.synchronize()

    for got, right in zip(losses, expected, strict=True):
        assert all(torch.equal(each, right) for each in got)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_graph_replays_with_changed_inputs(gpu: torch.device, pairing: str, reduction: str) -> None:
    values = problem(pairing, gpu, weight=torch.float32, reduction=reduction)
    graph, loss, gradient = capture(values)

    for factor in (1.0, 0.5, 2.0):
        values["pred"].mul_(factor)
        expected = giou_loss(**values)
        graph.replay()
        assert torch.equal(loss, expected)
        assert torch.equal(gradient, eager_gradient(values))


def eager_gradient(values: Problem, function: Function = giou_loss) -> Tensor:
    pred = values["pred"].detach().requires_grad_()
    loss = function(**{**values, "pred": pred})
    (gradient,) = torch.autograd.grad(loss, pred, torch.ones_like(loss))
    return gradient


def capture(
    values: Problem, stream: torch.cuda.Stream | None = None, function: Function = giou_loss
) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
    """On a stream that has seen the call before, as some implementations ask."""

    def step() -> tuple[Tensor, Tensor]:
        pred = values["pred"].detach().requires_grad_()
        loss = function(**{**values, "pred": pred})
        (gradient,) = torch.autograd.grad(loss, pred, torch.ones_like(loss))
        return loss, gradient

    stream = stream or torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        loss, gradient = step()
    return graph, loss.detach(), gradient


@pytest.mark.parametrize("shape", [(0, 5, 4), (3, 0, 4)])
def test_graph_of_an_empty_batch(gpu: torch.device, shape: tuple[int, ...]) -> None:
    values: Problem = {
        "pred": torch.empty(shape, device=gpu),
        "target": torch.empty(shape, device=gpu),
        "lengths": torch.zeros(shape[0], dtype=torch.int64, device=gpu),
    }
    graph, loss, gradient = capture(values)
    loss.fill_(7)

    graph.replay()

    assert loss.item() == 0
    assert gradient.shape == shape


def test_graphs_of_one_stream_replayed_on_two(gpu: torch.device) -> None:
    problems: list[dict[str, Any]] = [
        {"pred": boxes((300_000,), gpu, seed=seed), "target": boxes((300_000,), gpu, seed=seed + 2)}
        for seed in range(2)
    ]
    expected = [giou_loss(**values) for values in problems]
    captured_on = torch.cuda.Stream()
    graphs = [capture(values, captured_on) for values in problems]
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()

    for _ in range(100):
        for stream, (graph, loss, _) in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                loss.fill_(float("nan"))
                graph.replay()
    torch.cuda.synchronize()

    for (_, loss, _), right in zip(graphs, expected, strict=True):
        assert torch.equal(loss, right)


MANY_CAPTURES = """
import sys
import torch
from boxloss.torch import giou_loss, use_implementation

use_implementation(sys.argv[1])
pred, target = torch.rand(2, 5000, 4, device="cuda").cumsum(-1)
stream = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    expected = giou_loss(pred, target)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=stream):
    for _ in range(2**16 + 10):
        loss = giou_loss(pred, target)
for _ in range(3):
    loss.fill_(7)
    graph.replay()
    assert torch.equal(loss, expected), (loss, expected)
assert torch.equal(giou_loss(pred, target), expected)
"""


@pytest.mark.parametrize("name", GPU_NAMES or ["cuda"])
def test_more_captured_calls_than_counters(name: str) -> None:
    device_or_skip("cuda")
    # In a process of its own, since counters once captured are never given back.
    subprocess.run([sys.executable, "-c", MANY_CAPTURES, name], check=True, timeout=300)


def test_a_first_call_that_cannot_be_captured_says_so() -> None:
    gpu = device_or_skip("cuda")
    names = [name for name in GPU_NAMES if name.endswith("/kokkos")]
    if not names:
        pytest.skip("this build has no Kokkos for the GPU")
    values = problem("dense", gpu)
    unused = torch.cuda.Stream(priority=-1)  # no other test takes one of these
    with (
        use_implementation(names[0]),
        torch.cuda.graph(torch.cuda.CUDAGraph(), stream=unused),
        pytest.raises(RuntimeError, match="call once on this stream before the capture"),
    ):
        giou_loss(**values)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_waits_for_nothing(gpu: torch.device, pairing: str) -> None:
    values = problem(pairing, gpu)
    values["pred"].requires_grad_()
    giou_loss(**values).sum().backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        giou_loss(**values).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_another_device_than_the_current_one(gpu: torch.device) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    second = torch.device("cuda:1")
    expected, expected_gradient = loss_and_gradient(problem("lengths", gpu))
    with torch.cuda.device(0):
        loss, gradient = loss_and_gradient(problem("lengths", second))
        assert torch.cuda.current_device() == 0

    assert loss.device == gradient.device == second
    assert torch.equal(loss.to(gpu), expected)
    assert torch.equal(gradient.to(gpu), expected_gradient)


def test_more_coordinates_than_32_bits_count(gpu: torch.device) -> None:
    count = 600_000_007  # 2.4e9 coordinates; odd, so that the last group of boxes is not full
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB of free GPU memory")
    tail = 1000
    pred = torch.zeros((count, 4), dtype=torch.bfloat16, device=gpu)
    target = torch.zeros((count, 4), dtype=torch.bfloat16, device=gpu)
    pred[-tail:] = boxes((tail,), gpu, torch.bfloat16, seed=1)
    target[-tail:] = boxes((tail,), gpu, torch.bfloat16, seed=2)
    pred.requires_grad_()
    mask = torch.zeros(count, dtype=torch.bool, device=gpu)
    mask[-tail:] = True

    loss = giou_loss(pred, target, mask=mask, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, pred)

    last = pred.detach()[-tail:].clone().requires_grad_()
    expected = giou_loss(last, target[-tail:], reduction="sum")
    (expected_gradient,) = torch.autograd.grad(expected, last)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert torch.equal(gradient[-tail:], expected_gradient)
    assert gradient[:-tail].count_nonzero() == 0
    # And against the formula, so that both cannot be wrong in the same way.
    right = formula.box_loss(last.detach().double().cpu(), target[-tail:].double().cpu())
    assert loss.item() == pytest.approx(tail * right.item(), rel=1e-5)


def test_long_sum_is_exact_enough(gpu: torch.device) -> None:
    pred, target = boxes((2**25,), gpu, seed=1), boxes((2**25,), gpu, seed=2)
    wanted = giou_loss(pred, target, reduction="none").double().sum()

    assert giou_loss(pred, target, reduction="sum").item() == pytest.approx(wanted.item(), rel=1e-6)
