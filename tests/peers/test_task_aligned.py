# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match beside Ultralytics' TaskAlignedAssigner with settings that no YOLO has: in
their criterion, whose losses and gradients are others where one anchor has another box. That of
rotated boxes also alone, with lists that no YOLO has."""

from typing import Any

import pytest
import torch
from boxloss.torch import task_aligned_match
from boxloss.torch.compat import use_boxloss
from combinations import long_but
from surroundings import DEVICES, default_dtype
from task_aligned import Problem, problem
from test_yolo import COUNTS, DETECTORS, assert_same, run, without_eps  # noqa: F401
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from ultralytics.utils.tal import RotatedTaskAlignedAssigner

from examples.training import Replace, keep

SETTINGS: tuple[dict[str, Any], ...] = (
    {"topk": 13, "alpha": 1.0},
    {"topk": 1},
    {"topk": 10, "topk2": 1, "beta": 4.0},
)


def with_settings(replace: Replace, settings: dict[str, Any]) -> Replace:
    """In each criterion that the model makes; YOLO26's has two heads."""

    def change(model: nn.Module) -> None:
        replace(model)
        make = model.init_criterion

        def made() -> Any:
            criterion = make()
            for name in ("one2many", "one2one"):
                vars(getattr(criterion, name, criterion).assigner).update(settings)
            return criterion

        model.init_criterion = made

    return change


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", long_but(COUNTS, COUNTS[:1]), ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", DETECTORS)
def test_is_theirs(
    kind: str, settings: dict[str, Any], counts: tuple[int, ...], device: str
) -> None:
    with default_dtype(torch.float64):
        ways = (with_settings(each, settings) for each in (keep, use_boxloss))
        assert_same(*(run(each, kind, counts, 0, device) for each in ways), counts)


def theirs(given: Problem) -> tuple[Tensor, Tensor]:
    """Rows and scores. The assigner has padded lists, and of a class a score that may be 0."""
    boxes, labels, offsets = (given[name] for name in ("target", "labels", "offsets"))
    if offsets is None:
        first = len(boxes[0]) * torch.arange(len(boxes))
        is_box = boxes.sum(-1) > 0
    else:
        first, counts = offsets[:-1], offsets.diff().tolist()
        boxes, labels, is_box = (
            pad_sequence(each.split(counts), batch_first=True)
            for each in (boxes, labels, torch.ones(len(labels), dtype=torch.bool))
        )
    assigner = RotatedTaskAlignedAssigner(
        given["topk"],
        4,
        given["alpha"],
        given["beta"],
        [8, given["min_side"]],
        topk2=given["topk2"],
    )
    predicted = [given[name].double() for name in ("scores", "pred", "points")]
    mask = is_box[..., None]
    labels = labels.clamp(min=0)[..., None]
    _, _, scores, found, slot = assigner(*predicted, labels, boxes.double(), mask)
    return torch.where(found, first[:, None] + slot, -1), scores.sum(-1).float()


RULES: tuple[dict[str, Any], ...] = (
    {"topk": 10, "topk2": None, "alpha": 0.5, "beta": 6.0, "min_side": 16},
    {"topk": 7, "topk2": 1, "alpha": 0.5, "beta": 6.0, "min_side": 16},
    {"topk": 3, "topk2": None, "alpha": 1.0, "beta": 4.0, "min_side": 8},
)


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("is_padded", [False, True], ids=["ragged", "padded"])
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("sides", [1.0, 0.2], ids=["all", "small"])
@pytest.mark.parametrize("seed", range(4))
def test_rotated_boxes(seed: int, sides: float, rule: dict[str, Any], is_padded: bool) -> None:
    """Both in double, without an eps. boxloss decides on float32, where a metric may be 0 that is
    none in double. So scores below 1e-20 are not compared: the divisor is 1e-9 at least, and others
    have metrics above 1e-29. A score has seven roundings, and theirs one here."""
    double = {"scores": torch.float64, "pred": torch.float64}
    given = problem(seed, is_padded=is_padded, is_rotated=True, **double, **rule)
    for name in ("pred", "target"):
        given[name][..., 2:4] *= sides
    row, score, _ = task_aligned_match(**given)
    their_row, their_score = theirs(given)
    is_some, are_some = score > 1e-20, their_score > 1e-20
    assert are_some.any()
    assert torch.equal(is_some, are_some)
    assert torch.equal(row[is_some], their_row[is_some])
    close = {"rtol": 8 * 2.0**-24, "atol": 0}
    torch.testing.assert_close(score[is_some], their_score[is_some], **close)
