# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The fixtures, and the profile of the property tests."""

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from boxloss.torch import use_implementation
from devices import GPU_NAMES, NAMES, Implementation, device_or_skip
from hypothesis import settings
from poison import poison_new_memory

settings.register_profile("boxloss", derandomize=True, deadline=None, database=None)
settings.load_profile("boxloss")
poison_new_memory()


@pytest.fixture(scope="module", params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Each device, with its best implementation."""
    return device_or_skip(request.param)


IMPLEMENTATIONS = [*NAMES, *([] if GPU_NAMES else ["cuda"])]


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """Each implementation of this build, chosen for the length of the test."""
    device = device_or_skip("cpu" if request.param.startswith("cpu/") else "cuda")
    with use_implementation(request.param):
        yield Implementation(request.param, device)


@pytest.fixture
def reference() -> Iterator[torch.device]:
    """The CPU, where cpu/reference computes: in double, by code of its own."""
    with use_implementation("cpu/reference"):
        yield torch.device("cpu")


@pytest.fixture(params=[*IMPLEMENTATIONS, "aten on cpu", "aten on cuda"])
def implementation_or_aten(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    """The same, and torch's operators on each device."""
    name, _, kind = request.param.partition(" on ")
    device = device_or_skip(kind or ("cpu" if name.startswith("cpu/") else "cuda"))
    with use_implementation(name):
        yield Implementation(name, device)


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


@pytest.fixture(params=GPU_NAMES or ["cuda"])
def gpu(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The GPU, with each of its implementations chosen in turn."""
    device = device_or_skip("cuda")
    with use_implementation(request.param):
        yield device
