# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of all benchmarks share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

Parse = Callable[[list[str]], argparse.Namespace]


@pytest.fixture
def complaint_of(capsys: pytest.CaptureFixture[str]) -> Callable[[Parse, list[str]], str]:
    """What a program says of options that it does not take, and ends."""

    def said(parse: Parse, arguments: list[str]) -> str:
        with pytest.raises(SystemExit):
            parse(arguments)
        return capsys.readouterr().err

    return said
