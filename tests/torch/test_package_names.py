# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What `boxloss` says of names that `boxloss.torch` has."""

import subprocess
import sys

import boxloss
import boxloss.torch
import pytest


@pytest.mark.parametrize("name", boxloss.torch.__all__)
def test_pytorchs_names_are_shown_the_way(name: str) -> None:
    with pytest.raises(ImportError, match=f": from boxloss.torch import {name}$"):
        exec(f"from boxloss import {name}")


@pytest.mark.parametrize("name", ["loss", "__all__", ""])
def test_other_names_are_missing_as_usual(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'boxloss' has no attribute {name!r}$"):
        getattr(boxloss, name)


def test_torch_is_not_imported_for_that() -> None:
    code = """
import boxloss, pytest, sys
with pytest.raises(ImportError, match="boxloss.torch"):
    boxloss.giou_loss
assert "torch" not in sys.modules
from boxloss import torch
assert torch.giou_loss
"""
    subprocess.run([sys.executable, "-c", code], check=True)
