# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""mmdetection's box losses and its assigner by IoU, without mmdetection."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

from .losses import UnavailableError


def mmdet_losses() -> ModuleType:
    """mmdetection's file of box losses."""
    return _loaded("losses.utils", "losses.iou_loss")


def mmdet_assigner() -> ModuleType:
    """mmdetection's file of MaxIoUAssigner, whose IoUs are those of bbox_overlaps."""
    assigners = "task_modules.assigners"
    return _loaded(
        *(f"{assigners}.{each}" for each in ("assign_result", "base_assigner", "max_iou_assigner"))
    )


def _loaded(*files: str) -> ModuleType:
    """The last of these files of mmdet.models. All of mmdetection needs a compiled mmcv and
    mmengine, but these are plain torch, loaded with a registry that registers nothing."""
    found = find_spec("mmdet")
    if found is None or not found.submodule_search_locations:
        raise UnavailableError("mmdetection is not installed")
    folder = Path(next(iter(found.submodule_search_locations))).parent

    def load(name: str) -> ModuleType:
        spec = spec_from_file_location(name, folder / (name.replace(".", "/") + ".py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def empty(name: str) -> ModuleType:
        sys.modules[name] = module = ModuleType(name)
        module.__path__ = []
        return module

    with patch.dict(sys.modules):
        for package in (
            *("mmdet", "mmdet.models", "mmdet.models.losses", "mmdet.models.task_modules"),
            *("mmdet.models.task_modules.assigners", "mmdet.structures", "mmengine"),
        ):
            empty(package)
        boxes = empty("mmdet.structures.bbox")
        overlaps = load("mmdet.structures.bbox.bbox_overlaps").bbox_overlaps
        boxes.__dict__["bbox_overlaps"] = overlaps
        members = {
            "register_module": lambda: lambda module: module,
            "build": lambda config: overlaps,
        }
        registry = type("Registry", (), members)
        empty("mmdet.registry").__dict__.update(MODELS=registry, TASK_UTILS=registry)
        empty("mmdet.utils").util_mixins = SimpleNamespace(NiceRepr=object)  # type: ignore[attr-defined]
        empty("mmengine.structures").InstanceData = object  # type: ignore[attr-defined]
        return [load(f"mmdet.models.{file}") for file in files][-1]
