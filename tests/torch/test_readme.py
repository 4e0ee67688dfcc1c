# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the README shows must run. Its C++ block is built by tests/install."""

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}

    for block in blocks:
        exec(compile(block, str(README), "exec"), names)

    assert names["pred"].grad is not None
    assert names["loss"].isfinite()
