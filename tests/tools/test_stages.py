# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What tools/stages notes of a command, and what its table adds up."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools/stages"


def stages(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("BOXLOSS_", "CCACHE_"))}
    return subprocess.run(
        [SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=inherited | {"BOXLOSS_STAGES": str(folder / "new/stages")},
    )


def test_a_stage_in_a_stage_counts_once(tmp_path: Path) -> None:
    compiles = 'printf "# a.cpp\\n%s\\n" cache_miss direct_cache_hit >>"$CCACHE_STATSLOG"'
    works = "import time\nwhile time.process_time() < 1.5: pass"
    inner = f"{sys.executable} -c '{works}'; {compiles}"
    outer = ("run", "outer", str(SCRIPT), "run", "inner", "bash", "-c", inner)
    assert stages(tmp_path, *outer).returncode == 0
    rows = {
        name: row for name, *row in map(str.split, stages(tmp_path, "table").stdout.splitlines())
    }
    assert list(rows) == ["stage", "outer", "outer:inner", "all"]
    assert rows["outer"] == rows["outer:inner"] == rows["all"]
    wall, _, cpu, _, compiled, from_cache = rows["all"]
    assert 1 <= int(cpu) <= int(wall)
    assert (compiled, from_cache) == ("2", "1")


def test_a_failure_is_noted_and_passed_on(tmp_path: Path) -> None:
    assert stages(tmp_path, "run", "fails", "sh", "-c", "exit 3").returncode == 3
    assert (tmp_path / "new/stages").read_text().startswith("fails ")
    assert os.listdir(tmp_path / "new") == ["stages"]
