# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that carry a bound of their rounding, for formulas.py to run on.

Running error analysis (Higham, "Accuracy and Stability of Numerical Algorithms", 3.3). A Bounded
stands for one number of two computations from the same corners: the formula's, in double, whose
number is `value`, and boxloss', in its compute dtype, whose number is within `error` of that. With
e the operands' errors and u the unit roundoff an operation adds up

    a + b    e_a + e_b                                 + 2 u |a + b|
    a b      |a| e_b + |b| e_a + e_a e_b               + 2 u |a b|
    1 / b    e_b / (|b| (|b| - e_b))                   + 2 u / |b|, unbounded where b may be 0
    exp, log, atan2    by how far they can move        + 2 u, 2 u, 8 u of the result

u counts twice because a reciprocal may be off by 2 u, and because a division may be a reciprocal
and a product; in double, where both computations round, four times (and a platform's functions are
within 16 u). Nothing is added where the operands are exact and the compute dtype holds the result,
so that small integers tie where they should. Where rounding could turn a comparison, the bound
reaches to what the other branch would have given.

A Dual also carries its derivatives by the eight coordinates, again as Bounded. boxloss has its
derivatives written out: the same products of the same factors, added in another order. A sum in
any order is within u times its additions times the sum of the terms' sizes; so a derivative
carries that sum, `size`, and rounds by it instead of by its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

UNIT = {torch.float32: 2 * 2.0**-24, torch.float64: 4 * 2.0**-53}
FUNCTION = {torch.float32: 1.0, torch.float64: 4.0}  # exp and log, in UNIT
ATAN2 = {torch.float32: 4.0, torch.float64: 4.0}
SMALLEST = {torch.float32: 2.0**-149, torch.float64: 2.0**-1074}
EXP_IS_ZERO_BELOW = {torch.float32: -87.0, torch.float64: -708.0}


def holds(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Has the dtype these values?"""
    return values.to(dtype).double() == values


class OfTorch:
    """What torch's functions take."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Dual:
        return FUNCTIONS[function](*args, **(kwargs or {}))


@dataclass
class Decision(OfTorch):
    """The outcome of a comparison, which rounding alone may turn where it is not sure."""

    holds: Tensor
    is_sure: Tensor

    def __and__(self, other: Decision) -> Decision:
        surely_not = (self.is_sure & ~self.holds) | (other.is_sure & ~other.holds)
        return Decision(self.holds & other.holds, surely_not | (self.is_sure & other.is_sure))


@dataclass
class Bounded:
    value: Tensor
    error: Tensor
    size: Tensor
    compute: torch.dtype

    @staticmethod
    def of(value: Tensor, compute: torch.dtype, error: Tensor | None = None) -> Bounded:
        return Bounded(
            value, torch.zeros_like(value) if error is None else error, value.abs(), compute
        )

    def rounded(self, value: Tensor, propagated: Tensor, size: Tensor, exact: Tensor) -> Bounded:
        """The result of an operation whose operands' errors amount to `propagated`."""
        exact = exact & (propagated == 0) & holds(value, self.compute)
        own = UNIT[self.compute] * (size + propagated) + SMALLEST[self.compute]
        error = torch.where(exact, 0.0, (propagated + own) * (1 + 2.0**-20))
        too_large = size + propagated > torch.finfo(self.compute).max
        error = torch.where(too_large | error.isnan(), torch.inf, error)
        return Bounded(value, error, size, self.compute)

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error, self.size, self.compute)

    def plus(self, other: Bounded, in_any_order: bool = False) -> Bounded:
        value = self.value + other.value
        seen = value - self.value
        lost = (self.value - (value - seen)) + (other.value - seen)
        size = self.size + other.size if in_any_order else value.abs()
        return self.rounded(value, self.error + other.error, size, lost == 0)

    def times(self, other: Bounded) -> Bounded:
        a, b = self.value.abs(), other.value.abs()
        propagated = a * other.error + b * self.error + self.error * other.error
        exact = holds(self.value, torch.float32) & holds(other.value, torch.float32)
        return self.rounded(self.value * other.value, propagated, self.size * other.size, exact)

    def reciprocal(self) -> Bounded:
        value = 1 / self.value
        nearest = self.value.abs() - self.error
        propagated = torch.where(nearest > 0, self.error * value.abs() / nearest, torch.inf)
        return self.rounded(value, propagated, value.abs(), torch.zeros_like(value).bool())

    def less(self, other: Bounded) -> Decision:
        error = self.error + other.error
        is_sure = (error == 0) | ((self.value - other.value).abs() > error)
        return Decision(self.value < other.value, is_sure)

    def equals(self, other: Bounded) -> Decision:
        error = self.error + other.error
        is_sure = (error == 0) | ((self.value - other.value).abs() > error)
        return Decision(self.value == other.value, is_sure)

    def function_of(self, value: Tensor, propagated: Tensor, roundings: float) -> Bounded:
        own = roundings * UNIT[self.compute] * value.abs()
        error = (propagated + own) * (1 + 2.0**-20)
        return Bounded.of(value, self.compute, error.nan_to_num(torch.inf, torch.inf))

    def exp(self) -> Bounded:
        value = torch.exp(self.value)
        near = value * torch.expm1(self.error)
        far = torch.exp(self.value + self.error) - value
        propagated = torch.where(self.error < 0.5, near, far)
        may_be_zero = self.value - self.error < EXP_IS_ZERO_BELOW[self.compute]
        propagated = propagated + torch.where(may_be_zero, value, 0.0)
        return self.function_of(value, propagated, FUNCTION[self.compute])

    def log(self) -> Bounded:
        propagated = -torch.log1p(-(self.error / self.value).clamp(max=1.0))
        return self.function_of(torch.log(self.value), propagated, FUNCTION[self.compute])

    def atan2(self, x: Bounded) -> Bounded:
        """The angle of (x, self), x >= 0."""
        near_x, near_y = (v.value.abs().sub(v.error).clamp(min=0.0) for v in (x, self))
        reach = (x.value.abs() + x.error) * self.error + (self.value.abs() + self.error) * x.error
        propagated = torch.where(reach > 0, reach / (near_x * near_x + near_y * near_y), 0.0)
        value = torch.atan2(self.value, x.value)
        return self.function_of(value, propagated.clamp(max=4.0), ATAN2[self.compute])


