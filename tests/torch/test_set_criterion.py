# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A DETR's whole criterion beside a plain one: SciPy, and loops over layers and images."""

from typing import Any

import pytest
import torch
from boxloss.torch import QueryLayers, set_criterion
from devices import DEVICES
from torch import Tensor
from torch.nn import functional

CLASSES, QUERIES = 5, 6
COUNTS = (3, 0, 2)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Of cxcywh, all with all."""
    a, b = (torch.cat((x[:, :2] - x[:, 2:] / 2, x[:, :2] + x[:, 2:] / 2), 1) for x in (a, b))
    a, b = a[:, None], b[None]

    def area(low: Tensor, high: Tensor) -> Tensor:
        return (high - low).clamp(min=0).prod(-1)

    low, high = a[..., :2], a[..., 2:]
    inter = area(low.maximum(b[..., :2]), high.minimum(b[..., 2:]))
    union = area(low, high) + area(b[..., :2], b[..., 2:]) - inter
    hull = area(low.minimum(b[..., :2]), high.maximum(b[..., 2:]))
    return inter / union - (hull - union) / hull


def iou(a: Tensor, b: Tensor) -> Tensor:
    corners = [torch.cat((x[:, :2] - x[:, 2:] / 2, x[:, :2] + x[:, 2:] / 2), 1) for x in (a, b)]
    low, high = (
        corners[0][:, :2].maximum(corners[1][:, :2]),
        corners[0][:, 2:].minimum(corners[1][:, 2:]),
    )
    inter = (high - low).clamp(min=0).prod(-1)
    return inter / (a[:, 2:].prod(-1) + b[:, 2:].prod(-1) - inter)


def assigned(logits: Tensor, boxes: Tensor, target: Tensor, labels: Tensor, mode: str) -> Tensor:
    """Each query's row of target, or -1."""
    optimize = pytest.importorskip("scipy.optimize")
    p = logits.sigmoid()
    of_class = -logits.softmax(-1)
    if mode != "softmax":
        of_class = 0.25 * (1 - p) ** 2 * -(p + 1e-8).log()
        of_class = of_class - 0.75 * p**2 * -(1 - p + 1e-8).log()
    cost = 2 * of_class[:, labels] + 5 * torch.cdist(boxes, target, 1) - 2 * giou(boxes, target)
    rows, columns = optimize.linear_sum_assignment(cost.detach().cpu().numpy())
    found = torch.full((len(logits),), -1)
    found[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return found


def class_term(logits: Tensor, wanted: Tensor, quality: Tensor, mode: str) -> Tensor:
    """The sum over queries; wanted: a class, or -1."""
    if mode == "softmax":
        weight = torch.ones(CLASSES)
        weight[-1] = 0.1
        classes = wanted.where(wanted >= 0, CLASSES - 1)
        return functional.cross_entropy(logits, classes, weight, reduction="sum")
    one_hot = functional.one_hot(wanted + 1, CLASSES + 1)[:, 1:].to(logits.dtype)
    p = logits.sigmoid()
    if mode == "focal":
        bce = functional.binary_cross_entropy_with_logits(logits, one_hot, reduction="none")
        p_of = p * one_hot + (1 - p) * (1 - one_hot)
        weight = 0.25 * one_hot + 0.75 * (1 - one_hot)
        return (weight * (1 - p_of) ** 2 * bce).sum()
    q = quality[:, None] * one_hot
    bce = functional.binary_cross_entropy_with_logits(logits, q, reduction="none")
    return ((q + 0.75 * p.detach() ** 2 * (1 - one_hot)) * bce).sum()


def plain(
    layers: list[QueryLayers], targets: list[Tensor], labels: list[Tensor], mode: str
) -> tuple[Tensor, list[Tensor]]:
    """The total with weights 1, 5 and 2, and each query's box within its image."""
    total, pairs = torch.zeros(()), []
    number = max(sum(map(len, targets)), 1)
    for each in layers:
        for logits, boxes in zip(each.logits, each.pred, strict=True):
            weight_sum, of_class = torch.zeros(()), torch.zeros(())
            for b, (target, own) in enumerate(zip(targets, labels, strict=True)):
                group = QUERIES // each.groups
                found = torch.cat(
                    [
                        assigned(
                            logits[b, i : i + group], boxes[b, i : i + group], target, own, mode
                        )
                        for i in range(0, QUERIES, group)
                    ]
                )
                pairs.append(found)
                is_pair = found >= 0
                quality = torch.zeros(QUERIES)
                if is_pair.any():
                    p, t = boxes[b][is_pair], target[found[is_pair]]
                    quality[is_pair] = iou(p, t).detach()
                    of_boxes = 5 * (p - t).abs().sum() + 2 * (1 - giou(p, t).diagonal()).sum()
                    total = total + of_boxes / (number * each.groups)
                wanted = torch.where(is_pair, functional.pad(own, (0, 1))[found], -1)
                of_class = of_class + class_term(logits[b], wanted, quality, mode)
                weight_sum = weight_sum + torch.where(is_pair, 1.0, 0.1).sum()
            total = total + of_class / (weight_sum if mode == "softmax" else number * each.groups)
    return total, pairs


def made(seed: int = 0, **of_layers: Any) -> tuple[QueryLayers, list[Tensor], list[Tensor]]:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, QUERIES, CLASSES, generator=random)
    boxes = torch.rand(2, 3, QUERIES, 4, generator=random) * 0.5 + 0.2
    targets = [torch.rand(n, 4, generator=random) * 0.5 + 0.2 for n in COUNTS]
    labels = [torch.randint(CLASSES - 1, (n,), generator=random) for n in COUNTS]
    return QueryLayers(logits, boxes, **of_layers), targets, labels


