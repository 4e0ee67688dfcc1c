# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Backends from outside: what is refused, and examples/backend from build to training."""

import os
import sys
from pathlib import Path

import boxloss
import pytest
from boxloss.torch import implementations
from cmake_project import build, output_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "backend"


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"backend\.so"):
        boxloss.load_backend(tmp_path / "backend.so")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "backend.so"
    path.write_text("no library")
    before = implementations()
    with pytest.raises(ImportError, match=rf"^backend {path}: it cannot be loaded: .*{path}"):
        boxloss.load_backend(path)
    with pytest.raises(ImportError, match="cannot be loaded"):
        boxloss.load_backend(tmp_path)
    assert implementations() == before


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The backend of examples/backend, built against the installed package."""
    return build(EXAMPLE, tmp_path_factory.mktemp("toy")) / "toy_backend.so"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For processes with the example's device, which all take the library that the first builds."""
    extensions = tmp_path_factory.mktemp("extensions")
    paths = os.pathsep.join([str(EXAMPLE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"TORCH_EXTENSIONS_DIR": str(extensions), "PYTHONPATH": paths}


@pytest.mark.long
def test_the_example_trains_on_its_device(toy: Path, environment: dict[str, str]) -> None:
    said = output_of(sys.executable, EXAMPLE / "train.py", toy, environment=environment)
    assert "toy/example" in said.splitlines()[0]
    assert "pairs by index: box_loss: toy/example does not serve the pairing indexed" in said


@pytest.mark.long
def test_a_device_of_its_own(toy: Path, environment: dict[str, str]) -> None:
    """In another process, which has torch's only place for such a device."""
    checks = Path(__file__).with_name("toy_device_checks.py")
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", checks]
    output_of(*pytest_there, environment=environment | {"TOY_BACKEND": str(toy)})
