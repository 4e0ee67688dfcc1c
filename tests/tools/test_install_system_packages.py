# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What tools/install_system_packages says, and asks apt for, on systems that are made up."""

import shlex
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "install_system_packages"
PARTS = ("compiler", "venv", "headers", "catch2")


class System:
    """A folder that is all of PATH: a Debian with a compiler and Python, and no more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for tool in ("awk", "env", "realpath"):
            (folder / tool).symlink_to(f"/usr/bin/{tool}")
        self.add("id", "echo 1000")
        self.add("c++", '[[ "$*" != *catch2* ]]')
        self.add("python3", '[[ "$*" != *ensurepip* && "$*" != *Python.h* ]]')
        self.add("apt-cache", "echo 'catch2 | 3.4.0-1 | somewhere'")
        self.add("apt-get", f'echo "$@" >>{folder}/asked')

    def add(self, program: str, script: str) -> None:
        path = self.folder / program
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def asked(self) -> list[str]:
        """What apt-get was asked."""
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", str(SCRIPT), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": str(self.folder), **variables},
        )


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_root_installs_what_is_missing_at_once(system: System) -> None:
    system.add("id", "echo 0")
    assert system.run(*PARTS).returncode == 0
    update, install = system.asked()
    assert update.endswith(" update")
    assert install.endswith(
        " install -y --no-install-recommends python3-venv python3-dev catch2=3.4.0-1"
    )


@pytest.mark.parametrize("has_sudo", [False, True])
def test_others_are_told_one_command(system: System, has_sudo: bool) -> None:
    if has_sudo:
        system.add("sudo", "exit 1")  # it would ask for a password
    result = system.run(*PARTS)
    assert result.returncode == 1
    assert result.stdout == ""
    first, *_, last = result.stderr.splitlines()
    assert first.endswith(": python3-venv python3-dev catch2")
    command = [str(SCRIPT), "venv", "headers", "catch2"]
    assert shlex.split(last) == (["sudo", *command] if has_sudo else command)
    assert system.asked() == []


def test_what_is_there_is_left_alone(system: System) -> None:
    result = system.run("compiler")
    assert (result.returncode, result.stderr, system.asked()) == (0, "", [])


def refusal(system: System, *arguments: str, **variables: str) -> str:
    result = system.run(*arguments, **variables)
    assert result.returncode == 1
    return result.stderr


def test_what_it_cannot_do_is_told(system: System) -> None:
    compiler = "clang++ -stdlib=libc++"
    assert f"CXX is '{compiler}'" in refusal(system, "venv", CXX=compiler)
    assert "Usage" in refusal(system, "compiler", "catch3")
    for program in ("apt-get", "apt-cache"):
        (system.folder / program).unlink()
    told = refusal(system, *PARTS)
    assert "there is no apt-get here" in told
    assert told.endswith(": python3-venv python3-dev catch2\n")
    system.add("python3", "exit 1")
    assert "Python 3.10" in refusal(system, "venv")


def test_only_asked(system: System) -> None:
    assert system.run("--has", "compiler").returncode == 0
    assert system.run("--has", "compiler", "catch2").returncode == 1
    assert system.asked() == []
