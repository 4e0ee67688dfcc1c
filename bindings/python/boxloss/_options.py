# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the frameworks' functions have in common: words, and options that functions share."""

import inspect
import math
import reprlib
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

Loss = Literal[
    "iou",
    "iou_squared",
    "iou_log",
    "giou",
    "diou",
    "ciou",
    "ciou_gated",
    "eiou",
    "siou",
    "alpha_iou",
    "nwd",
    "mpdiou",
    "inner_iou",
]
RotatedLoss = Literal["iou", "giou", "probiou", "kld", "gwd", "kfiou"]
BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
AngleUnit = Literal["radians", "degrees"]
Reduction = Literal["none", "sum", "mean"]
EpsMode = Literal["add", "clamp"]
ClassLossMode = Literal["focal", "varifocal", "mal", "ia_bce", "bce", "softmax"]
DistributionLossMode = Literal["fgl", "ddf"]
ClassMode = Literal["softmax", "sigmoid", "focal"]
LowQuality = Literal["none", "argmax", "overwrite", "force"]


class LossParameters(TypedDict, total=False):
    """Numbers that some losses have of their own, each from 1e-6 to 1e6."""

    alpha: float
    constant: float
    image_width: float
    image_height: float
    ratio: float


LOSS_PARAMETERS: dict[str, tuple[str, ...]] = {
    "alpha_iou": ("alpha",),
    "nwd": ("constant",),
    "mpdiou": ("image_width", "image_height"),
    "inner_iou": ("ratio",),
}


class RotatedLossParameters(TypedDict, total=False):
    """Numbers that some losses of rotated boxes have: tau from 1 to 1e6, floor from 0 to 1e6."""

    tau: float
    floor: float


class CostParameters(LossParameters, RotatedLossParameters, total=False):
    """Numbers of losses of boxes along the axes, or of rotated ones."""


# With standard values, for those that are not given beside others.
ROTATED_LOSS_PARAMETERS: dict[str, dict[str, float]] = {
    "probiou": {"floor": 1e-15},
    "kld": {"tau": 1.0, "floor": 1e-15},
    "gwd": {"tau": 1.0, "floor": 1e-15},
    "kfiou": {"floor": 1e-15},
}

P = ParamSpec("P")
R = TypeVar("R")


def options_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its keyword-only parameters."""
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def show(function: Callable[..., Any], what: Callable[..., Any], *but: str) -> None:
    """A function that takes ``**options`` has the other's, but these, in help and by inspect."""
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    left_out = {*but, *signature.parameters}
    others = inspect.signature(what).parameters.items()
    shown = [*own, *(each for name, each in others if name not in left_out)]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]


def taking_what(what: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """A function with the other's parameters, to type checkers, too."""

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        show(function, what)
        return function

    return decorate


def named(box_loss: Callable[..., Any], loss: str, words: str) -> Any:
    """`box_loss` with its loss chosen."""

    def function(pred: Any, target: Any, **options: Any) -> Any:
        return box_loss(pred, target, loss, **options)

    function.__annotations__ = box_loss.__annotations__
    function.__module__ = box_loss.__module__
    function.__name__ = function.__qualname__ = f"{loss}_loss"
    function.__doc__ = f"{words}\n\nEverything else is as in `box_loss`, whose name errors have."
    show(function, box_loss, "loss", "parameters")
    return function


def completed(
    options: dict[str, Any], defaults: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """All of the defaults' options, in their order; and the others, a loss' own numbers."""
    merged = defaults | options
    if len(merged) == len(defaults):
        return merged, {}
    own = {name: value for name, value in options.items() if name not in defaults}
    return {name: merged[name] for name in defaults}, own


def parameters_of(function: str, loss: str, own: Mapping[str, Any]) -> tuple[float, ...]:
    """A loss' own numbers in their order; none stands for their standard values."""
    if not own:
        return ()
    standard = ROTATED_LOSS_PARAMETERS.get(loss, {})
    names = tuple(standard) or LOSS_PARAMETERS.get(loss, ())
    numbers = {**standard, **own}
    for name, value in numbers.items():
        if name not in names:
            has = f"has {', '.join(names)}" if names else "has no numbers of its own"
            raise TypeError(
                f"{function}() got an unexpected keyword argument {name!r}; loss {loss!r} {has}"
            )
        if not isinstance(value, Real):
            raise TypeError(f"{function}: {name} is {type(value).__name__}; it must be a number")
        check_magnitude(function, name, value, 1024)
    if missing := [name for name in names if name not in numbers]:
        raise ValueError(f"{function}: {missing[0]} is missing; {loss!r} needs {', '.join(names)}")
    return tuple(float(numbers[name]) for name in names)


def check_magnitude(function: str, name: str, value: Any, bits: int) -> None:
    """Refuses an integer of more bits."""
    if isinstance(value, Integral) and abs(int(value)) >= 2**bits:
        shown = reprlib.repr(value)
        raise ValueError(
            f"{function}: {name} is {shown}; it must be less than 2^{bits} in magnitude"
        ) from None


def as_float(
    function: str,
    name: str,
    value: Any,
    largest: float,
    dtype: str,
    is_true: Callable[[Any], bool] = bool,
) -> float:
    """A number, which must fit into the dtype that it is used in; `is_true` decides of numbers."""
    try:
        number = float(value)
    except OverflowError:
        number = largest  # of an integer that is not even a float64
    if is_true(abs(number) >= largest) and is_true(abs(number) < math.inf):
        raise ValueError(
            f"{function}: {name} is {reprlib.repr(value)}; it must be less than {largest} in "
            f"magnitude, as {dtype}, or infinite"
        )
    return number
