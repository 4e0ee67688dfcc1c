# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The matcher in CUDA graphs, which hold no launch on another stream and no wait of the host."""

from collections.abc import Callable

import pytest
import torch
from boxloss.torch import (
    class_loss,
    hungarian_match,
    matching_cost,
    max_iou_match,
    task_aligned_match,
)
from boxloss.torch.compat import batch_linear_assignment
from layouts import in_planes
from losses_of_logits import CLASS_MODES, OF_QUALITY
from torch import Tensor


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


def corners(values: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """pred of the first layer, and target, of a corner and sides."""
    pred, target = (
        torch.cat((each[..., :2], each[..., :2] + each[..., 2:]), -1)
        for each in (values["pred"][0], values["target"])
    )
    return pred, target


# What each takes of a batch.
def each_alone(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
    return (batch_linear_assignment(values["logits"][0]),)


def cost(mode: str) -> Callable[[dict[str, Tensor]], tuple[Tensor, ...]]:
    return lambda values: (matching_cost(**values, class_mode=mode),)


def assigned(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
    return hungarian_match(matching_cost(**values), values["offsets"], groups=2)


def max_iou(low_quality: str) -> Callable[[dict[str, Tensor]], tuple[Tensor, ...]]:
    def match(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
        options = {"high": 0.5, "low": 0.2, "low_quality": low_quality}
        return max_iou_match(*corners(values), values["offsets"], **options)

    return match


def task_aligned(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
    scores, (pred, target) = values["logits"][0].sigmoid(), corners(values)
    points = (pred[0, :, :2] + pred[0, :, 2:]) / 2
    others = {name: values[name] for name in ("offsets", "labels")}
    return task_aligned_match(scores, pred, points, target, **others, topk2=3)


def classified(
    mode: str, layout: Callable[[Tensor], Tensor] = Tensor.contiguous
) -> Callable[[dict[str, Tensor]], tuple[Tensor, ...]]:
    """And the gradient."""

    def losses(values: dict[str, Tensor]) -> tuple[Tensor, ...]:
        logits = layout(values["logits"]).detach().requires_grad_()
        index, labels = assigned(values)[-1], values["labels"]
        quality = values["target"][:, 0] if mode in OF_QUALITY else None
        loss = class_loss(logits, index, labels, mode=mode, quality=quality, normalizer=3)
        return loss.detach(), *torch.autograd.grad(loss, logits, torch.ones_like(loss))

    return losses


@pytest.mark.parametrize(
    "match",
    [
        *map(cost, ("softmax", "focal")),
        *(assigned, each_alone, *map(max_iou, ("argmax", "overwrite", "force")), task_aligned),
        *map(classified, CLASS_MODES),
        classified("varifocal", in_planes),
    ],
)
def test_a_graph_replays_with_another_batch(
    gpu: torch.device, match: Callable[[dict[str, Tensor]], tuple[Tensor, ...]]
) -> None:
    values = batch(gpu, 0)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        match(values)  # some implementations ask for a first call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        found = match(values)
    for seed in range(1, 4):
        other = batch(gpu, seed)  # other images own the columns, too
        for name, value in values.items():
            value.copy_(other[name])
        graph.replay()
        assert all(torch.equal(*each) for each in zip(found, match(other), strict=True))
