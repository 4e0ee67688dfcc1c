# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The record of tests on a GPU: nothing that failed, or did not run, is counted as passed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("boxloss.torch")

from benchmarks.studies.gpu_tests import Part, run_part

REPORT = '<testsuites><testsuite tests="7" failures="{}" errors="0" skipped="2"/></testsuites>'
PASSED = REPORT.format(0)


@pytest.mark.parametrize(
    ("report", "says", "status", "passed", "failed"),
    [
        (PASSED, "", 0, 5, 0),
        (REPORT.format(1), "", 1, 4, 1),
        (PASSED, "========= ERROR SUMMARY: 0 errors", 0, 5, 0),
        (PASSED, "========= ERROR SUMMARY: 3 errors", 1, 5, 3),
        (PASSED, "========= RACECHECK SUMMARY: 2 hazards displayed", 0, 5, 2),
        (PASSED, "killed at its end", 139, 5, 1),
        ("", "not even begun", 1, 0, 1),
    ],
)
def test_counts(
    report: str, says: str, status: int, passed: int, failed: int, tmp_path: Path
) -> None:
    script = tmp_path / "suite"
    write = f"echo '{report}' > $1" if report else ""
    script.write_text(f"{write}\necho '{says}'\nexit {status}\n")
    (tmp_path / "part.xml").write_text(PASSED)  # of an earlier run
    found = run_part(Part("part", ("sh", str(script)), ""), tmp_path)
    assert (found["passed"], found["failed"]) == (passed, failed)
    assert (tmp_path / "part.log").read_text() == f"{says}\n"
