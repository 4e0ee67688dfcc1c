# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of a branch over invalid slots: without a GPU, with kernels that torch plays."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.losses import UnavailableError, giou
from benchmarks.common.timing import Calls, Effort
from benchmarks.conditional import __main__ as conditional
from benchmarks.conditional import measure as measuring
from benchmarks.conditional.agreement import check, repeated
from benchmarks.conditional.cases import LAYOUTS, SLOTS, WARP, Batch, Case, make_batch, make_case
from benchmarks.conditional.kernels import (
    AROUND_FORMULA,
    BEFORE_READING,
    IN_TURN,
    NO_BRANCH,
    STEP,
    VARIANTS,
    Kernels,
    Launch,
)
from benchmarks.conditional.kernels import compile_library as compiled
from benchmarks.conditional.page import in_short, section
from benchmarks.conditional.plot import plot
from benchmarks.conditional.report import Report, costs, fullest, pays, ratio

CPU = torch.device("cpu")
SETTINGS = {
    "images": [2],
    "layouts": [*LAYOUTS],
    "shares": [0.0, 0.125, 1.0],
    "repetitions": [1, 2, 8],
    "seconds": 0.0,
}


OCCUPANCY = {"registers": 24, "threads_at_once": 2048}


def played(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    """What the kernels do, in float32."""
    p, t = pred[: len(losses)].clone(), target[: len(losses)].clone()
    counts = (t != 0).any(dim=1)
    for _ in range(times):
        result = 1 - giou(p, t)
        for boxes, side in ((p, 0), (p, 3), (t, 1), (t, 2)):
            boxes[:, side] += STEP * result
    losses.copy_(torch.where(counts, result, 0.0))


class PlayedKernels:
    def __init__(self, device: torch.device) -> None:
        assert device == CPU

    def launch(self, variant: str) -> Launch:
        return played

    def describe(self, variant: str) -> dict[str, int]:
        return OCCUPANCY


def sampled(calls: Calls, effort: Effort) -> tuple[dict[str, list[float]], dict[str, str]]:
    """As if each later variant took a microsecond less."""
    return {
        name: [1e-6 * (10 - place) * spread for spread in (0.99, 1, 1.01)]
        for place, name in enumerate(calls)
    }, {}


@pytest.fixture
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "Kernels", PlayedKernels)
    monkeypatch.setattr(conditional, "QUICK_SETTINGS", SETTINGS)
    monkeypatch.setattr(measuring, "gpu_samples", sampled)


def arguments(folder: Path) -> list[str]:
    return ["--quick", "--device", "cpu", "--json", str(folder / "figures.json")]


def document_of(
    microseconds: Callable[[str, int, float, str], float], **settings: Any
) -> dict[str, Any]:
    """A report with times by variant, repetitions, share and layout."""
    chosen = SETTINGS | {"images": [1024, 32_768]} | settings
    batch = make_batch(2, CPU)
    cells = []
    for images in chosen["images"]:
        for layout in chosen["layouts"]:
            for share in chosen["shares"]:
                active = make_case(batch, layout, share).active_warps
                for times in chosen["repetitions"]:
                    medians = {v: microseconds(v, times, share, layout) for v in VARIANTS}
                    spread = {
                        v: {"p10": 0.99 * m, "median": m, "p90": 1.02 * m}
                        for v, m in medians.items()
                    }
                    cell = {"images": images, "layout": layout, "share": share, "times": times}
                    cells.append(cell | {"active_warps": active, "microseconds": spread})
    return {
        "command": "python -m benchmarks.conditional",
        "machine": {"cpu": "a CPU", "gpu": "a GPU", "torch": "2"},
        "settings": chosen,
        "kernels": {v: {**OCCUPANCY} for v in VARIANTS},
        "one_warp_microseconds": [{"median": 1.0 * times} for times in chosen["repetitions"]],
        "cells": cells,
    }


