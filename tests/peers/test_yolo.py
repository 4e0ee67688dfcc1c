# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""examples/yolo.py beside Ultralytics' own loss."""

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from dense_training import assert_same_training
from torch import Tensor

# It looks for a network, and for its settings in the user's home, when it is imported.
os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.mkdtemp())
pytest.importorskip("ultralytics", reason="ultralytics is not installed")
from ultralytics.utils import loss as theirs

from examples import yolo

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
IMAGES, ANCHORS, BINS, CLASSES = 3, 400, 16, 5
SHORTEST = 1.0  # side, in cells of the grid
EPS = 1e-7


def problem(foreground: float, seed: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """What v8DetectionLoss hands to its BboxLoss; boxes are in cells."""
    torch.manual_seed(seed)
    shape = (IMAGES, ANCHORS)
    points = torch.cartesian_prod(torch.arange(20), torch.arange(20)).to(dtype) + 0.5

    def around(points: Tensor) -> Tensor:
        sides = SHORTEST / 2 + 5 * torch.rand(*shape, 4, dtype=dtype)
        return torch.cat((points - sides[..., :2], points + sides[..., 2:]), -1)

    fg_mask = torch.rand(shape) < foreground
    fg_mask[1] = False  # an image without boxes
    scores = torch.rand(*shape, CLASSES, dtype=dtype)  # Ultralytics has 0 where nothing counts
    return {
        "pred_dist": torch.randn(*shape, 4 * BINS, dtype=dtype).requires_grad_(),
        "pred_bboxes": around(points).requires_grad_(),
        "anchor_points": points,
        "target_bboxes": around(points),
        "target_scores": scores,
        "target_scores_sum": scores[fg_mask].sum().clamp(min=1),
        "fg_mask": fg_mask,
        "imgsz": torch.tensor([160.0, 160.0], dtype=dtype),
        "stride": torch.full((ANCHORS, 1), 8.0, dtype=dtype),
    }


def run(module: type[theirs.BboxLoss], *args: Any) -> dict[str, Any]:
    values = problem(*args)
    box, dfl = module(BINS)(**values)
    (box + dfl).backward()
    gradients = {name: values[name].grad for name in ("pred_bboxes", "pred_dist")}
    share = values["target_scores"].sum(-1).max().item() / values["target_scores_sum"].item()
    return {"box": box, "dfl": dfl, "fg_mask": values["fg_mask"], "share": share, **gradients}


def assert_near(original: dict[str, Any], replaced: dict[str, Any], u: float, eps: float) -> None:
    """Theirs adds eps to heights. With e = eps / side, an area changes by e of it, so iou by 2 e;
    atan(w / h) by e / 2, so v by 4 / pi^2 * 2 * (pi / 2) * e = 1.3 e; and alpha v = v^2 /
    (1 - iou + v), whose slopes are at most 1, by 3.3 e: together less than 6 e of a loss. A
    derivative is a sum of quotients of lengths, at most some 10 of them, over a side: 60 e.

    Rounding is as in test_retinanet.py: 100 u of a loss, and P of P losses' mean; 566 u / side of a
    gradient. Both are rounded. A pair's gradient has the pair's share of all weights."""
    pairs = int(original["fg_mask"].sum())
    e = eps / SHORTEST
    assert replaced["box"].shape == ()
    atol = 6 * e + 2 * 2.5 * (100 + pairs) * u
    torch.testing.assert_close(replaced["box"], original["box"], rtol=0, atol=atol)
    atol = original["share"] * (60 * e + 2 * 566 * u) / SHORTEST
    name = "pred_bboxes"
    torch.testing.assert_close(replaced[name], original[name], rtol=0, atol=atol)
    assert replaced[name][~original["fg_mask"]].eq(0).all()


FOREGROUNDS = (0.03, 0.3, 0.0)


@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("foreground", FOREGROUNDS)
def test_losses_and_gradients(foreground: float, seed: int, dtype: torch.dtype) -> None:
    original, replaced = (
        run(module, foreground, seed, dtype) for module in (theirs.BboxLoss, yolo.FusedBboxLoss)
    )
    assert bool(original["fg_mask"].any()) == (foreground > 0)

    u = UNIT_ROUNDOFF[dtype]
    assert_near(original, replaced, u, EPS)
    # The same operators, but that a pair's weight is added up by another reduction: 5 terms; P
    # pairs are added up with other vectors.
    pairs = int(original["fg_mask"].sum())
    torch.testing.assert_close(
        replaced["dfl"], original["dfl"], rtol=2 * (CLASSES + pairs) * u, atol=0
    )
    torch.testing.assert_close(
        replaced["pred_dist"], original["pred_dist"], rtol=2 * CLASSES * u, atol=0
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_but_eps_is_different(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1e-14 for 1e-7 on both sides, 60 eps drowns in rounding."""
    eps = 1e-14
    monkeypatch.setattr(theirs, "bbox_iou", partial(theirs.bbox_iou, eps=eps))
    monkeypatch.setattr(yolo, "ciou_loss", partial(yolo.ciou_loss, eps=eps))
    original, replaced = (
        run(module, 0.3, seed, torch.float64) for module in (theirs.BboxLoss, yolo.FusedBboxLoss)
    )
    assert_near(original, replaced, UNIT_ROUNDOFF[torch.float64], eps)


@pytest.fixture
def in_double() -> Iterator[None]:
    """Ultralytics' criterion makes tensors of the default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theirs, "bbox_iou", partial(theirs.bbox_iou, eps=1e-14))
    monkeypatch.setattr(yolo, "ciou_loss", partial(yolo.ciou_loss, eps=1e-14))
    assert_same_training(yolo.train, theirs.BboxLoss, yolo.FusedBboxLoss, seed)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("seed", range(3))
def test_training_with_eps(seed: int) -> None:
    """Gradients are 60 eps / side apart, and sides as short as a tenth of a cell at the start."""
    close = 600 * EPS
    assert_same_training(yolo.train, theirs.BboxLoss, yolo.FusedBboxLoss, seed, close)
