# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The program that trains a detector to the end, as its users run it, and its parts."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.output import write_json
from benchmarks.face_detector.data import FacePictures
from benchmarks.trained_detector import __main__ as trained_detector
from benchmarks.trained_detector import pictures, training
from benchmarks.trained_detector.agreement import check
from benchmarks.trained_detector.batches import make_batch, view
from benchmarks.trained_detector.model import CELL, SCALES, CellDetector
from benchmarks.trained_detector.page import section
from benchmarks.trained_detector.pictures import (
    Assigned,
    assign,
    assign_all,
    draw,
    mirror,
    varied,
)
from benchmarks.trained_detector.report import PART_OF_BEST, reached, threshold
from benchmarks.trained_detector.training import Laps, Run, Task, train
from benchmarks.trained_detector.variants import EAGER, FUSED, SLOWEST, VARIANTS

CPU = torch.device("cpu")
TINY = dataclasses.replace(
    SCALES["quick"], batch=4, steps_between=2, train_pictures=8, test_pictures=16
)
NAMES = [FUSED, EAGER, SLOWEST]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(SCALES, "quick", TINY)
    monkeypatch.setattr(trained_detector, "CHECKPOINTS", tmp_path / "checkpoints")
    monkeypatch.setattr(pictures, "varied", lambda photographs, seed: photographs)  # in no time


@pytest.fixture(scope="module")
def task() -> Task:
    drawn = draw("train", 0, TINY.train_pictures, lambda done: None)
    test = draw("test", 0, TINY.test_pictures, lambda done: None)
    return Task(drawn, assign_all(drawn), test)


@pytest.fixture
def pairs(task: Task) -> list[Assigned]:
    pairs = [as_drawn for as_drawn, _ in task.assigned]
    assert min(len(boxes) for boxes, _ in pairs) == 0  # a picture without a face is among them
    return pairs


def run(*arguments: str) -> int:
    return trained_detector.main(["--quick", "--device", "cpu", *arguments])


def test_it_trains_draws_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    figures, picture = tmp_path / "figures.json", tmp_path / "picture.svg"
    assert run("--json", str(figures), "--plot", str(picture)) == 0

    report = json.loads(figures.read_text())
    assert report["settings"]["steps_between"] == TINY.steps_between
    assert list(report["variants"]) == NAMES
    assert report["agreed_losses"].keys() == set(NAMES)
    for each in report["variants"].values():
        assert [row["step"] for row in each["history"]] == [0, 2, 4]
        seconds = [row["seconds"] for row in each["history"]]
        assert seconds[0] == 0
        assert seconds == sorted(set(seconds))
        assert 0 < each["loss_ms"]["median"] < each["step_ms"]["median"]
        assert len(each["before"]) == len(each["after"]) == len(report["shown"])
    losses = [each["box_losses"] for each in report["variants"].values()]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert losses[0] == pytest.approx(losses[2], abs=1e-4)

    printed = capsys.readouterr().out
    places = [printed.index(each) for each in ("agree", *(f"{n}: step 4" for n in NAMES), "AP50")]
    assert places[:-1] == sorted(places[:-1])
    assert all(VARIANTS[name].summary in picture.read_text() for name in NAMES)
    held_out = tmp_path / "picture-pictures.png"
    assert 10_000 < held_out.stat().st_size < 300_000
    assert not list((tmp_path / "checkpoints").glob("*"))
    page = section(report)
    assert page.startswith("## ")
    assert report["command"] in page
    for name in NAMES:
        assert f"| {VARIANTS[name].summary} |" in page


def test_a_second_run_takes_what_the_file_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    assert run("--json", str(figures)) == 0
    report = json.loads(figures.read_text())
    del report["variants"][EAGER]
    write_json(figures, report)
    capsys.readouterr()

    assert run("--json", str(figures)) == 0
    printed = capsys.readouterr().out
    assert f"{FUSED}: taken from" in printed
    assert f"{EAGER}: step" in printed
    again = json.loads(figures.read_text())
    assert again["variants"][FUSED] == report["variants"][FUSED]
    assert again["variants"].keys() == set(NAMES)

    report["machine"]["torch"] = "another"
    write_json(figures, report)
    assert run("--json", str(figures)) == 0
    assert "taken from" not in capsys.readouterr().out


class StoppedError(Exception):
    pass


