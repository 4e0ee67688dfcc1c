# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the pages show must run. Those of C++ are under test_cpp_examples.py."""

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss._libraries import FOLDER
from boxloss.torch import box_loss

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


def test_a_variant_is_made_of_losses() -> None:
    """1 of 7 is covered in an enclosure of 9, and 0 of 2 in one of 4."""
    block = (ROOT / "docs/losses.md").read_text().split("```python\n")[1].split("```")[0]
    pred = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [torch.nan] * 4], requires_grad=True)
    target = torch.tensor([[1.0, 1, 3, 3], [3, 0, 4, 1], [0, 0, 1, 1]])
    names = {"box_loss": box_loss, "pred": pred, "target": target}
    names["mask"] = torch.tensor([True, True, False])
    exec(block, names)
    first, second = 6 / 7 + (2 / 9) ** 2, 1 + (1 / 2) ** 2
    torch.testing.assert_close(names["loss"], torch.tensor((first + second) / 2))
    names["loss"].backward()
    assert pred.grad.isfinite().all()


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
