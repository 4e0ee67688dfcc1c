# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One line that puts boxloss' criterion into a detector of another project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import Any

from torch import nn

from ..arguments import whole
from .families import KNOWN
from .family import Family
from .faults import check_targets
from .fixed_shapes import in_fixed_shapes
from .proof import Case, Run, compare, record
from .replace import has_replacement, qualified_name
from .transformers_models import check_own, criterion_of
from .versions import OLDEST, is_before, version

PAGE = "docs/coming-from.md in boxloss' repository"


@dataclass(frozen=True)
class Replaced:
    """What `use_boxloss` has replaced.

    Attributes:
        names: the original by its full name, and what stands in its place.
    """

    names: dict[str, str]
    _undo: list[Callable[[], None]] = field(repr=False)

    def restore(self) -> None:
        """Gives the model its own criterion back. A deep copy keeps boxloss'."""
        while self._undo:
            self._undo.pop()()

    def __repr__(self) -> str:
        lines = [f"\n  {theirs}\n  by {ours}" for theirs, ours in self.names.items()]
        return f"boxloss {'replaces' if self._undo else 'replaced, and restored'}{''.join(lines)}"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Replaced has no {name}: {NO_MODEL}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"Replaced cannot be called: {NO_MODEL}")


NO_MODEL = (
    "use_boxloss(model) changes the model itself, and returns what it replaced; write it without "
    "'model = '"
)


def has_boxloss(model: Any) -> bool:
    """Whether `use_boxloss` has put boxloss into a model, a YOLO("…") or an RFDETRNano(), and it is
    still there."""
    return has_replacement(_unwrapped(model))


def use_boxloss(
    model: Any,
    *,
    check: bool = True,
    max_boxes: int | None = None,
    denoising_boxes: int | None = None,
) -> Replaced:
    """Puts boxloss' criterion into a detector, in place of its own.

    The detectors are those of transformers, Ultralytics (whose licence is AGPL-3.0), torchvision
    and rfdetr that docs/detectors.md in boxloss' folder lists, and those of `register_family`;
    nothing of these projects is imported that the model has not imported. A model may be wrapped:
    by PEFT, DataParallel, DistributedDataParallel, torch.compile, AveragedModel. Of an Ultralytics
    YOLO("…") or RTDETR("…") each training from then on has boxloss, and so if its model is given;
    where that cannot be, a warning says so. So has each training of rfdetr's RFDETRNano() and its
    relatives.

    Before anything is replaced, both criteria are run on a made-up batch on the model's device, in
    less than a second; they must agree. The network is not run.

    Parameters, buffers and their names stay as they are. Deep copies keep boxloss; pickles and
    saved models hold the original criterion, and load without boxloss.

    Args:
        model: of one of these projects, or of a class derived from theirs that keeps what boxloss
            replaces.
        check: False replaces without comparing. Each training of rfdetr's compares all the same.
        max_boxes: of an image: ground truth may then be `FixedTargets.of(labels, max_boxes=…)`, or
            what `collate_fixed` makes of masks, so that all shapes are the same in each step.
            Denoising queries are for so many boxes, too.
        denoising_boxes: or for so many, in models that have such queries. Fewer leave room for more
            groups of them; boxes behind them get none. They are compared whatever `check` says.

    Returns:
        What was replaced by what, and a way back.

    Raises:
        TypeError: a model that is not in the list. ValueError: its class, or its user, has already
            replaced a part that boxloss would replace; boxloss gives other losses or gradients; its
            project is older than any that boxloss knows; it has boxloss already; with max_boxes, it
            takes ground truth as lists alone; or what `check_targets` raises. The model is then as
            before.
    """
    limit = _limit(max_boxes, denoising_boxes)
    model = _model_of(_unwrapped(model))
    family, name = _find(model)
    if limit is not None and family.fix is None:
        raise ValueError(f"max_boxes is {max_boxes}; {name} takes ground truth as lists alone")
    if check:
        check_targets()  # else this model would be blamed
    parts = family.parts_of(model)
    expected = record(family.criterion, model, family.cases(model), name) if check else []
    replaced = Replaced({}, [])
    known = parts.remember()
    try:
        more = family.fix(model, limit) if family.fix and limit is not None else ()
        for names, undo in chain(family.replace(model), more):
            replaced.names[names[0]] = names[1]
            replaced._undo.append(undo)
        compare(expected, family.criterion, model, name)
        if limit is not None:
            fixed = [each for each in map(_fixed, expected) if each is not None]
            compare(fixed, family.criterion, model, name)
    except Exception:
        replaced.restore()  # all or nothing
        parts.seen = known
        raise
    return replaced


