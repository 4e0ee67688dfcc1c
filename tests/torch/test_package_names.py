# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What `boxloss` says of names that `boxloss.torch` has, and the pages that it names."""

import re
import subprocess
import sys
from pathlib import Path

import boxloss
import boxloss.torch
import pytest


@pytest.mark.parametrize("name", [*boxloss.torch.__all__, "use_boxloss"])
def test_pytorchs_names_are_shown_the_way(name: str) -> None:
    place = "torch.compat" if name == "use_boxloss" else "torch"
    with pytest.raises(ImportError, match=f": from boxloss.{place} import {name}$"):
        exec(f"from boxloss import {name}")


@pytest.mark.parametrize("name", ["loss", "__all__", ""])
def test_other_names_are_missing_as_usual(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'boxloss' has no attribute {name!r}$"):
        getattr(boxloss, name)


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    """No framework for the version or an error; no DTensors and no compiler for the losses."""
    code = """
import boxloss, pytest, sys
assert boxloss.__version__
with pytest.raises(ImportError, match="boxloss.torch"):
    boxloss.giou_loss
assert "torch" not in sys.modules
import torch
before = set(sys.modules)
import boxloss.torch.compat
assert not {"torch.distributed.tensor", "torch._dynamo"} & (set(sys.modules) - before)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pages_that_it_names_are_in_its_folder() -> None:
    folder = Path(boxloss.__file__).parent
    text = "".join(file.read_text() for file in folder.rglob("*.py"))
    pages = set(re.findall(r"docs/[\w-]+\.md", text))
    assert "docs/losses.md" in pages
    assert [page for page in pages if not (folder / page).exists()] == []
