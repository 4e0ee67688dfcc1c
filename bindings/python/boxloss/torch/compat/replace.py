# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How a piece of a model is replaced in place, and given back.

Deep copies, such as an average of weights, keep what replaces. Pickles hold the original, so that
they load where there is no boxloss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

from torch import nn


def qualified_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


class Replacement:
    """A function in another's place; it is pickled as the other.

    Each call first calls `check`, which raises where it must not be used any more.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        original: Callable[..., Any],
        check: Callable[[], None],
    ) -> None:
        self.function = function
        self.original = original
        self.check = check

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.check()
        return self.function(*arguments, **options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Replacement:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.original,)


class KeepsOriginal:
    """A mix-in for a class whose objects are pickled as those of `original`."""

    original: type

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """As the original is copied, which may have a way of its own."""
        ours = type(self)
        object.__setattr__(self, "__class__", self.original)
        try:
            copied = copy.deepcopy(self, memo)
        finally:
            object.__setattr__(self, "__class__", ours)
        object.__setattr__(copied, "__class__", ours)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Not by copyreg.__newobj__, which pickle wants the object's own class for.
        return object.__new__, (self.original,), self._state()

    def _state(self) -> Any:
        return super().__reduce_ex__(2)[2]

    def __prepare_scriptable__(self) -> Any:
        """What torch.jit.script compiles, which has no words for boxloss, and changes in place."""
        return with_originals(self)


def with_originals(module: Any) -> Any:
    """A module's copy in which all is of its original class. Parameters and buffers are shared."""
    if not has_replacement(module):
        return module
    kind = module.original if isinstance(module, KeepsOriginal) else type(module)
    copied: Any = object.__new__(kind)
    vars(copied).update(vars(module))
    copied._modules = {name: with_originals(each) for name, each in module._modules.items()}
    return copied


def has_replacement(module: Any) -> bool:
    """Whether something of boxloss stands in it."""
    ours = KeepsOriginal, Replacement
    modules = module.modules() if isinstance(module, nn.Module) else ()
    return isinstance(module, ours) or any(
        isinstance(value, ours) for each in modules for value in (each, *vars(each).values())
    )


def replace_class(module: Any, ours: Any, *, extends: bool = False) -> tuple[str, str]:
    """`ours` is a class like that of the object, with methods of its own. The names of both.

    Args:
        extends: its methods call those in whose place they are, which may be anybody's.
    """
    original: Any = type(module)
    if isinstance(module, KeepsOriginal):
        raise ValueError(f"{qualified_name(original)} has boxloss already")
    for name in vars(ours):
        theirs = getattr(ours.__bases__[0], name, None)
        is_method = callable(theirs) and (name == "__call__" or not name.startswith("__"))
        is_own = name in vars(module) or getattr(original, name, None) is not theirs
        if is_method and is_own and not extends:
            raise ValueError(f"{qualified_name(original)} has a {name} of its own, not replaced")
    module.__class__ = _class_of(original, ours)
    return qualified_name(original), qualified_name(ours)


def restore_class(module: Any) -> None:
    if isinstance(module, KeepsOriginal):
        module.__class__ = module.original


@cache
def _class_of(original: Any, ours: Any) -> Any:
    """With the name of `original`, which some projects look at."""
    members = {"original": original, "__module__": original.__module__}
    members |= {"__qualname__": original.__qualname__, "__doc__": original.__doc__}
    bases = (
        (KeepsOriginal, ours) if original is ours.__bases__[0] else (KeepsOriginal, ours, original)
    )
    return type(original.__name__, bases, members)
