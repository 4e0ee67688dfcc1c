# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of scale: from end to end in small, and what it concludes from times that are known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, distributed

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

import scale_document

from benchmarks.common.agreement import DisagreementError
from benchmarks.common.cases import SHORTEST_SIDE
from benchmarks.common.losses import UnavailableError
from benchmarks.scale import __main__ as scale
from benchmarks.scale import agreement, cases, ranks
from benchmarks.scale.agreement import check_dense, check_ragged, exact_sum, samples
from benchmarks.scale.cases import (
    DISTRIBUTIONS,
    Job,
    Row,
    Subject,
    chunks,
    crowd_case,
    dense_pairs,
    dense_subject,
    jobs,
    lengths_of,
    needed_bytes,
    ragged_subject,
)
from benchmarks.scale.findings import chosen, findings
from benchmarks.scale.measure import BOTH, FORWARD
from benchmarks.scale.model import all_reduce_seconds, fit
from benchmarks.scale.page import in_short, section
from benchmarks.scale.plot import plot
from benchmarks.scale.ranks import COUNT, LOSS, NORMALIZED, STEP, gradient_of, step_with
from benchmarks.scale.settings import QUICK, Settings

CPU = torch.device("cpu")
TINY = replace(
    QUICK,
    sizes=(10, 40, 90),
    batches=(4,),
    slots=(8,),
    article=(4, 8),
    crowd=(6, 16),
    means=(3,),
    seconds=0.0,
    fewest_rounds=2,
    rank_sizes=(10, 20),
    parameters=(50,),
    rank_rounds=3,
)
GIB = 2**30


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(scale, "settings_for", lambda device, quick: TINY)
    return TINY


