# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and hungarian_match beside the matchers of transformers, and what adapts them:
HungarianMatcher and detr_loss_boxes of boxloss.torch.compat.

What these two are made of, and what they refuse, is for tests/torch/test_compat.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from types import ModuleType
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch import collate_matches, collate_ragged, hungarian_match, matching_cost
from boxloss.torch.compat import HungarianMatcher, detr_loss_boxes
from detr_cases import CLASSES, COUNTS, LARGEST_LOGIT, LAYERS, QUERIES, UNIT_ROUNDOFF, Targets
from surroundings import DEVICES, HALVES, columns_first, computed, moved, waits
from torch import Tensor
from transformers import DFineConfig
from transformers.loss import loss_d_fine as d_fine
from transformers.loss import loss_deformable_detr as deformable
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_lw_detr as lw_detr
from transformers.loss import loss_rt_detr as rt_detr

WEIGHTS = {"class_cost": 2.0, "bbox_cost": 5.0, "giou_cost": 2.5}
BOXES_ALONE = {"class_cost": 0.0, "bbox_cost": 5.0, "giou_cost": 2.0}
FOCAL = {"class_mode": "focal", "alpha": 0.3, "gamma": 1.5}
USUAL_FOCAL = {"class_mode": "focal"}
Pairs = list[tuple[Tensor, Tensor]]


def config(use_focal_loss: bool) -> DFineConfig:
    """RT-DETR's matcher reads the same names."""
    weights = {f"matcher_{name}": value for name, value in WEIGHTS.items()}
    return DFineConfig(
        use_focal_loss=use_focal_loss, matcher_alpha=0.3, matcher_gamma=1.5, **weights
    )


@dataclass(frozen=True)
class Matcher:
    make: Callable[[], Any]
    module: ModuleType  # which asks SciPy
    options: dict[str, Any] = field(default_factory=dict)  # of HungarianMatcher
    groups: int = 1  # of QUERIES each
    boxes_in_float32: bool = False  # whatever they are given in
    weights: dict[str, float] = field(default_factory=lambda: WEIGHTS)

    @property
    def queries(self) -> int:
        return self.groups * QUERIES


MATCHERS = {
    "DETR": Matcher(lambda: detr.HungarianMatcher(**WEIGHTS), detr),
    "DETR, boxes alone": Matcher(
        lambda: detr.HungarianMatcher(**BOXES_ALONE), detr, weights=BOXES_ALONE
    ),
    "RT-DETR": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(True)), rt_detr, FOCAL),
    "RT-DETR, softmax": Matcher(lambda: rt_detr.RTDetrHungarianMatcher(config(False)), rt_detr),
    "D-FINE": Matcher(lambda: d_fine.DFineLoss(config(True)).matcher, rt_detr, FOCAL),
    "Deformable DETR": Matcher(
        lambda: deformable.DeformableDetrHungarianMatcher(**WEIGHTS), deformable, USUAL_FOCAL
    ),
    "LW-DETR": Matcher(
        lambda: lw_detr.LwDetrHungarianMatcher(**WEIGHTS), lw_detr, USUAL_FOCAL, 13, True
    ),
}


def outputs_and_targets(
    matcher: Matcher, counts: tuple[int, ...], seed: int, device: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Targets]:
    """Logits and boxes of all layers; labels and boxes of each image, by transformers' names."""
    random = cases.generator(seed)
    shape = (LAYERS, len(counts), matcher.queries)
    values = cases.logits((*shape, CLASSES), random), cases.boxes(shape, random)
    return moved((*values, cases.true_boxes(counts, random)), device, dtype)


def of_layers(
    find: Any, groups: int, logits: Tensor, pred: Tensor, targets: Targets
) -> list[Pairs]:
    """[layer][image] of pairs."""
    layers = zip(logits, pred, strict=True)
    more = [groups] if groups > 1 else []
    return [find({"logits": x, "pred_boxes": boxes}, targets, *more) for x, boxes in layers]


def by_boxloss(
    matcher: Matcher, logits: Tensor, pred: Tensor, targets: Targets
) -> tuple[Tensor, Tensor]:
    """The cost and its offsets."""
    target, offsets = collate_ragged([each["boxes"] for each in targets])
    weights, options = matcher.weights, dict(matcher.options)
    cost = matching_cost(
        pred,
        target,
        offsets,
        logits=logits,
        labels=torch.cat([each["class_labels"] for each in targets]),
        iou_weight=weights["giou_cost"],
        l1_weight=weights["bbox_cost"],
        class_weight=weights["class_cost"],
        class_mode=options.pop("class_mode", "softmax"),
        **{f"focal_{name}": value for name, value in options.items()},
    )
    return cost, offsets


