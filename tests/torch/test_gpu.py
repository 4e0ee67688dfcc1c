# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What only a GPU has: streams, graphs, several devices, more boxes than 32 bits can count, and
gradients of one row that add up in any order."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from boxloss.torch import box_losses, giou_loss
from called import Called
from combinations import pairwise
from comparison import check_formula, outputs_of, run
from problems import INDICES, PAIRINGS, REDUCTIONS, Problem, boxes, indexed, problem, some_rows
from torch import Tensor

LONG = 50_000_000  # GPU cycles: some 30 ms, more than enough for a misplaced kernel to run first
ROWS = 50_000
SHAPES = [(90_000,), (6, 15_000)]
BOTH = ("loss", "l1")
# The operators with and without extras have loops of their own.
OUTPUTS = pytest.mark.parametrize("by", [(), BOTH], ids=["loss", "all"])


def outputs_and_gradient(values: Problem, by: tuple[str, ...] = BOTH) -> tuple[Tensor, ...]:
    """Without anything that waits for the GPU."""
    pred = values["pred"].detach().requires_grad_()
    outputs = outputs_of({**values, "pred": pred}, by)
    total = outputs["loss"] + outputs["l1"] if by else outputs["loss"]
    (gradient,) = torch.autograd.grad(total, pred, torch.ones_like(total))
    return (*(output.detach() for output in outputs.values()), gradient)


def assert_same_bits(actual: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        actual, expected = [tuple(d[name] for name in expected) for d in (actual, expected)]
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


def large(gpu: torch.device, shape: tuple[int, ...]) -> Problem:
    """Two numbers have one sum, whichever comes first."""
    lists: Problem = {"pred_list": (2, ROWS // 2), "target_list": (ROWS,), "most": 2}
    return indexed(shape, gpu, weight=torch.float32, **lists)


def many_times_one_row(gpu: torch.device) -> Problem:
    values = large(gpu, (6, 15_000))
    values["pred_index"] = values["pred_index"] % 100
    values["target_index"][:, ::2] = 7
    return values


# --- Bits ---


@pytest.fixture
def deterministic() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


@pytest.mark.usefixtures("deterministic")
def test_deterministic_algorithms_have_the_same_bits(gpu: torch.device) -> None:
    values = many_times_one_row(gpu)
    first = run(values, by=BOTH)
    for _ in range(5):
        assert_same_bits(run(values, by=BOTH), first)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("shape", [(60,), (3, 20)])
def test_deterministic_algorithms_are_the_formula(
    gpu: torch.device, shape: tuple[int, ...], reduction: str
) -> None:
    values = indexed(shape, gpu, *[torch.float64] * 3, most=9, reduction=reduction)
    check_formula(values, by=BOTH)
    check_formula(values)


@pytest.mark.usefixtures("deterministic")
def test_deterministic_algorithms_take_only_shared_rows_another_way(gpu: torch.device) -> None:
    for pairing, is_fused in (("dense", True), ("offsets", True), ("sets", False)):
        values = problem(pairing, gpu)
        pred = values["pred"].requires_grad_()
        with Called() as called:
            loss, l1, _ = box_losses(**values)
            torch.autograd.grad((loss + l1).sum(), pred)
        ours = [name for name in called.names if "box_loss" in name]
        assert len(ours) == (2 if is_fused else 0)


# --- Streams ---


@pytest.mark.parametrize(("pairing", "by"), [("dense", ()), ("sets", BOTH)])
def test_runs_on_the_current_stream(gpu: torch.device, pairing: str, by: tuple[str, ...]) -> None:
    values = problem(pairing, gpu)
    expected = outputs_and_gradient(values, by)
    right = {name: values[name] for name in ("pred", *INDICES) if name in values}
    values |= {name: torch.zeros_like(tensor) for name, tensor in right.items()}
    values["pred"].fill_(float("nan"))
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()

    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG)
        for name, tensor in right.items():
            values[name].copy_(tensor)  # any other stream still sees other pairs, and NaN
        actual = outputs_and_gradient(values, by)
    stream.synchronize()

    assert_same_bits(actual, expected)


def two_problems(gpu: torch.device, pairing: str) -> list[Problem]:
    if pairing == "indices":
        return [large(gpu, shape) for shape in SHAPES]
    sized = [boxes((300_000,), gpu, seed=seed) for seed in range(4)]
    return [{"pred": sized[i], "target": sized[i + 2]} for i in range(2)]


@pytest.mark.parametrize(("pairing", "by"), [("dense", ()), ("indices", BOTH)])
def test_two_streams_at_once(gpu: torch.device, pairing: str, by: tuple[str, ...]) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    problems = two_problems(gpu, pairing)
    expected = [outputs_and_gradient(values, by) for values in problems]
    torch.cuda.synchronize()
    results: list[list[tuple[Tensor, ...]]] = [[], []]

    for _ in range(30 if by else 200):
        for stream, values, into in zip(streams, problems, results, strict=True):
            with torch.cuda.stream(stream):
                into.append(outputs_and_gradient(values, by) if by else (giou_loss(**values),))
    torch.cuda.synchronize()

    for got, right in zip(results, expected, strict=True):
        for each in got:
            assert_same_bits(each, right[: len(each)])


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@OUTPUTS
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_waits_for_nothing(gpu: torch.device, pairing: str, by: tuple[str, ...]) -> None:
    values = problem(pairing, gpu, weight=torch.float32, normalizer=3) | {"loss": "giou"}
    leaves = [values[name].requires_grad_() for name in ("pred", "target", "weight")]

    def step() -> None:
        outputs = outputs_of(values, by)
        torch.autograd.grad(sum(outputs[name].sum() for name in by or ("loss",)), leaves)

    step()
    with waiting_is_an_error():
        step()


# --- Graphs ---


def capture(
    values: Problem, by: tuple[str, ...] = BOTH, stream: torch.cuda.Stream | None = None
) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...]]:
    """On a stream that has seen the call before, as some implementations ask."""
    stream = stream or torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs_and_gradient(values, by)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = outputs_and_gradient(values, by)
    return graph, results


