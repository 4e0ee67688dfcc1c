# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the operator library asks of the machine that loads it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import boxloss
import pytest
import torch
from boxloss import _libraries
from boxloss._version import BACKENDS
from boxloss.torch import cpu_capability, implementations

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
    assert str(LIBRARY.resolve()) in torch.ops.loaded_libraries


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


def test_nothing_but_the_typed_functions_is_exported() -> None:
    defined = output_of("nm", "-D", "--defined-only", "--demangle").splitlines()
    ours = [line.split(maxsplit=2)[2] for line in defined if "boxloss::" in line]
    of_errors = ("typeinfo", "vtable")  # what is thrown here is the library's own type
    functions = {name.split("(")[0] for name in ours if not name.startswith(of_errors)}
    names = (
        *("box_loss", "box_losses", "rotated_box_loss", "matching_cost", "pairwise_iou"),
        *("hungarian_match", "linear_sum_assignment", "max_iou_match", "task_aligned_match"),
        *("class_loss", "distribution_loss"),
    )
    assert functions == {f"boxloss::{name}" for name in names}


def test_the_operators_find_the_library_beside_them() -> None:
    mapped = set(re.findall(r"/.*/libboxloss.*\.so", Path("/proc/self/maps").read_text()))
    assert str(LIBRARY.resolve()) in mapped
    assert mapped <= {str(path.resolve()) for path in LIBRARY.parent.glob("*.so")}


def copy_of_the_package(folder: Path) -> Path:
    package = Path(boxloss.__file__).parent
    return shutil.copytree(package, folder / "boxloss", ignore=shutil.ignore_patterns("include"))


