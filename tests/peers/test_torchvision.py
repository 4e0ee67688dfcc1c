# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat's FCOS, RetinaNet, R-CNNs and SSD beside torchvision's."""

from functools import partial
from typing import Any, NamedTuple

import pytest
import small_torchvision
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.families import fcos as own_fcos
from boxloss.torch.compat.families import retinanet as own_retinanet
from boxloss.torch.compat.families.faster_rcnn import matches_of
from boxloss.torch.compat.families.retinanet import LOSSES
from boxloss.torch.compat.torchvision_models import cases
from combinations import long_but
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    autocast,
    computed,
    default_dtype,
    moved,
    waits,
)
from torch import Tensor
from torch.nn.functional import pad
from torchvision.models.detection.fcos import FCOSHead
from torchvision.models.detection.retinanet import RetinaNetRegressionHead
from torchvision.ops import box_iou

from examples import faster_rcnn, fcos, retinanet
from examples.training import keep, torchvision_batch

# Images without boxes among others, all of them, one box, and many: 1/n is different for each.
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40, 2))
FCOS_SIZE, SIZE, ANCHORS = 8.0, 24.0, 300  # sides of FCOS' anchors, of RetinaNet's, and these

# In double, of losses, and of gradients as vectors, beside 1 and their norm. By what
# tests/torch/comparison.py derives, in u = 2^-53, on both sides, with 5 <= P <= 120 pairs: GIoU's
# loss <= 2 is right to 48, the sum of P to P more; a gradient by a box to 316 / side, and by a
# delta to 24 * 1.3 times that, from two corners and over P. RetinaNet's exp depends on where in a
# vector a number stands: by 4 u of coordinates <= 96, which for all lengths and their products is
# 3 * 16 * 96 / 8 = 576 more. CIoU's v over 1 - iou + v >= 0.1 is right to 250 more. So losses are
# within 2 * 2.5 * (48 + 250 + 576 + P) u = 6e-13, gradients, 4 P numbers, within
# 2 * (2 * 24 * 1.3 / 8) * (316 + 250 + 576) u * 2 / P^0.5 = 2e-12.
# Of scores |x| < 6 a sigmoid is right to 12, log(1 + e^x) to 22 * 7, an entry of the focal loss, of
# a centerness' BCE, and of their gradients to 336. N <= 3840 entries add up to more than N / 10, in
# another order to N of that: losses are within 2 * (3360 + N) u = 2e-12, gradients within
# 2 * 336 * N^0.5 u = 5e-12.
CLOSE = 1e-11

Results = tuple[dict[str, Tensor], dict[str, Tensor]]


class Heads(NamedTuple):
    theirs: Any
    ours: Any
    arguments: dict[str, Any]


FCOS = Heads(
    FCOSHead, own_fcos.Head, {"in_channels": 32, "num_anchors": 1, "num_classes": 5, "num_convs": 1}
)
RETINANET = Heads(
    RetinaNetRegressionHead, own_retinanet.RegressionHead, {"in_channels": 16, "num_anchors": 1}
)


def losses_of(heads: Heads, of: str, values: dict[str, Any], loss: str | None) -> dict[str, Tensor]:
    head = getattr(heads, of)(**heads.arguments)
    head._loss_type = loss  # RetinaNet's
    losses = head.compute_loss(**values)
    return losses if loss is None else {"bbox_regression": losses}


def run(
    heads: Heads, of: str, values: dict[str, Any], dtype: torch.dtype, loss: str | None = None
) -> Results:
    """Losses, and their sum's gradients by what the head gave."""
    outputs = values["head_outputs"]
    with autocast(outputs["bbox_regression"].device.type, dtype):
        losses = losses_of(heads, of, values, loss)
    sum(losses.values()).backward()
    gradients = {name: each.grad for name, each in outputs.items()}
    return moved(({name: each.detach() for name, each in losses.items()}, gradients), "cpu")


