# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of the CPU: losses that are wrong are found out, and its limits leave no byte out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytest.importorskip("boxloss.torch")

from boxloss.torch import giou_loss

from benchmarks.common.exact import check, truth
from benchmarks.common.losses import Loss
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.run import BOTH, FORWARD
from benchmarks.studies import cpu
from benchmarks.studies.box_loss import boxloss


def test_limits_leave_no_byte_out(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    right: Callable[..., torch.Tensor] = torch.Tensor.sum

    def counting(values: torch.Tensor) -> torch.Tensor:
        summed.append(values.nbytes)
        return right(values)

    monkeypatch.setattr(torch.Tensor, "sum", counting)
    setting = cpu.dense("bf16/u8", 10)
    for measured, times in ((FORWARD, 1), (BOTH, 2)):
        for call in setting.limits(measured).values():
            summed.clear()
            call()
            assert sum(summed) == times * setting.case.forward_bytes


def test_what_is_not_masked_leaks_and_is_found_out() -> None:
    case = cpu.retinanet_case(2, 500, 0.02)
    assert case.boxes == 20
    expected = truth(case)

    def ignoring(pred: torch.Tensor, target: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return giou_loss(pred, target)

    right: Loss = boxloss("mask").load(case)
    check("right", case.on(right, "mask"), case, expected)
    with pytest.raises(DisagreementError):
        check("ignoring", case.on(ignoring, "mask"), case, expected)
