# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs by index on a GPU, where a row's gradients add up in any order: streams, graphs, bits."""

from collections.abc import Iterator

import pytest
import torch
from bounds import check
from boxloss.torch import box_losses, collate_matches
from comparison import run
from problems import INDICES, Problem, boxes, indexed, problem, some_rows
from test_gpu import busy, capture, eager_gradient
from test_modes import Calls
from torch import Tensor

ROWS = 50_000
SHAPES = [(90_000,), (6, 15_000)]
BOTH = ("loss", "l1")


@pytest.fixture
def deterministic() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)


def large(
    gpu: torch.device,
    shape: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    most: int = 2,
) -> Problem:
    rows = ROWS * 2 // most
    lists: Problem = {"pred_list": (2, rows // 2), "target_list": (rows,), "most": most}
    return indexed(shape, gpu, dtype, dtype, torch.float32, **lists)


def many_times_one_row(gpu: torch.device) -> Problem:
    values = large(gpu, (6, 15_000))
    values["pred_index"] = values["pred_index"] % 100
    values["target_index"][:, ::2] = 7
    return values


def assert_same_bits(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name, result in expected.items():
        assert torch.equal(actual[name], result), name


# --- Bits ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_in_two_pairs_at_most(
    gpu: torch.device, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """Two numbers have one sum, whichever comes first."""
    values = large(gpu, shape, dtype)
    first = run(values, by=BOTH)
    for _ in range(10):
        assert_same_bits(run(values, by=BOTH), first)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_in_one_pair_at_most(
    gpu: torch.device, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """In 16 bits the first of two numbers is rounded before the second is added."""
    values = large(gpu, shape, dtype, most=1)
    first = run(values, by=BOTH)
    for _ in range(10):
        assert_same_bits(run(values, by=BOTH), first)


def test_outputs_and_the_weights_gradient_do_not_depend_on_shared_rows(gpu: torch.device) -> None:
    values = many_times_one_row(gpu)
    first = run(values, by=BOTH)
    for _ in range(10):
        again = run(values, by=BOTH)
        for name in ("loss", "l1", "iou", "weight"):
            assert torch.equal(again[name], first[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(600,), (3, 200)])
def test_rows_in_hundreds_of_pairs(
    gpu: torch.device, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    # Threads of a warp and of several blocks come to one row. With halves: 100 roundings of it.
    check(indexed(shape, gpu, dtype, dtype, torch.float32, most=100), by=BOTH)


@pytest.mark.usefixtures("deterministic")
def test_deterministic_algorithms_have_the_same_bits(gpu: torch.device) -> None:
    values = many_times_one_row(gpu)
    first = run(values, by=BOTH)
    for _ in range(5):
        assert_same_bits(run(values, by=BOTH), first)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("shape", [(60,), (3, 20)])
def test_deterministic_algorithms_are_as_near_to_the_formula(
    gpu: torch.device, shape: tuple[int, ...], reduction: str, dtype: torch.dtype
) -> None:
    values = indexed(shape, gpu, dtype, dtype, torch.float32, most=9, reduction=reduction)
    check(values, by=BOTH)
    check(values)


@pytest.mark.usefixtures("deterministic")
def test_deterministic_algorithms_take_only_shared_rows_another_way(gpu: torch.device) -> None:
    for pairing, is_fused in (("dense", True), ("offsets", True), ("sets", False)):
        values = problem(pairing, gpu)
        pred = values["pred"].requires_grad_()
        with Calls() as calls:
            loss, l1, _ = box_losses(**values)
            torch.autograd.grad((loss + l1).sum(), pred)
        ours = [name for name in calls.names if name.startswith("boxloss")]
        assert len(ours) == (2 if is_fused else 0)


# --- Streams ---


def test_runs_on_the_current_stream(gpu: torch.device) -> None:
    values = problem("sets", gpu)
    expected = run(values, by=BOTH)
    right = {name: values[name] for name in (*INDICES, "pred")}
    values["pred"] = torch.full_like(right["pred"], float("nan"))
    for name in INDICES:
        values[name] = torch.zeros_like(right[name])
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()

    with torch.cuda.stream(stream):
        busy(gpu)
        for name, tensor in right.items():
            values[name].copy_(tensor)  # any other stream still sees other pairs, and NaN
        actual = run(values, by=BOTH)
    stream.synchronize()

    assert_same_bits(actual, expected)


def test_two_streams_at_once(gpu: torch.device) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    problems = [large(gpu, shape) for shape in SHAPES]
    expected = [run(values, by=BOTH) for values in problems]
    torch.cuda.synchronize()
    results: list[list[dict[str, Tensor]]] = [[], []]

    for _ in range(30):
        for stream, values, into in zip(streams, problems, results, strict=True):
            with torch.cuda.stream(stream):
                into.append(run(values, by=BOTH))
    torch.cuda.synchronize()

    for got, right in zip(results, expected, strict=True):
        for each in got:
            assert_same_bits(each, right)


@pytest.mark.parametrize("pairing", ["indices", "sets"])
def test_waits_for_nothing(gpu: torch.device, pairing: str) -> None:
    values = problem(pairing, gpu, weight=torch.float32)
    leaves = [values[name].requires_grad_() for name in ("pred", "target", "weight")]

    def step() -> None:
        loss, l1, _ = box_losses(**values)
        torch.autograd.grad((loss + l1).sum(), leaves)

    step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_matches_arrive_without_a_wait(gpu: torch.device) -> None:
    values: Problem = {"pred": boxes((2, 3, 5), gpu, seed=1), "target": boxes((12,), gpu, seed=2)}
    found = [[([4, 1], [0, 2]), ([], []), ([3], [0])]] * 2
    collate_matches(found, [3, 0, 9], 5, device=gpu)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        indices = collate_matches(found, [3, 0, 9], 5, device=gpu)
        l1 = box_losses(**values, **dict(zip(INDICES, indices, strict=True))).l1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert indices[0].tolist() == [[4, 1, 13], [19, 16, 28]]
    assert (l1 > 0).all()


# --- Graphs ---


def loss_and_l1(**values: Tensor) -> Tensor:
    result = box_losses(**values)
    return result.loss + result.l1


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(24,), (3, 8)])
def test_graph_replays_with_other_pairs(
    gpu: torch.device, shape: tuple[int, ...], reduction: str
) -> None:
    values = indexed(shape, gpu, weight=torch.float32, reduction=reduction, target_list=(20,))
    graph, total, gradient = capture(values, function=loss_and_l1)

    for seed in range(3):
        values["pred_index"].copy_(some_rows(shape, 15, seed))
        values["target_index"].copy_(some_rows(shape, 20, seed + 3))
        total.fill_(float("nan"))
        gradient.fill_(float("nan"))
        graph.replay()
        assert torch.equal(total, loss_and_l1(**values))
        assert torch.equal(gradient, eager_gradient(values, loss_and_l1))


def test_graph_replays_with_no_pair_and_with_many(gpu: torch.device) -> None:
    """Gradients of the replay before are gone."""
    values = large(gpu, (6, 15_000))
    graph, total, gradient = capture(values, function=loss_and_l1)
    index = values["pred_index"].clone()

    graph.replay()
    assert gradient.any()
    values["pred_index"].fill_(-1)
    graph.replay()
    assert not total.any()
    assert not gradient.any()
    values["pred_index"].copy_(index)
    graph.replay()
    assert torch.equal(total, loss_and_l1(**values))
    assert torch.equal(gradient, eager_gradient(values, loss_and_l1))


def test_graph_of_no_pairs(gpu: torch.device) -> None:
    none = torch.zeros((2, 0), dtype=torch.int64, device=gpu)
    values: Problem = {"pred": boxes((5,), gpu), "target": boxes((3,), gpu)}
    values |= dict.fromkeys(INDICES, none)
    graph, total, gradient = capture(values, function=loss_and_l1)
    total.fill_(7)
    gradient.fill_(7)

    graph.replay()

    assert total.tolist() == [0, 0]
    assert not gradient.any()


# --- Sizes ---


def test_another_device_than_the_current_one(gpu: torch.device) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    second = torch.device("cuda:1")
    expected = run(problem("sets", gpu), by=BOTH)
    with torch.cuda.device(0):
        actual = run(problem("sets", second), by=BOTH)
    for name, result in expected.items():
        assert actual[name].device == second
        assert torch.equal(actual[name].to(gpu), result), name


def test_more_coordinates_than_32_bits_count(gpu: torch.device) -> None:
    rows = 600_000_007  # 2.4e9 coordinates
    if torch.cuda.mem_get_info()[0] < 24 * 2**30:
        pytest.skip("needs 24 GiB of free GPU memory")
    count = 1000
    near, true = boxes((count,), gpu, torch.bfloat16, seed=1), boxes((count,), gpu, torch.uint8)
    pred = torch.zeros((rows, 4), dtype=torch.bfloat16, device=gpu)
    target = torch.zeros((rows, 4), dtype=torch.uint8, device=gpu)
    pred[-count:], target[-count:] = near, true
    pred.requires_grad_()
    # The rows' first coordinates lie beyond 2^31; one index beyond the rows.
    index = torch.arange(rows - count, rows + 1, device=gpu)
    values: Problem = {"pred_index": index, "target_index": index.int(), "reduction": "none"}
    result = box_losses(pred, target, **values)
    (gradient,) = torch.autograd.grad((result.loss + result.l1).sum(), pred)

    last = near.clone().requires_grad_()
    index = torch.arange(count, device=gpu)
    values |= {"pred_index": index, "target_index": index.int()}
    expected = box_losses(last, true, **values)
    (expected_gradient,) = torch.autograd.grad((expected.loss + expected.l1).sum(), last)
    for actual, wanted in zip(result, expected, strict=True):
        assert torch.equal(actual[:count], wanted)
        assert actual[count] == 0
    assert torch.equal(gradient[-count:], expected_gradient)
    assert gradient[:-count].count_nonzero() == 0


def test_more_sets_than_a_grid_has_blocks_in_a_dimension(gpu: torch.device) -> None:
    sets = 70_000
    lists: Problem = {"pred_list": (sets,), "target_list": (sets,), "most": 3}
    values = indexed((sets, 3), gpu, reduction="sum", **lists)
    each = box_losses(**{**values, "reduction": "none"})
    together = box_losses(**values)
    assert torch.allclose(together.loss, each.loss.sum(-1), rtol=1e-6, atol=0)
    assert torch.allclose(together.l1, each.l1.sum(-1), rtol=1e-6, atol=0)
    assert torch.equal(together.iou, each.iou)


def test_one_set_is_summed_over_many_blocks(gpu: torch.device) -> None:
    lists: Problem = {"pred_list": (2**18,), "target_list": (2**18,), "most": 8}
    for shape in ((2**21,), (1, 2**21), (2, 2**20)):
        values = indexed(shape, gpu, **lists)
        each = box_losses(**{**values, "reduction": "none"})
        for name in BOTH:
            wanted = getattr(each, name).double().sum(-1).tolist()
            total = getattr(box_losses(**{**values, "reduction": "sum"}), name)
            assert total.tolist() == pytest.approx(wanted, rel=1e-6)
