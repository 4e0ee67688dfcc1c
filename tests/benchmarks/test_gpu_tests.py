# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The record of tests on a GPU: nothing that failed, or did not run, is counted as passed."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

pytest.importorskip("boxloss.torch")

from benchmarks.studies import gpu_tests
from benchmarks.studies.gpu_tests import Part, run_part

REPORT = '<testsuites><testsuite tests="7" failures="{}" errors="0" skipped="{}"/></testsuites>'
PASSED = REPORT.format(0, 2)
MEMORY, RACES = "========= ERROR SUMMARY: {} errors", "========= RACECHECK SUMMARY: {} hazards"


def part(folder: Path, name: str, report: str, says: str = "", status: int = 0) -> Part:
    """One that writes this report, says this and ends so."""
    script = folder / f"{name}.sh"
    write = f"printf '{report}' > $1" if report else ""
    script.write_text(f"{write}\necho '{says}'\nexit {status}\n")
    (folder / f"{name}.xml").write_text(PASSED)  # of an earlier run
    return Part(name, ("sh", str(script)), "")


@pytest.mark.parametrize(
    ("name", "report", "says", "status", "passed", "failed"),
    [
        ("suite", PASSED, "", 0, 5, 0),
        ("suite", REPORT.format(1, 2), "", 1, 4, 1),
        ("suite", REPORT.format(0, 7), "all skipped", 0, 0, 1),
        ("suite", PASSED, "killed at its end", 139, 5, 1),
        ("suite", PASSED[:30], "killed while it wrote", 137, 0, 1),
        ("suite", "", "tests nothing", 0, 0, 1),
        ("memcheck", PASSED, MEMORY.format(0), 0, 5, 0),
        ("memcheck", PASSED, MEMORY.format(3), 1, 5, 3),
        ("memcheck", PASSED, "no tool was there", 0, 5, 1),
        ("racecheck", PASSED, RACES.format(2), 0, 5, 2),
    ],
)
def test_counts(
    name: str,
    report: str,
    says: str,
    status: int,
    passed: int,
    failed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only = part(tmp_path, name, report, says, status)
    monkeypatch.setattr(gpu_tests, "parts", lambda _: iter((only,)))
    run = MagicMock()
    run.options = Namespace(parts=[name], logs=tmp_path)
    assert gpu_tests.measure(run) == (failed == 0)
    found = {call.args[1]: call.args[3] for call in run.record.call_args_list}
    assert (found["passed"], found["failed"]) == (passed, failed)


def test_a_missing_program_and_one_that_hangs_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_part(Part("suite", (str(tmp_path / "none"),), ""), tmp_path)["failed"] == 1
    monkeypatch.setattr(gpu_tests, "LONGEST_SECONDS", 0.1)
    assert run_part(Part("suite", ("sh", "-c", "sleep 5"), ""), tmp_path)["failed"] == 1