def test_a_run_that_was_stopped_goes_on(task: Task, tmp_path: Path) -> None:
    def stop(step: int) -> None:
        raise StoppedError

    def trained(checkpoint: Path | None) -> Run:
        return train(TINY, VARIANTS[FUSED], task, CPU, 0, checkpoint, lambda step: None)

    at_once, checkpoint = trained(None), tmp_path / "checkpoint.pt"
    with pytest.raises(StoppedError):
        train(TINY, VARIANTS[FUSED], task, CPU, 0, checkpoint, stop)
    stopped = torch.load(checkpoint, weights_only=True)["run"]
    assert stopped["history"][-1]["step"] == TINY.steps_between
    in_two = trained(checkpoint)
    assert in_two.box_losses == at_once.box_losses
    assert in_two.objectness_losses == at_once.objectness_losses
    assert in_two.after == at_once.after
    assert in_two.step_ms[: TINY.steps_between] == stopped["step_ms"]
    assert len(in_two.step_ms) == len(in_two.loss_ms) == TINY.steps
    for one, other in zip(in_two.history, at_once.history, strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}


def test_training_learns(task: Task) -> None:
    """The eight pictures by heart, in some thirty steps."""
    scale = dataclasses.replace(TINY, batch=8, steps_between=15)
    losses = train(scale, VARIANTS[FUSED], task, CPU, 0, None, lambda step: None).box_losses
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_the_program_goes_on_where_it_was_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    save = training._save

    def save_and_stop(*arguments: Any) -> None:
        save(*arguments)
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(training, "_save", save_and_stop)
        with pytest.raises(StoppedError):
            run("--json", str(figures))
    assert run("--json", str(figures)) == 0
    printed = capsys.readouterr().out
    assert f"{FUSED}: goes on from" in printed
    assert f"{EAGER}: goes on" not in printed
    assert list(json.loads(figures.read_text())["variants"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_variants_agree(name: str, pairs: list[Assigned]) -> None:
    check(name, VARIANTS[name], pairs, CPU)


@pytest.mark.parametrize("name", NAMES)
def test_variants_agree_without_any_face(name: str, pairs: list[Assigned]) -> None:
    none = [pair for pair in pairs if not len(pair[0])]
    assert check(name, VARIANTS[name], none, CPU) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_loss_is_found_out(name: str, pairs: list[Assigned]) -> None:
    right = VARIANTS[name]

    def doubled(*arguments: Any) -> torch.Tensor:
        return 2 * right.loss(*arguments)

    def half_a_gradient(pred: torch.Tensor, *targets: Any) -> torch.Tensor:
        return right.loss((pred + pred.detach()) / 2, *targets)

    with pytest.raises(DisagreementError, match="loss"):
        check(name, dataclasses.replace(right, loss=doubled), pairs, CPU)
    with pytest.raises(DisagreementError, match="gradient"):
        check(name, dataclasses.replace(right, loss=half_a_gradient), pairs, CPU)


def test_disagreement_stops_it_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = dataclasses.replace(VARIANTS[EAGER], loss=lambda pred, *targets: 0 * pred.nansum())
    monkeypatch.setitem(VARIANTS, EAGER, wrong)
    assert run() == 1
    printed = capsys.readouterr()
    assert f"{EAGER}: loss" in printed.err
    assert "step" not in printed.out.partition("agree")[2]


def test_held_out_pictures_are_the_demos(task: Task) -> None:
    demo = FacePictures("test", 0, 255)
    for index in range(TINY.test_pictures):
        picture, boxes = demo[index]
        assert torch.equal(task.test.pictures[index], picture)
        assert torch.equal(task.test.boxes[index], boxes.short())


def test_training_photographs_are_varied() -> None:
    plain = np.full((300, 520), 77, dtype=np.uint8)
    made = varied([plain], seed=0)
    sizes = [each.shape for each in made]
    assert sizes == [(300, 520), (520, 300)] * 2 + [(600, 1040), (1040, 600)] * 2  # no half of it
    for each in made:
        assert 0.1 < (each != 77).mean() < 1


def test_a_face_belongs_to_the_cell_of_its_centre() -> None:
    boxes = torch.tensor(
        [[0, 0, 31, 31], [40, 0, 101, 60], [200, 230, 255, 255]], dtype=torch.int16
    )
    kept, cells = assign(boxes)
    assert torch.equal(kept, boxes)
    assert cells.tolist() == [0, 16 * 1 + 4, 16 * 15 + 14]


def test_the_smallest_of_several_in_a_cell_keeps_it() -> None:
    boxes = torch.tensor(
        [[10, 10, 50, 50], [0, 0, 60, 60], [100, 100, 130, 130]], dtype=torch.int16
    )
    kept, cells = assign(boxes)
    assert torch.equal(kept, boxes[[0, 2]])
    assert len(set(cells.tolist())) == 2


def test_a_picture_without_a_face_has_no_cells() -> None:
    boxes, cells = assign(torch.zeros(0, 4, dtype=torch.int16))
    assert boxes.shape == (0, 4)
    assert cells.shape == (0,)


def test_mirrored_boxes_lie_on_mirrored_faces(task: Task) -> None:
    picture = torch.zeros(1, 256, 256, dtype=torch.uint8)
    picture[0, 20:60, 0:40] = 255
    batch = make_batch(task.assigned, VARIANTS[FUSED].lay_out, 1, seed=0, step=0)
    batch = dataclasses.replace(
        batch,
        rows=torch.tensor([0]),
        mirrored=torch.tensor([True]),
        light=torch.tensor([[0.0], [1.0], [0.0]]),  # as it is
    )
    seen = view(picture, batch)[0]
    ((x1, y1, x2, y2),) = mirror(torch.tensor([[0, 20, 40, 60]], dtype=torch.int16)).tolist()
    assert x2 == 256
    assert seen[y1:y2, x1:x2].min() == 255
    assert seen.sum() == 255 * 40 * 40


def test_a_batch_is_a_function_of_seed_and_step(task: Task) -> None:
    def rows(name: str, seed: int, step: int) -> list[int]:
        return make_batch(task.assigned, VARIANTS[name].lay_out, 4, seed, step).rows.tolist()

    assert rows(FUSED, 0, 1) == rows(SLOWEST, 0, 1)
    assert rows(FUSED, 0, 1) != rows(FUSED, 0, 2)
    assert rows(FUSED, 0, 1) != rows(FUSED, 1, 1)


@pytest.mark.parametrize("scale", SCALES)
def test_a_cell_predicts_a_box_around_it(scale: str) -> None:
    torch.manual_seed(0)
    logits, boxes = CellDetector(SCALES[scale])(torch.rand(2, 256, 256) * 255)
    assert logits.shape == (2, 256)
    assert boxes.shape == (2, 256, 4)
    assert (boxes[..., 2:] > boxes[..., :2]).all()
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2
    cells = torch.arange(256)
    middles = torch.stack([cells % 16, cells // 16], dim=1) * CELL + CELL / 2
    assert ((centres - middles).abs() < CELL).all()


def test_the_clock_of_steps_and_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 3.0, 10.0, 12.0, 15.0, 21.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    laps = Laps(CPU)
    for _ in range(7):
        laps.mark()
    assert laps.milliseconds() == ([10_000, 11_000], [2000, 3000])


def test_the_clock_of_a_gpu_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.5, 1.5, 4.0])

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = next(times)

        def elapsed_time(self, end: Event) -> float:
            return end.at - self.at  # milliseconds

    monkeypatch.setattr(torch.cuda, "Event", Event)
    laps = Laps(torch.device("cuda"))
    for _ in range(4):
        laps.mark()
    assert laps.milliseconds() == ([4], [1])


def test_the_clock_stands_still_between_steps(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading is a second after the last: three for a step, and three for the ends."""
    ticks: Iterator[int] = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    history = train(TINY, VARIANTS[FUSED], task, CPU, 0, None, lambda step: None).history
    each = 3 * TINY.steps_between + 2
    assert [row["seconds"] for row in history] == [0, each, 2 * each]


def test_time_to_the_same_quality() -> None:
    def run(*precisions: float) -> dict[str, Any]:
        return {"history": [{"ap50": each, "seconds": at} for at, each in enumerate(precisions)]}

    runs = {"a": run(0.0, 0.5, 0.8, 0.79), "b": run(0.0, 0.6, 0.7, 0.9)}
    assert threshold(runs) == pytest.approx(PART_OF_BEST * 0.8)
    assert reached(runs["a"], threshold(runs))["seconds"] == 2
    assert reached(runs["b"], threshold(runs))["seconds"] == 3