def assert_same_pairs(
    matcher: Matcher,
    values: tuple[Tensor, Tensor, Targets],
    cost: Tensor,
    offsets: Tensor,
    theirs: list[Pairs],
    counts: tuple[int, ...],
) -> None:
    """hungarian_match's, and the adapter's."""
    pred_index, target_index = collate_matches(theirs, counts, matcher.queries)
    result = hungarian_match(cost, offsets, groups=matcher.groups)
    of_query = torch.full((LAYERS * len(counts) * matcher.queries,), -1)
    of_query[pred_index.flatten()] = target_index.flatten()
    assert result.target_of_query.flatten().tolist() == of_query.tolist()
    found = [each[each >= 0] for each in result[:2]]
    assert of_query[found[0].cpu()].tolist() == found[1].tolist()
    assert len(found[0]) == pred_index.numel()

    logits, pred, targets = values
    leaves = logits.clone().requires_grad_(), pred.clone().requires_grad_()
    adapted = HungarianMatcher(**matcher.weights, **matcher.options)
    for layer, wanted in zip(
        of_layers(adapted, matcher.groups, *leaves, targets), theirs, strict=True
    ):
        assert_same_lists(layer, wanted)


def assert_same_lists(found: Pairs, wanted: Pairs) -> None:
    assert isinstance(found, list)
    for ours, theirs in zip(found, wanted, strict=True):
        assert isinstance(ours, tuple)
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == torch.int64
            assert one.is_cpu
            assert one.tolist() == other.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("matcher", MATCHERS)
def test_is_theirs(
    monkeypatch: pytest.MonkeyPatch,
    matcher: str,
    counts: tuple[int, ...],
    seed: int,
    dtype: torch.dtype,
    device: str,
) -> None:
    peer = MATCHERS[matcher]
    values = outputs_and_targets(peer, counts, seed, device, dtype)
    shown: list[Any] = []  # to SciPy: an image of a group at a time, group by group of each layer
    solve = peer.module.linear_sum_assignment
    monkeypatch.setattr(
        peer.module, "linear_sum_assignment", lambda cost: (shown.append(cost), solve(cost))[1]
    )
    theirs = of_layers(peer.make(), peer.groups, *values)
    cost, offsets = by_boxloss(peer, *values)

    # In double nothing but the result rounds, once, to float32. In float32 theirs is the worse:
    # logits of at most 6 leave 1 - p >= 2e-3, off by a unit roundoff u, so that focal's logarithm
    # is off by u / 2e-3, that is 3e-5, times 0.75 and the weight 2; all else is some tens of u.
    assert LARGEST_LOGIT <= 6
    error = 1e-10 if dtype == torch.float64 and not peer.boxes_in_float32 else 1e-4
    blocks = iter(shown)
    for group in cost.cpu().double().unflatten(1, (peer.groups, QUERIES)).flatten(0, 1):
        for first, last in pairwise(offsets.tolist()):
            wanted = next(blocks).double()
            distance = (group[:, first:last] - wanted).abs()
            assert torch.all(distance <= error + 2.0**-24 * wanted.abs())
    assert not list(blocks)
    assert_same_pairs(peer, values, cost, offsets, theirs, counts)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
# Theirs multiplies NaN by a weight of 0.
@pytest.mark.parametrize("matcher", [name for name in MATCHERS if name != "DETR, boxes alone"])
def test_what_is_not_finite(matcher: str, value: float, device: str) -> None:
    """NaN is matched last."""
    peer, counts = MATCHERS[matcher], (3, 5)
    values = outputs_and_targets(peer, counts, 0, device, torch.float64)
    values[0][:, :, ::3] = value
    theirs = of_layers(peer.make(), peer.groups, *values)
    assert_same_pairs(peer, values, *by_boxloss(peer, *values), theirs, counts)


# --- The adapters alone ---


def inputs(counts: tuple[int, ...], seed: int = 0) -> tuple[dict[str, Tensor], Targets]:
    random = cases.generator(seed)
    outputs = {
        "logits": cases.logits((len(counts), QUERIES, CLASSES), random),
        "pred_boxes": cases.boxes((len(counts), QUERIES), random),
    }
    return outputs, cases.true_boxes(counts, random)


def test_the_matcher_takes_half() -> None:
    outputs, targets = inputs((3, 0, 5), 2)
    halves = {name: each.half() for name, each in outputs.items()}  # the boxes are still exact
    upcast = {name: each.double() for name, each in halves.items()}
    assert torch.equal(upcast["pred_boxes"], outputs["pred_boxes"])
    wanted = detr.HungarianMatcher(1, 5, 2)(upcast, targets)
    found = HungarianMatcher(1, 5, 2)(halves, cases.cast(targets, torch.float32))
    assert_same_lists(found, wanted)


