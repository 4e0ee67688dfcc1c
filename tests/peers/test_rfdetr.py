# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RF-DETR's criterion by use_boxloss beside its own, on the same numbers, in double."""

import copy
from collections.abc import Callable
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import rf_detr_criterion, use_boxloss
from detr_cases import COUNTS, QUERIES
from rfdetr.models.criterion import SetCriterion
from rfdetr.models.matcher import HungarianMatcher
from rfdetr.utilities.tensors import pad_targets_to_fixed_count
from surroundings import (
    HALVES,
    assert_as_near,
    assert_reads_nothing,
    autocast,
    computed,
    moved,
    rounded,
    waits,
)
from torch import Tensor, distributed

CLASSES, GROUPS, LAYERS = 5, 13, ("", "_0", "_1", "_enc")
WEIGHTS = {"loss_ce": 1.0, "loss_bbox": 5.0, "loss_giou": 2.0}
MODES: dict[str, dict[str, Any]] = {
    "IA-BCE": {"ia_bce_loss": True},
    "IA-BCE, groups summed": {"ia_bce_loss": True, "sum_group_losses": True},
    "position": {"use_position_supervised_loss": True},
    "varifocal": {"use_varifocal_loss": True},
    "focal": {},
}
# In double, relatively; each gradient as a vector. A sum of P <= 312 pairs is right to
# (48 + 4 (17 + P)) 2 u = 3e-13, see detr_cases.py, one of 3,900 scores to 9e-13, and a box'
# gradient to 7e-14, see training_cases.py.
CLOSE = 1e-12

Leaves = dict[str, Tensor]


def made(losses: tuple[str, ...] = ("labels", "boxes", "cardinality"), **mode: Any) -> SetCriterion:
    weights = {f"{name}{layer}": each for layer in LAYERS for name, each in WEIGHTS.items()}
    matcher = HungarianMatcher(cost_class=2, cost_bbox=5, cost_giou=2)
    return SetCriterion(CLASSES, matcher, weights, 0.25, [*losses], GROUPS, **mode)


def leaves(counts: tuple[int, ...], in_training: bool, seed: int = 0) -> Leaves:
    """Scores and boxes of each layer, by name."""
    random = cases.generator(seed)
    shape = len(counts), QUERIES * (GROUPS if in_training else 1)
    made = {f"scores{layer}": cases.logits((*shape, CLASSES), random) for layer in LAYERS}
    return made | {f"boxes{layer}": cases.boxes(shape, random) for layer in LAYERS}


def truth(counts: tuple[int, ...], rows: int | None = None, seed: int = 100) -> Any:
    targets = [
        {"boxes": each["boxes"], "labels": each["class_labels"] % CLASSES}
        for each in cases.true_boxes(counts, cases.generator(seed))
    ]
    return targets if rows is None else [*pad_targets_to_fixed_count(targets, rows)]


def outputs_of(values: Leaves) -> dict[str, Any]:
    last, *others, encoder = (
        {"pred_logits": values[f"scores{layer}"], "pred_boxes": values[f"boxes{layer}"]}
        for layer in LAYERS
    )
    return {**last, "aux_outputs": others, "enc_outputs": encoder}


def total_of(criterion: SetCriterion, losses: Leaves) -> Tensor:
    return sum(weight * losses[name] for name, weight in criterion.weight_dict.items())


def run(
    criterion: SetCriterion,
    values: Leaves,
    targets: Any,
    dtype: torch.dtype = torch.float64,
    **arguments: Any,
) -> tuple[Leaves, Leaves]:
    """Losses, and the gradients of their weighted sum."""
    values = moved({name: each.requires_grad_() for name, each in values.items()}, "cpu", dtype)
    with autocast("cpu", dtype):
        losses = criterion(outputs_of(values), cases.cast(targets, computed(dtype)), **arguments)
    gradients = torch.autograd.grad(total_of(criterion, losses), [*values.values()])
    return losses, dict(zip(values, gradients, strict=True))


def both(in_training: bool, **mode: Any) -> tuple[SetCriterion, SetCriterion]:
    original = made(**mode).train(in_training)
    replaced = copy.deepcopy(original)
    use_boxloss(replaced)
    return original, replaced


def assert_same(original: SetCriterion, replaced: SetCriterion, *given: Any, **more: Any) -> None:
    for theirs, ours in zip(
        run(original, *given, **more), run(replaced, *given, **more), strict=True
    ):
        assert theirs.keys() == ours.keys()
        for name, value in theirs.items():
            # What is for the log is float32 in the original.
            close = 1e-6 if "error" in name else CLOSE
            assert (ours[name] - value).norm() <= close * value.norm() + CLOSE, name


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("mode", MODES)
def test_losses_and_gradients(mode: str, in_training: bool, counts: tuple[int, ...]) -> None:
    assert_same(*both(in_training, **MODES[mode]), leaves(counts, in_training), truth(counts))


