# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Other projects' criteria differ between their versions; each gets its own back."""

import re
import sys
from importlib import metadata

# The first versions whose criteria are replaced: older ones are refused.
OLDEST: dict[str, tuple[int, ...]] = {
    "transformers": (4, 57),
    "ultralytics": (8, 3),
    "torchvision": (0, 26),
    "rfdetr": (1, 11),
}


def version(project: str) -> str:
    """As it says itself, if it is imported; else as it is installed; else "of unknown version"."""
    try:
        return getattr(sys.modules.get(project), "__version__", None) or metadata.version(project)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def is_before(project: str, *first: int) -> bool:
    """Whether its version is older than `first`: (5, 18) is 5.18.0. An unknown one is not."""
    numbers = re.findall(r"\d+", version(project))
    return bool(numbers) and tuple(map(int, numbers[: len(first)])) < first
