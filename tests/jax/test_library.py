# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the package imports, what its library links to, and what it says if something is missing."""

import subprocess
import sys

import jax
import pytest
from boxloss._libraries import JAX


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_a_report_where_jax_alone_is_there() -> None:
    done = run("""
import runpy, sys
sys.modules["torch"] = None
runpy.run_module("boxloss", run_name="__main__")
""")
    assert "\nboxloss.torch cannot be used: " in done.stdout, done.stderr
    assert f"\njax {jax.__version__}\n  a loss on " in done.stdout
    for device in jax.local_devices():
        for what in ("a loss", "an error"):
            assert f"  {what} on {device}, {device.device_kind}: works\n" in done.stdout


def test_one_framework_at_a_time() -> None:
    done = run("""
import sys, boxloss
assert not {"jax", "torch"} & set(sys.modules)
import boxloss.jax
assert "torch" not in sys.modules
""")
    assert done.returncode == 0, done.stderr


def test_no_jax() -> None:
    done = run("import sys; sys.modules['jax'] = None; import boxloss.jax")
    assert f"ImportError: boxloss.jax needs JAX: {sys.executable} -m pip install jax" in done.stderr


def test_no_library() -> None:
    done = run("""
import boxloss._libraries as libraries
libraries.JAX = libraries.FOLDER / "elsewhere.so"
import boxloss.jax
""")
    assert "was built without JAX: " in done.stderr
    assert "ImportError" in done.stderr


def test_an_old_jaxlib() -> None:
    done = run("import jax; jax.lib.__version__ = '0.5.3'; import boxloss.jax")
    assert "needs jaxlib 0.6 or later; this is jaxlib 0.5.3" in done.stderr


def test_a_library_for_a_newer_jaxlib_is_not_registered() -> None:
    done = run("""
import jax, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
header = folder / "xla" / "ffi" / "api" / "c_api.h"
header.parent.mkdir(parents=True)
header.write_text("#define XLA_FFI_API_MINOR 0\\n")
jax.ffi.include_dir = lambda: str(folder)
try:
    import boxloss.jax
except ImportError as error:
    print(error)
print(jax.numpy.ones(2).sum())  # the others still work
""")
    assert "boxloss.jax was compiled for XLA's interface 0." in done.stdout, done.stderr
    assert "has 0.0. Install a newer jaxlib, or build boxloss for this one" in done.stdout
    assert done.stdout.endswith("2.0\n")


@pytest.mark.skipif(sys.platform != "linux", reason="ldd is Linux'")
def test_the_library_links_to_no_framework() -> None:
    needed = subprocess.run(["readelf", "-d", JAX], capture_output=True, text=True, check=True)
    libraries = [line for line in needed.stdout.splitlines() if "(NEEDED)" in line]
    assert any("libboxloss.so" in line for line in libraries)
    for word in ("jax", "xla", "python", "torch", "cuda"):
        assert not any(word in line.partition("[")[2] for line in libraries)
