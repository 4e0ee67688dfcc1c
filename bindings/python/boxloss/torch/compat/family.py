# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What `use_boxloss` has to know of detectors that have one criterion."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import isgeneratorfunction
from typing import Any, TypeAlias

from .parts import Parts
from .proof import Case
from .replace import replace_class, restore_class

# The names of an original and of what stands in its place, and a way back.
Swapped: TypeAlias = tuple[tuple[str, str], Callable[[], None]]


def swap(module: Any, ours: type, *, extends: bool = False) -> Swapped:
    """Makes an object one of `ours`, a class derived from its own with methods in place of theirs.

    Pickles hold the original. A method of the object's or of its class' own in the same place is a
    ValueError.

    Args:
        extends: these methods call those in whose place they are, which may be anybody's.
    """
    return replace_class(module, ours, extends=extends), lambda: restore_class(module)


def _called(model: Any, **made: Any) -> Any:
    return model(**made)


def nothing(model: Any, limit: int) -> Iterator[Swapped]:
    """For Family.fix: nothing else depends on the number of boxes."""
    yield from ()


@dataclass(frozen=True)
class Family:
    """Detectors with one criterion, for `register_family`.

    Attributes:
        replace: a generator function, which puts boxloss into a model piece by piece, and yields
            what `swap` returns for each: where one is refused, those before are given back.
        cases: made-up batches for a model.
        parts: of its project that boxloss computes itself; of a model, if they differ.
        criterion: a model's present criterion, on a case's arguments: tensors by name, in any nest
            of dictionaries and lists. By default the model is called.
        oldest: the first version that is known, if it is not that of its project.
        fix: of a model whose criterion takes fixed shapes, a generator function as `replace`: what
            else depends on the number of boxes takes them, too, with as many of each image as the
            second argument says.
    """

    replace: Callable[[Any], Iterator[Swapped]]
    cases: Callable[[Any], Iterable[Case]]
    parts: Parts | Callable[[Any], Parts]
    criterion: Callable[..., Any] = _called
    oldest: tuple[int, ...] = ()
    fix: Callable[[Any, int], Iterator[Swapped]] | None = None

    def __post_init__(self) -> None:
        if not isgeneratorfunction(self.replace):
            raise TypeError(
                f"replace is {self.replace!r}; it must be a generator function, which yields each "
                "swap(…): what is refused later gives those before back"
            )

    def parts_of(self, model: Any) -> Parts:
        return self.parts if isinstance(self.parts, Parts) else self.parts(model)
