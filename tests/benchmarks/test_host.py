# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The operators that do nothing take part in autograd."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")

from benchmarks.common.nothing import load_nothing
from benchmarks.studies.host import Nothing


@pytest.mark.parametrize("language", ["Python", "C++"])
def test_it_takes_part_in_autograd(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if language == "C++" and not all(map(shutil.which, ("ninja", "c++"))):
        pytest.skip("needs ninja and a C++ compiler")
    if " " in torch.__file__:
        pytest.skip("torch lies in a folder with a space, which it does not quote for the compiler")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    nothing = load_nothing() if language == "C++" else Nothing.apply
    pred, target = torch.rand(2, 16, 4)
    pred.requires_grad_()
    loss = nothing(pred, target)
    assert loss.shape == ()
    loss.backward()
    assert pred.grad is not None
    with torch.no_grad():
        assert not nothing(pred, target).requires_grad
