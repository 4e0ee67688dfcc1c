# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is in the package's folder for libraries."""

from pathlib import Path

FOLDER = Path(__file__).parent / "lib"

JAX = FOLDER / "libboxloss_jax.so"


def torch_versions() -> list[str]:
    """The minor versions of torch that there are operators for, oldest first."""
    names = [path.stem for path in FOLDER.glob("libboxloss_torch-*.so")]
    versions = [name.split("-")[1] for name in names]
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
