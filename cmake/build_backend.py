# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, and a wheel that requires the torch that its operators were built for.

CMake finds out what it builds for, so a wheel's requirements are read from what is in it. Hence no
prepare_metadata_for_build_wheel: pip then builds the wheel at once, and takes them from there.
"""

import base64
import hashlib
import re
from pathlib import Path
from zipfile import ZipFile

import scikit_build_core.build as _scikit
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
]

_OPERATORS = re.compile(r".*/libboxloss_torch-([\d.]+)\.so")


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, list[str] | str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    name = _scikit.build_wheel(wheel_directory, config_settings, metadata_directory)
    require_torch(Path(wheel_directory, name))
    return name


def require_torch(wheel: Path) -> None:
    """Writes into the wheel that it serves one minor version of torch, if it has operators."""
    with ZipFile(wheel) as archive:
        files = {each: archive.read(each) for each in archive.infolist()}
    found = [match[1] for each in files if (match := _OPERATORS.fullmatch(each.filename))]
    if not found:
        return
    (metadata,) = (each for each in files if each.filename.endswith(".dist-info/METADATA"))
    (record,) = (each for each in files if each.filename.endswith(".dist-info/RECORD"))
    head, body = files[metadata].split(b"\n\n", 1)
    files[metadata] = head + f"\nRequires-Dist: torch=={found[0]}.*\n\n".encode() + body
    rows = files[record].decode().splitlines(keepends=True)
    files[record] = "".join(
        _row(metadata.filename, files[metadata]) if row.startswith(metadata.filename) else row
        for row in rows
    ).encode()
    with ZipFile(wheel, "w") as archive:
        for each, content in files.items():
            archive.writestr(each, content)  # with its permissions and its compression


def _row(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
