# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of other projects that boxloss computes itself: what replaced one of them later would never
be called."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import torch

from .replace import qualified_name


class Part(NamedTuple):
    """What stands under a name in a module, or in a class."""

    namespace: Mapping[str, Any]
    name: str
    full_name: str
    value: Any


class Parts:
    """Functions, and classes with their methods, as they were when a model got boxloss.

    Args:
        modules: by modules' names what is in them, "function", "Class" or "Class.method"; what a
            version has not is left out.
    """

    def __init__(self, modules: Mapping[str, tuple[str, ...]]) -> None:
        self.modules = modules
        self.seen: list[Part] = []

    def remember(self) -> list[Part]:
        """What stands there now. Gives what was known before."""
        before, self.seen = self.seen, [*self._found()]
        return before

    def check(self) -> None:
        """Raises where another stands there now; compiled code does not look."""
        if torch.compiler.is_compiling():
            return
        for namespace, name, full_name, value in self.seen:
            if namespace.get(name) is not value:
                now = namespace.get(name)
                known = now if hasattr(now, "__qualname__") else type(now)
                raise ValueError(
                    f"{full_name} has been replaced by {qualified_name(known)} since use_boxloss; "
                    "boxloss would not call it"
                )

    def _found(self) -> Iterator[Part]:
        for module_name, names in self.modules.items():
            namespace = vars(sys.modules.get(module_name, ModuleType("")))
            for path in names:
                owner, _, name = path.rpartition(".")
                found = vars(namespace[owner]) if owner in namespace else namespace
                if name in found:
                    yield from parts_at(found, name, f"{module_name}.{path}")


def parts_at(namespace: Mapping[str, Any], name: str, full_name: str) -> Iterator[Part]:
    value = namespace[name]
    yield Part(namespace, name, full_name, value)
    project = full_name.partition(".")[0]
    if isinstance(value, type) and value.__module__.partition(".")[0] == project:
        for method, its in vars(value).items():
            if isinstance(its, (FunctionType, staticmethod)) and method != "__init__":
                yield Part(vars(value), method, f"{full_name}.{method}", its)


def everything_of(module_name: str, home: str) -> dict[str, tuple[str, ...]]:
    """Functions and classes of a module, and of those modules of `home` that it has some from."""
    modules: dict[str, tuple[str, ...]] = {}
    left = [module_name]
    while left:
        at = left.pop()
        if at in modules or at not in sys.modules:
            continue
        given = {  # torch.compile leaves functions without a module
            name: each.__module__ or ""
            for name, each in vars(sys.modules[at]).items()
            if isinstance(each, (type, FunctionType))
        }
        modules[at] = tuple(given)
        left += [each for each in given.values() if each.startswith(home)]
    return modules


def check_class(part: Any, theirs: type) -> None:
    """Raises unless it is of this class, with nothing of its own: boxloss computes what it does."""
    hooks = [getattr(part, f"_forward_{name}", None) for name in ("hooks", "pre_hooks")]
    if type(part) is not theirs or "forward" in vars(part) or any(hooks):
        raise ValueError(
            f"{qualified_name(type(part))} stands in the place of {qualified_name(theirs)}, or has "
            "a forward or a hook of its own, which boxloss would not call"
        )


def check_methods(thing: Any, theirs: type, names: Iterable[str]) -> None:
    """Raises where it has a method of its own that is neither that of `theirs` nor boxloss'."""
    for name in names:
        its = getattr(type(thing), name, None)
        is_ours = getattr(its, "__module__", "").startswith(f"{__package__}.")
        if name in vars(thing) or not (is_ours or its is getattr(theirs, name, None)):
            kind = qualified_name(type(thing))
            raise ValueError(f"{kind} has a {name} of its own, not replaced")
