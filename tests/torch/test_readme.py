# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the pages show must run. Those of C++ are under test_cpp_examples.py."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("assigners", "class-losses", "matched-pairs", "matcher", "rotated")
    ),
]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_in_order(page: str) -> None:
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}

    for block in blocks:
        exec(compile(block, page, "exec"), names)

    assert names["pred"].grad is not None
    assert names["loss"].isfinite()


def test_replaced_lines_are_those_of_the_page_that_is_tested() -> None:
    table = (ROOT / "README.md").read_text().split("| the line | becomes |")[1].split("\n\n")[0]
    lines = re.findall(r"`(.*?)`", table)
    assert len(lines) == 6
    page = (ROOT / "docs/coming-from.md").read_text()
    assert [line for line in lines if f"\n{line}" not in page] == []
