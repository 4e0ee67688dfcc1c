# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What RF-DETR's criterion alone is given; the rest is a row of test_detr.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from criteria import Case, arguments_of, assert_close, made, run
from detr_cases import QUERIES
from rf_detr import GROUPS, RF_DETR, both
from rfdetr.utilities.tensors import pad_targets_to_fixed_count
from surroundings import assert_reads_nothing

Given = dict[str, Any]


def assert_same(
    case: Case, change: Callable[[Given], Given] = lambda given: given, in_training: bool = True
) -> None:
    """With other arguments."""
    config = both(in_training, ia_bce_loss=True)

    def results(criterion: Any) -> Any:
        def changed(config: Any, **given: Any) -> Any:
            return criterion(config, **change(given))

        return run(RF_DETR, changed, case, config, torch.float64)

    for theirs, ours in zip(results(RF_DETR.theirs), results(RF_DETR.ours), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("number", [7, torch.tensor(2.5)], ids=str)
def test_a_number_of_boxes(number: Any) -> None:
    assert_same(made(RF_DETR), lambda given: {**given, "num_boxes": number})


def test_a_number_of_boxes_in_a_list() -> None:
    """With which the original's losses have a dimension."""
    given = arguments_of(RF_DETR, made(RF_DETR))
    config = both(ia_bce_loss=True)
    totals = [
        RF_DETR.ours(config, **given, num_boxes=number)[0] for number in (2.5, torch.tensor([2.5]))
    ]
    assert torch.equal(*totals)
    with pytest.raises(ValueError, match=r"num_boxes has shape \(2,\); it must have one element"):
        RF_DETR.ours(config, **given, num_boxes=torch.ones(2))


def padded(given: Given, rows: int = 6) -> Given:
    return {**given, "targets": [*pad_targets_to_fixed_count(given["targets"], rows)]}


@pytest.mark.parametrize("rows", [6, QUERIES + 5])
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
def test_padded_targets(in_training: bool, counts: tuple[int, ...], rows: int) -> None:
    assert_same(made(RF_DETR, counts), lambda given: padded(given, rows), in_training)


def test_padded_targets_are_not_read_on_the_host() -> None:
    given = padded(arguments_of(RF_DETR, made(RF_DETR)))
    assert_reads_nothing(RF_DETR.ours, config=both(ia_bce_loss=True), **given)


def test_an_encoder_with_fewer_places_than_queries() -> None:
    case = made(RF_DETR)
    for name in ("scores_enc", "boxes_enc"):
        case.values[name] = case.values[name][:, : GROUPS * 4].clone()
    assert_same(case)


def test_another_head_for_the_encoder() -> None:
    case = made(RF_DETR)
    case.values["scores_enc"] = torch.cat((case.values["scores_enc"],) * 2, -1)
    assert_same(case)


def test_classes_that_the_criterion_does_not_have() -> None:
    case, config = made(RF_DETR), both(use_varifocal_loss=True)
    config.ours.num_classes = 7
    with pytest.raises(ValueError, match=r"have 5 classes, criterion\.num_classes is 7"):
        RF_DETR.ours(config, **arguments_of(RF_DETR, case))


def test_points() -> None:
    case = made(RF_DETR)
    point = torch.tensor([0.5, 0.5, 0, 0])
    for name, values in case.values.items():
        if "boxes" in name:
            values[:] = point
    for each in case.labels:
        each["boxes"][:] = point
    assert_same(case)
