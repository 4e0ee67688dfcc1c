# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a build from the sources says when it cannot be as it was asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import skip_without

ROOT = Path(__file__).parents[2]


def configure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    skip_without("cmake", "c++")
    command = ["cmake", "-S", str(ROOT), "-B", str(folder / "build"), "-DBOXLOSS_TESTS=OFF"]
    # Where `folder` has a torch, Python finds it before any other.
    return subprocess.run(
        [*command, "-DBOXLOSS_TORCH=ON", f"-DPython3_EXECUTABLE={sys.executable}", *options],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_untested_torch_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text("__version__ = '99.1.0+cu999'\n")
    result = configure(tmp_path, f"-DBOXLOSS_TORCH_DIR={tmp_path}")
    assert result.returncode == 0
    warning = " ".join(result.stderr.split())
    assert f"boxloss is tested up to torch 2.15; {tmp_path} is 99.1.0+cu999" in warning


@pytest.mark.parametrize("by_pip", [False, True])
def test_without_torch_it_says_what_helps(tmp_path: Path, by_pip: bool) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    result = configure(tmp_path, *(["-DSKBUILD=2"] if by_pip else []))
    assert result.returncode != 0
    words = " ".join(result.stderr.split())
    reason = "cannot import torch (ModuleNotFoundError: No module named 'torch')."
    assert f"{sys.executable} {reason}" in words
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    if by_pip:
        assert lines[-1] == "pip install --no-build-isolation ."
    else:
        assert words.endswith("Install torch 2.11 or later, or set Python3_EXECUTABLE.")


def test_an_editable_installation_is_refused_with_what_to_do_instead() -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    hook = "scikit_build_core.build.prepare_metadata_for_build_editable"
    code = f"import scikit_build_core.build; {hook}('.')"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    last = (result.stdout + result.stderr).strip().splitlines()[-1]
    options = "--no-build-isolation --no-deps --config-settings=build-dir=build/pip"
    assert last == f"    pip install {options} ."