def select(condition: Decision, a: Bounded, b: Bounded) -> Bounded:
    value = torch.where(condition.holds, a.value, b.value)
    taken = torch.where(condition.holds, a.error, b.error)
    other = torch.where(condition.holds, b.error, a.error) + (a.value - b.value).abs()
    either = torch.maximum(taken, other.nan_to_num(torch.inf, torch.inf))
    size = torch.where(condition.holds, a.size, b.size)
    size = torch.where(condition.is_sure, size, torch.maximum(a.size, b.size))
    return Bounded(value, torch.where(condition.is_sure, taken, either), size, a.compute)


def share(first: Decision, second: Decision, a: Bounded, b: Bounded) -> Bounded:
    """a where `first` holds, b where `second` does, half of each where neither."""
    half = Bounded.of(torch.tensor(0.5).double(), a.compute)
    both = half.times(a.plus(b, in_any_order=True))
    return select(first, a, select(second, b, both))


class Dual(OfTorch):
    """A number and its derivatives by the coordinates, in the derivatives' first dimension."""

    def __init__(self, primal: Bounded, tangent: Bounded) -> None:
        self.primal, self.tangent = primal, tangent

    def like(self, other: Any) -> Dual:
        """A constant, rounded to the compute dtype."""
        if isinstance(other, Dual):
            return other
        compute = self.primal.compute
        value = torch.as_tensor(other, dtype=torch.float64)
        error = (value - value.to(compute).double()).abs().expand(self.primal.value.shape)
        primal = Bounded.of(value.expand(self.primal.value.shape), compute, error)
        return Dual(primal, Bounded.of(torch.zeros_like(self.tangent.value), compute))

    def detach(self) -> Dual:
        zeros = torch.zeros_like(self.tangent.value)
        return Dual(self.primal, Bounded.of(zeros, self.primal.compute))

    def __neg__(self) -> Dual:
        return Dual(-self.primal, -self.tangent)

    def __add__(self, other: Any) -> Dual:
        other = self.like(other)
        tangent = self.tangent.plus(other.tangent, in_any_order=True)
        return Dual(self.primal.plus(other.primal), tangent)

    def __sub__(self, other: Any) -> Dual:
        return self + -self.like(other)

    def __rsub__(self, other: Any) -> Dual:
        return self.like(other) - self

    def __mul__(self, other: Any) -> Dual:
        other = self.like(other)
        first, second = self.tangent.times(other.primal), other.tangent.times(self.primal)
        return Dual(self.primal.times(other.primal), first.plus(second, in_any_order=True))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        other = self.like(other)
        per = other.primal.reciprocal()
        value = self.primal.times(per)
        by_other = other.tangent.times(value.times(per))
        tangent = self.tangent.times(per).plus(-by_other, in_any_order=True)
        return Dual(value, tangent)

    def __lt__(self, other: Any) -> Decision:
        return self.primal.less(self.like(other).primal)

    def __gt__(self, other: Any) -> Decision:
        return self.like(other).primal.less(self.primal)

    def __eq__(self, other: Any) -> Decision:  # type: ignore[override]
        return self.primal.equals(self.like(other).primal)

    __hash__ = None  # type: ignore[assignment]


