# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What transformers' criteria of Mask2Former and its kin, which learn masks alone, have in common.

All images at once, and layers, which must have one size. Up to rounding this is the same, but for

- halves, also under autocast: theirs computes costs in them;
- a batch without any mask: its losses of masks are 0 here and there, where theirs can be NaN.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from ..class_loss import class_loss
from .cache import apart
from .family import Family, Swapped, nothing, swap
from .made_up import MadeUp, cases_of
from .masks import MaskTargets, truth_of
from .parts import Parts, check_class, check_methods
from .proof import Case
from .ranks import asks_accelerate, average_over_ranks
from .targets import FixedTargets

NAME = "(.*)For(Universal|Instance)Segmentation"
# Some have some of them.
FUNCTIONS = {
    *("sample_point", "dice_loss", "sigmoid_cross_entropy_loss", "pair_wise_dice_loss"),
    *("pair_wise_sigmoid_cross_entropy_loss", "pair_wise_sigmoid_focal_loss"),
    *("sigmoid_focal_loss", "linear_sum_assignment"),
}
METHODS = (
    *("loss_labels", "loss_masks", "calculate_uncertainty", "sample_points_using_uncertainty"),
    "get_num_masks",
)

# Of each layer's masks, all logits, the ground truth, and what losses are divided by: cross
# entropy, or in its place the focal loss; dice; and each query's mask.
OfLayers = Callable[
    [Any, Sequence[Tensor], Tensor, MaskTargets, Tensor], tuple[Tensor, Tensor, Tensor]
]


def losses(
    criterion: Any,
    layers: Sequence[tuple[Tensor, Tensor]],
    mask_labels: Sequence[Tensor] | Tensor,
    class_labels: Sequence[Tensor] | FixedTargets,
    of_layers: OfLayers,
) -> list[dict[str, Tensor]]:
    """By their names, of each layer's masks and logits."""
    check_parts(criterion)
    truth, factor = truth_of(mask_labels, class_labels, layers[0][1].shape[-1] - 1)
    does_ask = asks_accelerate(criterion.original.__module__)
    number = average_over_ranks(truth.total, does_ask).clamp(min=1)
    number = number if factor is None else number * factor
    masks, each_logits = zip(*layers, strict=True)
    logits = torch.stack(each_logits)
    with torch.autocast(logits.device.type, enabled=False):
        entropy, dice, mask_of_query = of_layers(criterion, masks, logits, truth, number)
        of_classes = class_loss(
            logits,
            mask_of_query,
            truth.labels,
            mode="softmax",
            no_object_weight=criterion.eos_coef,
        )
    found = apart(torch.cat((entropy, dice, of_classes)))
    names, count = ("loss_mask", "loss_dice", "loss_cross_entropy"), len(layers)
    return [dict(zip(names, found[layer::count], strict=True)) for layer in range(count)]


def named(of_layers: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The last layer comes first, and has no suffix."""
    last, *others = of_layers
    return last | {f"{n}_{i}": x for i, each in enumerate(others) for n, x in each.items()}


def all_layers(
    masks: Tensor, logits: Tensor, auxiliary: Sequence[Mapping[str, Tensor]] | None
) -> list[tuple[Tensor, Tensor]]:
    others = [
        (each["masks_queries_logits"], each["class_queries_logits"]) for each in auxiliary or ()
    ]
    return [(masks, logits), *others]


@cache
def _criterion(theirs: Any, of_layers: OfLayers) -> Any:
    class Criterion(theirs):
        def forward(
            self,
            masks_queries_logits: Tensor,
            class_queries_logits: Tensor,
            mask_labels: Sequence[Tensor] | Tensor,
            class_labels: Sequence[Tensor] | FixedTargets,
            auxiliary_predictions: Sequence[Mapping[str, Tensor]] | None = None,
        ) -> dict[str, Tensor]:
            layers = all_layers(masks_queries_logits, class_queries_logits, auxiliary_predictions)
            return named(losses(self, layers, mask_labels, class_labels, of_layers))

    Criterion.__qualname__ = "Criterion"
    return Criterion


@cache
def parts_of(module: str, prefix: str) -> Parts:
    functions = FUNCTIONS & {*vars(sys.modules[module])}
    return Parts({module: (f"{prefix}Loss", f"{prefix}HungarianMatcher", *functions)})


def home_of(model: Any) -> tuple[ModuleType, str]:
    """transformers' module, and what its classes' names begin with."""
    for each in type(model).__mro__:
        found = re.fullmatch(NAME, each.__name__)
        if found and each.__module__.startswith("transformers."):
            return sys.modules[each.__module__], found[1]
    raise TypeError(f"{type(model).__qualname__} is none of transformers' {NAME}")


def parts(model: Any) -> Parts:
    module, prefix = home_of(model)
    return parts_of(module.__name__, prefix)


def check_parts(criterion: Any) -> None:
    """What the criterion has no call for must be transformers' own, as it is when it is called;
    compiled code does not look."""
    if torch.compiler.is_compiling():
        return
    theirs = getattr(criterion, "original", type(criterion))
    module, prefix = theirs.__module__, theirs.__name__.removesuffix("Loss")
    parts_of(module, prefix).check()
    check_class(criterion.matcher, getattr(sys.modules[module], f"{prefix}HungarianMatcher"))
    check_methods(criterion, getattr(sys.modules[module], f"{prefix}Loss"), METHODS)


def replace(of_layers: OfLayers, ours: type | None, model: Any) -> Iterator[Swapped]:
    module, prefix = home_of(model)
    check_parts(model.criterion)
    yield swap(model.criterion, ours or _criterion(getattr(module, f"{prefix}Loss"), of_layers))


def cases(model: Any) -> Iterator[Case]:
    """The last layer and another one; in the last case with more masks than queries, in images of
    other sizes."""
    random = MadeUp.of(model)
    yield from cases_of(lambda counts: made_up(random, model.criterion, counts), (13, 1))


def made_up(random: MadeUp, criterion: Any, counts: tuple[int, ...]) -> dict[str, Any]:
    classes, images, queries = criterion.empty_weight.numel() - 1, len(counts), 10

    def layer() -> dict[str, Tensor]:
        masks = random.output(2 * random.normal(images, queries, 12, 16))
        logits = random.output(random.normal(images, queries, classes + 1))
        return {"masks_queries_logits": masks, "class_queries_logits": logits}

    step = 8 if max(counts) > queries else 0
    shapes = [(count, 40 + step * b, 60) for b, count in enumerate(counts)]
    masks = [made_up_masks(random, *shape) for shape in shapes]
    labels = [random.integers(classes, count).to(random.device) for count in counts]
    auxiliary = [layer()]
    return {
        **layer(),
        "mask_labels": masks,
        "class_labels": labels,
        "auxiliary_predictions": auxiliary,
    }


def made_up_masks(random: MadeUp, *shape: int) -> Tensor:
    return (random.uniform(0, 1, *shape) > 0.6).to(random.device, torch.float32)


def losses_of(model: Any, **made: Any) -> Any:
    """At the same points each time, in float32."""
    torch.manual_seed(0)
    buffers = {"empty_weight": model.criterion.empty_weight.float()}
    with patch.dict(model.criterion._buffers, buffers):
        return model.criterion(**made)


def family(
    of_layers: OfLayers,
    ours: type | None = None,
    cases: Callable[[Any], Iterator[Case]] = cases,
) -> Family:
    return Family(partial(replace, of_layers, ours), cases, parts, losses_of, fix=nothing)
