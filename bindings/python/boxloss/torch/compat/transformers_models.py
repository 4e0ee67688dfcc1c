# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Models of transformers, of which a function is the criterion: how another is put in its place."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial, wraps
from types import FunctionType
from typing import Any

from torch import Tensor

from .family import Family, Swapped, nothing
from .parts import Parts, everything_of
from .proof import Case
from .replace import Replacement, qualified_name

# The total, losses by name, and what models call auxiliary outputs.
Losses = tuple[Tensor, dict[str, Tensor], list[dict[str, Any]] | None]
Given = dict[str, Any]

HOME = "transformers.loss."
# Whose functions a criterion's module may have.
_NOBODYS = {"transformers", "torch", "scipy", "accelerate", *sys.stdlib_module_names}


def criterion(
    *names: str, has_masks: bool = False
) -> Callable[[Callable[[Given], Losses]], Callable[..., Losses]]:
    """A function of what it is given, with the signature of transformers' own.

    Args:
        names: of the arguments that may follow the configuration by place.
        has_masks: whether pred_masks stand before it.
    """
    places = (*(["pred_masks"] if has_masks else []), "config", *names)

    def decorate(losses: Callable[[Given], Losses]) -> Callable[..., Losses]:
        @wraps(losses)
        def called(
            logits: Tensor,
            labels: Any,
            device: Any,
            pred_boxes: Tensor,
            *more: Any,
            **named: Any,
        ) -> Losses:
            given = {"logits": logits, "labels": labels, "pred_boxes": pred_boxes}
            return losses({**given, **dict(zip(places, more, strict=False)), **named})

        return called

    return decorate


def family(
    ours: Callable[..., Losses],
    cases: Callable[[Any], Iterable[Case]],
    losses: Callable[..., Any] | None = None,
    fix: Callable[[Any, int], Iterator[Swapped]] | None = nothing,
) -> Family:
    return Family(partial(_replace, ours), cases, _parts, losses or losses_of, fix=fix)


def original_of(model: Any) -> Any:
    function = getattr(model, "loss_function", None)
    return function.original if isinstance(function, Replacement) else function


def criterion_of(model: Any) -> str | None:
    """The name of transformers' own function."""
    function = original_of(model)
    module = sys.modules.get(getattr(function, "__module__", ""))
    name = getattr(function, "__name__", "")
    is_theirs = module is not None and module.__name__.startswith(HOME)
    return name if is_theirs and getattr(module, name, None) is function else None


def check_own(function: Any) -> None:
    """Raises for a user's own criterion, not for one of theirs that boxloss does not have."""
    module = getattr(function, "__module__", None) or type(function).__module__
    if module.partition(".")[0] != "transformers":
        named = function if hasattr(function, "__qualname__") else type(function)
        raise ValueError(
            f"model.loss_function is {qualified_name(named)}, which boxloss would not call; it "
            "replaces transformers' own"
        )


@cache
def _parts_of(module_name: str) -> Parts:
    return Parts(everything_of(module_name, HOME))


def _parts(model: Any) -> Parts:
    return _parts_of(original_of(model).__module__)


def _check_parts(original: Any) -> None:
    """What the criterion calls must be transformers' own: boxloss calls none of it."""
    for name, part in vars(sys.modules[original.__module__]).items():
        home = getattr(part, "__module__", None) or "torch"
        is_part = isinstance(part, (type, FunctionType))
        if is_part and home.partition(".")[0] not in _NOBODYS:
            raise ValueError(
                f"{original.__module__}.{name} is {qualified_name(part)}, which boxloss would not "
                "call"
            )


def _replace(function: Callable[..., Losses], model: Any) -> Iterator[Swapped]:
    original = model.loss_function
    if isinstance(original, Replacement):
        raise ValueError(f"model has boxloss already, by {qualified_name(original.function)}")
    _check_parts(original)
    was_set = "_loss_function" in vars(model)
    ours = model.loss_function = Replacement(function, original, _parts(model).check)

    def undo() -> None:
        if model.loss_function is not ours:
            return
        if was_set:
            model.loss_function = original
        else:
            del model._loss_function

    yield (qualified_name(original), qualified_name(function)), undo


def losses_of(
    model: Any, outputs_class: Tensor, outputs_coord: Tensor, layers: int, **made: Any
) -> Any:
    """As models call it: the last layer's outputs are among those of all, if these are given."""
    last = {"logits": outputs_class, "pred_boxes": outputs_coord}
    made |= {name: each.select(layers, -1) for name, each in last.items()}
    if model.config.auxiliary_loss:
        made |= {"outputs_class": outputs_class, "outputs_coord": outputs_coord}
    total, by_name, _ = model.loss_function(
        device=outputs_class.device, config=model.config, **made
    )
    return {"loss": total, **by_name}
