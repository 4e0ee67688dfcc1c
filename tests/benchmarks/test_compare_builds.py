# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What tells two builds apart, and that nothing a caller can reach is left out of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

import boxloss.torch
from boxloss._options import Loss, RotatedLoss
from torch import Tensor

from benchmarks.runner import program
from benchmarks.studies import compare_builds as compare
from benchmarks.studies.compare_builds.differences import difference, differences
from benchmarks.studies.compare_builds.problems import (
    ROTATED,
    Problem,
    Record,
    Records,
    draw_problems,
)
from benchmarks.studies.compare_builds.results import flat, records_of
from benchmarks.studies.compare_builds.verdicts import verdict

LOSSES = [*get_args(Loss), *(ROTATED + each for each in get_args(RotatedLoss))]
SITE = Path(boxloss.torch.__file__).parents[2]
CPU = torch.device("cpu")


@cache
def problems() -> list[Problem]:
    return list(draw_problems(LOSSES))


@pytest.mark.parametrize(
    "name",
    [
        *("box_loss", "box_losses", "rotated_box_loss"),
        *("matching_cost", "pairwise_iou", "hungarian_match"),
    ],
)
def test_every_argument_is_given_and_every_word_that_it_may_be(name: str) -> None:
    function = getattr(boxloss.torch, name)
    calls = [each.arguments for each in problems() if each.function == name]
    for argument, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:  # a loss' own numbers
            assert parameter.annotation.__args__[0].__annotations__.keys() <= {
                each for call in calls for each in call
            }
            continue
        given = [call[argument] for call in calls if call.get(argument) is not None]
        assert given, argument
        kinds = get_args(parameter.annotation)  # words, or Literals of words
        words = [word for each in kinds for word in (get_args(each) or [each])]
        if isinstance(words[:1] and words[0], str):
            assert set(words) == set(given)


def test_only_costs_of_two_formats_are_refused() -> None:
    for problem, record in records_of(problems()[::23], "cpu/native", CPU).items():
        if isinstance(record, str):
            assert problem.startswith("costs ")
            assert "l1 is of values in one format" in record


def test_a_process_that_fails_ends_it_in_words() -> None:
    with pytest.raises(SystemExit, match=r"about of the build in .* ended with 1"):
        compare.Build(SITE, "no device").ask("about")


OLD: dict[str, Tensor] = {"result": torch.tensor([1.0, -2.0, 0.5])}
Status = Callable[..., int]


@pytest.fixture
def status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Status:
    """What compare ends with, where two builds give these records and have these losses."""

    def ends_with(
        new: Record, old: Record = OLD, losses: tuple[list[str], list[str]] = (["iou"], ["iou"])
    ) -> int:
        def ask(build: compare.Build, what: str, *_: Any, **options: Any) -> Any:
            is_new = build.site == sites[1]
            if what == "results":
                return {"cpu/reference": {"costs 1, name": new if is_new else old}}
            return {
                "site": str(build.site),
                "losses": losses[is_new],
                "implementations": ["cpu/reference"],
                "capability": "baseline",
            }

        monkeypatch.setattr(compare.Build, "ask", ask)
        return program.main(["compare_builds", *map(str, sites), "--runs", "0", "--device", "cpu"])

    sites = [tmp_path / name for name in ("old", "new")]
    for site in sites:
        (site / "boxloss").mkdir(parents=True)
    return ends_with


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({"result": torch.tensor([1.0, -2.0, 0.5 + 2**-24])}, "1 ulps; 1 of 3 numbers"),
        ({"result": torch.tensor([1.0, torch.nan, 0.5])}, "NaN or infinity in one only"),
        ({"pairs": OLD["result"]}, "pairs: in the new build only"),
        ({}, "result: in the old build only"),
        ({"result": OLD["result"].double()}, "not torch.float32"),
        ("ValueError: no", "old gives a result; new says 'ValueError: no'"),
    ],
)
def test_what_differs_is_told_and_ends_with_1(
    status: Status, capsys: pytest.CaptureFixture[str], new: Record, words: str
) -> None:
    assert status(OLD) == 0
    assert status(new) == 1
    assert words in capsys.readouterr().out


