# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""tools/stages: a failure is noted, and passed on."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools/stages"


def test_a_failure(tmp_path: Path) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("BOXLOSS_", "CCACHE_"))}
    file = tmp_path / "new/stages"
    command = [SCRIPT, "run", "fails", "sh", "-c", "exit 3"]
    done = subprocess.run(command, check=False, env=inherited | {"BOXLOSS_STAGES": str(file)})
    assert done.returncode == 3
    assert file.read_text().startswith("fails ")
    assert os.listdir(file.parent) == ["stages"]
