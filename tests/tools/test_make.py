# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each goal begins with one check of all that it needs, and of no more."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def steps(*arguments: str) -> list[str]:
    """What make would run, whatever this run of it was told."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    ).stdout.splitlines()


CCACHE = "ccache " if os.geteuid() == 0 else ""


@pytest.mark.parametrize(
    ("goals", "parts"),
    [
        (["demo"], f"{CCACHE}compiler venv"),
        (["test"], f"catch2 {CCACHE}compiler headers venv"),
        (["test-all"], f"catch2 {CCACHE}compiler headers venv"),
        (["test-core", "test-python"], "catch2 compiler headers venv"),
        (["test-peers"], "compiler opencv venv"),
        (["lint"], "venv"),
        (["test-docs"], "chromium venv"),
        (["nightly"], f"catch2 {CCACHE}chromium compiler headers opencv venv"),
    ],
)
def test_system_packages(goals: list[str], parts: str) -> None:
    first, *rest = steps(*goals)
    assert first.split() == ["tools/install_system_packages", *parts.split()]
    assert not any(step.startswith("tools/install_system_packages") for step in rest)


@pytest.mark.parametrize(
    ("goal", "sections"),
    [
        ("demo", "build demo results"),
        ("test", "build demo test results"),
        ("lint", "results lint"),
        ("docs", "docs"),
    ],
)
def test_requirements(goal: str, sections: str) -> None:
    command = next(step for step in steps(goal) if "tools/requirements" in step)
    assert command.split(" cpu ")[1].split() == sections.split()


@pytest.mark.parametrize("goal", ["test-all", "nightly"])
def test_they_leave_nothing_out(goal: str) -> None:
    def leaves(goal: str) -> list[bool]:
        runs = [step for step in steps(goal) if re.search(r"ctest --test-dir|pytest --num", step)]
        return [" long" in step for step in runs]

    assert leaves("test") == [True, True]
    assert {*leaves(goal)} == {False}


def test_a_python_of_ones_own() -> None:
    packages, requirements, *rest = steps("demo", "PYTHON=python3")
    assert packages.split() == ["tools/install_system_packages", *CCACHE.split(), "compiler"]
    words = "python3 tools/requirements check requirements-dev.txt build demo results"
    assert requirements.split() == words.split()
    assert not any("venv" in step for step in rest)


def test_the_package_takes_the_place_of_the_one_for_work_on_it() -> None:
    file = "boxloss-develop.pth"
    assert any(step.startswith("echo ") and file in step for step in steps("develop"))
    package = "\n".join(steps("--always-make", "package"))
    assert re.search(rf"^rm -f .*{file}\n.* pip install .*--no-deps", package, re.MULTILINE)
