# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A model without what boxloss replaces, to measure what that costs."""

from collections.abc import Callable
from types import FunctionType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .replace import KeepsOriginal, Replacement


class ImpossibleError(Exception):
    """The model cannot do without."""


class StandIn:
    """Gives the losses of its criterion's first call again; the gradient is that of the mean of
    each of the network's outputs. What takes no outputs, or gives no losses, is called as ever."""

    is_inside = False  # of one; what it calls has no stand-in
    kept: tuple[list[Any], Any, int] | None = None

    def __init__(self, criterion: Callable[..., Any]) -> None:
        self.criterion = criterion

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        outputs = [each for each in tree_leaves((arguments, options)) if learns(each)]
        if StandIn.is_inside or not outputs:
            return self.criterion(*arguments, **options)
        if self.kept is None:
            with patch.object(StandIn, "is_inside", True):
                losses = self.criterion(*arguments, **options)
            leaves, tree = tree_flatten(losses)
            first = next((place for place, each in enumerate(leaves) if learns(each)), None)
            if first is not None:
                kept = [each.detach() if isinstance(each, Tensor) else each for each in leaves]
                self.kept = kept, tree, first
            return losses
        kept, tree, first = self.kept
        total = sum(each.mean(dtype=torch.float32) for each in outputs)
        return tree_unflatten([*kept[:first], kept[first] + total, *kept[first + 1 :]], tree)


def learns(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def put_stand_ins(model: nn.Module, loss: Callable[[nn.Module], Any]) -> list[StandIn]:
    """In place of what boxloss has put into the model. `loss` is called with it, twice."""
    loss(model)  # an Ultralytics model makes its criterion
    stand_ins = [each for place in replaced_in(model) for each in stand_ins_of(place)]
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


def stand_ins_of(place: Any) -> list[StandIn]:
    if isinstance(place, Replacement):
        place.function = StandIn(place.function)
        return [place.function]
    kind = type(place)
    found = {
        name: StandIn(getattr(place, name))
        for name, each in vars(kind.__bases__[1]).items()
        if isinstance(each, FunctionType) and not name.startswith("__")
    }
    # Not its own attributes, which criteria refuse.
    place.__class__ = type(kind.__name__, (kind,), {n: method(each) for n, each in found.items()})
    return list(found.values())


def method(stand_in: StandIn) -> Callable[..., Any]:
    return lambda _, *arguments, **options: stand_in(*arguments, **options)