def run_with(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, where what is in `folder` comes first."""
    environment = os.environ | {"PYTHONPATH": str(folder)} | variables
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def builds_for_this_torch(python: str = sys.executable) -> list[str]:
    """The words of the command that ends an ImportError: with this build's backends."""
    others = [each for each in BACKENDS.split(";")[1:] if each != "cuda" or _libraries.has_cuda()]
    backends = ";".join(others) or "cpu"
    pip = [python, "-m", "pip", "install"]
    tools = [*pip, "scikit-build-core", "cmake", "ninja"]
    return [*tools, "&&", f"CMAKE_ARGS=-DBACKEND={backends}", *pip, "--no-build-isolation", "."]


# In one process, since each takes seconds to import torch.
IMPORTS = """
import sys, torch
from pathlib import Path

torch.version.cuda, torch.version.hip = "13.0", "7.0"  # whatever it is built for

def import_it(python=sys.executable):
    sys.executable = python
    try:
        import boxloss.torch
    except ImportError as error:
        print(error)
    for name in [name for name in sys.modules if name.partition(".")[0] == "boxloss"]:
        del sys.modules[name]
    print("---")

lib, installed = Path(sys.argv[1]), sys.argv[2]
for library in lib.glob("libboxloss_torch-*.so"):
    library.unlink()
for minor in ("2.10", "2.9"):
    (lib / f"libboxloss_torch-{minor}.so").touch()
import_it("/a folder/python")
mine = lib / Path(installed).name
mine.write_text("no library" * 100)
import_it()
torch.ops.load_library(installed)
import_it()
sys.path.insert(0, str(Path(installed).parents[2]))
import_it()
"""


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What four imports of boxloss.torch say, each in a package that is not as it should be."""
    folder = tmp_path_factory.mktemp("imports")
    lib = copy_of_the_package(folder) / "lib"
    result = run_with(folder, "-c", IMPORTS, str(lib), str(LIBRARY))
    assert result.returncode == 0, result.stderr
    return [text.strip() for text in result.stdout.split("---\n")]


def test_another_torch_is_told_which_there_are_and_what_builds_for_it(imports: list[str]) -> None:
    error = imports[0]
    assert f"boxloss {boxloss.__version__} has no operators for torch {MINOR}" in error
    ways = "install one of these, or build for this one (with a newer boxloss if that fails) in the"
    assert f"It has those for torch 2.9, 2.10. Either {ways} folder of boxloss's sources" in error
    assert shlex.split(error.splitlines()[-1]) == builds_for_this_torch("/a folder/python")


def test_the_command_builds_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel's backends, but CUDA only where the machine has something of it."""
    monkeypatch.setattr(_libraries, "BACKENDS", "cpu;cuda;kokkos")
    monkeypatch.setattr(_libraries, "cuda_driver", lambda: "13.0")
    assert "CMAKE_ARGS='-DBACKEND=cuda;kokkos' " in _libraries.how_to_build()
    assert "CMAKE_ARGS=-DBACKEND=kokkos " in _libraries.how_to_build(unwanted=["cuda"])
    monkeypatch.setattr(_libraries, "cuda_driver", lambda: None)
    monkeypatch.setenv("CUDACXX", "no-nvcc")
    assert "CMAKE_ARGS=-DBACKEND=kokkos " in _libraries.how_to_build()
    monkeypatch.setattr(_libraries, "BACKENDS", "cpu;cuda")
    assert "CMAKE_ARGS=-DBACKEND=cpu " in _libraries.how_to_build()


def test_a_library_that_does_not_load_says_why(imports: list[str]) -> None:
    error = imports[1]
    assert f"boxloss's operators for torch {MINOR} do not load: " in error
    assert "invalid ELF header" in error
    assert shlex.split(error.splitlines()[-1]) == builds_for_this_torch()


def test_a_second_copy_in_one_process_is_an_error(imports: list[str]) -> None:
    assert f"operators are in this process already, from {LIBRARY.resolve()}: " in imports[2]
    assert f"lib/{LIBRARY.name} would register them a second time" in imports[2]


def test_the_same_library_may_be_loaded_before(imports: list[str]) -> None:
    assert imports[3] == ""


NO_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\")\n"
NEWER = "__version__ = '99.1.0'\nclass version:\n    cuda = '99.0'\n    hip = None\n"
OLDER = NEWER.replace("99.1.0", "2.9.1+cu128")


@pytest.mark.parametrize(
    ("torch_module", "problem"),
    [
        (NO_TORCH, "No module named 'torch'"),
        (OLDER, f"boxloss {boxloss.__version__} needs torch 2.11 or later; this is torch 2.9.1"),
        (NEWER, f"boxloss {boxloss.__version__} has no operators for torch 99.1: "),
        ("raise OSError('no libcudart')\n", "OSError: no libcudart"),
        ("", "AttributeError: module 'torch' has no attribute 'version'"),
    ],
    ids=["none", "older", "newer", "does not load", "empty"],
)
def test_a_report_says_what_is_wrong_with_torch(
    tmp_path: Path, torch_module: str, problem: str
) -> None:
    copy_of_the_package(tmp_path)
    (tmp_path / "torch.py").write_text(torch_module)
    (tmp_path / "jax.py").write_text("raise SystemExit('é')\n")
    result = run_with(tmp_path, "-m", "boxloss", PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"boxloss {boxloss.__version__}, with operators for torch 2.")
    assert any(line.startswith(f"boxloss.torch cannot be used: {problem}") for line in lines)
    assert r"boxloss.jax cannot be used: SystemExit: \xe9" in lines
    at = lines.index("implementations on cpu, the default first:")
    served = {name for name in implementations() if name in ("cpu/native", "cpu/reference")}
    for line in lines[at + 1 : at + 6]:
        assert served <= set(line.partition(": ")[2].split(", "))


def test_a_report_tries_a_loss_and_an_error() -> None:
    result = run_with(Path(boxloss.__file__).parents[1], "-m", "boxloss")
    assert f"torch {torch.__version__}" in result.stdout
    assert "  a loss on cpu: works\n  an error on cpu: works\n" in result.stdout
    assert f"\ncpu/native uses: {cpu_capability()}\n" in result.stdout
