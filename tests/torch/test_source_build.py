# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a build from the sources says when it cannot be as it was asked for."""

import os
import runpy
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
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
        env=os.environ | {"PYTHONPATH": str(folder), "CUDAHOSTCXX": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_untested_torch_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text("__version__ = '99.1.0+cu999'\n")
    result = configure(tmp_path, f"-DBOXLOSS_TORCH_DIR={tmp_path}")
    assert result.returncode == 0
    warning = words_of(result.stderr)
    assert f"boxloss is tested up to torch 2.15; {tmp_path} is 99.1.0+cu999" in warning


def hide(module: str, folder: Path) -> None:
    problem = f"No module named '{module}'"
    (folder / f"{module}.py").write_text(f"raise ModuleNotFoundError({problem!r})\n")


def words_of(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("module", ["torch", "jaxlib"])
def test_without_what_it_is_built_for_it_says_what_helps(tmp_path: Path, module: str) -> None:
    hide(module, tmp_path)
    needed = ["-DBOXLOSS_JAX=ON", "-DBOXLOSS_TORCH=OFF"] if module == "jaxlib" else []
    result = configure(tmp_path, *needed)
    assert result.returncode != 0
    reason = f"cannot import {module} (ModuleNotFoundError: No module named '{module}')."
    assert f"{sys.executable} {reason} Install {module} " in words_of(result.stderr)


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.long)])
def test_a_compiler_without_a_shared_libstdcxx_is_refused(tmp_path: Path, backend: str) -> None:
    linker = tmp_path / "linker"
    linker.write_text("""#!/bin/sh
[ "$1" = -print-file-name=libstdc++.so ] && exec echo libstdc++.so
exec g++ "$@"
""")
    linker.chmod(0o755)
    language, option = "CXX", "CMAKE_CXX_COMPILER"
    if backend == "cuda":
        skip_without("nvcc")
        language, option = "CUDA", "CMAKE_CUDA_HOST_COMPILER"
    options = ["-DBOXLOSS_TORCH=OFF", "-DBUILD_SHARED_LIBS=ON", f"-DBACKEND={backend}"]
    result = configure(tmp_path, *options, f"-D{option}={linker}")
    assert result.returncode != 0
    words = f"{linker}, which links {language}, has no libstdc++.so: it would link libstdc++"
    assert words in words_of(result.stderr)


def test_an_old_jaxlib_is_refused(tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text('_version = "0.5.3"\n')
    result = configure(
        tmp_path, "-DBOXLOSS_TORCH=OFF", "-DBOXLOSS_JAX=ON", f"-DBOXLOSS_JAXLIB_DIR={tmp_path}"
    )
    assert result.returncode != 0
    problem = f"boxloss needs jaxlib 0.6 or later; {tmp_path} is 0.5.3. BOXLOSS_JAX=OFF leaves"
    assert problem in words_of(result.stderr)


# As pip has it.
INSTALLED = ("-DSKBUILD=2", "-DBOXLOSS_TORCH=INSTALLED", "-DBOXLOSS_JAX=INSTALLED")


def test_what_is_not_installed_is_left_out_aloud(tmp_path: Path) -> None:
    hide("jaxlib", tmp_path)
    result = configure(tmp_path, *INSTALLED)
    assert result.returncode == 0
    text = words_of(result.stdout)
    assert f"boxloss is built without jaxlib: {sys.executable} cannot import jaxlib" in text
    assert "Found torch" in text


def test_pip_says_what_helps_where_nothing_is_installed(tmp_path: Path) -> None:
    for module in ("torch", "jaxlib"):
        hide(module, tmp_path)
    result = configure(tmp_path, *INSTALLED)
    assert result.returncode != 0
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    assert "pip install --no-build-isolation ." in lines
    for module in ("torch", "jaxlib"):
        assert f"cannot import {module} (ModuleNotFoundError" in words_of(result.stderr)


def test_pip_and_cmake_have_one_version(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    hook = "scikit_build_core.build.prepare_metadata_for_build_wheel"
    code = f"import scikit_build_core.build; {hook}({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    version = metadata.read_text().split("\nVersion: ")[1].splitlines()[0]
    result = configure(tmp_path, "-DBOXLOSS_TORCH=OFF")
    assert f"-- boxloss {version}, backends: cpu\n" in result.stdout


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


METADATA = "boxloss-0.0.dist-info/METADATA"
RECORD = METADATA.replace("METADATA", "RECORD")


def wheel_with(folder: Path, *libraries: str) -> Path:
    """One as scikit-build-core makes it."""
    wheel = folder / "boxloss-0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(METADATA, "Metadata-Version: 2.4\nName: boxloss\nVersion: 0.0\n\n# Text\n")
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
        archive.writestr(METADATA.replace("METADATA", "WHEEL"), tags)
        for name in libraries:
            archive.writestr(f"boxloss/lib/{name}", "")
        archive.writestr(RECORD, f"{METADATA},sha256=old,1\n{RECORD},,\n")
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed")
    runpy.run_path(str(ROOT / "cmake/build_backend.py"))["require_torch"](wheel)
    return wheel


def test_a_wheel_requires_the_torch_that_it_was_built_for(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, "libboxloss.so", "libboxloss_torch-99.1.so")
    with zipfile.ZipFile(wheel) as archive:
        digest = sha256(archive.read(METADATA)).digest()
        row = archive.read(RECORD).decode().splitlines()[0]
    assert row.split("sha256=")[1].startswith(urlsafe_b64encode(digest).decode().rstrip("=") + ",")
    pip = [sys.executable, "-m", "pip"]
    target = tmp_path / "site"
    install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True)
    environment = os.environ | {"PYTHONPATH": str(target)}
    check = subprocess.run(
        [*pip, "check"], env=environment, capture_output=True, text=True, check=False
    )
    assert "boxloss 0.0 has requirement torch==99.1.*, but you have torch 2." in check.stdout


def test_a_wheel_without_operators_requires_nothing(tmp_path: Path) -> None:
    """As one of JAX alone, and what tools/build_wheel fills with operators for several torches."""
    with zipfile.ZipFile(wheel_with(tmp_path, "libboxloss.so", "libboxloss_jax.so")) as archive:
        assert b"Requires-Dist" not in archive.read(METADATA)
