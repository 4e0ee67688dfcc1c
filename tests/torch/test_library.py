# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the operator library asks of the machine that loads it."""

import re
import shutil
import subprocess
from pathlib import Path

import boxloss
import pytest
import torch
from boxloss.torch import _library, implementations

MINOR = ".".join(torch.__version__.split(".")[:2])
LIBRARY = Path(boxloss.__file__).parent / "lib" / f"libboxloss_torch-{MINOR}.so"


def output_of(tool: str, *arguments: str) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    command = [tool, *arguments, str(LIBRARY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def nothing_shared_is_built_in() -> None:
    if any(name.endswith("/kokkos") for name in implementations()):
        pytest.skip("Kokkos brings libraries of its own")
    if torch.version.hip:
        pytest.skip("AMD's runtime is a shared library only")


def test_this_is_the_library_that_is_loaded() -> None:
    assert str(LIBRARY) in torch.ops.loaded_libraries


@pytest.mark.usefixtures("nothing_shared_is_built_in")
def test_no_symbol_of_python_or_of_a_gpus_runtime_or_of_torchs_gpu_half() -> None:
    names = [line.split()[-1] for line in output_of("nm", "-D", "--undefined-only").splitlines()]
    assert any("c10" in name for name in names)
    # CPython's are Py..., _Py...; those of the GPU's driver and runtime cu..., hip...; torch's GPU
    # half has the namespaces c10::cuda, at::cuda and hip twins, mangled with their lengths.
    unwanted = re.compile(r"^_?Py|^cu(da)?[A-Z_]|^__cuda|^hip[A-Z_]|4cuda|3hip")
    assert [name for name in names if unwanted.search(name)] == []


@pytest.mark.usefixtures("nothing_shared_is_built_in")
def test_of_torchs_libraries_only_two_are_needed() -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d"))
    ours = {name for name in needed if re.match("lib(torch|c10|cu|amdhip|python|[gi]?omp)", name)}
    assert ours == {"libtorch_cpu.so", "libc10.so"}


def test_nothing_but_the_operators_is_exported() -> None:
    defined = output_of("nm", "-D", "--defined-only", "--demangle").splitlines()
    ours = [line for line in defined if "boxloss::" in line]
    assert [line for line in ours if "typeinfo" not in line] == []  # an error is one type in both


def test_a_missing_library_says_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libboxloss_torch-1.0.so").touch()
    monkeypatch.setattr(_library, "_FOLDER", tmp_path)
    text = rf"not built for torch {MINOR}: libboxloss_torch-{MINOR}.so is missing, found: lib"
    with pytest.raises(ImportError, match=text):
        _library._load()


def test_the_build_warns_of_an_untested_torch(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    (tmp_path / "version.py").write_text("__version__ = '99.1.0+cu999'\n")
    root = Path(__file__).parents[2]
    command = ["cmake", "-S", str(root), "-B", str(tmp_path / "build"), "-DBOXLOSS_TORCH=ON"]
    options = ["-DBOXLOSS_TESTS=OFF", f"-DBOXLOSS_TORCH_DIR={tmp_path}"]
    result = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    warning = " ".join(result.stderr.split())
    assert f"boxloss is tested up to torch 2.15; {tmp_path} is 99.1.0+cu999" in warning
