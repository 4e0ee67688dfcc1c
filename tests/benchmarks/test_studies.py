# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every study, and for what is committed of its results."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("skimage")

import boxloss.torch
from PIL import Image

from benchmarks.runner.program import draw, load, main, question, studies
from benchmarks.runner.results import read_results

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
SITE = str(Path(boxloss.torch.__file__).parents[2])
NEEDED = {"compare_builds": [SITE, SITE, "--runs", "0"]}  # arguments
FILES = sorted(RESULTS.glob("*/*.json"))


@pytest.mark.parametrize("name", studies())
def test_a_quick_run_measures_writes_and_draws(name: str, tmp_path: Path) -> None:
    if name == "jax":
        pytest.importorskip("jaxlib", reason="JAX is not installed")  # `make test-jax` runs it
    if name == "gpu_tests":
        pytest.skip("it runs the tests")
    study = load(name)
    if not torch.cuda.is_available() and "cpu" not in getattr(study, "DEVICES", ("cpu",)):
        pytest.skip("it needs a GPU")
    file = tmp_path / "figures.json"
    arguments = [name, *NEEDED.get(name, []), "--quick", "--json", str(file)]
    pictures = getattr(study, "PICTURES", {})
    if pictures:
        arguments += ["--pictures", str(tmp_path)]
    assert main(arguments) == 0
    results = read_results(file)
    assert results.study == name
    (run,) = results.runs
    assert run["command"].startswith(f"python -m benchmarks {name} ")
    assert results.rows
    assert all(math.isfinite(row["median"]) for row in results.rows)
    times = [row for row in results.rows if row["unit"] in ("µs", "ms")]
    # scale fits a line whose fixed part may be 0, where times are as noisy as these.
    assert all(row["median"] > 0 for row in times if row["quantity"] != "fixed")
    assert all(row["median"] >= 0 for row in times)
    drawn = {path.name for path in tmp_path.glob("*.[sp][vn]g")}
    assert drawn <= {each if "." in each else f"{each}.svg" for each in pictures}


def test_each_study_has_a_question() -> None:
    assert len(studies()) > 5
    assert all(question(load(name)).endswith("?") for name in studies())


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_picture_shows_its_committed_figures(file: Path, tmp_path: Path) -> None:
    results = read_results(file)
    assert results.study == file.stem
    assert results.study in studies()
    assert all(run["commit"] and run["machine"] and run["command"] for run in results.runs)
    study = load(results.study)
    draw(study, results, tmp_path)
    for path in tmp_path.iterdir():
        committed = file.parent / path.name
        if not committed.exists():
            continue
        if path.suffix == ".svg":
            words, as_committed = (
                re.findall("<text[^>]*>([^<]*)</text>", each.read_text())
                for each in (path, committed)
            )
            assert words == as_committed  # if not: python -m benchmarks NAME --redraw FILE
        else:
            one, other = (
                np.asarray(Image.open(each).convert("L"), dtype=float) for each in (path, committed)
            )
            assert one.shape == other.shape
            # Letters may be another version's; boxes eight pixels from here would make it 0.8.
            assert abs(one - other).mean() < 0.4


def test_every_committed_picture_has_its_figures_beside_it() -> None:
    for path in RESULTS.glob("*/*.[sp][vn]g"):
        drawn = set()
        for file in path.parent.glob("*.json"):
            name = json.loads(file.read_text())["study"]
            pictures = getattr(load(name), "PICTURES", {})
            drawn |= {each if "." in each else f"{each}.svg" for each in pictures}
        assert path.name in drawn
