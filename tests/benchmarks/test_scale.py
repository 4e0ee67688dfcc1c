# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How the loss scales: its cases, the model of the cost, and ranks that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.losses import giou
from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies import scale
from benchmarks.studies.scale import (
    DISTRIBUTIONS,
    QUICK,
    check_dense,
    chunks,
    crowd_case,
    dense_pairs,
    exact_sum,
    lengths_of,
    ragged_subject,
    samples,
)
from benchmarks.studies.scale import ranks as ranks_module
from benchmarks.studies.scale.model import all_reduce_microseconds, fit

CPU = torch.device("cpu")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [0.25, 1.9, 100, 1000])
def test_all_distributions_share_out_as_many_boxes(distribution: str, mean: float) -> None:
    lengths = lengths_of(distribution, 1024, 1024, mean)
    assert lengths.shape == (1024,)
    assert lengths.sum() == round(1024 * mean)
    assert lengths.min() >= 0
    assert lengths.max() <= 1024


def test_the_heavy_tail_is_heavy() -> None:
    longest = {name: int(lengths_of(name, 1024, 1024, 100).max()) for name in DISTRIBUTIONS}
    assert longest["uniform"] <= 2 * 100 + 10 < longest["half-normal"] < longest["Pareto"] / 2


def test_chunks_and_samples_hold_each_box_once() -> None:
    assert [(part.start, part.stop) for part in chunks(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert samples(5) == [slice(0, 5)]
    assert [part.start for part in samples(3 * 2**16)] == [0, 2**16, 2**17]
    pred, target = dense_pairs("f32/f32", 100, CPU)
    halves = exact_sum(pred[:30], target[:30]) + exact_sum(pred[30:], target[30:])
    # Of at most 2 each, in float64, in any order.
    assert exact_sum(pred, target) == pytest.approx(halves, abs=100 * 200 * 2.0**-53)


@pytest.mark.parametrize("place", [0, 150, 299])
def test_a_wrong_gradient_is_found_where_samples_are(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "SAMPLE", 10)
    pred, target = dense_pairs("f32/f32", 300, CPU)

    def wrong() -> torch.Tensor:
        boxes = pred.clone()
        boxes.register_hook(lambda grad: grad.index_fill(0, torch.tensor(place), 0.0))
        return (1 - giou(boxes, target)).mean()

    check_dense(pred, target, {"right": lambda: (1 - giou(pred, target)).mean()})
    with pytest.raises(DisagreementError, match="wrong: gradient"):
        check_dense(pred, target, {"wrong": wrong})


def test_a_wrong_loss_is_found_on_any_layout() -> None:
    subject = ragged_subject(crowd_case("uniform", 3, (6, 16), CPU), {})
    assert subject.check(subject.losses).keys() == {"padded", "lengths", "ragged", "eager"}
    for right in subject.losses.values():
        with pytest.raises(DisagreementError, match="wrong: loss"):
            subject.check({"wrong": lambda right=right: 1.0001 * right()})


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_a_rank_hands_its_disagreement_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ranks_module.normalized_loss
    monkeypatch.setattr(ranks_module, "normalized_loss", lambda *a: 1.0001 * right(*a))

    class Queue(list[Any]):
        put = list.append

    queue = Queue()
    ranks_module._work(0, 1, "cpu", str(tmp_path), QUICK, (100,), queue)
    assert "1 ranks: loss" in str(queue[-1])
    assert isinstance(queue[-1], DisagreementError)
    assert len(queue) == 1 + 1 + len(QUICK.parameters)  # the collectives came before it
    assert not distributed.is_initialized()


def test_the_model_finds_known_parameters() -> None:
    sizes = [10.0**k for k in range(3, 11)]
    line = fit(sizes, [5 + size / 4e6 for size in sizes])
    assert line.fixed == pytest.approx(5)
    assert line.per_byte == pytest.approx(1 / 4e6)
    assert line.worst < 1e-9


def test_neither_part_of_the_model_is_negative() -> None:
    steep = fit([1.0, 2.0, 3.0], [1.0, 3.0, 5.0])  # its line has -1 at 0
    assert (steep.fixed, steep.per_byte > 0) == (0, True)
    falling = fit([1.0, 2.0, 3.0], [5.0, 3.0, 1.0])
    assert (falling.per_byte, falling.fixed > 0) == (0, True)


def test_an_all_reduce_of_more_ranks() -> None:
    measured = fit([4.0, 4e8], [30 + 4 / 3e5, 30 + 4e8 / 3e5])
    assert all_reduce_microseconds(measured, 2, 4e8, 2) == pytest.approx(30 + 4e8 / 3e5)
    # log2(8) = 3 latencies, and 2 * 7/8 of the bytes instead of 2 * 1/2.
    assert all_reduce_microseconds(measured, 2, 4e8, 8) == pytest.approx(3 * 30 + 1.75 * 4e8 / 3e5)
