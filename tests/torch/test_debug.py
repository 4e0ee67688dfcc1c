# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""check_boxes, and debug mode, which makes all checks of values in every call."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss.torch import (
    GIoULoss,
    arguments,
    box_losses,
    check_boxes,
    class_loss,
    debug,
    distribution_loss,
    generalized_box_iou_loss,
    giou_loss,
    hungarian_match,
    linear_sum_assignment,
    matching_cost,
    max_iou_match,
    pairwise_iou,
    rotated_box_loss,
    task_aligned_match,
)
from problems import PAIRINGS, problem
from torch import Tensor, tensor

NAN = float("nan")
# As cxcywh they lie in [0, 1]; each other format is wrong for one of them.
TRUE = tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.2, 0.2], [0.8, 0.7, 0.3, 0.2]])
CORNERS = torch.cat((TRUE[:, :2] - TRUE[:, 2:] / 2, TRUE[:, :2] + TRUE[:, 2:] / 2), -1)
ROTATED = torch.cat((TRUE, torch.full((3, 1), -4.0)), -1)
OFFSETS, LABELS = tensor([0, 2, 3]), tensor([0, 1, 2])
LOGITS = torch.arange(18.0).reshape(2, 3, 3) - 9
CXCYWH = {"pred_format": "cxcywh", "target_format": "cxcywh"}


def with_nan(values: Tensor, *place: int) -> Tensor:
    changed = values.clone()
    changed[place] = NAN
    return changed


def of_images(boxes: Tensor) -> Tensor:
    return boxes.expand(2, 3, 4)


BAD_BOXES: list[tuple[Callable[[], Any], str]] = [
    (lambda: check_boxes(TRUE), "boxes[0] is [0.5, 0.5, 0.2, 0.3], which is inverted as 'xyxy'"),
    (lambda: check_boxes(TRUE), "; as 'xywh' or 'cxcywh' none is"),
    (lambda: check_boxes(CORNERS, "cxcywh"), "leaves the image, as 1 of 3 boxes do; as 'xyxy'"),
    (lambda: check_boxes(TRUE, "xywh"), "boxes[2] is [0.8, 0.7, 0.3, 0.2], which as 'xywh' lea"),
    (lambda: check_boxes(-TRUE, "cxcywh"), "which is inverted as 'cxcywh'; as 'xyxy' none is"),
    (lambda: check_boxes(with_nan(CORNERS, 1, 2)), "boxes[1] is [0.2, 0.3, nan, 0.5]; it must"),
    (lambda: check_boxes(CORNERS, labels=LABELS, classes=2), "labels[2] is 2; it must lie in [0,"),
    (lambda: check_boxes(CORNERS, labels=LABELS), "labels need classes, their number, or scores"),
    (lambda: check_boxes(CORNERS, scores=LOGITS), "scores[0, 0, 0] is -9; it must be a probabil"),
    (lambda: check_boxes(CORNERS, "xyx"), "box_format is 'xyx'; allowed: 'xyxy', 'xywh', 'cx"),  # type: ignore[arg-type]
    (lambda: check_boxes(CORNERS, valid=CORNERS > 0), "valid has shape [3, 4]; it must be [3]"),
]


@pytest.mark.parametrize(("call", "words"), BAD_BOXES, ids=count())
def test_bad_boxes_are_told_in_words(call: Callable[[], None], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"boxes": CORNERS.tolist()}, "boxes is list; it must be a tensor"),
    ({"valid": LABELS}, "valid is int64; it must be bool"),
    ({"labels": LABELS.float()}, "labels is float32; it must be an integer dtype"),
    ({"scores": LABELS}, "scores is int64; it must be a floating dtype"),
]


@pytest.mark.parametrize(("given", "words"), WRONG_TYPES)
def test_boxes_of_a_wrong_type(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=f"^check_boxes: {words}"):
        check_boxes(**{"boxes": CORNERS, **given})


@pytest.mark.parametrize("size", [1.0, 640.0])
def test_good_boxes_pass(device: torch.device, size: float) -> None:
    true, corners = (size * boxes.to(device) for boxes in (TRUE, CORNERS))
    check_boxes(corners, labels=LABELS.to(device), scores=LOGITS.to(device).sigmoid())
    check_boxes(true, "cxcywh")
    check_boxes(torch.cat((corners[:, :2], true[:, 2:]), -1), "xywh")
    check_boxes(corners[:0], "xywh")
    valid = tensor([True, False, True], device=device)
    check_boxes(with_nan(corners, 1, 2), valid=valid, labels=LABELS.to(device) * 2, classes=5)


