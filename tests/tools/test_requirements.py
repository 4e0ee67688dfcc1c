# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""tools/requirements. Nothing is installed by it here."""

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools/requirements"


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )


def test_what_is_there_is_not_named() -> None:
    result = run(SCRIPT, "check", ROOT / "requirements-dev.txt", "test")
    assert (result.returncode, result.stderr) == (0, "")


def test_one_line_names_all_that_is_missing() -> None:
    """-I, -S: Python without what was installed into it, or PYTHONPATH names."""
    words = ("check", ROOT / "requirements-dev.txt", "build", "demo", "lint")
    result = run("-I", "-S", SCRIPT, *words, PATH="")
    assert result.returncode == 1
    command = shlex.split(result.stderr.splitlines()[1])
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert " ".join(command[4:]) == (
        "pip torch cmake ninja scikit-build-core"
        " matplotlib numpy rich scikit-image torchvision clang-format mypy pandas-stubs ruff"
    )


# --- With a pip that only says what it would do ---


def would_install(folder: Path, device: str, **variables: str) -> subprocess.CompletedProcess[str]:
    requirements = folder / "requirements.txt"
    requirements.write_text("pip==99.0\ntorch==99.0\n\n# lint\nruff==99.0\n")
    dry = {"PIP_CONFIG_FILE": os.devnull, "PIP_DRY_RUN": "1", "PIP_FIND_LINKS": str(folder)}
    words = ("install", folder / "ready", requirements, device, "build")
    return run(SCRIPT, *words, **dry, **variables)


def add_wheel(folder: Path, name: str, version: str, requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{info}/RECORD", "")


def add_wheels(folder: Path) -> None:
    add_wheel(folder, "pip", "99.0")
    add_wheel(folder, "nvidia_cudnn", "9.0")
    add_wheel(folder, "torch", "99.0", "Requires-Dist: nvidia-cudnn==9.0\n")


def test_cuda_is_said_before_it_comes(tmp_path: Path) -> None:
    add_wheels(tmp_path)
    result = would_install(tmp_path, "cpu", PIP_NO_INDEX="1")
    assert result.returncode == 0, result.stderr
    before, what_pip_says = result.stdout.split("and run make again.")
    assert "torch==99.0 comes with CUDA: with all else 2.9 GB" in before
    assert "PIP_EXTRA_INDEX_URL" in before
    assert "Would install" in what_pip_says

    again = would_install(tmp_path, "cpu", PIP_NO_INDEX="1")
    assert (again.returncode, again.stdout) == (0, ""), "nothing is missing"

    (tmp_path / "ready").unlink()
    wanted = would_install(tmp_path, "cuda", PIP_NO_INDEX="1")
    assert "comes with CUDA" in wanted.stdout
    assert "PIP_EXTRA_INDEX_URL" not in wanted.stdout


def test_a_torch_for_the_cpu_is_preferred(tmp_path: Path) -> None:
    add_wheels(tmp_path)
    add_wheel(tmp_path, "torch", "99.0+cpu")
    result = would_install(tmp_path, "cpu", PIP_NO_INDEX="1")
    assert "CUDA" not in result.stdout
    assert "torch-99.0+cpu" in result.stdout
