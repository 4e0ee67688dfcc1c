# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The formula that all are held against."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from benchmarks.common.losses import giou, masked_loss, torchvision_giou


def test_the_eager_formula_on_boxes_computed_by_hand() -> None:
    pred = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1], [3, 4, 5, 8]])
    target = torch.tensor([[1.0, 1, 3, 3], [2, 0, 3, 1], [3, 4, 5, 8]])
    # overlap/union - gap/enclosing: 1/7 - 2/9; apart 0/2 - 1/3; the same box 1
    expected = torch.tensor([1 / 7 - 2 / 9, -1 / 3, 1.0])
    torch.testing.assert_close(giou(pred, target), expected)


def test_torchvisions_loss_does_not_need_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = tmp_path / "torchvision" / "ops"
    ops.mkdir(parents=True)
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('another torch')")
    (ops / "__init__.py").touch()
    (ops / "giou_loss.py").write_text(
        "from ..utils import _log_api_usage_once\ndef generalized_box_iou_loss(): return 'the loss'"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    assert torchvision_giou()() == "the loss"
    with pytest.raises(RuntimeError, match="another torch"):
        import torchvision  # noqa: F401


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_loss_by_jax_is_the_eager_one(dtype: torch.dtype) -> None:
    pytest.importorskip("jax.numpy")  # tests/jax is a "jax", too
    from benchmarks.common import jax_loss

    corners = torch.rand(2, 3, 5, 2, 2, generator=torch.Generator().manual_seed(0)) * 200
    first, target = corners.sort(dim=-2).values.flatten(-2).unbind()
    lengths = torch.tensor([5, 0, 2])
    first[2, 2:] = torch.nan  # what leaks out of an unused slot is seen
    found = []
    for loss in (jax_loss.masked_loss, masked_loss):
        pred = first.to(dtype).requires_grad_()
        value = loss(pred, target.to(torch.uint8), lengths)
        value.backward()
        found.append((value, pred.grad))
    (by_jax, gradient_by_jax), (eager, gradient) = found
    torch.testing.assert_close(by_jax, eager)
    torch.testing.assert_close(gradient_by_jax, gradient)
