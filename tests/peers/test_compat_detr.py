# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat's HungarianMatcher and detr_loss_boxes beside transformers'."""

import math
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch import collate_matches
from boxloss.torch.compat import HungarianMatcher, detr_loss_boxes
from boxloss.torch.compat.detr import _rows_there
from detr_cases import CLASSES, COUNTS, QUERIES, UNIT_ROUNDOFF, Targets
from surroundings import DEVICES, HALVES, columns_first, moved, waits
from torch import Tensor
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_rt_detr as rt_detr
from transformers.loss.loss_lw_detr import LwDetrHungarianMatcher

DTYPES = [torch.float64, torch.float32]
WEIGHTS = {"class_cost": 2.0, "bbox_cost": 5.0, "giou_cost": 2.5}
FOCAL = {"alpha": 0.3, "gamma": 1.5}


def theirs_focal() -> Any:
    options = {f"matcher_{name}": value for name, value in (WEIGHTS | FOCAL).items()}
    return rt_detr.RTDetrHungarianMatcher(SimpleNamespace(use_focal_loss=True, **options))


MATCHERS = {
    "softmax": (lambda: detr.HungarianMatcher(**WEIGHTS), HungarianMatcher(**WEIGHTS)),
    "focal": (theirs_focal, HungarianMatcher(**WEIGHTS, class_mode="focal", **FOCAL)),
    "boxes alone": (
        lambda: detr.HungarianMatcher(0, 5, 2),
        HungarianMatcher(class_cost=0, bbox_cost=5, giou_cost=2),
    ),
}
Pairs = list[tuple[Tensor, Tensor]]


def inputs(counts: tuple[int, ...], seed: int) -> tuple[dict[str, Tensor], Targets]:
    random = cases.generator(seed)
    outputs = {
        "logits": cases.logits((len(counts), QUERIES, CLASSES), random),
        "pred_boxes": cases.boxes((len(counts), QUERIES), random),
    }
    return outputs, cases.true_boxes(counts, random)


def assert_same_pairs(found: Pairs, wanted: Pairs) -> None:
    assert isinstance(found, list)
    for ours, theirs in zip(found, wanted, strict=True):
        assert isinstance(ours, tuple)
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == torch.int64
            assert one.is_cpu
            assert one.tolist() == other.tolist()


