# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""docs/coming-from.md: both parts of each block compute the same, and what it says of theirs is so.

A block has the other project's lines and then, below "# boxloss", ours. Each side runs through a
section's blocks in names of its own, which begin with the same tensors. What both sides assign in a
block is compared, and the gradients of its sum.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from boxloss.torch import giou_loss
from boxloss.torch.compat import MMDetLoss
from criteria import arguments_of, made
from detr_cases import CLASSES, LAYERS, QUERIES, boxes, generator, logits
from fvcore.nn import giou_loss as detectron2_giou_loss
from rf_detr import RF_DETR
from rf_detr import made as set_criterion
from surroundings import DEVICES, default_dtype, moved
from test_mmdet import mmdet
from torch import Tensor
from transformers.loss import loss_for_object_detection as transformers

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text()

# Boxes so small that another eps, or another place for it, shows: eps / area is 1e-4 and more.
SHORTEST = 2.0**-7
ANCHORS, COUNTS = 40, (3, 0, 5)
# In double, where both sides round. Corners are exact, see detr_cases.py. test_torchvision.py has
# 300 u for a loss and 566 u / side for a gradient. A sum of P <= 120 losses, each at most 2.5, is
# right to 2 * 2.5 * (300 + P) P u = 3e-11; a gradient, of at most 2 losses, to
# 2 * 2 * 566 u / side = 3e-11.
CLOSE = (1e-10, 1e-10)
# Theirs adds eps to heights, see test_yolo.py: with e = eps / side it is 6 e of a loss, 60 e / side
# of a gradient. Weights sum up to the normalizer, and none is more than a tenth of it. Another eps
# of ours could hide in that: with one for both, test_yolo.py shows that nothing else is different.
BY_EPS = (6 * 1e-7 / SHORTEST, 60 * 1e-7 / SHORTEST / SHORTEST / 10)

# A score goes by overlaps to the power of 6, twice, and an overlap: 13 times 6 e of boxes that have
# at least 8 pixels. It has no gradient.
BY_OVERLAP = (13 * 6 * 1e-7 / 8, 0)

# Of each block: what both sides assign, and how far apart values and gradients may be.
BLOCKS = {
    "torchvision": [({"total", "loss"}, CLOSE), ({"loss"}, CLOSE), ({"matched"}, (0, 0))],
    "DETR and its relatives": [({"indices", "losses"}, CLOSE), ({"loss"}, CLOSE), ({"iou"}, CLOSE)],
    "RF-DETR": [({"losses"}, CLOSE)],
    "mmdetection": [({"loss"}, CLOSE), ({"loss", "iou", "overlaps"}, CLOSE)],
    "detectron2": [({"loss"}, CLOSE)],
    "Ultralytics and YOLOv5": [
        ({"loss_iou"}, BY_EPS),
        ({"score"}, BY_OVERLAP),
        ({"lbox", "score"}, CLOSE),
    ],
    "YOLOX": [({"loss_iou"}, CLOSE)],
}