def cost_of(logits: Tensor, labels: Tensor) -> Any:
    return matching_cost(of_images(TRUE), TRUE, OFFSETS, logits=logits, labels=labels)


def match(scores: Tensor, **changed: Any) -> Any:
    values = {"target": CORNERS, "offsets": OFFSETS, "labels": LABELS, "points": TRUE[:, :2]}
    return task_aligned_match(scores, of_images(CORNERS), **(values | changed))


def match_rotated(target: list[list[float]]) -> Any:
    """Padded, of one image."""
    pred, points = torch.tensor([[[0.5, 0.5, 0.2, 0.3, 1.0]]]), torch.tensor([[0.5, 0.5]])
    boxes = torch.tensor([[*target, [0.0] * 5]])
    return task_aligned_match(
        torch.ones(1, 1, 1), pred, points, boxes, None, torch.tensor([[0, -1]])
    )


MATCHED = tensor([[0, -1, 2], [-2, 1, 0]])
SIDES = torch.arange(72.0).reshape(2, 3, 12) % 5


def classified(**changed: Any) -> Any:
    values = {"logits": LOGITS, "target_index": MATCHED, "labels": LABELS, "mode": "bce"}
    return class_loss(**(values | changed))


def localized(**changed: Any) -> Any:
    values = {"logits": SIDES, "target_index": MATCHED, "mode": "fgl", "target": TRUE}
    of_bins = {"reference": of_images(TRUE), "edges": tensor([-1.0, 0.0, 1.0])}
    return distribution_loss(**(values | of_bins | changed))


def both(*layers: Tensor) -> Tensor:
    return torch.stack(layers)


def distilled(**changed: Any) -> Any:
    values = {"logits": both(SIDES, SIDES), "mode": "ddf", "teacher": -SIDES}
    values |= {"target_index": both(MATCHED, MATCHED), "confidence": TRUE[:2, :3]}
    return distribution_loss(**(values | changed))


