# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What tells two builds apart, and that nothing a caller can reach is left out of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

import boxloss.torch
from boxloss._options import Loss, RotatedLoss

from benchmarks.runner import program
from benchmarks.studies import compare_builds as compare
from benchmarks.studies.compare_builds.problems import ROTATED, Record, draw_problems


def test_every_argument_is_given_and_every_word_that_it_may_be() -> None:
    losses = [*get_args(Loss), *(ROTATED + each for each in get_args(RotatedLoss))]
    problems = list(draw_problems(losses, "cpu"))
    for name in {each.function for each in problems}:
        calls = [each.arguments for each in problems if each.function == name]
        for argument, parameter in inspect.signature(
            getattr(boxloss.torch, name)
        ).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:  # a loss' own numbers
                own = parameter.annotation.__args__[0].__annotations__.keys()
                assert own <= {each for call in calls for each in call}
                continue
            given = [call[argument] for call in calls if call.get(argument) is not None]
            assert given, argument
            kinds = get_args(parameter.annotation)  # words, or Literals of words
            words = [word for each in kinds for word in (get_args(each) or [each])]
            if isinstance(words[:1] and words[0], str):
                assert set(words) == set(given)


def result(*last: float) -> Record:
    return {"result": torch.tensor([1.0, -2.0, *last])}


OLD = result(0.5, 0.0, torch.nan)
IOU = ["iou"]


@pytest.mark.parametrize(
    ("new", "losses", "words", "status"),
    [
        (OLD, (IOU, IOU), "0", 0),
        (OLD, (IOU, ["iou", "more"]), "in the new build only: losses: more", 0),
        (OLD, (["iou", "more"], IOU), "in the old build only: losses: more", 1),
        (result(0.5, 0.0, -torch.nan), (IOU, IOU), "0", 0),
        (result(0.5 + 2**-24, 0.0, torch.nan), (IOU, IOU), "1 of 5 numbers; the first is 0.50", 1),
        (result(0.5, -0.0, torch.nan), (IOU, IOU), "1 of 5 numbers; the first is -0.0, not 0.0", 1),
        (result(0.5, torch.nan, 0.0), (IOU, IOU), "2 of 5 numbers; the first is nan, not 0.0", 1),
        ({"pairs": OLD["result"]}, (IOU, IOU), "pairs: in the new build only", 1),
        ({}, (IOU, IOU), "result: in the old build only", 1),
        ({"result": OLD["result"].double()}, (IOU, IOU), "not torch.float32", 1),
        ("ValueError: no", (IOU, IOU), "old gives a result; new says 'ValueError: no'", 1),
    ],
)
def test_what_differs_is_told_and_ends_with_1(
    new: Record,
    losses: tuple[list[str], list[str]],
    words: str,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sites = [tmp_path / name for name in ("old", "new")]
    for site in sites:
        (site / "boxloss").mkdir(parents=True)

    def ask(build: compare.Build, what: str, *_: Any, **options: Any) -> Any:
        is_new = build.site == sites[1]
        if what == "results":
            return {"cpu/reference": {"costs 1, name": new if is_new else OLD}}
        about = {"implementations": ["cpu/reference"], "capability": "baseline"}
        return about | {"site": str(build.site), "losses": losses[is_new]}

    monkeypatch.setattr(compare.Build, "ask", ask)
    arguments = ["compare_builds", *map(str, sites), "--runs", "0", "--device", "cpu"]
    assert program.main(arguments) == status
    assert words in capsys.readouterr().out


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
        (LARGE + ": forward, host", [1.0, 1.0, 1.2], [1.1, 1.1, 1.1], "same"),
    ],
)
def test_times(row: str, old: list[float], new: list[float], word: str) -> None:
    assert compare.verdict(row, old, new)[0] == word


def test_a_doubtful_time_is_taken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str] | None] = []
    old, new = (compare.Build(Path(name), "cpu") for name in ("old", "new"))

    def ask(build: compare.Build, what: str, rows: list[str] | None) -> dict[str, float]:
        asked.append(rows)
        return {"fine": 1.0, "doubtful": 2.0 if build == new and rows is None else 1.0}

    monkeypatch.setattr(compare.Build, "ask", ask)
    assert compare.compare_times(old, new, 3) == dict.fromkeys(
        ("fine", "doubtful"), ([1.0] * 3,) * 2
    )
    assert asked == [None] * 6 + [["doubtful"]] * 6