@pytest.mark.usefixtures("_played")
def test_it_measures_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    assert conditional.main([*arguments(tmp_path), "--plot", str(picture)]) == 0

    report = json.loads((tmp_path / "figures.json").read_text())
    assert report["machine"]["torch"] == torch.__version__
    assert report["kernels"].keys() == set(VARIANTS)
    assert len(report["one_warp_microseconds"]) == len(SETTINGS["repetitions"])
    found = [(c["layout"], c["share"], c["times"]) for c in report["cells"]]
    assert found == [
        (layout, share, times)
        for layout in LAYOUTS
        for share in SETTINGS["shares"]
        for times in SETTINGS["repetitions"]
    ]
    for cell in report["cells"]:
        for place, name in enumerate(VARIANTS):
            times = cell["microseconds"][name]
            assert times["median"] == pytest.approx(10 - place)
            assert times["p10"] < times["median"] < times["p90"]
    printed = capsys.readouterr().out
    assert "2 × 256 slots, valid ones scattered" in printed
    assert printed.count("12.5 % valid  │ 0.800 │ 0.800 │ 0.800") == 2
    assert "valid slots scattered at random" in picture.read_text()


@pytest.mark.usefixtures("_played")
def test_a_run_that_was_cut_short_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conditional.main(arguments(tmp_path)) == 0
    figures = tmp_path / "figures.json"
    report = json.loads(figures.read_text())
    measured: list[tuple[str, float]] = []

    def noted(launches: Any, batch: Batch, case: Case, *rest: Any) -> Any:
        measured.append((case.layout, case.share))
        return measuring.measure(launches, batch, case, *rest)

    monkeypatch.setattr(conditional, "measure", noted)
    short = report | {"cells": report["cells"][:-3]}
    figures.write_text(json.dumps(short))
    assert conditional.main(arguments(tmp_path)) == 0
    assert measured == [("scattered", 1.0)]
    assert "has 15 cells of this run" in " ".join(capsys.readouterr().out.split())
    assert json.loads(figures.read_text())["cells"] == report["cells"]

    measured.clear()
    figures.write_text(json.dumps(short | {"machine": {"gpu": "another"}}))
    assert conditional.main(arguments(tmp_path)) == 0
    assert len(measured) == 6


@pytest.mark.usefixtures("_played")
def test_disagreement_stops_it_before_any_time_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PlayedKernels, "launch", lambda *_: one_repetition_short)
    assert conditional.main(arguments(tmp_path)) == 1
    printed = capsys.readouterr()
    assert "error: no branch: up to" in printed.err
    assert "no branch, µs" not in printed.out


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert conditional.main(["--quick", "--device", "cpu"]) == 1
    said = capsys.readouterr().err
    assert said == ("conditional: error: needs a GPU that torch reaches by CUDA, not 'cpu'\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--plot", "picture.bmp"], "'picture.bmp' given; allowed: .svg"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(conditional.parse, arguments)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_layouts_differ_only_in_where_their_valid_slots_lie(share: float) -> None:
    batch = make_batch(64, CPU)
    front, scattered = (make_case(batch, layout, share) for layout in LAYOUTS)
    per_image = [case.valid.view(-1, SLOTS).sum(dim=1) for case in (front, scattered)]
    assert torch.equal(*per_image)
    assert per_image[0].sum() == round(share * 64 * SLOTS)
    rows = front.valid.view(-1, SLOTS).int()
    assert bool((rows[:, 1:] <= rows[:, :-1]).all())  # no valid slot behind an invalid one
    for case in (front, scattered):
        assert torch.equal((case.target != 0).any(dim=1), case.valid)
        assert torch.equal(case.target[case.valid], batch.truths[case.valid])
    # 512 warps are enough for three standard deviations of at most 0.07.
    assert scattered.active_warps == pytest.approx(1 - (1 - share) ** WARP, abs=0.07)
    assert (
        front.active_warps == sum((each + WARP - 1) // WARP for each in per_image[0].tolist()) / 512
    )


def test_no_box_turns_over() -> None:
    batch = make_batch(16, CPU)
    most = 2 * 256 * STEP  # of the most repetitions, and a loss of at most 2
    for boxes in (batch.pred, batch.truths):
        assert bool(((boxes[:, 2:] - boxes[:, :2]) > most).all())


def test_the_reference_on_boxes_computed_by_hand() -> None:
    pred, target = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[8.0, 0, 12, 4]])
    (first, allowed), (second, allowed_then) = islice(repeated(pred, target), 2)
    assert first.item() == pytest.approx(1 + 16 / 48, abs=1e-15)
    s = STEP * 4 / 3
    union, enclosing = 2 * (4 - s) * (4 + s), 12 * (4 + s)
    assert second.item() == pytest.approx(2 - union / enclosing, abs=1e-15)
    assert 0 < allowed.item() < allowed_then.item() < 1e-4