@pytest.mark.parametrize("number", [7, torch.tensor(2.5)], ids=str)
def test_a_number_of_boxes(number: Any) -> None:
    given = leaves((3, 0, 5), True), truth((3, 0, 5))
    assert_same(*both(True, ia_bce_loss=True), *given, num_boxes=number)


@pytest.mark.parametrize("rows", [6, QUERIES + 5])
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
def test_padded_targets(in_training: bool, counts: tuple[int, ...], rows: int) -> None:
    given = leaves(counts, in_training), truth(counts, rows)
    assert_same(*both(in_training, ia_bce_loss=True), *given)


def test_an_encoder_with_fewer_places_than_queries() -> None:
    values = leaves((3, 0, 5), True)
    for name in ("scores_enc", "boxes_enc"):
        values[name] = values[name][:, : GROUPS * 4].clone()
    assert_same(*both(True, ia_bce_loss=True), values, truth((3, 0, 5)))


def test_points() -> None:
    values, targets = leaves((3, 0, 5), True), truth((3, 0, 5))
    point = torch.tensor([0.5, 0.5, 0, 0])
    for boxes in (
        *(values[f"boxes{layer}"] for layer in LAYERS),
        *(each["boxes"] for each in targets),
    ):
        boxes[:] = point
    assert_same(*both(True, ia_bce_loss=True), values, targets)


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
def test_ranks(counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other of two has twice as many boxes."""
    criteria = both(True, ia_bce_loss=True)
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda group=None: 2)
    monkeypatch.setattr(distributed, "all_reduce", lambda each, group=None: each.mul_(3))
    assert_same(*criteria, leaves(counts, True), truth(counts))


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
def test_pairs(in_training: bool, counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    original, replaced = both(in_training, ia_bce_loss=True)
    values, targets, found = leaves(counts, in_training), truth(counts), []
    match = rf_detr_criterion.hungarian_match

    def recorded(*arguments: Any, **options: Any) -> Any:
        found.append(match(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(rf_detr_criterion, "hungarian_match", recorded)
    run(replaced, values, targets)
    of_query = found[0].target_of_query
    first = torch.tensor([0, *counts]).cumsum(0)
    outputs = outputs_of(values)
    layers = [outputs, *outputs["aux_outputs"], outputs["enc_outputs"]]
    for layer, ours in zip(layers, of_query, strict=True):
        wanted = torch.full_like(ours, -1)
        matched = original.matcher(layer, targets, GROUPS if in_training else 1)
        for image, (query, row) in enumerate(matched):
            wanted[image, query] = first[image] + row
        assert torch.equal(ours, wanted)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int, dtype: torch.dtype) -> None:
    original, replaced = both(True, ia_bce_loss=True)
    counts = (3, 0, 5)
    given = rounded(leaves(counts, True, seed), dtype), truth(counts, seed=seed)
    ways = run(replaced, *given, dtype), run(original, *given, dtype), run(original, *given)
    assert_as_near(*ways)


def test_reads_nothing_on_the_host() -> None:
    _, replaced = both(True, ia_bce_loss=True)
    outputs = outputs_of(leaves((3, 0, 5), True))
    for targets in (truth((3, 0, 5)), truth((3, 0, 5), 6)):
        assert_reads_nothing(replaced, outputs=outputs, targets=targets)


if torch.cuda.is_available():

    def test_never_waits() -> None:
        _, replaced = both(True, ia_bce_loss=True)
        given = moved((outputs_of(leaves((3, 0, 5), True)), truth((3, 0, 5))), "cuda")
        assert waits(lambda: replaced(*given)) == 0


class OwnMatcher(HungarianMatcher):
    pass


class OwnCriterion(SetCriterion):
    def loss_boxes(self, *arguments: Any, **options: Any) -> Any:
        return super().loss_boxes(*arguments, **options)


def with_own_matcher() -> SetCriterion:
    criterion = made(ia_bce_loss=True)
    criterion.matcher = OwnMatcher()
    return criterion


def with_own_losses() -> SetCriterion:
    criterion = made(ia_bce_loss=True)
    criterion.__class__ = OwnCriterion
    return criterion


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made(("labels", "boxes", "cardinality", "masks")), "not for masks"),
        (with_own_matcher, "OwnMatcher"),
        (with_own_losses, "OwnCriterion has a loss_boxes of its own"),
    ],
    ids=["masks", "matcher", "losses"],
)
def test_is_refused(make: Callable[[], SetCriterion], message: str) -> None:
    criterion = make()
    kind = type(criterion)
    with pytest.raises(ValueError, match=message):
        use_boxloss(criterion)
    assert type(criterion) is kind


def test_a_matcher_that_comes_later_is_refused() -> None:
    _, replaced = both(True, ia_bce_loss=True)
    replaced.matcher = OwnMatcher()
    with pytest.raises(ValueError, match="OwnMatcher"):
        run(replaced, leaves((1,), True), truth((1,)))