def blocks_of(section: str) -> list[tuple[str, str]]:
    text = re.search(rf"^## {section}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)[1]
    return re.findall(r"^```python\n(.*?)^# boxloss\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


# --- What a detector has at that line ---


def few(*shape: int, random: torch.Generator, shift: float = 0.0) -> Tensor:
    """cxcywh, within a tenth of the image, so that many overlap."""
    return boxes(shape, random, shift) / 8


def corners(boxes: Tensor) -> Tensor:
    return torch.cat((boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2), -1)


def dense(random: torch.Generator) -> dict[str, Any]:
    """Boxes on a grid of images and anchors, of which some, none in the second image, count."""
    shape = len(COUNTS), ANCHORS
    fg = torch.rand(shape, generator=random) < 0.5
    fg[1] = False
    return {
        "pred": corners(few(*shape, random=random)).requires_grad_(),
        "target": corners(few(*shape, random=random, shift=2.0**-11)),
        "fg": fg,
    }


def torchvision_names(random: torch.Generator) -> dict[str, Any]:
    """And detectron2's."""
    grid = dense(random)
    true = [corners(few(count, random=random, shift=2.0**-11)) for count in COUNTS]
    rows = [torch.randint(max(n, 1), (ANCHORS,), generator=random) for n in COUNTS]
    return {
        "pred_boxes": grid["pred"],
        "gt_boxes": grid["target"],
        "fg": grid["fg"],
        "fg_mask": grid["fg"],
        "normalizer": 37.5,
        "targets": [{"boxes": each} for each in true],
        "matched": torch.stack(rows).where(grid["fg"], -1),
        "anchors": corners(few(ANCHORS, random=random)),
    }


def detr_names(random: torch.Generator) -> dict[str, Any]:
    shape = len(COUNTS), QUERIES
    return {
        "outputs": {
            "logits": logits((*shape, CLASSES + 1), random),
            "pred_boxes": few(*shape, random=random).requires_grad_(),
        },
        "all_logits": logits((LAYERS, *shape, CLASSES + 1), random),
        "all_boxes": few(LAYERS, *shape, random=random).requires_grad_(),
        "src_boxes": few(20, random=random).requires_grad_(),
        "target_boxes": few(20, random=random, shift=2.0**-11),
        "targets": [
            {
                "boxes": few(count, random=random, shift=2.0**-11),
                "class_labels": torch.randint(CLASSES, (count,), generator=random),
            }
            for count in COUNTS
        ],
        "num_boxes": float(sum(COUNTS)),
    }


def rf_detr_names(random: torch.Generator) -> dict[str, Any]:
    case = made(RF_DETR, COUNTS, seed=random.initial_seed())
    values = {name: each.requires_grad_() for name, each in case.values.items()}
    return {
        "criterion": set_criterion(ia_bce_loss=True),
        **arguments_of(RF_DETR, case._replace(values=values)),
    }


def mmdetection_names(random: torch.Generator) -> dict[str, Any]:
    return {
        "pred": corners(few(20, random=random)).requires_grad_(),
        "target": corners(few(20, random=random, shift=2.0**-11)),
        "weight": torch.rand(20, 4, generator=random),
        "num_pos": 12,
        "priors": corners(few(ANCHORS, random=random)),
        "gt_bboxes": corners(few(5, random=random, shift=2.0**-11)),
    }


def ultralytics_names(random: torch.Generator) -> dict[str, Any]:
    grid = dense(random)
    scores = torch.rand(*grid["fg"].shape, CLASSES, generator=random) * grid["fg"][..., None]
    assert scores.sum(-1).max() < scores.sum() / 10
    return {
        "pred_bboxes": grid["pred"],
        "target_bboxes": grid["target"],
        "fg_mask": grid["fg"],
        "target_scores": scores,
        "target_scores_sum": scores.sum().clamp(min=1),
        **assigner_names(random),
        "pbox": few(20, random=random).requires_grad_(),
        "tbox": few(20, random=random, shift=2.0**-11),
    }


def assigner_names(random: torch.Generator) -> dict[str, Any]:
    """In pixels, a picture of 128 x 128. The last box of each image is padding, and predictions
    are near some box."""
    steps = [torch.arange(stride / 2, 128, stride) for stride in (8, 16, 32)]
    points = torch.cat([torch.cartesian_prod(each, each) for each in steps])
    images, count = len(COUNTS), 6
    first = 80 * torch.rand(images, count, 2, generator=random)
    true = torch.cat((first, first + 8 + 40 * torch.rand(first.shape, generator=random)), -1)
    true[:, -1] = 0
    shape = images, len(points)
    own = torch.randint(count - 1, shape, generator=random)
    near = true[torch.arange(images)[:, None], own]
    return {
        "points": points,
        "pred_scores": torch.rand(*shape, CLASSES, generator=random),
        "pred_pixels": near + 2 * torch.rand(near.shape, generator=random),
        "gt_bboxes": true,
        "gt_labels": torch.randint(CLASSES, (images, count, 1), generator=random),
        "mask_gt": (true.sum(-1, keepdim=True) > 0).to(true),
    }


def yolox_names(random: torch.Generator) -> dict[str, Any]:
    """In pixels."""
    images, anchors = 2, ANCHORS
    fg_masks = torch.rand(images * anchors, generator=random) < 0.3
    return {
        "bbox_preds": (512 * boxes((images, anchors), random)).requires_grad_(),
        "reg_targets": 512 * boxes((int(fg_masks.sum()),), random, shift=2.0**-11),
        "fg_masks": fg_masks,
        "num_fg": int(fg_masks.sum()),
    }


NAMES: dict[str, Callable[[torch.Generator], dict[str, Any]]] = {
    "torchvision": torchvision_names,
    "DETR and its relatives": detr_names,
    "RF-DETR": rf_detr_names,
    "mmdetection": mmdetection_names,
    "detectron2": torchvision_names,
    "Ultralytics and YOLOv5": ultralytics_names,
    "YOLOX": yolox_names,
}


# --- Both sides of each block ---


def leaves(value: Any) -> list[Tensor]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    return [value] if isinstance(value, Tensor) and value.is_leaf and value.requires_grad else []


def run(part: str, names: dict[str, Any]) -> dict[str, Any]:
    """What the lines assign, but for functions, classes and modules."""
    before = dict(names)
    exec(compile(part, "coming-from.md", "exec"), names)
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("_") and not callable(value) and before.get(name) is not value
    }


def flat(value: Any) -> list[Tensor]:
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    return [value] if isinstance(value, Tensor) else [leaf for each in value for leaf in flat(each)]


def gradients(values: list[Tensor], inputs: list[Tensor]) -> list[Tensor | None]:
    losses = [each.sum() for each in values if each.requires_grad]
    for each in inputs:
        each.grad = None
    if losses:
        sum(losses).backward()
    return [each.grad for each in inputs]


def assert_near(value: Tensor, wanted: Tensor, atol: float) -> None:
    # pairwise_iou gives float32: it rounds once.
    rtol = 2.0**-24 if value.dtype == torch.float32 else 0
    assert torch.isfinite(wanted).all()
    torch.testing.assert_close(value.to(wanted.dtype), wanted, rtol=rtol, atol=atol)


def test_all_blocks_are_compared() -> None:
    assert PAGE.count("```python") == sum(map(len, BLOCKS.values()))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("section", BLOCKS)
def test_both_sides_agree(
    section: str, seed: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mmdet.models.losses", mmdet)
    bbox = SimpleNamespace(bbox_overlaps=mmdet.bbox_overlaps)
    monkeypatch.setitem(sys.modules, "mmdet.structures.bbox", bbox)
    with default_dtype(torch.float64):
        names = NAMES[section](generator(seed)) | {"torch": torch}
        sides = [moved(names, device) for _ in range(2)]
        inputs = [leaves(names) for names in sides]
        for parts, (compared, (close, close_gradient)) in zip(
            blocks_of(section), BLOCKS[section], strict=True
        ):
            theirs, ours = map(run, parts, sides)
            assert compared == theirs.keys() & ours.keys()
            wanted, values = (flat([side[name] for name in compared]) for side in (theirs, ours))
            for value, its in zip(values, wanted, strict=True):
                assert_near(value, its, close)
            by_inputs = gradients(wanted, inputs[0]), gradients(values, inputs[1])
            for theirs_by, ours_by in zip(*by_inputs, strict=True):
                assert (ours_by is None) == (theirs_by is None)
                if theirs_by is not None:
                    assert_near(ours_by, theirs_by, close_gradient)
                    assert theirs_by.abs().max() > 10 * close_gradient


# --- What the page says of theirs, besides docs/found.md ---

BOX = torch.tensor([[10.0, 10.0, 20.0, 20.0]])
POINT = torch.tensor([[15.0, 15.0, 15.0, 15.0]])
INVERTED = torch.tensor([[19.0, 11.0, 12.0, 18.0]])
# Areas beyond float16.
LARGE = torch.tensor([[0.0, 0.0, 400.0, 400.0]]).half()
OTHER = torch.tensor([[8.0, 8.0, 400.0, 400.0]]).half()


def test_transformers() -> None:
    theirs = transformers.generalized_box_iou
    with pytest.raises(ValueError, match="corner"):
        theirs(INVERTED, BOX)
    assert giou_loss(INVERTED, BOX, eps=0.0).isfinite()
    assert theirs(POINT, POINT).isnan()
    assert giou_loss(POINT, POINT, eps=0.0).isnan()
    assert giou_loss(POINT, POINT, eps=1e-12) == 1


def test_unions_of_mmdetection() -> None:
    big, small = BOX - 10, (BOX - 10) / 2
    for scale, same in ((1.0, True), (1e-3, False)):  # a union of 100, and of 1e-4
        pair = scale * small, scale * big
        ours, theirs = MMDetLoss("iou_log", eps=1e-3)(*pair), mmdet.IoULoss(eps=1e-3)(*pair)
        assert torch.isclose(ours, theirs) == same


def test_halves() -> None:
    for theirs in (mmdet.GIoULoss(), detectron2_giou_loss):
        assert not theirs(LARGE, OTHER).isfinite()
    assert giou_loss(LARGE, OTHER) < 0.1
