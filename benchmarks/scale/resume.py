# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a file of an earlier run has is not measured again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Part = dict[str, Any]


def earlier(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def resumed(part: Part | None, conditions: dict[str, Any]) -> Part:
    """The part as it was, if it was measured under the same conditions; else a new one."""
    conditions = json.loads(json.dumps(conditions))  # as a file has them: lists, no tuples
    if part and all(part.get(key) == value for key, value in conditions.items()):
        return part
    return {**conditions, "rows": []}