# What debug mode says of a call, "..." for any words, none where nothing is wrong.
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: box_losses(TRUE, TRUE, **CXCYWH), ""),
    (lambda: box_losses(TRUE, TRUE), "box_losses: pred[0] is [0.5, 0.5, 0.2, 0.3], which is inv"),
    (lambda: GIoULoss()(CORNERS, TRUE), "box_loss: target[0] is [0.5, 0.5, 0.2, 0.3], which is"),
    (lambda: generalized_box_iou_loss(CORNERS, with_nan(CORNERS, 0, 0)), "target[0] is [nan, "),
    (lambda: giou_loss(CORNERS, 640 * CORNERS), "in [0, 1] and target in pixels: ... same unit"),
    (lambda: giou_loss(TRUE, CORNERS, **CXCYWH), "target[2] is [0.65, 0.6, 0.95, 0.8], which as"),
    (lambda: giou_loss(CORNERS, CORNERS, weight=tensor([1, NAN, 1])), "weight[1] is [nan]; it m"),
    (lambda: giou_loss(CORNERS, CORNERS, normalizer=0), "normalizer is 0; it must be more than 0"),
    (lambda: giou_loss(CORNERS, CORNERS, normalizer=0, mask=LABELS > 9), ""),
    (lambda: giou_loss(CORNERS, CORNERS, pred_index=LABELS + 1), "pred_index[2] is 3; it must l"),
    (lambda: rotated_box_loss(ROTATED, ROTATED, "kld"), ""),
    (lambda: rotated_box_loss(-ROTATED, ROTATED, "iou"), "rotated_box_loss: pred[0] ... must not"),
    (lambda: rotated_box_loss(ROTATED, with_nan(ROTATED, 1, 4), "iou"), "target[1] is [0.3, 0.4, "),
    (lambda: cost_of(LOGITS, LABELS), ""),
    (lambda: cost_of(LOGITS, LABELS + 1), "matching_cost: labels[2] is 3; it must lie in [0, 3)"),
    (lambda: cost_of(LOGITS.softmax(-1), LABELS), "matching_cost: logits are the softmax of some"),
    (lambda: matching_cost(of_images(TRUE), CORNERS, OFFSETS), "target[2] is [0.65, 0.6, 0.95, "),
    (lambda: pairwise_iou(of_images(TRUE), CORNERS, OFFSETS), "pairwise_iou: pred[0, 0] is [0.5"),
    (lambda: hungarian_match(LOGITS[0], OFFSETS), ""),
    (lambda: hungarian_match(with_nan(LOGITS[0], 1, 2), OFFSETS), "hungarian_match: cost[1, 2] is"),
    (
        lambda: linear_sum_assignment(
            with_nan(LOGITS, 0, 1, 2), lengths=tensor([[1, 3], [3, 3]]), cost_limit=1
        ),
        "",
    ),
    (lambda: linear_sum_assignment(LABELS[None].log()), "linear_sum... -inf; it must be finite, o"),
    (lambda: linear_sum_assignment(LABELS[None]), ""),
    (lambda: linear_sum_assignment(with_nan(LOGITS, 0, 1, 2)), "cost[0, 1, 2] is nan; ... or inf"),
    (lambda: linear_sum_assignment(-LABELS[None].log(), maximize=True), "is inf; ... or -inf for"),
    (lambda: max_iou_match(TRUE, CORNERS, OFFSETS, high=0.5, low=0.4), "max_iou_match: anchors[0]"),
    (lambda: match(LOGITS.sigmoid()), ""),
    (lambda: match_rotated([[0.4, 0.4, 0.2, 0.3, 9.0]]), ""),
    (lambda: match_rotated([[0.4, 0.4, -0.2, 0.3, 9.0]]), "target[0, 0] ... and height must not"),
    (lambda: match_rotated([[40, 40, 20, 30, 0.0]]), "task_aligned_match: pred in [0, 1] and targ"),
    (lambda: match(LOGITS), "task_aligned_match: scores[0, 0, 0] is -9; it must be a probability"),
    (lambda: match(LOGITS.sigmoid(), points=640 * TRUE[:, :2]), "points in pixels ... in [0, 1]"),
    (
        lambda: match(
            LOGITS.sigmoid(), target=of_images(TRUE), offsets=None, labels=LABELS[None].expand(2, 3)
        ),
        "task_aligned_match: target[0, 0] is [0.5, 0.5, 0.2, 0.3], which is inverted",
    ),
    (
        lambda: classified(
            logits=with_nan(LOGITS, 1, 0),  # which is left out
            query_quality=MATCHED.float().where(MATCHED == 0, NAN).where(MATCHED <= 0, 0.5) + 1e-6,
            weight=LABELS.float(),
            normalizer=3,
        ),
        "",
    ),
    (lambda: classified(logits=LOGITS.softmax(-1)), ""),
    (lambda: classified(logits=LOGITS.softmax(-1), mode="softmax"), "class_loss: ... add up to 1"),
    (lambda: classified(logits=with_nan(LOGITS, 0, 1, 2)), "class_loss: logits[0, 1, 2] is nan"),
    (lambda: classified(labels=LABELS + 1), "class_loss: labels[2] is 3; it must lie in [0, 3)"),
    (lambda: classified(labels=LABELS + 1, target_index=MATCHED.clip(max=1)), ""),
    (lambda: classified(target_index=MATCHED + 1), "target_index[0, 2] is 3; it must lie in [0, 3"),
    (lambda: classified(target_index=MATCHED - 1), "target_index[1, 0] is -3; it must lie in"),
    (lambda: classified(quality=LABELS - 0.5), "quality[0] is -0.5; it must be from 0 to 1"),
    (lambda: classified(query_quality=MATCHED + 1.5), "query_quality[0, 0] is 1.5; it must be"),
    (lambda: classified(quality=LABELS * 0.50025), "quality[2] is 1.0005; it must be from 0 to 1"),
    (lambda: classified(quality=LABELS * 0.5 - 1e-7), ""),  # by rounding
    (lambda: classified(quality=LABELS * 0.5 - 1e-7, mode="mal"), "it must be from 0 to 1"),
    (lambda: classified(weight=with_nan(TRUE[:, 0], 1)), "weight[1] is [nan]; it must be finite"),
    (lambda: classified(normalizer=0), "class_loss: normalizer is 0; it must be more than 0"),
    (
        lambda: localized(
            logits=with_nan(SIDES, 0, 1),  # which is not read
            reference=with_nan(of_images(TRUE), 0, 1),
            quality=MATCHED.float(),
            normalizer=3,
        ),
        "",
    ),
    (lambda: localized(target=with_nan(TRUE, 2), target_index=MATCHED.clip(max=1)), ""),
    (lambda: localized(normalizer=0, target_index=MATCHED.clip(max=-1)), ""),
    (lambda: localized(logits=with_nan(SIDES, 0, 2, 5)), "distribution_loss: logits[0, 2, 5] is n"),
    (lambda: localized(quality=MATCHED - 0.5), "quality[0, 0] is -0.5; ... and not negative"),
    (lambda: localized(reference=with_nan(of_images(TRUE), 1, 2, 3)), "reference[1, 2] ... finite"),
    (lambda: localized(target=with_nan(TRUE, 1, 0)), "target[1] is [nan, 0.4, 0.2, 0.2]; it must"),
    (lambda: localized(target=CORNERS), "target[2] is [0.65, 0.6, 0.95, 0.8], which as 'cxcywh'"),
    (lambda: localized(target=640 * TRUE), "reference in [0, 1] and target in pixels: they must"),
    (
        lambda: localized(edges=tensor([-1.0, 1.0, 1.0])),
        "edges[2] is 1, not more than edges[1], which is 1; edges must increase",
    ),
    (lambda: localized(edges=tensor([-1.0, 0.0, NAN])), "edges[2] is [nan]; it must be finite"),
    (lambda: localized(normalizer=0), "distribution_loss: normalizer is 0; it must be more than 0"),
    (
        lambda: distilled(
            logits=both(SIDES, with_nan(SIDES, 1, 0)),  # which is left out
            teacher=with_nan(-SIDES, 1, 0),
            confidence=with_nan(TRUE[:2, :3], 1, 0).where(MATCHED < 0, -1),
            quality=both(MATCHED, MATCHED).float(),
        ),
        "",
    ),
    (lambda: distilled(logits=both(SIDES, with_nan(SIDES, 0, 1, 3))), "logits[1, 0, 1, 3] is nan;"),
    (lambda: distilled(teacher=with_nan(SIDES, 0, 1, 3)), "[0, 1, 3] is nan; it must be a number"),
    (lambda: distilled(teacher=both(SIDES, with_nan(SIDES, 1, 1, 0))), "teacher[1, 1, 1, 0] is na"),
    (lambda: distilled(confidence=MATCHED.float()), "confidence[0, 1] is -1; it must be finite"),
]


