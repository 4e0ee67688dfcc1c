# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matcher where only a GPU is asked: streams, graphs, and who waits."""

import warnings

import pytest
import torch
from boxloss.torch import hungarian_match, matching_cost, max_iou_match, use_implementation
from devices import GPU_NAMES, device_or_skip
from torch import Tensor

LONG = 50_000_000  # GPU cycles, some 30 ms
SOLVING = [name for name in GPU_NAMES if name.endswith("/native")]  # others do so on the host


def batch(gpu: torch.device, seed: int) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 9, (4,), generator=random)
    counts[0] = 25 - int(counts[1:].sum())
    values = {
        "pred": torch.rand(3, 4, 70, 4, generator=random),
        "target": torch.rand(25, 4, generator=random),
        "offsets": torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]),
        "logits": torch.randn(3, 4, 70, 11, generator=random),
        "labels": torch.randint(0, 11, (25,), generator=random),
    }
    return {name: value.to(gpu) for name, value in values.items()}


@pytest.mark.parametrize("mode", ["softmax", "focal"])
def test_a_graph_replays_with_another_batch(gpu: torch.device, mode: str) -> None:
    values = batch(gpu, 0)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        matching_cost(**values, class_mode=mode)  # some implementations ask for a first call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        cost = matching_cost(**values, class_mode=mode)

    for seed in range(1, 4):
        other = batch(gpu, seed)  # other images own the columns, too
        for name, value in values.items():
            value.copy_(other[name])
        graph.replay()
        assert torch.equal(cost, matching_cost(**other, class_mode=mode))


def test_cost_and_assignment_run_on_the_current_stream(gpu: torch.device) -> None:
    values = batch(gpu, 5)
    expected = hungarian_match(matching_cost(**values), values["offsets"])
    right, values["pred"] = values["pred"], torch.full_like(values["pred"], float("nan"))
    torch.cuda.synchronize()

    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(LONG)
        values["pred"].copy_(right)  # any other stream still sees NaN
        found = hungarian_match(matching_cost(**values), values["offsets"])
        torch.cuda.current_stream().synchronize()

    assert all(torch.equal(*each) for each in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", GPU_NAMES or ["cuda"])
def test_only_where_it_is_solved_on_the_host_it_is_waited_for(name: str) -> None:
    gpu = device_or_skip("cuda")
    values = batch(gpu, 6)
    cost, offsets = matching_cost(**values), values["offsets"]
    with use_implementation(name):
        hungarian_match(cost, offsets)
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                hungarian_match(cost, offsets)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    waits = [each for each in caught if "synchronizing CUDA operation" in str(each.message)]
    assert len(waits) == (0 if name in SOLVING else 1)


@pytest.mark.parametrize("name", SOLVING or ["cuda"])
def test_a_graph_with_the_assignment_replays_with_another_batch(name: str) -> None:
    gpu = device_or_skip("cuda")
    values = batch(gpu, 0)
    with use_implementation(name):
        hungarian_match(matching_cost(**values), values["offsets"])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = hungarian_match(matching_cost(**values), values["offsets"], groups=2)
        for seed in range(1, 4):
            other = batch(gpu, seed)
            for key, value in values.items():
                value.copy_(other[key])
            graph.replay()
            cost, offsets = matching_cost(**other).cpu(), other["offsets"].cpu()
            wanted = hungarian_match(cost, offsets, groups=2)
            assert all(
                torch.equal(*each) for each in zip(map(Tensor.cpu, found), wanted, strict=True)
            )


@pytest.mark.parametrize("name", SOLVING or ["cuda"])
@pytest.mark.parametrize("low_quality", ["argmax", "overwrite", "force"])
def test_a_graph_with_max_iou_matching_replays_with_another_batch(
    name: str, low_quality: str
) -> None:
    gpu = device_or_skip("cuda")
    options = {"high": 0.5, "low": 0.2, "low_quality": low_quality}

    def arguments(seed: int) -> list[Tensor]:
        values = batch(gpu, seed)
        pred, target = values["pred"][0], values["target"]
        corners = [
            torch.cat((each[..., :2], each[..., :2] + each[..., 2:]), -1) for each in (pred, target)
        ]
        return [*corners, values["offsets"]]

    given = arguments(0)
    with use_implementation(name):
        max_iou_match(*given, **options)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = max_iou_match(*given, **options)
        for seed in range(1, 4):
            other = arguments(seed)
            for value, each in zip(given, other, strict=True):
                value.copy_(each)
            graph.replay()
            wanted = max_iou_match(*(each.cpu() for each in other), **options)
            for result, each in zip(found, wanted, strict=True):
                assert torch.equal(result.cpu(), each)
