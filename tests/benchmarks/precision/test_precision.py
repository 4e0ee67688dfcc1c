# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The program that measures losses under mixed precision, and boxloss' own figures in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.agreement import rounding_to
from benchmarks.common.losses import giou
from benchmarks.precision import __main__ as precision
from benchmarks.precision.losses import BOXLOSS, IN_PIXELS, ORIGINALS, VARIANTS, Variant
from benchmarks.precision.measure import (
    corners,
    exact,
    make_pairs,
    measure,
    measure_rounding,
    unit,
)
from benchmarks.precision.report import DTYPES, ROUNDING, SIDES

CPU = torch.device("cpu")
COUNT = 256
FLOAT32_ROUNDOFF = 2.0**-24


def test_it_measures_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    figures, picture = tmp_path / "figures.json", tmp_path / "picture.svg"
    arguments = ["--quick", "--device", "cpu", "--json", str(figures), "--plot", str(picture)]
    assert precision.main(arguments) == 0

    report = json.loads(figures.read_text())
    assert report["command"].endswith("benchmarks.precision " + " ".join(arguments))
    assert report["machine"].keys() >= {"torch", "torchvision", "transformers", "mmdet"}
    skipped = report["skipped"].keys()
    assert skipped <= {*ORIGINALS, *IN_PIXELS}
    names = [name for name in VARIANTS if name not in skipped]
    found = [(row["dtype"], row["side"], row["variant"]) for row in report["errors"]]
    assert found == [
        (dtype, side, name) for dtype in DTYPES for side in SIDES for name in [*names, ROUNDING]
    ]
    large = [name for name in {**VARIANTS, **IN_PIXELS} if name not in skipped]
    assert [row["variant"] for row in report["large_boxes"]] == large
    printed = capsys.readouterr().out
    assert "bfloat16: error of the gradient of the worst pair, %" in printed
    assert all(name in picture.read_text() for name in [ROUNDING, *(set(names) - BOXLOSS.keys())])


def test_it_runs_without_any_original(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = ("transformers", "torchvision", "ultralytics", "mmdet")
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    figures = tmp_path / "figures.json"
    assert precision.main(["--quick", "--device", "cpu", "--json", str(figures)]) == 0
    report = json.loads(figures.read_text())
    assert report["skipped"].keys() == {*ORIGINALS, *IN_PIXELS}
    assert {row["variant"] for row in report["errors"]} == {*BOXLOSS, ROUNDING}
    printed = " ".join(capsys.readouterr().out.split())
    for name in ("transformers", "torchvision", "Ultralytics", "mmdetection"):
        assert f"{name} is not installed" in printed


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOXLOSS)
def test_boxloss_is_as_exact_as_its_dtypes_allow(name: str, dtype: str, side: int) -> None:
    box_format, loss = BOXLOSS[name].format, BOXLOSS[name].load()
    pairs = make_pairs(side, box_format, DTYPES[dtype], COUNT, CPU)
    _, gradient = exact(loss, pairs)
    # In float32 u over the shortest side, with corners that float32 holds: 316 a derivative of
    # GIoU in any format, see tests/torch/comparison.py, and 250 more of CIoU's, see
    # tests/peers/test_retinanet.py. A few u more are those of the cast and of the norms.
    boxes = [corners(each.double(), box_format) for each in (pairs.pred, pairs.target)]
    shortest = torch.cat([each[:, 2:] - each[:, :2] for each in boxes], dim=1).amin(dim=1)
    roundings = 316 + 250 * ("CIoU" in name)
    arithmetic = roundings * FLOAT32_ROUNDOFF * pairs.scale * unit(box_format) / shortest[:, None]
    allowed = arithmetic + rounding_to(DTYPES[dtype], gradient.abs() + arithmetic)

    errors = measure(loss, pairs)
    assert errors.gradient <= (allowed.norm() / gradient.norm()).item()
    assert errors.worst <= (allowed.norm(dim=1) / gradient.norm(dim=1)).max().item()
    # By the same files each loss, of at most 2.5; their root mean square is at least their mean.
    of_loss = 2.5 * (48 + 250 * ("CIoU" in name)) * FLOAT32_ROUNDOFF
    assert errors.loss <= of_loss / errors.exact_mean_loss
    rounding = measure_rounding(loss, pairs).gradient
    assert 0 < rounding < torch.finfo(DTYPES[dtype]).eps / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["boxloss GIoU, cxcywh", "boxloss GIoU"])
def test_exact_is_the_eager_formula_in_double(name: str, dtype: str) -> None:
    box_format = BOXLOSS[name].format
    pairs = make_pairs(8, box_format, DTYPES[dtype], COUNT, CPU)
    in_pixels = (corners(each.double(), box_format) for each in (pairs.pred, pairs.target))
    losses, _ = exact(BOXLOSS[name].load(), pairs)
    # Areas are 9 and more; eps is 1e-7 at most.
    torch.testing.assert_close(losses, 1 - giou(*in_pixels), rtol=0, atol=1e-7)


def corners_in_half(pred: Tensor, target: Tensor) -> Tensor:
    return 1 - giou(corners(pred, "cxcywh").float(), corners(target, "cxcywh"))


def corners_in_single(pred: Tensor, target: Tensor) -> Tensor:
    return corners_in_half(pred.to(torch.promote_types(pred.dtype, torch.float32)), target)


@pytest.mark.parametrize("side", [4, 16, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_formed_in_half_are_found_out(dtype: str, side: int) -> None:
    pairs = make_pairs(side, "cxcywh", DTYPES[dtype], COUNT, CPU)
    good, bad = (measure(loss, pairs) for loss in (corners_in_single, corners_in_half))
    assert bad.gradient > 10 * good.gradient
    assert bad.median > 5 * good.median
    assert bad.loss > 100 * good.loss


def areas_in_half(pred: Tensor, target: Tensor) -> Tensor:
    return 1 - giou(pred, target.to(pred.dtype))


def test_an_overflow_is_found_out_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(precision, "VARIANTS", BOXLOSS)
    monkeypatch.setattr(precision, "IN_PIXELS", {"half": Variant("xyxy", lambda: areas_in_half)})
    figures = tmp_path / "figures.json"
    assert precision.main(["--quick", "--device", "cpu", "--json", str(figures)]) == 0
    *ours, half = json.loads(figures.read_text())["large_boxes"]
    assert half["variant"] == "half"
    assert half["gradient"] is half["mean_loss"] is None
    assert half["exact_mean_loss"] == pytest.approx(ours[1]["exact_mean_loss"])
    assert all(row["gradient"] < 2.0**-11 for row in ours)
    assert "not finite" in capsys.readouterr().out


@pytest.mark.parametrize("box_format", ["cxcywh", "xyxy"])
def test_pairs_are_what_a_head_gives(box_format: str) -> None:
    pairs = make_pairs(64, box_format, torch.float16, COUNT, CPU)
    assert pairs.pred.shape == pairs.target.shape == (COUNT, 4)
    assert (pairs.pred.dtype, pairs.target.dtype) == (torch.float16, torch.float32)
    pred, target = (corners(each.double(), box_format) for each in (pairs.pred, pairs.target))
    assert torch.equal(target * 8 % 2, torch.ones_like(target))  # odd eighths, exactly
    sides = target[:, 2:] - target[:, :2]
    assert 48 <= sides.min() < 52
    assert 76 < sides.max() <= 80
    spread = (pred - target).std().item()
    assert 0.09 * 64 < spread < 0.11 * 64


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
    assert complaint in complaint_of(precision.parse, arguments)