def run(path: Path, *more: str) -> int:
    return scale.main(["--device", "cpu", "--json", str(path), *more])


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_it_measures_reports_and_resumes(
    tiny: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    path, chart = tmp_path / "scale.json", tmp_path / "scale.svg"
    assert run(path, "--plot", str(chart)) == 0
    report = json.loads(path.read_text())
    assert report["command"].startswith("python -m benchmarks.scale --device cpu")
    assert report["machine"]["torch"] == torch.__version__

    rows = report["one"]["rows"]
    assert {(row["sweep"], row["variant"], row["measured"]) for row in rows} == {
        *(("pairs", name, each) for name in ("boxloss", "eager") for each in (FORWARD, BOTH)),
        *(
            (sweep, name, each)
            for sweep in ("images", "slots", "distributions")
            for name in ("padded", "lengths", "offsets", "eager")
            for each in (FORWARD, BOTH)
        ),
    }
    several = report["several"]
    assert (several["ranks"], several["backend"]) == (2, "gloo")
    steps = [(row["boxes"], row["step"]) for row in chosen(several["rows"], part="step")]
    names = (LOSS, NORMALIZED, STEP, step_with(50))
    assert steps == [(boxes, name) for boxes in tiny.rank_sizes for name in names]
    added = [row["step"] for row in chosen(several["rows"], part="collective")]
    assert added == [COUNT, gradient_of(50)]
    for row in rows + several["rows"]:
        for times in row["microseconds"].values():
            assert 0 < times["p10"] <= times["median"] <= times["p90"]
    printed = capsys.readouterr().out
    assert printed.index("all agree in loss and gradient") < printed.index("dense pairs, wall time")
    assert "gloo" in chart.read_text()
    assert "2 GPUs, gloo" in section(report)

    def measure(*_: object) -> list[Row]:
        raise AssertionError("it is in the file")

    monkeypatch.setattr(scale, "measure", measure)
    monkeypatch.setattr(scale, "measure_ranks", measure)
    assert run(path) == 0
    printed = capsys.readouterr().out
    number = len(list(jobs(tiny)))
    assert f"{number} of {number} cases are in the file already" in printed
    assert "2 of 2 sizes are in the file already" in printed
    again = json.loads(path.read_text())
    assert again["one"]["rows"] == rows
    assert again["several"]["rows"] == several["rows"]


def fake_measure(asked: list[Row]) -> Callable[[Job, torch.device, Settings], list[Row]]:
    """As if it took no time; `asked` collects for what."""
    rows = scale_document.one_rows()

    def measure(job: Job, device: torch.device, settings: Settings) -> list[Row]:
        asked.append(job.where)
        like = {key: value for key, value in job.where.items() if key not in ("size", "mean")}
        size = job.where.get("size", 1)
        return [
            row | job.where | {"bytes": row["bytes"] * size, "boxes": size}
            for row in chosen(rows, **like)[:8]
        ]

    return measure


def test_a_run_that_was_cut_short_goes_on(
    tiny: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "scale.json"
    asked: list[Row] = []
    whole = fake_measure(asked)

    def cut_short(job: Job, device: torch.device, settings: Settings) -> list[Row]:
        if len(asked) == 3:
            raise KeyboardInterrupt
        return whole(job, device, settings)

    monkeypatch.setattr(scale, "measure", cut_short)
    with pytest.raises(KeyboardInterrupt):
        run(path, "--parts", "one")
    monkeypatch.setattr(scale, "measure", whole)
    assert run(path, "--parts", "one") == 0
    assert asked == [job.where for job in jobs(tiny)]

    assert "3 of 11 cases are in the file already" in capsys.readouterr().out

    monkeypatch.setattr(scale, "settings_for", lambda *_: replace(TINY, fewest_rounds=3))
    asked.clear()
    assert run(path, "--parts", "one") == 0
    assert asked == [job.where for job in jobs(tiny)]
    assert "the file's is of another machine or settings, and goes" in capsys.readouterr().out


def fake_ranks(asked: list[Any]) -> Callable[..., Iterator[Row]]:
    def measure(
        number: int, device: str, settings: Settings, sizes: list[int], collectives: bool
    ) -> Iterator[Row]:
        asked.append((tuple(sizes), collectives))
        if collectives:
            for moved, name in ((4, COUNT), (200, gradient_of(50))):
                times = scale_document.times(wall=1e-5 + moved * 1e-9)
                yield {"part": "collective", "step": name, "bytes": moved, "microseconds": times}
        for boxes in sizes:
            for name in (LOSS, NORMALIZED, STEP, step_with(50)):
                times = scale_document.times(wall=1e-4 + boxes * 1e-9)
                where = {"part": "step", "step": name, "boxes": boxes, "bytes": boxes}
                yield where | {"microseconds": times, "difference": 0.0}

    return measure


def test_ranks_that_were_cut_short_go_on(
    tiny: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scale.json"
    asked: list[Any] = []
    monkeypatch.setattr(scale, "measure_ranks", fake_ranks(asked))
    assert run(path, "--parts", "several") == 0
    report = json.loads(path.read_text())
    whole = report["several"]["rows"]
    report["several"]["rows"] = whole[:-1]  # the last size lacks a step
    path.write_text(json.dumps(report))
    assert run(path, "--parts", "several") == 0
    assert asked == [((10, 20), True), ((20,), False)]
    assert json.loads(path.read_text())["several"]["rows"] == whole


def test_fewer_gpus_than_asked_for_are_said_out_loud(
    tiny: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Options:
        device, gpus = torch.device("cuda", 0), 2

    printed: list[str] = []

    class Console:
        print = printed.append

    report: dict[str, Any] = {"skipped": {}, "machine": {}, "settings": {}}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    scale.run_several(report, tiny, Options, Console, lambda: None)  # type: ignore[arg-type]
    assert report["skipped"] == {"several": "--gpus 2 given, but there is 1"}
    assert "several" not in report
    assert "--gpus 2 given" in printed[0]


def test_what_the_memory_cannot_hold_is_left_out(
    tiny: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = fake_measure([])

    def measure(job: Job, device: torch.device, settings: Settings) -> list[Row]:
        if job.where == {"sweep": "pairs", "pair": "bf16/u8", "size": 90}:
            raise torch.OutOfMemoryError("out of memory\nand more")
        return whole(job, device, settings)

    monkeypatch.setattr(scale, "measure", measure)
    path = tmp_path / "scale.json"
    assert run(path, "--parts", "one") == 0
    one = json.loads(path.read_text())["one"]
    assert one["skipped"] == {"pairs, bf16/u8, 90": "out of memory"}
    assert not chosen(one["rows"], pair="bf16/u8", size=90)
    assert chosen(one["rows"], pair="f32/f32", size=90)
    assert "skipped pairs, bf16/u8, 90: out of memory" in capsys.readouterr().out


def test_memory_is_looked_at_before_it_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (80 * GIB, 139 * GIB))
    cuda = torch.device("cuda", 0)
    scale.check_memory(Job({"pair": "bf16/u8", "size": 10**9}, None), cuda)
    with pytest.raises(UnavailableError, match="needs 81 GiB, of which 80 are free"):
        scale.check_memory(Job({"pair": "f32/f32", "size": 10**9}, None), cuda)
    assert needed_bytes("f32/f32", 10**9) == 80 * 10**9 + 6 * GIB


# Agreement


def test_disagreement_stops_it_before_any_time_is_printed(
    tiny: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = cases.masked_loss
    monkeypatch.setattr(cases, "masked_loss", lambda *boxes: 1.001 * right(*boxes))
    assert run(tmp_path / "scale.json", "--parts", "one") == 1
    printed = capsys.readouterr()
    assert "scale: error: eager: loss" in printed.err
    assert "µs" not in printed.out


class Wrong(torch.autograd.Function):
    """A loss whose gradient is wrong for one box."""

    @staticmethod
    def forward(ctx: Any, pred: Tensor, place: int) -> Tensor:
        ctx.place = place
        return pred.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        grad = grad.clone()
        grad[ctx.place] *= 1.01
        return grad, None


def wrong_at(place: int, subject: Subject, target: Tensor) -> Subject:
    pred = subject.pred
    return replace(
        subject, losses={"bad": lambda: cases.dense_loss(Wrong.apply(pred, place), target)}
    )


@pytest.mark.parametrize("place", [0, 150, 299])
def test_a_wrong_gradient_is_found_where_samples_are(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "SAMPLE", 10)
    pred, target = dense_pairs("f32/f32", 300, CPU)
    subject = dense_subject(pred, target, "f32/f32")
    assert check_dense(subject, target).keys() == {"boxloss", "eager"}
    with pytest.raises(DisagreementError, match="bad: gradient"):
        check_dense(wrong_at(place, subject, target), target)


@pytest.mark.parametrize("pair", TINY.pairs)
def test_a_wrong_loss_is_found(pair: str) -> None:
    pred, target = dense_pairs(pair, 1000, CPU)
    subject = dense_subject(pred, target, pair)
    worse = {"bad": lambda: 1.0001 * subject.losses["boxloss"]()}
    with pytest.raises(DisagreementError, match="bad: loss"):
        check_dense(replace(subject, losses=worse), target)
    case = crowd_case("uniform", 3, (6, 16), CPU)
    ragged = ragged_subject(case)
    assert check_ragged(ragged, case).keys() == ragged.losses.keys()
    worse = {"bad": lambda: 1.0001 * ragged.losses["offsets"]()}
    with pytest.raises(DisagreementError, match="bad: loss"):
        check_ragged(replace(ragged, losses=worse), case)


def test_chunks_and_samples_hold_each_box_once() -> None:
    assert [(part.start, part.stop) for part in chunks(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert samples(5) == [slice(0, 5)]
    assert [part.start for part in samples(3 * 2**16)] == [0, 2**16, 2**17]
    pred, target = dense_pairs("f32/f32", 100, CPU)
    halves = exact_sum(pred[:30], target[:30]) + exact_sum(pred[30:], target[30:])
    # Of at most 2 each, in float64, in any order.
    assert exact_sum(pred, target) == pytest.approx(halves, abs=100 * 200 * 2.0**-53)


# Ranks


class Queue(list[Any]):
    put = list.append


@pytest.fixture
def one_rank(tmp_path: Path) -> Iterator[None]:
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_ranks_that_disagree_are_found(one_rank: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pred, target = dense_pairs("f32/f32", 100, CPU)
    assert ranks.check(pred, target) < 1e-5
    right = ranks.normalized_loss
    monkeypatch.setattr(ranks, "normalized_loss", lambda *a: 1.0001 * right(*a))
    with pytest.raises(DisagreementError, match="1 ranks: loss"):
        ranks.check(pred, target)


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_a_rank_hands_its_disagreement_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*_: object) -> float:
        raise DisagreementError("wrong")

    monkeypatch.setattr(ranks, "check", check)
    queue = Queue()
    ranks._work(0, 1, "cpu", str(tmp_path), TINY, (10,), True, queue)
    *collectives, error = queue
    assert [row["step"] for row in collectives] == [COUNT, gradient_of(50)]
    assert isinstance(error, DisagreementError)
    assert not distributed.is_initialized()


# Cases


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [0.25, 1.9, 100, 1000])
def test_all_distributions_share_out_as_many_boxes(distribution: str, mean: float) -> None:
    lengths = lengths_of(distribution, 1024, 1024, mean)
    assert len(lengths) == 1024
    assert lengths.sum() == round(1024 * mean)
    assert lengths.min() >= 0
    assert lengths.max() <= 1024


def test_the_heavy_tail_is_heavy() -> None:
    longest = {name: int(lengths_of(name, 1024, 1024, 100).max()) for name in DISTRIBUTIONS}
    assert longest["uniform"] <= 2 * 100 + 10 < longest["half-normal"] < longest["Pareto"] / 2


@pytest.mark.parametrize("pair", TINY.pairs)
def test_dense_pairs_are_ordered_boxes(pair: str) -> None:
    pred, target = dense_pairs(pair, 1000, CPU)
    assert (pred.dtype, target.dtype) == cases.dtypes_of(pair)
    assert pred.requires_grad
    assert (pred[:, 2:] >= pred[:, :2]).all()
    assert (target[:, 2:].int() - target[:, :2].int() >= SHORTEST_SIDE).all()
    assert not torch.equal(dense_pairs(pair, 1000, CPU, seed=1)[1], target)


def test_bytes_are_those_of_the_tensors() -> None:
    pred, target = dense_pairs("bf16/u8", 10, CPU)
    read = pred.nbytes + target.nbytes
    dense = dense_subject(pred, target, "bf16/u8")
    assert dense.bytes["boxloss"] == (read, read + pred.nbytes)

    case = crowd_case("Pareto", 3, (6, 16), CPU)
    assert case.boxes == 18
    of_layouts = ragged_subject(case).bytes
    guesses, gradient = 18 * 4 * 2, 6 * 16 * 4 * 2
    for name, targets in {
        "padded": 6 * 16 * 4,
        "lengths": 18 * 4 + 6 * 8,
        "offsets": 18 * 4 + 7 * 8,
    }.items():
        read = guesses + targets
        assert of_layouts[name] == (read, read + gradient)


def test_eager_is_left_out_where_it_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MOST_EAGER", 50)
    assert dense_subject(*dense_pairs("f32/f32", 50, CPU), "f32/f32").losses.keys() == {
        "boxloss",
        "eager",
    }
    assert dense_subject(*dense_pairs("f32/f32", 51, CPU), "f32/f32").losses.keys() == {"boxloss"}
    assert "eager" not in ragged_subject(crowd_case("uniform", 3, (6, 16), CPU)).losses


# The model


def test_the_model_finds_known_parameters() -> None:
    sizes = [10.0**k for k in range(3, 11)]
    line = fit(sizes, [5e-6 + size / 4e12 for size in sizes])
    assert line.fixed == pytest.approx(5e-6)
    assert line.rate == pytest.approx(4e12)
    assert line.balance == pytest.approx(5e-6 * 4e12)
    assert line.bytes_in(line.seconds(1e6)) == pytest.approx(1e6)
    assert line.r_squared == pytest.approx(1)
    assert line.worst < 1e-9


def test_noise_moves_it_no_further_than_itself() -> None:
    sizes = np.geomspace(1e3, 1e11, 60)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.05, len(sizes)))
    line = fit(sizes.tolist(), ((5e-6 + sizes / 4e12) * noise).tolist())
    assert line.fixed == pytest.approx(5e-6, rel=0.05)
    assert line.rate == pytest.approx(4e12, rel=0.05)
    assert 0.99 < line.r_squared < 1
    assert 0.05 < line.worst < 0.3


def test_neither_part_is_negative() -> None:
    steep = fit([1.0, 2.0, 3.0], [1.0, 3.0, 5.0])  # its line has -1 at 0
    assert steep.fixed == 0
    assert steep.per_byte > 0
    falling = fit([1.0, 2.0, 3.0], [5.0, 3.0, 1.0])
    assert falling.per_byte == 0
    assert falling.fixed > 0
    assert math.isinf(falling.rate)
    assert math.isinf(falling.balance)


def test_two_sizes_at_least() -> None:
    with pytest.raises(ValueError, match="1 sizes and 1 times; allowed: 2 or more"):
        fit([1.0], [1.0])
    with pytest.raises(ValueError, match="2 sizes and 3 times"):
        fit([1.0, 2.0], [1.0, 2.0, 3.0])


def test_an_all_reduce_of_more_ranks() -> None:
    measured = fit([4.0, 4e8], [3e-5 + 4 / 3e11, 3e-5 + 4e8 / 3e11])
    assert all_reduce_seconds(measured, 2, 4e8, 2) == pytest.approx(measured.seconds(4e8))
    # log2(8) = 3 latencies, and 2 * 7/8 of the bytes instead of 2 * 1/2.
    assert all_reduce_seconds(measured, 2, 4e8, 8) == pytest.approx(3 * 3e-5 + 1.75 * 4e8 / 3e11)
    assert all_reduce_seconds(measured, 8, 0, 2) == pytest.approx(1e-5)


# Findings, page and plot


def test_findings_are_what_the_times_were_made_of() -> None:
    found = scale_document.report()["findings"]
    assert len(found["lines"]) == 8  # two pairs of dtypes, two passes, two clocks
    for each in found["lines"]:
        fixed = scale_document.LAUNCH[each["clock"]][each["measured"]]
        of_box = {"f32/f32": (32, 80), "bf16/u8": (12, 32)}[each["pair"]]
        balance = fixed * scale_document.RATE / of_box[each["measured"] == BOTH]
        assert each["line"]["fixed"] == pytest.approx(fixed)
        assert each["balance_boxes"] == pytest.approx(balance)
    for each in found["ragged"]:
        assert (each["lowest"], each["highest"]) == pytest.approx((1.2, 1.2))
    assert all(each["times"] == pytest.approx(1) for each in found["distributions"])

    several = found["ranks"]
    assert several["collective"]["fixed"] == pytest.approx(scale_document.LATENCY)
    assert several["parts_off"] == pytest.approx(0, abs=1e-6)
    first, *_, last = several["shares"]
    assert first["normalizer"] == pytest.approx(30 / 35, rel=1e-3)
    assert first["count"] == pytest.approx(30 / 280, rel=1e-3)
    assert last["count"] < first["count"]
    # 25 million parameters take 30 + 333 µs; the launches and latency take 280 of them.
    wanted = (100e6 / scale_document.LINK - 250e-6) * scale_document.RATE / 80
    assert several["boxes_like"][gradient_of(25_000_000)] == pytest.approx(wanted, rel=1e-3)
    gpus = {row["gpus"]: row for row in several["cluster"]}
    assert [row["gpus"] for row in gpus.values() if row["extrapolated"]] == [8, 64, 1024]
    assert gpus[1024]["step"] - gpus[2]["step"] == pytest.approx(9 * 30e-6)
    assert gpus[8]["count"] == pytest.approx(90e-6, rel=1e-3)


def test_sizes_that_a_run_was_cut_short_in_are_left_out() -> None:
    report = scale_document.report()
    rows = report["several"]["rows"]
    sizes = list(dict.fromkeys(row["boxes"] for row in chosen(rows, part="step")))
    for cut_short, whole in ((1, len(sizes) - 1), (len(rows) - 6, 0), (len(rows), 0)):
        report["several"]["rows"] = rows[: len(rows) - cut_short]
        found = findings(report)
        assert ("ranks" in found) == (whole > 1)
        if whole > 1:
            assert [share["boxes"] for share in found["ranks"]["shares"]] == sizes[:whole]


def test_the_page_says_what_was_found() -> None:
    words = section(scale_document.report())
    assert words.startswith("## Scale")
    assert "**1,000,000,000 pairs take 20.0 ms forward and backward" in words
    assert "4.00 TB/s. Up to some 300,000 the launch decides" in words
    # Of six sizes, the median of 30 / (280 + 80 * boxes / 4e6) µs.
    assert "with up to 10,000,000 boxes on each, adding up their number is about 11%" in words
    assert "| 1,000 | 3.01 (2.95 to 3.16) | 6.02 (5.90 to 6.32) |" in words
    assert "eager / boxloss, float32 / float32, forward + backward |" in words
    assert "measured up to 10,000,000 pairs. No loss, which is at most 2, is" in words
    assert "further than 1e-09 (absolute) from" in words
    assert "With 1,000,000,000 it moves 40% of the bytes in 40% of the time." in words
    assert "longer than float32 / float32" not in words
    assert "holds up nobody" in words
    assert "padded is first" not in words
    assert "Where images are many and few slots valid, lengths win: 65,536 images take" in words
    assert "Where slots are many and few of them valid, lengths win: 4,096 slots take" in words
    assert "padded 1.20 and 1.20, lengths 1.20 and 1.20, ragged 1.20 and 1.20" in words
    assert "caches" not in words
    assert "An all-reduce takes 30.0 µs plus the bytes at 300 GB/s." in words
    # 30 µs of 35 and a bit; and 30 of 835.
    assert "85% (30.0 µs) longer with up to 10,000,000 boxes on each, 4% with 100,000,000." in words
    assert "than the all-reduce of 25 million parameters from 4,200,000 boxes a GPU on" in words
    assert "of 100 million parameters from 54,000,000 boxes a GPU on." in words
    assert (
        "is up to 0% off. Inside the measured step the count costs 30.0 µs, alone 30.0 µs. On"
        in words
    )
    assert "one of 25 million parameters 1.8 times, one of 100 million parameters 5.4" in words
    assert "| 2, measured | 282 µs | 11% | 363 µs | 1.36 ms |" in words
    assert "| 2, modelled | 282 µs | 11% | 363 µs | 1.36 ms |" in words
    assert "| 1,024, modelled | 552 µs | 54% |" in words
    assert "nan" not in words
    assert "offsets" not in words
    assert "python -m benchmarks.scale --gpus 2" in words


def test_the_answer_in_short() -> None:
    question, answer = in_short(scale_document.report())
    assert len(question.split()) <= 8
    assert answer == (
        "From some 300,000 pairs on (float32 / float32, forward + backward, GPU time), of fewer it "
        "is the launch; 1,000,000,000 take 20.0 ms, 4.00 TB/s."
    )


def slower(report: dict[str, Any], times: float, **wanted: Any) -> None:
    """Rows as if they had been measured so."""
    rows = chosen(report["one"]["rows"], **wanted)
    assert rows
    for row in rows:
        for each in row["microseconds"].values():
            each.update({key: times * value for key, value in each.items()})


def test_the_page_says_what_is_otherwise() -> None:
    report = scale_document.report(several=False)
    report["skipped"]["several"] = "--gpus 2 given, but there is 1"
    report["one"]["skipped"]["pairs, f32/f32, 10"] = "it needs 9 GiB, of which 8 are free"
    report["findings"]["distributions"][0]["times"] = 1.5
    words = section(report)
    assert "Several GPUs were not measured: --gpus 2 given, but there is 1." in words
    assert "Left out: pairs, f32/f32, 10: it needs 9 GiB, of which 8 are free." in words
    assert "1.50 times as long: " in words
    assert "the one with the most boxes ends last" in words
    assert "cluster" not in words


def test_the_page_says_which_layout_is_faster_where() -> None:
    report = scale_document.report()
    slower(report, 0.5, sweep="images", size=16, variant="padded")
    slower(report, 2, sweep="images", size=65_536, variant="lengths", measured=FORWARD)
    slower(report, 0.5, sweep="distributions", mean=100, variant="padded")
    words = section(report)
    # 6 µs by 1.2, and what little is moved.
    assert "Up to 16 images of 256 slots, 2.0 of them valid, padded is first" in words
    assert "forward + backward, by up to 3.60 µs, and forward." in words
    assert "Where images are many" not in words
    assert "With 100 boxes in 1,024 slots padded is first although 90% of it is padding" in words
    assert "(not measured)" in words

    slower(report, 2.4, sweep="images", size=16, variant="padded", measured=FORWARD)
    # 20 % of 3.6 µs, and of what little is moved.
    assert "and forward at most 0.726 µs behind." in section(report)


def test_the_page_says_where_the_model_does_not_hold() -> None:
    report = scale_document.report()
    report["machine"]["gpu"] = "NVIDIA H200, 140 GiB, CUDA 13.0"
    slower(report, 3, sweep="images", size=65_536, variant="offsets", measured=FORWARD)
    slower(report, 0.6, sweep="pairs", variant="boxloss", pair="f32/f32", size=10**6)
    slower(report, 1.1, sweep="pairs", variant="boxloss", pair="bf16/u8", size=100)
    words = section(report)
    assert "4.00 TB/s of the H200's 4.8." in words
    assert in_short(report)[1].endswith("4.00 TB/s of the H200's 4.8.")
    # The line says 3 + 8 µs of 0.6 as much; its bytes come in 6.6 - 3 or 15.6 - 6 µs.
    assert "By GPU time it is furthest off with 1,000,000 pairs (float32 / float32, " in words
    assert "it says 67% more than was measured)." in words
    assert "those of 1,000,000 pairs (float32 / float32, forward) at 8.89 TB/s" in words
    assert "ragged 1.20 and 3.60" in words
    assert "worst ragged, forward, with 65,536 images: an image costs time" in words
    # Of 6.0 µs, beside 6.002.
    assert "Up to 100 pairs, bfloat16 / uint8 takes up to 0.599 µs longer" in words

    report["machine"]["gpu"] = "NVIDIA GH200 480GB, 95 GiB, CUDA 13.0"
    words = section(report)
    assert "4.00 TB/s. Up to" in words
    assert "caches" not in words


def test_a_cluster_is_compared_only_with_what_was_measured() -> None:
    report = scale_document.report()
    rows = report["several"]["rows"]
    report["several"]["rows"] = [row for row in rows if row.get("boxes") != 10**5]
    report["findings"] = findings(report)
    words = section(report)
    assert "2, measured" not in words
    assert "Inside the measured step" not in words
    assert "| 2, modelled | 282 µs |" in words


@pytest.mark.parametrize("several", [True, False])
def test_the_plot_is_drawn_from_a_document(several: bool, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "scale.svg"
    plot(scale_document.report(several), path)
    drawn = path.read_text()
    for words in (
        "the launch dominates",
        "float32 / float32, forward",
        "Pareto, mean 100",
        "Forward + backward, by images of 256 slots (bfloat16 / uint8)",
        "slots of each of 1,024 images",
        "1,024 images of 1,024 slots",
        ">ragged<",
    ):
        assert words in drawn
    assert "offsets" not in drawn
    assert ("and 100 million gradients" in drawn) == several
    assert ("A step of 2 ranks, NCCL" in drawn) == several


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device", "tpu"], "'tpu' given; allowed here: cpu"),
        (["--gpus", "1"], "--gpus: 1 given; 2 or more allowed"),
        (["--parts", "three"], "invalid choice: 'three'"),
        (["--plot", "scale.bmp"], "'scale.bmp' given; allowed: .svg"),
        (["--json", "no/such/place.json"], "there is no directory 'no/such'"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(
    arguments: list[str], complaint: str, complaint_of: Callable[..., str]
) -> None:
    assert complaint in complaint_of(scale.parse, arguments)
