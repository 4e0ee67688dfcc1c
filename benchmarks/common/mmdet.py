# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""mmdetection's box losses, without mmdetection."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from .losses import UnavailableError


def mmdet_losses() -> ModuleType:
    """mmdetection's file of box losses. All of mmdetection needs a compiled mmcv, but its losses
    are plain torch: three files, loaded with a registry that registers nothing."""
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
        for package in ("mmdet", "mmdet.models", "mmdet.models.losses", "mmdet.structures"):
            empty(package)
        registry = type("Registry", (), {"register_module": lambda: lambda module: module})
        empty("mmdet.registry").__dict__["MODELS"] = registry
        boxes = empty("mmdet.structures.bbox")
        overlaps = load("mmdet.structures.bbox.bbox_overlaps").bbox_overlaps
        boxes.__dict__["bbox_overlaps"] = overlaps
        load("mmdet.models.losses.utils")
        return load("mmdet.models.losses.iou_loss")
