# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A DETR's whole criterion beside SciPy, and loops over layers and images."""

from typing import Any

import pytest
import torch
from boxloss.torch import QueryLayers, box_loss, class_loss, matching_cost, set_criterion
from devices import DEVICES
from torch import Tensor

CLASSES, QUERIES = 5, 6
COUNTS = (3, 0, 2)
FORMATS: Any = {"pred_format": "cxcywh", "target_format": "cxcywh"}
OPTIONS: dict[str, dict[str, Any]] = {
    "softmax": {"no_object_weight": 0.1},
    "focal": {"alpha": 0.25, "gamma": 2.0},
    "varifocal": {"alpha": 0.75, "gamma": 2.0},
}


def overlap(p: Tensor, t: Tensor, loss: str) -> Tensor:
    """Of each pair."""
    return 1 - box_loss(p, t, loss, reduction="none", eps=0.0, **FORMATS)


def assigned(logits: Tensor, boxes: Tensor, target: Tensor, labels: Tensor, mode: str) -> Tensor:
    """Each query's row of target, or -1."""
    optimize = pytest.importorskip("scipy.optimize")
    class_mode = "softmax" if mode == "softmax" else "focal"
    weights = {"class_weight": 2, "l1_weight": 5, "iou_weight": 2, "class_mode": class_mode}
    of_classes = {"logits": logits[None], "labels": labels, **weights}
    cost = matching_cost(boxes[None], target, torch.tensor([0, len(target)]), **of_classes)
    rows, columns = optimize.linear_sum_assignment(cost.numpy())
    found = torch.full((len(logits),), -1)
    found[torch.from_numpy(rows)] = torch.from_numpy(columns)
    return found


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
                    quality[is_pair] = overlap(p, t, "iou").detach()
                    of_boxes = 5 * (p - t).abs().sum() + 2 * (1 - overlap(p, t, "giou")).sum()
                    total = total + of_boxes / (number * each.groups)
                own_quality = {"query_quality": quality} if mode == "varifocal" else {}
                options = {"mode": mode, "reduction": "sum", **OPTIONS[mode], **own_quality}
                of_class = of_class + class_loss(logits[b], found, own, **options)
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
    """Of a draw in which each of the cost's weights decides a pair."""
    layers, targets, labels = made(3)
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