def leaves(layers: QueryLayers, device: Any = None) -> list[Tensor]:
    return [each.detach().to(device).requires_grad_() for each in layers[:2]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("mode", ["softmax", "focal", "varifocal"])
def test_it_is_the_plain_criterion(mode: Any, groups: int, device: str) -> None:
    layers, targets, labels = made()
    own, ours = leaves(layers), leaves(layers, device)
    total, pairs = plain([QueryLayers(*own, groups)], targets, labels, mode)
    there = [[each.to(device) for each in values] for values in (targets, labels)]
    found = set_criterion(QueryLayers(*ours, groups), *there, class_mode=mode)
    first = [sum(COUNTS[:b]) for b in range(len(COUNTS))] * 2
    rows = [torch.where(each >= 0, each + row, -1) for each, row in zip(pairs, first, strict=True)]
    assert torch.equal(found.target_of_query[0].cpu().flatten(0, 1), torch.stack(rows))
    torch.testing.assert_close(found.total.cpu(), total, rtol=2e-6, atol=0)
    for ours_of, own_of in zip(
        torch.autograd.grad(found.total, ours), torch.autograd.grad(total, own), strict=True
    ):
        torch.testing.assert_close(ours_of.cpu(), own_of, rtol=2e-5, atol=2e-7)
    assert found.number == sum(COUNTS)


def test_layers_of_other_queries_and_known_pairs() -> None:
    """As each by itself, a list or one tensor, layers or one."""
    layers, targets, labels = made()
    other, *_ = made(1, groups=2)
    both = set_criterion([layers, other], targets, labels)
    each = [set_criterion(one, targets, labels) for one in (layers, other)]
    assert torch.equal(both.l1, torch.cat([one.l1 for one in each]))
    torch.testing.assert_close(both.total, each[0].total + each[1].total)

    known = layers._replace(target_index=each[0].target_of_query[0])
    boxes, offsets = torch.cat(targets), torch.tensor([0, 3, 3, 5])
    again = set_criterion(known, boxes, torch.cat(labels), offsets)
    assert torch.equal(again.total, each[0].total)
    one = QueryLayers(layers.logits[1], layers.pred[1])
    assert torch.equal(set_criterion(one, targets, labels).iou_loss, each[0].iou_loss[1:])


def test_shared_pairs_are_the_last_layers() -> None:
    layers, targets, labels = made(shares_pairs=True)
    (pairs,) = set_criterion(layers, targets, labels).target_of_query
    (own,) = set_criterion(layers._replace(shares_pairs=False), targets, labels).target_of_query
    assert torch.equal(pairs, own[1:].expand_as(own))
    assert not torch.equal(own[0], own[1])


def test_an_ignored_image_has_no_part() -> None:
    layers, targets, labels = made()
    ignored = torch.tensor([False, False, True])
    found = set_criterion(layers, targets, labels, ignored=ignored)
    fewer = QueryLayers(layers.logits[:, :2], layers.pred[:, :2])
    without = set_criterion(fewer, targets[:2], labels[:2])
    torch.testing.assert_close(found.total, without.total)
    assert found.number == without.number == 3
    assert (found.target_of_query[0][:, 2] == -2).all()


def test_weights_and_the_second_class_loss() -> None:
    layers, targets, labels = made()
    found = set_criterion(
        layers, targets, labels, loss_weights=(3.0, 0.5, 7.0), quality_mode="mal", quality_weight=11
    )
    assert found.quality_loss is not None
    parts = (found.class_loss, found.l1, found.iou_loss, found.quality_loss)
    total = sum(w * each.sum() for w, each in zip((3, 0.5, 7, 11), parts, strict=True))
    torch.testing.assert_close(found.total, total)
    alone = set_criterion(layers, targets, labels, class_mode="mal").class_loss
    torch.testing.assert_close(found.quality_loss, alone)
    halved = set_criterion(layers, targets, labels, normalizer=10.0)
    torch.testing.assert_close(halved.l1, found.l1 / 2)


def test_it_is_one_graph() -> None:
    layers, targets, labels = made()

    def total(logits: Tensor, boxes: Tensor) -> Tensor:
        return set_criterion(QueryLayers(logits, boxes), targets, labels).total

    compiled = torch.compile(total, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*layers[:2]), total(*layers[:2]))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"labels": lambda x: x[:2]}, "target has 3 images, labels has 2"),
        ({"labels": lambda x: [x[0][:2], *x[1:]]}, r"labels\[0\] has shape \(2,\), target\[0\] 3"),
        ({"target": torch.cat}, "must be two tensors, with offsets, or a sequence"),
        ({"target": torch.cat, "labels": torch.cat}, "then offsets must be given"),
        ({"layers": lambda x: []}, "layers is empty"),
        ({"normalizer": lambda x: "all"}, "normalizer is 'all'; allowed: rank, ranks"),
    ],
)
def test_errors(changed: dict[str, Any], words: str) -> None:
    layers, targets, labels = made()
    given: dict[str, Any] = {"layers": layers, "target": targets, "labels": labels}
    given |= {name: change(given.get(name)) for name, change in changed.items()}
    with pytest.raises((TypeError, ValueError), match=words):
        set_criterion(**given)
