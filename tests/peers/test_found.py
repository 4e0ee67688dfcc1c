# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""docs/found.md: each fault is in the version that is installed here, and the page names that."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from test_mmdet import mmdet

PAGE = (Path(__file__).parents[2] / "docs/found.md").read_text()
FAULTS = [
    pytest.param(of, block, id=fault, marks=[pytest.mark.long] * ("torchrun" in block))
    for of, section in re.findall(r"^## (.*)\n((?s:.*?))(?=^## |\Z)", PAGE, re.MULTILINE)
    for fault, block in re.findall(
        r"^### (.*)\n(?s:.*?)^```python\n((?s:.*?))^```", section, re.MULTILINE
    )
]


def test_each_heading_has_a_block() -> None:
    assert len(FAULTS) == PAGE.count("\n### ") == PAGE.count("```python\n")


@pytest.mark.parametrize(("of", "block"), FAULTS)
def test_the_fault_is_there(
    of: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, *versions = of.split()
    assert version(project) in versions
    if "torchrun" in block:
        (tmp_path / "block.py").write_text(block)
        ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        subprocess.run([sys.executable, *ranks, tmp_path / "block.py"], check=True)
    else:
        monkeypatch.setitem(sys.modules, "mmdet.models.losses", mmdet)
        exec(compile(block, "found.md", "exec"), {})