@pytest.mark.parametrize(("call", "words"), CALLS, ids=count())
def test_debug_mode_looks_at_each_calls_values(call: Callable[[], Any], words: str) -> None:
    call()
    with debug(), debug():
        if not words:
            call()
            return
        with pytest.raises(ValueError, match=re.escape(words).replace(r"\.\.\.", ".*")):
            call()
    call()


def test_another_thread_may_leave_it_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.compiler, "is_compiling", lambda: setattr(arguments, "debug_check", None)
    )
    with debug():
        giou_loss(CORNERS, CORNERS)


def test_the_pages_example(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/losses.md").read_text()
    block = page.split("```python\n")[2].split("```")[0]
    exec(block)
    shown = " ".join(line[2:] for line in block.splitlines() if line.startswith("# "))
    assert capsys.readouterr().out.strip() == shown


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_only_boxes_that_count_are_looked_at(device: torch.device, pairing: str) -> None:
    values = problem(pairing, device, weight=torch.float32)
    if pairing == "offsets":
        values["offsets"] = tensor([1, 3, 8, 8], device=device)  # as many as there are slots
    for boxes, index in (("pred", "pred_index"), ("target", "target_index")):
        if index in values:
            values[index][values[index] >= values[boxes][..., 0].numel()] = -1
    pred, target = (values.pop(name).requires_grad_() for name in ("pred", "target"))
    gradients = torch.autograd.grad(giou_loss(pred, target, **values).sum(), (pred, target))
    with torch.no_grad():
        for boxes, gradient in zip((pred, target), gradients, strict=True):
            boxes[(gradient == 0).all(-1)] = 0 if pairing == "zero_padded" else NAN
    with debug():
        giou_loss(pred, target, **values)
    with torch.no_grad():
        pred[(gradients[0] != 0).any(-1)] = NAN
    with debug(), pytest.raises(ValueError, match=r"^box_loss: pred\[.*\] is \[nan, "):
        giou_loss(pred, target, **values)


def test_what_cannot_be_looked_at_is_not(fresh_compiler: None) -> None:
    with debug():
        compiled = torch.compile(giou_loss, fullgraph=True, backend="aot_eager")
        assert compiled(TRUE, TRUE).isfinite()
        assert torch.vmap(giou_loss)(TRUE, TRUE).isfinite().all()
        assert giou_loss(TRUE.to("meta"), TRUE.to("meta")).is_meta
        with torch._subclasses.FakeTensorMode():
            giou_loss(torch.empty(2, 4), torch.empty(2, 4))


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("1", "ValueError: box_loss: pred[0] is [2, 2, 1, 1]"),
        ("yes", "ValueError: BOXLOSS_DEBUG is 'yes'; it must be 0 or 1"),
    ],
)
def test_the_environment_turns_it_on(word: str, words: str) -> None:
    boxes = "torch.tensor([[2, 2, 1, 1.]])"
    code = f"import torch, boxloss.torch; boxloss.torch.giou_loss({boxes}, {boxes})"
    environment = os.environ | {"BOXLOSS_DEBUG": word}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    last = (result.stderr.strip().splitlines() or [""])[-1]
    assert last.startswith(words)
