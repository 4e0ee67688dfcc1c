# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The fixtures, what a machine without a GPU leaves out, and the profile of the property tests."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from boxloss.torch import use_implementation
from devices import DEVICES, GPU_NAMES, NO_GPU, THERE, Implementation, by_reference, device_of
from hypothesis import settings
from poison import poison_new_memory

settings.register_profile("boxloss", derandomize=True, deadline=None, database=None)
settings.load_profile("boxloss")
poison_new_memory()


if NO_GPU and os.environ.get("BOXLOSS_TEST_GPU") == "1":
    raise pytest.UsageError(f"BOXLOSS_TEST_GPU asks for tests of a GPU, but {NO_GPU}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a GPU its tests are left out, as are its parameters of others."""
    if NO_GPU:
        out = [item for item in items if "gpu_name" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if NO_GPU:
        terminalreporter.write_line(
            f"tests of a GPU are left out: {NO_GPU}. Where there is one, "
            "`python -m benchmarks gpu_tests BUILD --logs DIR` runs them."
        )


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device, with its best implementation."""
    return torch.device(request.param)


@pytest.fixture(params=THERE)
def implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """Each implementation that can run here, chosen for the length of the test."""
    with use_implementation(request.param):
        yield Implementation(request.param, device_of(request.param))


@pytest.fixture
def reference() -> Iterator[torch.device]:
    """The CPU, where cpu/reference computes."""
    with by_reference():
        yield torch.device("cpu")


@pytest.fixture(params=[*THERE, *(f"aten on {device}" for device in DEVICES)])
def implementation_or_aten(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """The same, and torch's operators on each device."""
    name, _, kind = request.param.partition(" on ")
    with use_implementation(name):
        yield Implementation(name, torch.device(kind) if kind else device_of(name))


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """What was compiled before is forgotten, and so is what the test compiles."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="session")
def cpp_compiler() -> None:
    """For what torch.compile's own backend, or AOTInductor, generates."""
    name = os.environ.get("CXX", "g++")  # as torch looks for it
    if shutil.which(name) is None:
        pytest.skip(f"torch.compile needs a C++ compiler, and {name} is not on PATH")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("torch.compile needs Python.h, of the package python3-dev")
    if " " in torch.__file__:
        pytest.skip("torch lies in a folder with a space, which it does not quote for the compiler")


@pytest.fixture(params=GPU_NAMES or ["none"])
def gpu_name(request: pytest.FixtureRequest) -> str:
    """Each of the GPU's implementations. Tests with it are left out where there is no GPU."""
    return request.param


@pytest.fixture
def gpu(gpu_name: str) -> Iterator[torch.device]:
    """The GPU, with each of its implementations chosen in turn."""
    with use_implementation(gpu_name):
        yield torch.device("cuda")
