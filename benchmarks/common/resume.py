# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a file of an earlier run has is not measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console


def earlier(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def is_kept(
    written: dict[str, Any], conditions: dict[str, Any], what: str, console: Console
) -> bool:
    """Whether it was measured under the same conditions; says so if not."""
    conditions = json.loads(json.dumps(conditions))  # as a file has them: lists, no tuples
    same = all(written.get(key) == value for key, value in conditions.items())
    if written and not same:
        console.print(f"{what}: the file's is of another machine or settings, and goes")
    return bool(written) and same
