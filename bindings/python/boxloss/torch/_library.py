# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Loads the operator library for the installed torch."""

import re
from pathlib import Path

import torch

from boxloss import __version__
from boxloss._libraries import FOLDER, how_to_build, torch_versions


def _build_for_this() -> str:
    backends = {"cuda": torch.version.cuda, "hip": torch.version.hip}
    return how_to_build([name for name, version in backends.items() if version is None])


def _other_copy(library: Path) -> str | None:
    """The path of another library that has already registered the operators, if there is one."""
    if not hasattr(torch.ops.boxloss, "box_loss"):
        return None
    mapped = Path("/proc/self/maps").read_text()
    loaded = re.findall(r"/.*/libboxloss_torch-[\d.]+\.so", mapped)
    if str(library.resolve()) in loaded:
        return None
    return loaded[0] if loaded else "a library of another name"


def _load() -> None:
    minor = ".".join(torch.__version__.split(".")[:2])
    if tuple(map(int, minor.split("."))) < (2, 11):
        raise ImportError(
            f"boxloss {__version__} needs torch 2.11 or later; this is torch {torch.__version__}"
        )
    library = FOLDER / f"libboxloss_torch-{minor}.so"
    if not library.exists():
        raise ImportError(
            f"boxloss {__version__} has no operators for torch {minor}: {library} is missing. "
            f"It has those for torch {', '.join(torch_versions()) or '(none)'}. Either install "
            "one of these, or build for this one (with a newer boxloss if that fails) "
            f"{_build_for_this()}"
        )
    other = _other_copy(library)
    if other is not None:
        raise ImportError(
            f"boxloss's operators are in this process already, from {other}: {library} would "
            "register them a second time. Load one of the two only."
        )
    try:
        torch.ops.load_library(library)
    except OSError as error:
        reason = error.__cause__ or error  # torch's own says the path alone
        raise ImportError(
            f"boxloss's operators for torch {minor} do not load: {reason}. If they are for "
            f"another build of torch, build them for this one, {_build_for_this()}"
        ) from error
    # Torch's key of compiled graphs on disk says nothing of the private operators that they call.
    torch.compiler.config.cache_key_tag += f" boxloss {__version__}"


_load()