def _limit(max_boxes: int | None, denoising_boxes: int | None) -> int | None:
    """Of boxes with denoising queries, where shapes are to be fixed."""
    if max_boxes is None:
        if denoising_boxes is not None:
            raise ValueError(f"denoising_boxes is {denoising_boxes}; max_boxes must be given, too")
        return None
    most = whole(max_boxes, "max_boxes", least=1)
    if denoising_boxes is None:
        return most
    return min(whole(denoising_boxes, "denoising_boxes", least=1), most)


def _fixed(expected: Run) -> Run | None:
    """The same losses for the same ground truth in fixed shapes, if it has them."""
    words, arguments, has_boxes = expected.case
    fixed = in_fixed_shapes(arguments)
    if fixed is None:
        return None
    return expected._replace(case=Case(f"{words}, in fixed shapes", fixed, has_boxes))


def register_family(kind: type, family: Family) -> None:
    """Makes a detector known to `use_boxloss` that boxloss does not know itself.

    It is compared as all others are. docs/detectors.md in boxloss' folder says more.

    Args:
        kind: the class of its model, or of its criterion: of what use_boxloss will be given.
            Classes derived from it count, too.
        family: its `cases` and `replace` are given what use_boxloss is.

    Raises:
        TypeError: kind is no class. ValueError: use_boxloss knows it already.
    """
    if not isinstance(kind, type):
        raise TypeError(f"kind is {kind!r}; it must be a class")
    if kind in _registered or kind.__name__ in KNOWN.get(kind.__module__.partition(".")[0], ()):
        raise ValueError(f"kind is {qualified_name(kind)}, which use_boxloss knows already")
    _registered[kind] = family


_registered: dict[type, Family] = {}


def _unwrapped(model: Any) -> Any:
    """What torch, PEFT and Ultralytics wrap a model in calls it by one of these names."""
    while isinstance(model, nn.Module):
        is_of_peft = type(model).__module__.startswith("peft.")
        names = ("base_model", "model") if is_of_peft else ("_orig_mod", "module", "student_model")
        found = [name for name in names if name in model._modules]
        if not found:
            break
        model = model._modules[found[0]]
    return model


def _model_of(wrapper: Any) -> Any:
    """That of a YOLO("…"), whose trainings will make others."""
    kinds = (f"{each.__module__}.{each.__name__}" for each in type(wrapper).__mro__)
    model = getattr(wrapper, "model", None) if "ultralytics.engine.model.Model" in kinds else None
    return wrapper if model is None else model


def _find(model: Any) -> tuple[Family, str]:
    """And how errors call the model."""
    if isinstance(model, Replaced):
        raise TypeError(f"model is a Replaced: {NO_MODEL}")
    for each in type(model).__mro__:
        project = each.__module__.partition(".")[0]
        told = f"this {each.__name__} ({project} {version(project)})"
        if each in _registered:
            return _registered[each], told
        if project not in KNOWN:
            continue  # a user's own class
        name = each.__name__
        if project == "transformers" and name not in KNOWN[project]:
            if name.endswith("ForObjectDetection") and criterion_of(model) is None:
                check_own(model.loss_function)
            name = criterion_of(model) or name
        if any(base.__name__ == "RFDETR" for base in each.__mro__):
            name = "RFDETR"  # of any size
        if name in KNOWN[project]:
            _check_version(project)
            module = import_module(f".families.{KNOWN[project][name]}", __package__)
            family: Family = module.FAMILY
            _check_version(project, family.oldest, f"its {name}")
            return family, told
        break
    own = type(model).__module__.partition(".")[0]
    known = {own: KNOWN[own]} if own in KNOWN else KNOWN
    names = [f"{project}'s {name}" for project, its in known.items() for name in its]
    raise TypeError(
        f"model is a {qualified_name(type(model))}; use_boxloss knows, by its class or its "
        f"criterion, {', '.join(names)}. For others, see {PAGE}"
    )


def _check_version(project: str, oldest: tuple[int, ...] = (), known: str = "it") -> None:
    oldest = oldest or OLDEST[project]
    if is_before(project, *oldest):
        first = ".".join(map(str, oldest))
        raise ValueError(
            f"{project} is {version(project)}; use_boxloss knows {known} from {first} on"
        )
