# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the pages show must run. Those of C++ are under test_cpp_examples.py."""

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
from boxloss._libraries import FOLDER

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


def test_the_matrix_of_operations_is_what_the_library_serves() -> None:
    text = (ROOT / "docs/platforms.md").read_text().split("<!-- operations -->\n")[1]
    heading, _, *lines = (
        line.split("|")[1:-1] for line in text.split("<!-- end -->")[0].splitlines()
    )
    library = ctypes.CDLL(str(FOLDER / "libboxloss.so"))
    library.boxloss_implementations.restype = ctypes.c_char_p
    served = {
        row.split()[0]: row.split()[1:]
        for row in library.boxloss_implementations().decode().splitlines()
    }
    for column, name in enumerate(("cpu/native", "cuda/native", "hip/native", "cpu/kokkos"), 1):
        if name in served:
            marked = [re.findall("`(.*?)`", line[0])[0] for line in lines if "✓" in line[column]]
            assert sorted(marked) == sorted(served[name]), heading[column]
