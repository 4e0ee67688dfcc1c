# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""docs/tours/one-line.ipynb runs, and has in it what a run gave: the pictures that the site shows.

After a change of its code: `jupyter execute --inplace docs/tours/one-line.ipynb`.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

FILE = Path(__file__).parents[2] / "docs/tours/one-line.ipynb"
CELLS = [cell for cell in json.loads(FILE.read_text())["cells"] if cell["cell_type"] == "code"]


def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("Agg")
    names: dict[str, Any] = {}
    code = "\n".join("".join(cell["source"]) for cell in CELLS)
    for many, few in (("steps=80", "steps=8"), ("range(30)", "range(2)")):
        assert many in code
        code = code.replace(many, few)
    exec(compile(code, FILE.name, "exec"), names)
    assert names["losses"][0] == pytest.approx(names["plain_losses"][0], rel=1e-5)
    assert names["losses"][-1] < 0.8 * names["losses"][0]
    assert len(names["outputs"].pred_boxes) == 4
    assert "loss_rt_detr" in capsys.readouterr().out


def test_it_shows_what_it_gave() -> None:
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    outputs = [(cell, output) for cell in CELLS for output in cell["outputs"]]
    assert {output.get("name", "stdout") for _, output in outputs} == {"stdout"}
    pictures = [cell for cell, output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 3
    assert all(cell["metadata"]["alt"] for cell in pictures)
