# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""mmdetection's box losses and two of its assigners, without mmdetection."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from benchmarks.common.losses import UnavailableError

ASSIGNERS = "models.task_modules.assigners"
RESULT = "assign_result", "base_assigner", "iou2d_calculator"  # of all assigners


def mmdet_losses() -> ModuleType:
    """mmdetection's file of box losses."""
    with mmdet_files("models.losses.utils", "models.losses.iou_loss"):
        return sys.modules["mmdet.models.losses.iou_loss"]


class Registry:
    """As little of mmengine's as is used here: classes by name, or by scope and name."""

    def __init__(
        self, name: str, parent: Registry | None = None, scope: str = "mmengine", **_: Any
    ) -> None:
        self.scope = scope
        self.classes: dict[str, Any] = {}
        self.scopes: dict[str, Registry] = {} if parent is None else parent.scopes
        self.scopes[scope] = self

    def register_module(self, module: Any = None) -> Any:
        def register(each: Any) -> Any:
            self.classes[each.__name__] = each
            return each

        return register if module is None else register(module)

    def build(self, config: dict[str, Any]) -> Any:
        options = dict(config)
        scope, _, name = options.pop("type").rpartition(".")
        return self.scopes[scope or self.scope].classes[name](**options)


@contextmanager
def mmdet_files(*files: str) -> Iterator[None]:
    """These files of mmdetection and its registries can be imported. All of mmdetection needs a
    compiled mmcv and mmengine, but these are plain torch."""
    found = find_spec("mmdet")
    if found is None or not found.submodule_search_locations:
        raise UnavailableError("mmdetection is not installed")
    folder = Path(next(iter(found.submodule_search_locations)))

    def load(file: str) -> ModuleType:
        name = f"mmdet.{file}"
        spec = spec_from_file_location(name, folder / (file.replace(".", "/") + ".py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def empty(name: str, **members: Any) -> None:
        sys.modules[name] = module = ModuleType(name)
        module.__path__ = []
        module.__dict__.update(members)

    with patch.dict(sys.modules):
        models, tasks = Registry("model"), Registry("task util")
        own_tasks = Registry("task util", parent=tasks, scope="mmdet")
        empty("mmengine", ConfigDict=dict)
        empty("mmengine.structures", InstanceData=object)
        empty("mmengine.registry", MODELS=models, TASK_UTILS=tasks, Registry=Registry)
        for package in ("models", "models.losses", "models.task_modules", ASSIGNERS, "structures"):
            empty(f"mmdet.{package}")
        own_models = Registry("model", parent=models, scope="mmdet")
        empty("mmdet")
        empty("mmdet.registry", MODELS=own_models, TASK_UTILS=own_tasks)
        empty("mmdet.utils", util_mixins=SimpleNamespace(NiceRepr=object))
        empty("mmdet.structures.bbox", BaseBoxes=type("BaseBoxes", (SimpleNamespace,), {}))
        for file in ("structures.bbox.bbox_overlaps", "structures.bbox.transforms"):
            sys.modules["mmdet.structures.bbox"].__dict__.update(vars(load(file)))
        for file in files:
            load(file)
        yield
