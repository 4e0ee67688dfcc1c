# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""`make test-peers` has installed everything: what is skipped has not been tested, and fails."""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from boxloss.torch.compat.families.deimv2 import StableTorch

sys.path.append(str(Path(__file__).parents[1] / "torch"))  # for its random problems

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return unskipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return unskipped((yield))


def unskipped(report: Report) -> Report:
    if report.skipped:
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True)
def equals_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of equal boxes DEIMv2's own criterion takes is else by chance."""
    deimv2 = sys.modules.get("transformers.loss.loss_deimv2")
    if deimv2 is not None:
        monkeypatch.setattr(deimv2, "torch", StableTorch())
