# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A model without what boxloss replaces, to measure what that costs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .replace import KeepsOriginal, Replacement


class ImpossibleError(Exception):
    """The model cannot do without."""


class StandIn:
    """Gives the losses of its criterion's first call again; the gradient is that of the mean of
    each of the network's outputs. What takes no outputs, or gives no losses, is called as ever."""

    kept: tuple[list[Any], Any, int] | None = None

    def __init__(self, criterion: Callable[..., Any]) -> None:
        self.criterion = criterion

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        outputs = [each for each in tree_leaves((arguments, options)) if learns(each)]
        if not self.kept or not outputs:
            losses = self.criterion(*arguments, **options)
            leaves, tree = tree_flatten(losses)
            first = next((place for place, each in enumerate(leaves) if learns(each)), None)
            if outputs and first is not None:
                kept = [each.detach() if isinstance(each, Tensor) else each for each in leaves]
                self.kept = kept, tree, first
            return losses
        kept, tree, first = self.kept
        total = sum(each.mean(dtype=torch.float32) for each in outputs)
        return tree_unflatten([*kept[:first], kept[first] + total, *kept[first + 1 :]], tree)


def learns(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def put_stand_ins(model: nn.Module, loss: Callable[[nn.Module], Any]) -> list[StandIn]:
    """In place of what boxloss has put into the model. It is called with the model, twice."""
    loss(model)  # an Ultralytics model makes its criterion
    stand_ins = []
    for each in replaced_in(model):
        names = ["function"]
        if isinstance(each, KeepsOriginal):
            names = [name for name in vars(type(each).__bases__[1]) if not name.startswith("__")]
        for name in names:
            if callable(replaced := getattr(each, name)):
                vars(each)[name] = stand_in = StandIn(replaced)
                stand_ins.append(stand_in)
    loss(model)
    if not any(each.kept for each in stand_ins):
        raise ImpossibleError("not possible: boxloss replaces no loss that the step calls")
    return stand_ins


def replaced_in(model: nn.Module) -> list[Any]:
    """Ultralytics' criteria are no modules, and may have two heads."""
    near = [each for module in model.modules() for each in (module, *vars(module).values())]
    near += [part for each in near for part in getattr(each, "__dict__", {}).values()]
    found = {id(each): each for each in near if isinstance(each, (KeepsOriginal, Replacement))}
    return list(found.values())