def fcos_problem(counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> dict[str, Any]:
    """What FCOS hands to its head: of 256 anchors about 20 have one of their image's boxes."""
    torch.manual_seed(seed)
    with default_dtype(computed(dtype)):
        _, targets = torchvision_batch(fcos.SIDE, counts)
    images, anchors = len(counts), 256
    centres = torch.cartesian_prod(torch.arange(4, 128, 8), torch.arange(4, 128, 8)).to(dtype)
    points = torch.cat((centres - FCOS_SIZE / 2, centres + FCOS_SIZE / 2), 1)
    matched = []
    for target in targets:
        # One of the image's boxes, if the anchor lies within it: else its centerness were NaN.
        chosen = torch.randint(max(len(target["boxes"]), 1), (anchors,))
        first, last = pad(target["boxes"], (0, 0, 0, 1))[chosen].split(2, -1)
        inside = ((first < centres) & (centres < last)).all(1)
        matched.append(torch.where(inside, chosen, -1))
    outputs = {
        "cls_logits": torch.randn(images, anchors, 5),
        "bbox_regression": 0.5 + 2 * torch.rand(images, anchors, 4),  # sides of 8 to 40 pixels
        "bbox_ctrness": torch.randn(images, anchors, 1),
    }
    return {
        "targets": targets,
        "head_outputs": {name: each.to(dtype).requires_grad_() for name, each in outputs.items()},
        "anchors": [points] * images,
        "matched_idxs": matched,
    }


def retinanet_problem(counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> dict[str, Any]:
    """What RetinaNet hands to its head; -1 and -2 are anchors without a box."""
    torch.manual_seed(seed)
    with default_dtype(computed(dtype)):
        _, targets = torchvision_batch(retinanet.SIDE, counts)
        centres = 16 + 32 * torch.rand(ANCHORS, 2)
        sides = SIZE * (0.6 + 0.4 * torch.rand(ANCHORS, 2))
    points = torch.cat((centres - sides / 2, centres + sides / 2), 1)
    matched = []
    for count in counts:
        chosen = torch.randint(max(count, 1), (ANCHORS,))
        none = (torch.rand(ANCHORS) > 0.05) | (count == 0)
        matched.append(torch.where(none, -torch.randint(1, 3, (ANCHORS,)), chosen))
    deltas = 0.4 * (torch.rand(len(counts), ANCHORS, 4) - 0.5)
    return {
        "targets": targets,
        "head_outputs": {"bbox_regression": deltas.to(dtype).requires_grad_()},
        "anchors": [points] * len(counts),
        "matched_idxs": matched,
    }


each_head = pytest.mark.parametrize(
    ("heads", "problem", "loss"),
    [(FCOS, fcos_problem, None), *((RETINANET, retinanet_problem, loss) for loss in LOSSES)],
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@each_head
def test_heads(
    heads: Heads, problem: Any, loss: str | None, counts: tuple[int, ...], seed: int, device: str
) -> None:
    values = problem(counts, seed, torch.float64)
    original, replaced = (
        run(heads, of, moved(values, device), torch.float64, loss) for of in ("theirs", "ours")
    )
    for ours, theirs in zip(replaced, original, strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            assert (ours[name] - value).norm() <= CLOSE * (1 + value.norm()), name
    has_pairs = [count > 0 for count in counts]
    assert [(each >= 0).any().item() for each in values["matched_idxs"]] == has_pairs
    assert original[1]["bbox_regression"].flatten(1).any(1).tolist() == has_pairs


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("seed", range(3))
@each_head
def test_is_as_near_as_the_original(
    heads: Heads, problem: Any, loss: str | None, seed: int, dtype: torch.dtype
) -> None:
    """bfloat16 under autocast."""
    values = problem((3, 0, 5), seed, dtype)
    exact = run(heads, "theirs", moved(values, "cpu", torch.float64), torch.float64, loss)
    both = (run(heads, of, moved(values, "cpu"), dtype, loss) for of in ("ours", "theirs"))
    assert_as_near(*both, exact)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_boxes_of_halves_are_decoded_in_float32(dtype: torch.dtype) -> None:
    """The same numbers in float32 have the same loss, and the gradient that halves round."""
    values = fcos_problem((3, 0, 5), 0, dtype)
    of_halves, wide = (
        [each["bbox_regression"] for each in run(FCOS, "ours", these, dtype)]
        for these in (values, moved(values, "cpu", torch.float32))
    )
    assert torch.equal(of_halves[0], wide[0])
    assert torch.equal(of_halves[1], wide[1].to(dtype))


@each_head
def test_nobody_waits_for_the_device(heads: Heads, problem: Any, loss: str | None) -> None:
    """On the Meta device, whose numbers nobody can ask for."""
    values = moved(problem((3, 0, 5), 0, torch.float32), "meta")
    total = sum(losses_of(heads, "ours", values, loss).values())
    assert total.shape == ()
    total.backward()


if torch.cuda.is_available():

    @each_head
    def test_nobody_waits_for_the_gpu(heads: Heads, problem: Any, loss: str | None) -> None:
        values = moved(problem((3, 0, 5), 0, torch.float32), "cuda")
        run(heads, "ours", values, torch.float32, loss)  # what is made once
        assert waits(lambda: run(heads, "ours", values, torch.float32, loss)) == 0


# --- Faster R-CNN: all that is matched is equal ---


def proposed(counts: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Boxes near the ground truth and others, more in some images."""
    torch.manual_seed(seed)
    _, targets = torchvision_batch(faster_rcnn.SIDE, counts)
    proposals = []
    for place, target in enumerate(targets):
        target["labels"] += 1  # 0 is the background
        _, others = torchvision_batch(faster_rcnn.SIDE, (60 + 7 * place,))
        near = target["boxes"].repeat(5, 1)
        proposals.append(torch.cat((others[0]["boxes"], near + 3 * torch.randn(near.shape))))
    anchors = [proposals[0]] * len(counts)
    return {"targets": targets, "anchors": anchors, "proposals": proposals}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("low", [0.5, 0.3])  # from there to 0.5 is ignored: by default nothing
def test_anchors_and_proposals_get_the_same_boxes(
    low: float, counts: tuple[int, ...], seed: int, device: str
) -> None:
    results = []
    for replace in (keep, use_boxloss):
        model = faster_rcnn.small_model()  # whose weights count for nothing
        model.roi_heads.proposal_matcher.low_threshold = low
        replace(model)
        results.append(matches_of(model, **moved(proposed(counts, seed), device)))
    theirs, ours = results
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    of_anchors, of_proposals = (theirs[f"labels of {each}"] for each in ("anchors", "proposals"))
    for count, own, its in zip(counts, of_anchors, of_proposals, strict=True):
        assert (own > 0).any() == (its > 0).any() == (count > 0)
        assert (its == -1).any() == (low < 0.5 and count > 0)


# --- SSD: what is matched is equal, and so are the losses, which are the original's ---

SSDS = [name for name in small_torchvision.SMALL if "SSD" in name]


def ssd_step(
    name: str,
    replace: Any,
    counts: tuple[int, ...],
    seed: int,
    device: str,
    dtype: torch.dtype = torch.float32,
) -> Results:
    """Losses, and their sum's gradients by the weights."""
    torch.manual_seed(seed)
    model = small_torchvision.SMALL[name]().train().to(device)
    batch = small_torchvision.batch(small_torchvision.SIDE, counts)
    replace(model)
    with autocast(device, dtype):
        losses = model(*moved(batch, device))
    sum(losses.values()).backward()
    return losses, {key: each.grad for key, each in model.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("seed", long_but(range(2), [0]))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("name", SSDS)
def test_ssd(name: str, counts: tuple[int, ...], seed: int, dtype: torch.dtype) -> None:
    (losses, gradients), (others, other_gradients) = (
        ssd_step(name, replace, counts, seed, "cpu", dtype) for replace in (keep, use_boxloss)
    )
    assert others.keys() == losses.keys()
    assert all(torch.equal(others[key], value) for key, value in losses.items())
    assert (losses["bbox_regression"] > 0) == any(counts)
    assert all(torch.equal(other_gradients[key], value) for key, value in gradients.items())


def test_boxes_that_are_made_up_have_anchors_of_their_own() -> None:
    """Of an anchor that is the first best of several boxes, SSD on a GPU gives any to it."""
    model = small_torchvision.ssd()
    for case in cases(model):
        pairs = zip(case.arguments["targets"], case.arguments["anchors"], strict=True)
        for target, anchors in pairs:
            if len(target["boxes"]):
                best = box_iou(target["boxes"], anchors).argmax(1)
                assert len(best.unique()) == len(best)


def test_ssd_in_evaluation() -> None:
    model = small_torchvision.ssd().eval()
    images, targets = small_torchvision.batch(small_torchvision.SIDE, (2,))
    before = model(images)
    use_boxloss(model)
    assert not model.training
    for given in ((images,), (images, targets)):
        after = model(*given)
        assert all(torch.equal(after[0][key], value) for key, value in before[0].items())
    with pytest.raises(AssertionError, match="targets should not be none"):
        model.train()(images)


if torch.cuda.is_available():

    @pytest.mark.parametrize("name", SSDS)
    def test_ssd_waits_less_for_the_gpu(name: str) -> None:
        """Once for all images to see that boxes have sides, not once for each."""
        ours, theirs = (
            waits(lambda replace=replace: ssd_step(name, replace, (3, 0, 5), 0, "cuda"))
            for replace in (partial(use_boxloss, check=False), keep)
        )
        assert ours < theirs
