# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A criterion that boxloss does not know, made known to `use_boxloss`.

    python -m examples.own_family

The first half is a project's own: a small criterion in the style of Deformable DETR. The second is
all that its author, or its user, adds to it. Needs SciPy.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from boxloss.torch import QueryLayers, set_criterion
from boxloss.torch.compat import Case, Family, Parts, register_family, swap, use_boxloss
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

Outputs = Mapping[str, Any]
Targets = Sequence[Mapping[str, Tensor]]
NAMES = "loss_ce", "loss_bbox", "loss_giou"

# --- The project's own ---


def corners(boxes: Tensor) -> Tensor:
    centres, sizes = boxes.split(2, -1)
    return torch.cat((centres - sizes / 2, centres + sizes / 2), -1)


def giou(one: Tensor, other: Tensor) -> Tensor:
    """Of each with each."""
    a, b = corners(one)[:, None], corners(other)[None]
    inner = a[..., 2:].minimum(b[..., 2:]) - a[..., :2].maximum(b[..., :2])
    outer = a[..., 2:].maximum(b[..., 2:]) - a[..., :2].minimum(b[..., :2])
    overlap, hull = inner.clamp(min=0).prod(-1), outer.prod(-1)
    union = one[:, None, 2:].prod(-1) + other[None, :, 2:].prod(-1) - overlap
    return overlap / union - (hull - union) / hull


class Matcher:
    def __init__(self, classes: float = 2.0, boxes: float = 5.0, giou: float = 2.0) -> None:
        self.weights = classes, boxes, giou

    @torch.no_grad()
    def __call__(self, outputs: Outputs, targets: Targets) -> list[tuple[Tensor, Tensor]]:
        of_class, of_boxes, of_giou = self.weights
        found = []
        for logits, boxes, truth in zip(*outputs.values(), targets, strict=True):
            p = logits.sigmoid()[:, truth["labels"]]
            hit, miss = -(p + 1e-8).log(), -(1 - p + 1e-8).log()
            cost = of_class * (0.25 * (1 - p) ** 2 * hit - 0.75 * p**2 * miss)
            cost += of_boxes * torch.cdist(boxes, truth["boxes"], p=1)
            cost -= of_giou * giou(boxes, truth["boxes"])
            rows, columns = linear_sum_assignment(cost.cpu())
            found.append((torch.as_tensor(rows), torch.as_tensor(columns)))
        return found


def focal_loss(logits: Tensor, wanted: Tensor, alpha: float) -> Tensor:
    entropy = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    apart = (wanted - logits.sigmoid()).abs()
    weight = alpha * wanted + (1 - alpha) * (1 - wanted)
    return (weight * apart.square() * entropy).sum()


class SetCriterion(nn.Module):
    def __init__(self, matcher: Matcher, alpha: float = 0.25) -> None:
        super().__init__()
        self.matcher = matcher
        self.alpha = alpha

    def forward(self, outputs: Outputs, targets: Targets) -> dict[str, Tensor]:
        number = max(sum(len(each["boxes"]) for each in targets), 1)
        losses = {}
        for suffix, layer in layers_of(outputs).items():
            pairs = self.matcher(layer, targets)
            for name, loss in zip(NAMES, self.losses_of(layer, targets, pairs), strict=True):
                losses[name + suffix] = loss / number
        return losses

    def losses_of(
        self, layer: Outputs, targets: Targets, pairs: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        logits, boxes = layer["pred_logits"], layer["pred_boxes"]
        wanted = torch.zeros_like(logits)
        own, true = [], []
        for image, (truth, (query, row)) in enumerate(zip(targets, pairs, strict=True)):
            wanted[image, query, truth["labels"][row]] = 1
            own.append(boxes[image, query])
            true.append(truth["boxes"][row])
        pred, target = torch.cat(own), torch.cat(true)
        l1 = (pred - target).abs().sum()
        return focal_loss(logits, wanted, self.alpha), l1, (1 - giou(pred, target).diag()).sum()


def layers_of(outputs: Outputs) -> dict[str, Outputs]:
    """By the suffixes of their losses' names."""
    names = "pred_logits", "pred_boxes"
    auxiliary = {f"_{i}": each for i, each in enumerate(outputs.get("aux_outputs", ()))}
    return auxiliary | {"": {name: outputs[name] for name in names}}


# --- With boxloss: what stands in its place, on which batches both are compared, and its name ---

# What boxloss computes itself: replaced later, it is an error, since it would never be called.
PARTS = Parts({__name__: ("SetCriterion", "Matcher", "focal_loss", "giou")})


class Criterion(SetCriterion):
    def forward(self, outputs: Outputs, targets: Targets) -> dict[str, Tensor]:
        PARTS.check()
        layers = layers_of(outputs)
        logits, boxes = (
            torch.stack([layer[name] for layer in layers.values()])
            for name in ("pred_logits", "pred_boxes")
        )
        losses = set_criterion(
            QueryLayers(logits, boxes),
            [each["boxes"] for each in targets],
            [each["labels"] for each in targets],
            cost_weights=self.matcher.weights,
            alpha=self.alpha,
        )
        values = losses.class_loss, losses.l1, losses.iou_loss
        return {
            name + suffix: loss
            for name, of_layers in zip(NAMES, values, strict=True)
            for suffix, loss in zip(layers, of_layers.unbind(), strict=True)
        }


def cases(_: SetCriterion, classes: int = 7, queries: int = 8) -> Iterator[Case]:
    """Images without boxes among others, no boxes at all, and more than there are queries."""
    for counts in ((3, 0, 2), (0, 0), (queries + 2, 1)):
        random = torch.Generator().manual_seed(0)

        def boxes(*shape: int, random: torch.Generator = random) -> Tensor:
            return 0.2 + 0.5 * torch.rand(*shape, 4, generator=random)

        layers = [
            {
                "pred_logits": torch.randn(len(counts), queries, classes, generator=random),
                "pred_boxes": boxes(len(counts), queries),
            }
            for _ in range(2)
        ]
        for each in (tensor for layer in layers for tensor in layer.values()):
            each.requires_grad_()  # so it is an output, of which gradients are compared
        targets = [{"labels": torch.arange(n) % classes, "boxes": boxes(n)} for n in counts]
        outputs = {**layers[0], "aux_outputs": layers[1:]}
        words = f"images with {counts} boxes"
        yield Case(words, {"outputs": outputs, "targets": targets}, any(counts))


def replace(criterion: SetCriterion) -> Iterator[Any]:
    yield swap(criterion, Criterion)


register_family(SetCriterion, Family(replace, cases, PARTS))


if __name__ == "__main__":
    criterion = SetCriterion(Matcher())
    print(use_boxloss(criterion))