def both_dual(a: Any, b: Any) -> tuple[Dual, Dual]:
    return (a, a.like(b)) if isinstance(a, Dual) else (b.like(a), b)


def where(condition: Decision, a: Any, b: Any) -> Dual:
    a, b = both_dual(a, b)
    return Dual(select(condition, a.primal, b.primal), select(condition, a.tangent, b.tangent))


def minimum(a: Any, b: Any) -> Dual:
    a, b = both_dual(a, b)
    first, second = a < b, b < a
    tangent = share(first, second, a.tangent, b.tangent)
    # Continuous: nothing jumps where it is not sure which of the two it is.
    taken = select(Decision(first.holds, torch.ones_like(first.is_sure)), a.primal, b.primal)
    error = torch.where(first.is_sure, taken.error, torch.maximum(a.primal.error, b.primal.error))
    return Dual(Bounded.of(taken.value, taken.compute, error), tangent)


def maximum(a: Any, b: Any) -> Dual:
    a, b = both_dual(a, b)
    return -minimum(-a, -b)


def absolute(a: Dual) -> Dual:
    zero = a.like(0.0)
    tangent = select(a > zero, a.tangent, select(a < zero, -a.tangent, zero.tangent))
    return Dual(Bounded.of(a.primal.value.abs(), a.primal.compute, a.primal.error), tangent)


def clamp(a: Dual, min: float, max: float = torch.inf) -> Dual:
    """Of constants. However little is known of one, it lies between the two."""
    value = a.primal.value.clamp(min, max)
    error = torch.minimum(a.primal.error, torch.maximum(value - min, max - value))
    return Dual(Bounded.of(value, a.primal.compute, error), a.detach().tangent)


def exp(a: Dual) -> Dual:
    value = a.primal.exp()
    return Dual(value, a.tangent.times(value))


def log(a: Dual) -> Dual:
    return Dual(a.primal.log(), a.tangent.times(a.primal.reciprocal()))


def atan2(y: Dual, x: Dual) -> Dual:
    per = x.primal.times(x.primal).plus(y.primal.times(y.primal)).reciprocal()
    by_y, by_x = x.primal.times(per), -y.primal.times(per)
    tangent = y.tangent.times(by_y).plus(x.tangent.times(by_x), in_any_order=True)
    return Dual(y.primal.atan2(x.primal), tangent)


FUNCTIONS: dict[Any, Callable[..., Dual]] = {
    torch.where: where,
    torch.minimum: minimum,
    torch.maximum: maximum,
    torch.abs: absolute,
    torch.clamp: clamp,
    torch.exp: exp,
    torch.log: log,
    torch.atan2: atan2,
}


def coordinates(p: Tensor, t: Tensor, compute: torch.dtype) -> tuple[list[Dual], list[Dual]]:
    """Corners, in double but with values of the compute dtype, as exact numbers."""
    directions = torch.eye(8).double()[:, :, None].expand(8, 8, len(p))
    duals = [
        Dual(Bounded.of(value, compute), Bounded.of(direction, compute))
        for value, direction in zip((*p.unbind(-1), *t.unbind(-1)), directions, strict=True)
    ]
    return duals[:4], duals[4:]
