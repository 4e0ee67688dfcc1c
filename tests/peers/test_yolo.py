# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""examples/yolo.py beside Ultralytics' own loss."""

from functools import partial

import pytest
import torch
from dense_training import assert_as_near_under_autocast, assert_same_training
from surroundings import (
    DEVICES,
    assert_example_runs,
    autocast,
    computed,
    moved,
    waits,
)
from torch import Tensor

from benchmarks.common.losses import isolate_ultralytics

isolate_ultralytics()
from ultralytics.utils import loss as theirs

from examples import yolo

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
IMAGES, ANCHORS, BINS, CLASSES = 3, 400, 16, 5
SHORTEST = 1.0  # side, in cells of the grid
EPS = 1e-7

Named = dict[str, Tensor]


def problem(foreground: float, seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """What v8DetectionLoss hands to its BboxLoss; boxes are in cells."""
    torch.manual_seed(seed)
    shape, wide = (IMAGES, ANCHORS), computed(dtype)
    points = torch.cartesian_prod(torch.arange(20), torch.arange(20)).to(wide) + 0.5

    def around(points: Tensor) -> Tensor:
        sides = SHORTEST / 2 + 5 * torch.rand(*shape, 4, dtype=wide)
        return torch.cat((points - sides[..., :2], points + sides[..., 2:]), -1)

    fg_mask = torch.rand(shape) < foreground
    fg_mask[1] = False  # an image without boxes
    scores = torch.rand(*shape, CLASSES, dtype=wide)  # Ultralytics has 0 where nothing counts
    return {
        "pred_dist": torch.randn(*shape, 4 * BINS, dtype=wide).to(dtype).requires_grad_(),
        "pred_bboxes": around(points).to(dtype).requires_grad_(),
        "anchor_points": points,
        "target_bboxes": around(points),
        "target_scores": scores,
        "target_scores_sum": scores[fg_mask].sum().clamp(min=1),
        "fg_mask": fg_mask,
        "imgsz": torch.tensor([160.0, 160.0], dtype=wide),
        "stride": torch.full((ANCHORS, 1), 8.0, dtype=wide),
    }


def run(
    module: type[theirs.BboxLoss], values: dict[str, Tensor], dtype: torch.dtype
) -> tuple[Named, Named]:
    """Losses, and their sum's gradients."""
    with autocast(values["fg_mask"].device.type, dtype):
        box, dfl = module(BINS)(**values)
    (box + dfl).backward()
    gradients = {name: values[name].grad for name in ("pred_bboxes", "pred_dist")}
    return {"box": box.detach(), "dfl": dfl.detach()}, gradients


def both(values: dict[str, Tensor], dtype: torch.dtype, device: str = "cpu") -> list[Named]:
    """The original's results, and the example's."""
    modules = theirs.BboxLoss, yolo.FusedBboxLoss
    results = (run(module, moved(values, device), dtype) for module in modules)
    return [moved(losses | gradients, "cpu") for losses, gradients in results]


def assert_near(
    original: Named, replaced: Named, values: dict[str, Tensor], u: float, eps: float
) -> None:
    """Theirs adds eps to heights. With e = eps / side, an area changes by e of it, so iou by 2 e;
    atan(w / h) by e / 2, so v by 4 / pi^2 * 2 * (pi / 2) * e = 1.3 e; and alpha v = v^2 /
    (1 - iou + v), whose slopes are at most 1, by 3.3 e: together less than 6 e of a loss. A
    derivative is a sum of quotients of lengths, at most some 10 of them, over a side: 60 e.

    Rounding is as in test_retinanet.py: 100 u of a loss, and P of P losses' mean; 566 u / side of a
    gradient. Both are rounded. A pair's gradient has the pair's share of all weights."""
    pairs = int(values["fg_mask"].sum())
    share = values["target_scores"].sum(-1).max().item() / values["target_scores_sum"].item()
    e = eps / SHORTEST
    assert replaced["box"].shape == ()
    atol = 6 * e + 2 * 2.5 * (100 + pairs) * u
    torch.testing.assert_close(replaced["box"], original["box"], rtol=0, atol=atol)
    atol = share * (60 * e + 2 * 566 * u) / SHORTEST
    name = "pred_bboxes"
    torch.testing.assert_close(replaced[name], original[name], rtol=0, atol=atol)
    assert replaced[name][~values["fg_mask"]].eq(0).all()


FOREGROUNDS = (0.03, 0.3, 0.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("foreground", FOREGROUNDS)
def test_losses_and_gradients(
    foreground: float, seed: int, dtype: torch.dtype, device: str
) -> None:
    values = problem(foreground, seed, dtype)
    pairs = int(values["fg_mask"].sum())
    assert (pairs > 0) == (foreground > 0)
    original, replaced = both(values, dtype, device)

    u = UNIT_ROUNDOFF[dtype]
    assert_near(original, replaced, values, u, EPS)
    # The same operators, but that a pair's weight is added up by another reduction: 5 terms; P
    # pairs are added up with other vectors.
    torch.testing.assert_close(
        replaced["dfl"], original["dfl"], rtol=2 * (CLASSES + pairs) * u, atol=0
    )
    torch.testing.assert_close(
        replaced["pred_dist"], original["pred_dist"], rtol=2 * CLASSES * u, atol=0
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_but_eps_is_different(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1e-14 for 1e-7 on both sides, 60 eps drowns in rounding."""
    set_eps(monkeypatch, 1e-14)
    values = problem(0.3, seed, torch.float64)
    results = both(values, torch.float64)
    assert_near(*results, values, UNIT_ROUNDOFF[torch.float64], 1e-14)


def set_eps(monkeypatch: pytest.MonkeyPatch, eps: float) -> None:
    monkeypatch.setattr(theirs, "bbox_iou", partial(theirs.bbox_iou, eps=eps))
    monkeypatch.setattr(yolo, "ciou_loss", partial(yolo.ciou_loss, eps=eps))


@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int) -> None:
    values = problem(0.3, seed, torch.bfloat16)
    assert_as_near_under_autocast(run, theirs.BboxLoss, yolo.FusedBboxLoss, values)


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    set_eps(monkeypatch, 1e-14)
    assert_same_training(yolo.train, theirs.BboxLoss, yolo.FusedBboxLoss, seed, counts)


@pytest.mark.parametrize("seed", range(3))
def test_training_with_eps(seed: int) -> None:
    """Gradients are 60 eps / side apart, and sides as short as a tenth of a cell at the start."""
    close = 600 * EPS
    assert_same_training(yolo.train, theirs.BboxLoss, yolo.FusedBboxLoss, seed, close=close)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(yolo, 1, capsys)


if torch.cuda.is_available():

    def test_waits_once() -> None:
        """For which anchors have an object."""
        values = moved(problem(0.3, 0, torch.float32), "cuda")
        assert waits(lambda: run(yolo.FusedBboxLoss, values, torch.float32)) == 1
