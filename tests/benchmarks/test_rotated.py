# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of rotated boxes: its truth is right, and a wrong loss is found out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.runner.agreement import DisagreementError
from benchmarks.studies.rotated import check, exact, expected_of, peers, time_case
from benchmarks.studies.rotated.pairs import FAMILIES, JITTER, draw, in_degrees, in_radians

CPU = torch.device("cpu")
KNOWN = Path(__file__).parents[1] / "core/rotated_pairs.csv"
NUMBERS = ("cx", "cy", "w", "h", "angle")


def test_areas_are_those_of_the_known_pairs() -> None:
    with KNOWN.open() as file:
        rows = list(csv.DictReader(file))

    def column(*names: str) -> Tensor:
        cells = [[float(row[name]) for name in names] for row in rows]
        return torch.tensor(cells, dtype=torch.float64)

    pred, target = (column(*(f"{box}_{each}" for each in NUMBERS)) for box in ("pred", "target"))
    close = {"rtol": 0, "atol": 1e-14}
    for loss, known in ((exact.iou, "iou"), (exact.giou, "giou_hull")):
        torch.testing.assert_close(1 - loss(pred, target), column(known)[:, 0], **close)


@pytest.mark.parametrize("family", FAMILIES)
def test_gaussians_are_those_of_matrices_with_many_digits(family: str) -> None:
    mpmath = pytest.importorskip("mpmath")
    pairs = [each.double() for each in draw(family, 5, CPU)]
    with mpmath.workdps(60):
        for word in ("probiou", "kld", "gwd", "kfiou"):
            losses = exact.LOSSES[word](*pairs).tolist()
            for *boxes, loss in zip(*(each.tolist() for each in pairs), losses, strict=True):
                assert abs(by_matrices(mpmath, word, *boxes) - loss) < 1e-14


def by_matrices(mp: object, word: str, pred: list[float], target: list[float]) -> float:
    """From the papers' formulas."""

    def covariance(box: list[float]) -> object:
        _, _, w, h, angle = (mp.mpf(each) for each in box)
        cos, sin = mp.cos(angle), mp.sin(angle)
        turn = mp.matrix([[cos, -sin], [sin, cos]])
        return turn * mp.diag([w**2, h**2]) * turn.T / (12 if word == "probiou" else 4)

    def trace(matrix: object) -> object:
        return matrix[0, 0] + matrix[1, 1]

    def area(matrix: object) -> object:
        return 4 * mp.sqrt(mp.det(matrix))

    one, other = covariance(pred), covariance(target)
    offset = mp.matrix([mp.mpf(p) - mp.mpf(t) for p, t in zip(pred[:2], target[:2], strict=True)])
    if word == "kfiou":
        common = area(one - one * (one + other) ** -1 * one)
        return 1 - common / (area(one) + area(other) - common)
    if word == "probiou":
        mean = (one + other) / 2
        square = (offset.T * mean**-1 * offset)[0] / 8
        square += mp.log(mp.det(mean) / mp.sqrt(mp.det(one) * mp.det(other))) / 2
        return mp.sqrt(1 - mp.exp(-square))
    if word == "kld":
        square = (offset.T * one**-1 * offset)[0] + trace(one**-1 * other) - 2
        square = (square + mp.log(mp.det(one) / mp.det(other))) / 2
    else:
        root = mp.sqrt(mp.det(one) * mp.det(other))
        square = (offset.T * offset)[0] + trace(one) + trace(other)
        square -= 2 * mp.sqrt(trace(one * other) + 2 * root)
        square /= 4 * mp.sqrt(root)
    return 1 - 1 / (1 + mp.log1p(mp.sqrt(max(square, 0))))


@pytest.mark.parametrize("family", ["pixel, random", JITTER, "contained"])
def test_in_float64_others_formulas_are_the_same(family: str) -> None:
    pairs = [each.double() for each in draw(family, 1000, CPU)]
    others = {
        "iou": peers.clipped_iou,
        "giou": peers.clipped_giou,
        "kld": peers.kld,
        "gwd": peers.gwd,
        "kfiou": peers.kfiou,
    }
    for word, loss in others.items():
        torch.testing.assert_close(loss(*pairs), exact.LOSSES[word](*pairs), rtol=0, atol=1e-5)


def test_degrees_turn_counterclockwise() -> None:
    box = torch.tensor([[1.0, 2, 3, 4, torch.pi / 6]])
    assert in_degrees(box)[0, 4].item() == pytest.approx(-30)
    torch.testing.assert_close(in_radians(in_degrees(box)), box)


@pytest.mark.parametrize("word", ["iou", "probiou"])
def test_a_wrong_loss_is_reported(word: str) -> None:
    case = time_case(word, 500, CPU)
    expected = expected_of(case)

    def loss() -> Tensor:
        return exact.LOSSES[word](case.pred, case.target).mean()

    def without_angle() -> Tensor:
        pred = torch.cat([case.pred[:, :4], case.pred[:, 4:].detach()], -1)
        return exact.LOSSES[word](pred, case.target).mean()

    check("right", loss, case, expected)
    with pytest.raises(DisagreementError, match="in fp64"):
        check("wrong", lambda: 1.001 * loss(), case, expected)
    with pytest.raises(DisagreementError, match="% of gradients"):
        check("wrong", without_angle, case, expected)
