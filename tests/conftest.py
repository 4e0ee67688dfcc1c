# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What was skipped: each reason once, where pytest's -rs has a line for each place."""

import os
from collections import Counter

import pytest

# Or else torch's profiler logs its start and end, and as an error that a machine has no GPU.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # nothing; read when torch is loaded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait sleep; likewise


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:,} skipped: {reason}")
