# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every study, and for what is committed of its results."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("skimage")

import boxloss.torch

from benchmarks.runner.program import draw, load, main, question, studies
from benchmarks.runner.results import read_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
SITE = str(Path(boxloss.torch.__file__).parents[2])
NEEDED = {"compare_builds": [SITE, SITE, "--runs", "0"]}  # arguments
FILES = sorted(RESULTS.glob("*/*.json"))


@pytest.mark.parametrize("name", studies())
def test_a_quick_run_measures_writes_and_draws(name: str, tmp_path: Path) -> None:
    if name == "jax":
        pytest.importorskip("jaxlib", reason="JAX is not installed")  # `make test-peers` has it
    if name == "trained":
        pytest.importorskip("sklearn")
        pytest.importorskip("pycocotools")
    if name == "gpu_tests":
        pytest.skip("it runs the tests")
    study = load(name)
    assert question(study).endswith("?")
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
    assert all(row["median"] > 0 for row in times)
    assert {path.stem for path in tmp_path.glob("*.svg")} <= pictures.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_result_says_what_made_it_and_its_picture_shows_it(
    file: Path, tmp_path: Path
) -> None:
    results = read_results(file)
    assert results.study == file.stem
    assert all(re.fullmatch(r"[0-9a-f]{12}\+?", run["commit"]) for run in results.runs)
    assert all(run["machine"] and run["command"] for run in results.runs)
    if results.study not in studies():
        return  # it has answered, and is in that commit
    draw(load(results.study), results, tmp_path)
    for path in tmp_path.iterdir():
        committed = file.parent / path.name
        if committed.exists():
            words, as_committed = (
                re.findall("<text[^>]*>([^<]*)</text>", each.read_text())
                for each in (path, committed)
            )
            assert words == as_committed  # if not: python -m benchmarks NAME --redraw FILE


def test_every_committed_picture_is_on_a_page() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    pages += (ROOT / "README.md").read_text()
    for path in RESULTS.glob("*/*.[sp][vn]g"):
        assert f"{path.parent.name}/{path.name}" in pages