@pytest.mark.parametrize("case", pairwise(pairing=PAIRINGS, reduction=REDUCTIONS, by=[(), BOTH]))
def test_graph_replays_with_changed_inputs(gpu: torch.device, case: dict[str, Any]) -> None:
    values = problem(case["pairing"], gpu, weight=torch.float32, reduction=case["reduction"])
    graph, results = capture(values, case["by"])

    for seed, factor in enumerate((1.0, 0.5, 2.0, 1.0)):
        values["pred"].mul_(factor)
        for name, rows in (("pred_index", 15), ("target_index", 12)):
            if name in values:
                values[name].copy_(some_rows(values[name].shape, rows, seed))
                if seed == 2:  # no pair: gradients of the replay before are gone
                    values[name].fill_(-1)
        for result in results:
            result.fill_(float("nan"))
        graph.replay()
        assert_same_bits(results, outputs_and_gradient(values, case["by"]))


def test_graphs_of_one_stream_replayed_on_two(gpu: torch.device) -> None:
    problems = two_problems(gpu, "dense")
    expected = [giou_loss(**values) for values in problems]
    captured_on = torch.cuda.Stream()
    graphs = [capture(values, (), captured_on) for values in problems]
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()

    for _ in range(100):
        for stream, (graph, (loss, _)) in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                loss.fill_(float("nan"))
                graph.replay()
    torch.cuda.synchronize()

    for (_, (loss, _)), right in zip(graphs, expected, strict=True):
        assert torch.equal(loss, right)


def test_a_first_call_that_cannot_be_captured_says_so(gpu: torch.device, gpu_name: str) -> None:
    if not gpu_name.endswith("/kokkos"):
        pytest.skip(f"{gpu_name} can capture a first call")
    values = problem("dense", gpu)
    unused = torch.cuda.Stream(priority=-1)  # no other test takes one of these
    with (
        torch.cuda.graph(torch.cuda.CUDAGraph(), stream=unused),
        pytest.raises(RuntimeError, match="call once on this stream before the capture"),
    ):
        giou_loss(**values)


# --- Sizes ---


@pytest.mark.parametrize("pairing", ["lengths", "sets"])
def test_another_device_than_the_current_one(gpu: torch.device, pairing: str) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    second = torch.device("cuda:1")
    expected = outputs_and_gradient(problem(pairing, gpu))
    with torch.cuda.device(0):
        actual = outputs_and_gradient(problem(pairing, second))
        assert torch.cuda.current_device() == 0
    for a, e in zip(actual, expected, strict=True):
        assert a.device == second
        assert torch.equal(a.to(gpu), e)


@OUTPUTS
def test_more_coordinates_than_32_bits_count(gpu: torch.device, by: tuple[str, ...]) -> None:
    """In the operators without extras by a mask, in those with them by index."""
    rows = 600_000_007  # 2.4e9 coordinates; odd, so that the last group of boxes is not full
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB of free GPU memory")
    count = 1000
    near = boxes((count,), gpu, torch.bfloat16, seed=1)
    true = boxes((count,), gpu, torch.uint8 if by else torch.bfloat16, seed=2)
    values: Problem = {
        "pred": near.new_zeros((rows, 4)),
        "target": true.new_zeros((rows, 4)),
        "reduction": "sum",
    }
    values["pred"][-count:], values["target"][-count:] = near, true
    few: Problem = {"pred": near, "target": true, "reduction": "sum"}
    if by:  # the rows' first coordinates lie beyond 2^31; one index beyond the rows
        index = torch.arange(rows - count, rows + 1, device=gpu)
        values |= {"pred_index": index, "target_index": index.int()}
        index = torch.arange(count, device=gpu)
        few |= {"pred_index": index, "target_index": index.int()}
    else:
        values["mask"] = torch.zeros(rows, dtype=torch.bool, device=gpu)
        values["mask"][-count:] = True

    loss, *_, gradient = outputs_and_gradient(values, by)

    expected, *_, expected_gradient = outputs_and_gradient(few, by)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert torch.equal(gradient[-count:], expected_gradient)
    assert gradient[:-count].count_nonzero() == 0