def test_a_loss_may_come_and_not_go(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(OLD, losses=(["iou"], ["iou", "more"])) == 0
    assert "in the new build only: loss more" in capsys.readouterr().out
    assert status(OLD, losses=(["iou", "more"], ["iou"])) == 1


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str
)
def test_units_in_the_last_place(dtype: torch.dtype) -> None:
    def words(old: float, new: float) -> str | None:
        return difference(torch.tensor([old], dtype=dtype), torch.tensor([new], dtype=dtype))

    step = torch.finfo(dtype).eps
    of = "; 1 of 1 numbers"
    assert words(1.0, 1.0) is None
    assert words(1.0, 1.0 + 3 * step) == f"3 ulps{of}"
    assert words(-1.0, -1.0 + step) == f"2 ulps{of}"  # below 1 they are half as far apart
    assert words(0.0, -0.0) == f"0 ulps{of}"
    smallest = torch.finfo(dtype).smallest_normal * step
    assert words(-smallest, smallest) == f"2 ulps{of}"
    assert words(torch.nan, -torch.nan) is None
    assert words(torch.inf, -torch.inf) == f"NaN or infinity in one only, or another: 1 numbers{of}"


def of_runs(*runs: list[float]) -> list[Records]:
    return [{"problem": {"d pred, runs": torch.tensor([run]).mT}} for run in runs]


@pytest.mark.parametrize(("new", "excused"), [(1.5, True), (2.0, True), (2.01, False)])
def test_a_result_that_varies_is_held_against_the_old_builds_own_runs(
    new: float, excused: bool
) -> None:
    """From 1 to 1.5, so that 0.5 beyond is allowed."""
    (found,) = differences(*of_runs([1.0, 1.25], [1.5, 1.25], [1.0, new]))
    assert found.excused == excused
    assert "old from itself: 4.1943e+06 ulps" in found.words
    first, again, last = ({"problem": {"d pred": torch.tensor([each])}} for each in (1.0, 1.5, new))
    (found,) = differences(first, again, last)
    assert found.excused == excused


def test_results_are_named_whatever_holds_them() -> None:
    one, two = torch.ones(1), torch.ones(2)
    losses = boxloss.torch.BoxLosses(one, (one, two), two)
    named = {"result.loss", "result.l1.0", "result.l1.1", "result.iou"}
    assert flat("result", losses).keys() == named
    jagged = torch.nested.nested_tensor([one, two], layout=torch.jagged)
    assert flat("result", jagged).keys() == {"result values", "result offsets"}


SMALL, LARGE = "dense, small, 4,096 boxes", "dense, large, 33,554,432 boxes"


@pytest.mark.parametrize(
    ("row", "old", "new", "word"),
    [
        (SMALL, [1.0, 1.04, 1.08], [1.0, 1.08, 1.9], "same"),  # its median is the slowest of old
        (SMALL, [1.0, 1.04, 1.08], [1.0, 1.081, 1.9], "slower"),
        (SMALL, [1.0, 1.04, 1.08], [0.8, 0.9, 1.3], "faster"),
        (SMALL, [1.0, 1.04, 1.6], [1.0, 1.04, 1.08], "noisy"),
        (LARGE, [1.0, 1.0, 1.001], [1.0, 1.009, 1.02], "same"),
        (LARGE, [1.0, 1.0, 1.001], [1.0, 1.011, 1.02], "slower"),
        (LARGE, [1.0, 1.0, 1.02], [1.0, 1.0, 1.0], "noisy"),
        (LARGE, [1.0, 1.0, 1.02], [1.03, 1.03, 1.03], "slower"),
        (LARGE + ": forward, host", [1.0, 1.0, 1.2], [1.1, 1.1, 1.1], "same"),
    ],
)
def test_times(row: str, old: list[float], new: list[float], word: str) -> None:
    found = verdict(row, old, new)
    assert found.word == word
    assert found.shows_it == (word in ("same", "faster"))


def test_a_doubtful_time_is_taken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str] | None] = []

    def ask(build: compare.Build, what: str, rows: list[str] | None) -> dict[str, float]:
        asked.append(rows)
        slow = 2.0 if build.site == SITE and rows is None else 1.0
        return {"fine": 1.0, "doubtful": slow}

    monkeypatch.setattr(compare.Build, "ask", ask)
    old, new = compare.Build(SITE.parent, "cpu"), compare.Build(SITE, "cpu")
    times = compare.compare_times(old, new, 3)
    assert asked == [None] * 6 + [["doubtful"]] * 6
    assert times == {"fine": ([1.0] * 3,) * 2, "doubtful": ([1.0] * 3,) * 2}
