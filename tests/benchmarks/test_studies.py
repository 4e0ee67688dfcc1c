# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What holds for every study, and for what is committed of its results."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("skimage")

import boxloss.torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from benchmarks.runner.program import draw, load, main, question, studies
from benchmarks.runner.results import read_results
from benchmarks.runner.run import Run

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
SITE = str(Path(boxloss.torch.__file__).parents[2])
NEEDED = {"compare_builds": [SITE, SITE, "--runs", "0"]}  # arguments
FILES = sorted(RESULTS.glob("*/*.json"))


# What compare_builds finds test_compare_builds.py shows, without two builds in four processes; JAX'
# study runs in tests/jax.
@pytest.mark.parametrize(
    "name",
    [each for each in studies() if each not in ("compare_builds", "jax")]
    + [pytest.param("compare_builds", marks=pytest.mark.long)],
)
def test_a_quick_run_measures_writes_and_draws(name: str, tmp_path: Path) -> None:
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


def more(found: Tensor) -> Tensor:
    """Wrong by a fiftieth, or other indices."""
    return 1.02 * found if found.is_floating_point() else found.roll(1, -1)


def steeper(loss: Tensor) -> Tensor:
    """Right in value, but not in its gradient."""
    return loss + 0.02 * (loss - loss.detach()) if loss.requires_grad else loss


OF_LOSSES = ("box_loss", "detectors", "face_detector", "host", "matched_pairs", "rotated")
NOT_COMPARED = ("compare_builds", "gpu_tests", "jax", "trained", "training_step", "article")
WRONG = [
    (name, case, change)
    for name in studies()
    if name not in NOT_COMPARED
    for case in getattr(load(name), "CASES", [""])
    for change in ((more, steeper) if name in OF_LOSSES else (more,))
    # The truth of each of the losses is itself, of another implementation.
    if case != "losses" and (case, change) != ("accuracy", steeper)
]


@pytest.mark.parametrize(("name", "case", "change"), WRONG)
def test_a_wrong_variant_is_refused(
    name: str,
    case: str,
    change: Callable[[Tensor], Tensor],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    load_right = Run.load

    def load_wrong(run: Run, variants: Any, case: Any) -> dict[str, Any]:
        found: dict[str, Any] = load_right(run, variants, case)
        if not found:
            pytest.skip("nothing can run")
        changed = next((each for each in found if each.startswith("boxloss")), next(iter(found)))

        def wrong(*arguments: Any) -> Any:
            return tree_map_only(Tensor, change, found[changed](*arguments))

        return {**found, changed: wrong}

    monkeypatch.setattr(Run, "load", load_wrong)
    status = main([name, "--quick", "--device", "cpu", *(["--cases", case] if case else [])])
    said = capsys.readouterr()
    if "cannot be imported" in said.out and status == 0 and "µs" not in said.out:
        pytest.skip("nothing was measured")
    assert status == 1
    assert f"{name}: error: " in said.err


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
