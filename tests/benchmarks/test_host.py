# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The operators that do nothing take part in autograd."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")

from benchmarks.common.losses import Loss
from benchmarks.common.nothing import load_nothing
from benchmarks.studies.host import Nothing


def check(nothing: Loss) -> None:
    pred, target = torch.rand(2, 16, 4)
    pred.requires_grad_()
    loss = nothing(pred, target)
    assert loss.shape == ()
    loss.backward()
    assert pred.grad is not None
    assert pred.grad.shape == pred.shape
    with torch.no_grad():
        assert not nothing(pred, target).requires_grad


def test_in_python() -> None:
    check(Nothing.apply)


def test_in_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(map(shutil.which, ("ninja", "c++"))):
        pytest.skip("needs ninja and a C++ compiler")
    if " " in torch.__file__:
        pytest.skip("torch lies in a folder with a space, which it does not quote for the compiler")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    check(load_nothing())