# --- The matcher ---


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_matcher(matcher: str, counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> None:
    make, ours = MATCHERS[matcher]
    outputs, targets = inputs(counts, seed)
    # The original in double: a pair's cost is then at most 1e-7 of it from ours.
    wanted = make()(outputs, targets)
    cast = {name: each.to(dtype, copy=True).requires_grad_() for name, each in outputs.items()}
    assert_same_pairs(ours(cast, cases.cast(targets, dtype)), wanted)


@pytest.mark.parametrize("matcher", ["softmax", "focal"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_matcher_takes_what_is_not_finite(matcher: str, value: float) -> None:
    make, ours = MATCHERS[matcher]
    outputs, targets = inputs((3, 5), 0)
    outputs["logits"][:, ::3] = value
    wanted = make()(outputs, targets)
    assert_same_pairs(ours(outputs, targets), wanted)
    if math.isnan(value):
        assert not any((src % 3 == 0).any() for src, _ in wanted)


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
def test_matcher_of_groups(counts: tuple[int, ...], seed: int, groups: int) -> None:
    outputs, targets = inputs(counts, seed)
    ours = HungarianMatcher(**WEIGHTS, class_mode="focal")
    wanted = LwDetrHungarianMatcher(**WEIGHTS)(outputs, targets, groups)
    assert [len(src) for src, _ in wanted] == [groups * min(QUERIES // groups, n) for n in counts]
    assert_same_pairs(ours(outputs, targets, groups), wanted)


def test_groups_must_divide_the_queries() -> None:
    with pytest.raises(ValueError, match=r"groups is 3; .* and divide the 20 queries"):
        HungarianMatcher()(*inputs((3,), 0), group_detr=3)


def test_matcher_takes_detrs_own_names() -> None:
    outputs, targets = inputs((3, 0, 5), 1)
    renamed = [{"labels": each["class_labels"], "boxes": each["boxes"]} for each in targets]
    ours = HungarianMatcher(1, 5, 2)
    assert_same_pairs(ours(outputs, renamed), ours(outputs, targets))


def test_matcher_takes_half() -> None:
    outputs, targets = inputs((3, 0, 5), 2)
    halves = {name: each.half() for name, each in outputs.items()}  # the boxes are still exact
    upcast = {name: each.double() for name, each in halves.items()}
    assert torch.equal(upcast["pred_boxes"], outputs["pred_boxes"])
    wanted = detr.HungarianMatcher(1, 5, 2)(upcast, targets)
    assert_same_pairs(HungarianMatcher(1, 5, 2)(halves, cases.cast(targets, torch.float32)), wanted)


def test_matcher_needs_a_cost() -> None:
    with pytest.raises(ValueError, match="class_cost, bbox_cost and giou_cost are 0"):
        HungarianMatcher(0, 0, 0)


def test_matcher_says_what_it_is() -> None:
    assert repr(HungarianMatcher(1, 5, 2)) == (
        "HungarianMatcher(class_cost=1, bbox_cost=5, giou_cost=2, class_mode='softmax')"
    )
    assert "alpha=0.3, gamma=1.5" in repr(MATCHERS["focal"][1])


# --- The losses ---


def losses_and_gradient(
    function: Any, outputs: dict[str, Tensor], targets: Targets, indices: Pairs, number: Any
) -> tuple[dict[str, Tensor], Tensor]:
    pred = outputs["pred_boxes"].detach().requires_grad_()
    losses = function({**outputs, "pred_boxes": pred}, targets, indices, number)
    (3 * losses["loss_giou"] + 4 * losses["loss_bbox"]).backward()
    return losses, pred.grad


def theirs(*arguments: Any) -> dict[str, Tensor]:
    return detr.ImageLoss(None, CLASSES, 0.1, []).loss_boxes(*arguments)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
def test_loss_boxes(counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> None:
    """Halves are computed in float32; what they hold has no ties either, and shorter no side."""
    computed = dtype if dtype in UNIT_ROUNDOFF else torch.float32
    outputs, targets = inputs(counts, seed)
    indices = HungarianMatcher()(outputs, targets)
    number = 3.5  # an average over ranks, say
    cast = {name: each.to(dtype) for name, each in outputs.items()}
    losses, gradient = losses_and_gradient(
        detr_loss_boxes, cast, cases.cast(targets, computed), indices, number
    )
    upcast = {name: each.double() for name, each in cast.items()}
    wanted, exact = losses_and_gradient(theirs, upcast, targets, indices, number)

    unit = UNIT_ROUNDOFF[computed] / number
    pairs = sum(len(src) for src, _ in indices)
    assert losses.keys() == wanted.keys()
    for name, value in wanted.items():
        assert losses[name].dtype == computed
        assert losses[name].shape == ()
        assert abs(losses[name].double() - value) <= unit * cases.box_loss_error(pairs)
    assert gradient.dtype == dtype
    allowed = unit * cases.box_gradient_error(3, 4)
    if dtype != computed:  # rounded once more, to the gradient's dtype
        allowed = allowed + torch.finfo(dtype).eps / 2 * exact.abs()
    assert torch.all((gradient.double() - exact).abs() <= allowed)


def test_pairs_of_groups() -> None:
    """A true box in several pairs, in any order, and none of an image."""
    outputs, targets = inputs((2, 3, 1), 4)
    indices = [
        (torch.tensor([5, 0, 9]), torch.tensor([1, 1, 0])),
        (torch.tensor([], dtype=torch.int64), torch.tensor([], dtype=torch.int64)),
        (torch.tensor([19, 3]), torch.tensor([0, 0])),
    ]
    wanted, exact = losses_and_gradient(theirs, outputs, targets, indices, 6)
    losses, gradient = losses_and_gradient(detr_loss_boxes, outputs, targets, indices, 6)
    unit = UNIT_ROUNDOFF[torch.float64] / 6
    for name, value in wanted.items():
        assert abs(losses[name] - value) <= unit * cases.box_loss_error(5)
    assert (gradient - exact).abs().max() <= unit * cases.box_gradient_error(3, 4)


@pytest.mark.parametrize(
    "number",
    [
        8,
        torch.tensor(8.0),
        torch.tensor([8]),
        torch.tensor(8, dtype=torch.int16),
        *(torch.tensor(8, dtype=half) for half in HALVES),
        torch.tensor([8.0], requires_grad=True),
    ],
    ids=str,
)
def test_numbers(number: Any) -> None:
    outputs, targets = inputs((3, 0, 5), 5)
    indices = HungarianMatcher()(outputs, targets)
    wanted = detr_loss_boxes(outputs, targets, indices, 8.0)
    losses = detr_loss_boxes(outputs, targets, indices, number)
    assert losses == wanted


def test_boxes_with_columns_first() -> None:
    """As after flatten(2).transpose(1, 2)."""
    outputs, targets = inputs((3, 0, 5), 5)
    indices = HungarianMatcher()(outputs, targets)
    wanted, exact = losses_and_gradient(detr_loss_boxes, outputs, targets, indices, 8)
    outputs = {name: columns_first(each) for name, each in outputs.items()}
    targets = [{**each, "boxes": columns_first(each["boxes"])} for each in targets]
    assert_same_pairs(HungarianMatcher()(outputs, targets), indices)
    losses, gradient = losses_and_gradient(detr_loss_boxes, outputs, targets, indices, 8)
    assert losses == wanted
    assert torch.equal(gradient, exact)


def test_no_targets() -> None:
    outputs, _ = inputs((3,), 0)
    with pytest.raises(ValueError, match="targets is empty"):
        HungarianMatcher()(outputs, [])
    with pytest.raises(ValueError, match="targets is empty"):
        detr_loss_boxes(outputs, [], [], 1)


def test_pairs_outside_are_refused() -> None:
    outputs, targets = inputs((3, 5), 6)
    indices = [(torch.tensor([QUERIES]), torch.tensor([0])), (torch.tensor([0]), torch.tensor([0]))]
    with pytest.raises(ValueError, match="src"):
        detr_loss_boxes(outputs, targets, indices, 1)


def test_pairs_made_on_the_device() -> None:
    """Those on a GPU, which are not checked there."""
    outputs, targets = inputs((3, 0, 5), 7)
    indices = HungarianMatcher()(outputs, targets)
    checked = collate_matches(indices, [3, 0, 5], QUERIES)
    for found, wanted in zip(_rows_there(indices, [0, 3, 3, 8], QUERIES), checked, strict=True):
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_devices(device: str) -> None:
    outputs, targets = inputs((3, 0, 5), 8)
    matcher = HungarianMatcher(1, 5, 2)
    indices = matcher(outputs, targets)
    wanted, exact = losses_and_gradient(theirs, outputs, targets, indices, 8)
    outputs, targets = moved((outputs, targets), device)
    assert_same_pairs(matcher(outputs, targets), indices)
    unit = UNIT_ROUNDOFF[torch.float64] / 8
    for pairs in (indices, moved(indices, device)):
        losses, gradient = losses_and_gradient(detr_loss_boxes, outputs, targets, pairs, 8)
        for name, value in wanted.items():
            assert abs(losses[name].cpu() - value) <= unit * cases.box_loss_error(8)
        distance = (gradient.cpu() - exact).abs().max()
        assert distance <= unit * cases.box_gradient_error(3, 4)


if torch.cuda.is_available():

    def test_the_matcher_waits_once_and_the_losses_never() -> None:
        outputs, targets = moved(inputs((3, 0, 5), 9), "cuda")
        matcher = HungarianMatcher(1, 5, 2)
        indices = matcher(outputs, targets)
        assert waits(lambda: matcher(outputs, targets)) == 1
        assert waits(lambda: detr_loss_boxes(outputs, targets, indices, 8.0)) == 0


# --- Nothing of others is needed to import it ---


def test_imports_nothing_else() -> None:
    code = (
        "import sys, boxloss.torch.compat; "
        "print([n for n in ('transformers', 'torchvision', 'mmdet', 'scipy') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
