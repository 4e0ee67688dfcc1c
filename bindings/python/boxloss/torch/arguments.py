# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Checks and conversions of arguments that are not tensors, and of options before a call."""

import reprlib
from collections.abc import Callable
from numbers import Real
from operator import index
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import is_tensor_like
from torch.utils._pytree import _register_namedtuple

from .._options import as_float, check_magnitude

Results = TypeVar("Results", bound=type[Any])

_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)


def check_tensors(function: str, **tensors: Any) -> None:
    """Each must be a tensor, or stand for one as a proxy of torch.fx does."""
    for name, value in tensors.items():
        if type(value) is not Tensor and not is_tensor_like(value):
            raise TypeError(f"{function}: {name} is {type(value).__name__}; it must be a tensor")


def _has_one(value: Any, method: str) -> bool:
    """Which a tensor has of one element only, and other arrays have in vain."""
    is_one = value.numel() == 1 if isinstance(value, Tensor) else not hasattr(value, "__len__")
    return is_one and hasattr(value, method)


# What torch takes for a parameter, by the type in the operator's schema, and that in words.
_TAKEN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Tensor": (is_tensor_like, "a tensor"),
    "str": (lambda value: isinstance(value, (str, bytes)), "a string"),
    "float": (lambda value: _has_one(value, "__float__"), "a number"),
    "int": (lambda value: _has_one(value, "__index__"), "an integer"),
    "bool": (lambda value: _has_one(value, "__bool__"), "True or False"),
}
# Integers of so many bits are too large.
_BITS = {"int": 63, "float": 1024}


# What debug mode does behind each call, which has checked shapes and dtypes; debugging.py sets it.
debug_check: Callable[[str, Any, dict[str, Any]], None] | None = None


def call(function: str, operator: Any, values: tuple[Any, ...]) -> Any:
    """The operator's result; a value of a wrong type is a TypeError that names it.

    Types are looked at only after an error of torch's: that costs other calls nothing.
    """
    try:
        result = operator(*values)
    except RuntimeError:
        for each, value in zip(operator._schema.arguments, values, strict=False):
            _check_type(function, each.name, str(each.type), value)
        raise
    check = debug_check  # read once: another thread may leave debug mode meanwhile
    if check is not None and not torch.compiler.is_compiling():
        names = (each.name for each in operator._schema.arguments)
        check(function, operator, dict(zip(names, values, strict=False)))
    return result


def beside(tensor: Any, other: Any) -> Any:
    """From the CPU to the other's device. What stands for a tensor has none."""
    are_tensors = isinstance(tensor, Tensor) and isinstance(other, Tensor)
    if are_tensors and tensor.is_cpu and not other.is_cpu:
        return tensor.to(other.device, non_blocking=True)
    return tensor


def exportable(results: Results) -> Results:
    """A named tuple of results, with a name in programs that torch.export.save writes."""
    _register_namedtuple(results, serialized_type_name=f"boxloss.torch.{results.__name__}")
    return results


def members_of(kind: type[Any], result: Any) -> Any:
    """Results as a named tuple: by index, since a proxy of torch.fx cannot be unpacked."""
    return kind(*[result[i] for i in range(len(kind._fields))])


def _check_type(function: str, name: str, kind: str, value: Any) -> None:
    if kind.startswith("Optional["):
        if value is None:
            return
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if kind not in _TAKEN:
        return
    is_taken, words = _TAKEN[kind]
    if not is_taken(value):
        found = type(value).__name__
        raise TypeError(f"{function}: {name} is {found}; it must be {words}") from None
    if isinstance(value, str) and value != value.encode(errors="ignore").decode():
        raise ValueError(f"{function}: {name} is {value!a}, which UTF-8 does not have") from None
    if isinstance(value, Tensor) and value.is_nested:
        raise TypeError(f"{function}: {name} is nested; it must be dense") from None
    if kind in _BITS:
        check_magnitude(function, name, value, _BITS[kind])


def as_normalizer(function: str, normalizer: Any, pred: Tensor, target: Tensor) -> Any:
    """A number as a tensor on pred's device, in the loss' dtype; no synchronization."""
    if normalizer is None or isinstance(normalizer, Tensor):
        return normalizer
    if isinstance(normalizer, (*_NUMBERS, Real)) and not isinstance(normalizer, bool):
        is_double = torch.float64 in (pred.dtype, target.dtype)
        dtype = torch.float64 if is_double else torch.float32
        number: Any = normalizer
        if not isinstance(number, (torch.SymInt, torch.SymFloat)):  # a compiler's, as it is
            largest = torch.finfo(dtype).max
            number = as_float(function, "normalizer", number, largest, str(dtype), _is_true)
        if torch.compiler.is_compiling():
            # new_full makes it a constant of the graph, and each other one compiles anew.
            return pred.new_ones((), dtype=dtype) * number
        return pred.new_full((), number, dtype=dtype)
    if not is_tensor_like(normalizer):
        found = type(normalizer).__name__
        raise TypeError(f"{function}: normalizer is {found}; it must be a tensor or a number")
    if torch.compiler.is_compiling():  # to which a number of NumPy's is an array
        return torch.as_tensor(normalizer, device=pred.device)
    return normalizer


def _is_true(condition: Any) -> bool:
    """False for what is not known while compiling, as of a number that data tell."""
    if not torch.compiler.is_compiling():
        return bool(condition)
    from torch.fx.experimental.symbolic_shapes import guard_or_false  # takes sympy a while

    return guard_or_false(condition)


def whole(value: Any, name: str, least: int = 0) -> int:
    """An integer that is not negative, or not less."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    if not least <= number < 2**63:
        shown = reprlib.repr(number)
        raise ValueError(f"{name} is {shown}; it must be at least {least}, and less than 2^63")
    return number


def check_options(loss: str, *, function: str = "box_loss", **options: Any) -> None:
    """The operator's own check of a loss' options, on tensors without boxes."""
    numbers = 5 if "angle_unit" in options else 4
    none = torch.empty((0, 0, numbers), dtype=torch.float64, device="meta")
    operator = getattr(torch.ops.boxloss, function).default
    others = (options.get(each.name, each.default_value) for each in operator._schema.arguments[3:])
    call(function, operator, (none, none, loss, *others))