def one_repetition_short(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, max(times - 1, 1))


def leaky(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses += (target == 0).all(dim=1) * 1e-30


def not_a_number(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses[target.any(dim=1).nonzero()[0]] = torch.nan


def in_other_bits(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses *= 1 + 2.0**-23


def case_of(share: float) -> tuple[Batch, Case]:
    batch = make_batch(2, CPU)
    return batch, make_case(batch, "scattered", share)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_right_variants_agree(share: float) -> None:
    check(dict.fromkeys(VARIANTS, played), *case_of(share), [1, 2, 64, 256])


@pytest.mark.parametrize(
    ("wrong", "repetitions", "complaint"),
    [
        (one_repetition_short, [1, 2], "beyond what float32 explains; .*, 2 times"),
        (one_repetition_short, [16], "beyond what float32 explains; .*, 16 times"),
        (leaky, [1], "not 0 in a slot without a true box"),
        (not_a_number, [1], "wrong: up to inf"),
        (in_other_bits, [4], "not the same bits as 'right'"),
    ],
)
def test_a_wrong_variant_is_found_out(
    wrong: Launch, repetitions: list[int], complaint: str
) -> None:
    with pytest.raises(DisagreementError, match=complaint):
        check({"right": played, "wrong": wrong}, *case_of(0.3), repetitions)


def test_a_branch_pays_or_costs_beyond_the_spread() -> None:
    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        if variant == NO_BRANCH or share == 1:
            return 100.0
        return 40.0 if repetitions > 1 else 98.0 if layout == "front" else 110.0

    report = Report(document_of(times))
    row = report.row(1024, "front", 0.125)
    assert [ratio(cell) for cell in row] == [0.98, 0.4, 0.4]
    assert [pays(cell) for cell in row] == [False, True, True]
    assert [costs(cell) for cell in report.row(1024, "scattered", 0.125)] == [True, False, False]
    assert report.pays_for(1024, "front", 0.125) == "from 2"
    assert report.pays_for(1024, "front", 1.0) == "never"


@pytest.mark.parametrize(
    ("paying", "words"),
    [
        ([], "never"),
        ([1, 2, 4, 8, 16], "always"),
        ([4], "only 4"),
        ([16], "only 16"),
        ([1, 2], "up to 2"),
        ([8, 16], "from 8"),
        ([1, 4, 8, 16], "all but 2"),
        ([1, 8, 16], "all but 2, 4"),
        ([2, 8], "2, 8"),
    ],
)
def test_it_says_for_how_many_repetitions_it_pays(paying: list[int], words: str) -> None:
    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        return 50.0 if variant != NO_BRANCH and repetitions in paying else 100.0

    report = Report(document_of(times, repetitions=[1, 2, 4, 8, 16]))
    assert report.pays_for(1024, "front", 0.125) == words


def test_the_model_expects_what_it_is_made_of() -> None:
    launch, each = 1.0, 16.0
    batch = make_batch(2, CPU)

    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        warps = 1.0 if variant == NO_BRANCH else make_case(batch, layout, share).active_warps
        return max(5.0 if variant == NO_BRANCH else 4.0, launch + warps * each * repetitions)

    report = Report(document_of(times, repetitions=[1, 64, 128]))
    for layout in LAYOUTS:
        cell = report.row(1024, layout, 0.125)[-1]
        assert report.expected(cell) == pytest.approx(ratio(cell), rel=1e-3)
    nothing = report.row(1024, "front", 0.0)[-1]
    assert report.expected(nothing) == pytest.approx(ratio(nothing), rel=1e-3)


def test_the_page_says_what_the_figures_say() -> None:
    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        part = 1.0 if variant == NO_BRANCH or layout == "scattered" else 0.5 + share / 2
        return 10.0 * repetitions * part

    page = section(document_of(times))
    assert page.startswith("## Does it pay")
    assert "1,024 × 256 slots with 12.5 % valid in front" in page
    assert "saves 44 % of the time of one GIoU for each pair and 44 % of that of 8" in page
    assert "up to 12.5 % valid the branch saves 5 % or more at any number" in page
    # Of as few warps as here, one is empty with 12.5 % valid.
    assert "Scattered, from 100 % valid on hardly a warp is empty" in page
    assert "it saves as much in 0 of 6 cases" in page
    assert "It costs 5 % or more in 0 of all 36 cases" in page
    assert page.count("| 12.5 % | 56.2 % | 56.2 % | always | 100 % | 100 % | never |") == 2
    assert page.count("<details><summary>32,768 × 256 slots</summary>") == 1
    assert "on the formula hides it" not in page
    assert "ends last" not in page
    question, short = in_short(document_of(times))
    assert len(question.split()) <= 8
    assert "it saves 44 % of the time of one GIoU" in short
    assert short.endswith("it saves 5 % or more in 0 of 6 cases.")
    assert "each kernel has 24 registers a thread" in page
    assert "Which warps these are does not matter" in page
    assert "was not found out" not in page
    document = document_of(times)
    document["kernels"][NO_BRANCH]["registers"] = 40
    assert "no branch: 40 registers a thread" in section(document)


def test_the_page_says_what_the_second_read_and_the_order_of_warps_cost() -> None:
    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        if variant == IN_TURN:
            return 13.0
        if variant == BEFORE_READING:
            return {1: 10.3, 2: 12.0, 8: 10.1}[repetitions]
        return 10.0 if variant == NO_BRANCH else 10.2

    page = section(document_of(times))
    assert (
        "at 2 ×: 32,768 × 256 slots take 12.0 µs, with the branch around the formula 10.2 and "
        "without one 10.0. From 8 × on the formula hides it." in page
    )
    assert "Why that is slower was not found out" in page
    assert "at worst 20 % (1,024 × 256 slots" in page


def test_the_page_counts_the_fullest_scheduler_where_the_model_misses_most() -> None:
    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        missed = layout == "scattered" and share == 0.01 and repetitions == 8
        if variant == NO_BRANCH or share == 1 or missed:
            return 10.0 * repetitions
        return (3.0 if layout == "scattered" else 1.0) * (repetitions if share else 1)

    document = document_of(times, images=[1024], shares=[0.0, 0.01, 1.0])
    document["machine"]["gpu"] = "NVIDIA H200"
    assert "ends last" not in section(document)  # the count is not what was measured
    missed = Report(document).cell(1024, "scattered", 0.01, 8)
    share = missed["active_warps"]
    missed["microseconds"][BEFORE_READING]["median"] = 80 * fullest(share, 16, 528)
    words = f"{100 * fullest(share, 16, 528):.3g} % of the fullest one's"
    assert f"each of 16 warps of 528 schedulers has work with a chance of {100 * share:.3g}" in (
        section(document)
    )
    assert words in section(document)
    document["machine"]["gpu"] = "another"
    assert "ends last" not in section(document)
    document["machine"]["gpu"] = "NVIDIA H200"
    for cell in document["cells"]:
        cell["images"] = 2048  # more than are on the GPU at once
    document["settings"]["images"] = [2048]
    assert "ends last" not in section(document)


def test_the_fullest_scheduler_is_the_largest_of_what_chance_deals() -> None:
    assert fullest(0.3, 16, 1) == pytest.approx(0.3)
    assert fullest(0.0, 16, 528) == pytest.approx(0)
    assert fullest(1.0, 16, 528) == pytest.approx(1)
    generator = torch.Generator().manual_seed(0)
    warps = torch.rand(2000, 528, 16, generator=generator) < 0.3
    dealt = warps.sum(dim=2).amax(dim=1).double().mean().item() / 16
    assert fullest(0.3, 16, 528) == pytest.approx(dealt, abs=0.005)


def test_the_picture_names_shares_once(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    def times(variant: str, repetitions: int, share: float, layout: str) -> float:
        return 10.0 if variant == NO_BRANCH or share else 2.0

    picture = tmp_path / "picture.svg"
    plot(document_of(times), picture)
    words = re.findall("<text[^>]*>([^<]*)</text>", picture.read_text())
    assert words.count("12.5 to 100 %") == words.count("0 %") == 4
    assert "a GPU, torch 2" in " ".join(words)


def test_it_says_that_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDACXX", "no-such-compiler")
    with pytest.raises(UnavailableError, match="needs nvcc, by CUDACXX or on the PATH"):
        compiled("sm_90", tmp_path)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) is None:
        pytest.skip("needs nvcc")
    return compiled("sm_90", tmp_path_factory.mktemp("library"))


def test_the_source_compiles(library: Path) -> None:
    loaded = ctypes.CDLL(str(library))
    for name in ("launch", "registers", "threads_at_once", "words"):
        assert hasattr(loaded, name)


def test_the_compiler_kept_the_branches_and_the_loop(library: Path) -> None:
    """As kernels.py says."""
    if shutil.which("cuobjdump") is None or shutil.which("nvdisasm") is None:
        pytest.skip("needs cuobjdump and nvdisasm")
    dumped = subprocess.run(
        ["cuobjdump", "-sass", str(library)], capture_output=True, text=True, check=True
    ).stdout
    kernels = {}
    for text in dumped.split("Function : ")[1:]:
        (skip,), (warps,) = (re.findall(rf"{word}E(\d)E", text) for word in ("Skip", "Warps"))
        found = re.findall(r"/\*([0-9a-f]{4})\*/ +(.*?) ;", text)
        kernels[VARIANTS[int(skip) + int(warps)]] = {
            int(place, 16): words for place, words in found
        }
    loops = set()
    for name, code in kernels.items():
        (reads,) = (at for at, words in code.items() if "LDG" in words and "STRONG" in words)
        parts = [at for at, words in code.items() if words.startswith("BSSY")]
        assert len(parts) == (0 if name == NO_BRANCH else 1)
        if parts:
            skips = min(at for at, words in code.items() if "BRA" in words and at > parts[0])
            assert (reads < skips) == (name == AROUND_FORMULA)
        (back,) = (
            (at, int(words.split("0x")[1], 16))
            for at, words in code.items()
            if "BRA 0x" in words and words.startswith("@") and int(words.split("0x")[1], 16) < at
        )
        end, begin = back
        loop = [words.split()[0] for at, words in code.items() if begin <= at < end]
        assert sum("MUFU.RCP" in words for words in loop) == 2
        loops.add(len(loop) + 1)
    assert kernels.keys() == set(VARIANTS)
    assert len(loops) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernels_agree_on_a_gpu() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    try:
        kernels = Kernels(device)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    batch = make_batch(5, device)
    launches = {name: kernels.launch(name) for name in VARIANTS}
    for layout in LAYOUTS:
        for share in (0.0, 0.3, 1.0):
            check(launches, batch, make_case(batch, layout, share), [1, 2, 3, 64])
    for name in VARIANTS:
        assert 0 < kernels.describe(name)["registers"] <= 64
        assert kernels.describe(name)["threads_at_once"] >= 256
