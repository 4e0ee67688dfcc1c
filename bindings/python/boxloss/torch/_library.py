# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Loads the operator library that was built for the torch at hand."""

from pathlib import Path

import torch

_FOLDER = Path(__file__).parent.parent / "lib"


def _load() -> None:
    minor = ".".join(torch.__version__.split(".")[:2])
    library = _FOLDER / f"libboxloss_torch-{minor}.so"
    if not library.exists():
        found = ", ".join(sorted(path.name for path in _FOLDER.glob("*.so"))) or "none"
        raise ImportError(
            f"boxloss was not built for torch {minor}: {library.name} is missing, found: {found}. "
            "torch's C++ interfaces change with each minor version; install boxloss again with "
            "this torch: pip install --no-build-isolation --force-reinstall --no-deps <boxloss>"
        )
    torch.ops.load_library(library)


_load()
