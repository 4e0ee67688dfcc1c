# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each reason for skipping is one line, whatever was skipped for it: a test, a mark, a module."""

import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

TWO_REASONS = """
import pytest

@pytest.mark.parametrize("number", range(1200))
def test_gpu(number):
    pytest.skip("no GPU")

@pytest.mark.skipif(True, reason="no GPU")
def test_mark():
    pass
"""
MODULE = "import pytest\npytest.importorskip('nothing', reason='no such module')"


def test_a_line_for_each_reason(tmp_path: Path) -> None:
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_two_reasons.py").write_text(TWO_REASONS)
    (tmp_path / "test_module.py").write_text(MODULE)
    command = ["env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", sys.executable, "-m", "pytest"]
    command += ["-p", "no:cacheprovider", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = [line for line in result.stdout.splitlines() if "skipped: " in line]
    assert lines == ["1,201 skipped: no GPU", "1 skipped: no such module"], result.stdout
