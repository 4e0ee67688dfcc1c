# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""`make test-peers` has installed everything: what is skipped has not been tested, and fails."""

from collections.abc import Generator
from functools import partial, wraps
from typing import TypeVar

import pytest
import torch

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
    """DEIMv2's own criterion leaves to a sort which of equals comes first: here as they came."""
    argsort = wraps(torch.argsort)(partial(torch.argsort, stable=True))  # dynamo wants a __name__
    monkeypatch.setattr(torch, "argsort", argsort)