def test_the_matcher_says_what_it_is() -> None:
    assert repr(HungarianMatcher(1, 5, 2)) == (
        "HungarianMatcher(class_cost=1, bbox_cost=5, giou_cost=2, class_mode='softmax')"
    )
    assert "alpha=0.3, gamma=1.5" in repr(HungarianMatcher(**FOCAL))


OUTSIDE = [(torch.tensor([QUERIES]), torch.tensor([0])), (torch.tensor([0]), torch.tensor([0]))]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda *given: HungarianMatcher()(*given, group_detr=3), r"groups is 3; .* 20 queries"),
        (lambda *_: HungarianMatcher(0, 0, 0), "class_cost, bbox_cost and giou_cost are 0"),
        (lambda outputs, _: HungarianMatcher()(outputs, []), "targets is empty"),
        (lambda outputs, _: detr_loss_boxes(outputs, [], [], 1), "targets is empty"),
        (lambda *given: detr_loss_boxes(*given, OUTSIDE, 1), "src"),
    ],
)
def test_what_is_refused(call: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call(*inputs((3, 5)))


def losses_and_gradient(
    function: Any, outputs: dict[str, Tensor], targets: Targets, indices: Pairs, number: Any
) -> tuple[dict[str, Tensor], Tensor]:
    pred = outputs["pred_boxes"].detach().requires_grad_()
    losses = function({**outputs, "pred_boxes": pred}, targets, indices, number)
    (3 * losses["loss_giou"] + 4 * losses["loss_bbox"]).backward()
    return moved((losses, pred.grad), "cpu")


def theirs(*arguments: Any) -> dict[str, Tensor]:
    return detr.ImageLoss(None, CLASSES, 0.1, []).loss_boxes(*arguments)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
def test_loss_boxes(counts: tuple[int, ...], seed: int, dtype: torch.dtype, device: str) -> None:
    """Halves are computed in float32; what they hold has no ties either, and shorter no side."""
    wide = computed(dtype)
    outputs, targets = inputs(counts, seed)
    indices = HungarianMatcher()(outputs, targets)
    number = 3.5  # an average over ranks, say
    given = moved(outputs, device, dtype), cases.cast(moved(targets, device), wide)
    upcast = {name: each.to(dtype).double() for name, each in outputs.items()}
    wanted, exact = losses_and_gradient(theirs, upcast, targets, indices, number)

    unit = UNIT_ROUNDOFF[wide] / number
    pairs = sum(len(src) for src, _ in indices)
    allowed = unit * cases.box_gradient_error(3, 4)
    if dtype != wide:  # rounded once more, to the gradient's dtype
        allowed = allowed + torch.finfo(dtype).eps / 2 * exact.abs()
    for its_pairs in (indices, moved(indices, device)):
        losses, gradient = losses_and_gradient(detr_loss_boxes, *given, its_pairs, number)
        assert losses.keys() == wanted.keys()
        for name, value in wanted.items():
            assert losses[name].dtype == wide
            assert losses[name].shape == ()
            assert abs(losses[name].double() - value) <= unit * cases.box_loss_error(pairs)
        assert gradient.dtype == dtype
        assert torch.all((gradient.double() - exact).abs() <= allowed)

    # As after flatten(2).transpose(1, 2): the same bits.
    columns = (
        {name: columns_first(each) for name, each in given[0].items()},
        [{**each, "boxes": columns_first(each["boxes"])} for each in given[1]],
    )
    again, its = losses_and_gradient(detr_loss_boxes, *columns, indices, number)
    assert again == losses
    assert torch.equal(its, gradient)


@pytest.mark.parametrize(
    "number",
    [
        8,
        torch.tensor([8]),
        torch.tensor(8, dtype=torch.int16),
        torch.tensor(8, dtype=torch.bfloat16),
        torch.tensor([8.0], requires_grad=True),
    ],
    ids=str,
)
def test_numbers(number: Any) -> None:
    outputs, targets = inputs((3, 0, 5), 5)
    indices = HungarianMatcher()(outputs, targets)
    wanted = detr_loss_boxes(outputs, targets, indices, 8.0)
    assert detr_loss_boxes(outputs, targets, indices, number) == wanted


if torch.cuda.is_available():

    def test_the_matcher_waits_once_and_the_losses_never() -> None:
        outputs, targets = moved(inputs((3, 0, 5), 9), "cuda")
        matcher = HungarianMatcher(1, 5, 2)
        indices = matcher(outputs, targets)
        assert waits(lambda: matcher(outputs, targets)) == 1
        assert waits(lambda: detr_loss_boxes(outputs, targets, indices, 8.0)) == 0
