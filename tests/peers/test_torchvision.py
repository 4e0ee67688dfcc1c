# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat's FCOS, RetinaNet, R-CNNs and SSD beside torchvision's."""

from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import small_torchvision
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.families import fcos as own_fcos
from boxloss.torch.compat.families import retinanet as own_retinanet
from boxloss.torch.compat.families.retinanet import LOSSES
from boxloss.torch.compat.torchvision_batches import cases
from combinations import long_but
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    assert_example_runs,
    autocast,
    computed,
    default_dtype,
    moved,
    waits,
)
from torch import Tensor
from torch.nn.functional import pad
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.fcos import FCOSHead
from torchvision.models.detection.retinanet import RetinaNetRegressionHead
from torchvision.ops import box_iou
from training_cases import assert_same_training

from examples import faster_rcnn, fcos, retinanet
from examples.training import keep, torchvision_batch

# Of scores x, |x| <= X, a sigmoid p is right to X + 6 roundings, relative, and log(1 + e^x), which
# is at most X + 1, to 22 (X + 1). The focal loss is a q^2 l with q = 1 - p_t, which is wrong by
# X + 7, and l <= X + 1: wrong by 2 (X + 7) (X + 1) + 22 (X + 1). Of its gradient
# a (q^2 (p - t) + 2 q p (1 - p) l) that is 3 (X + 7) + 3 and
# 2 ((X + 7) + (2 X + 13)) (X + 1) / 4 + 22 (X + 1) / 2, which is less. So is what a centerness, a
# BCE towards a root of two quotients, is wrong by.
X = 6
SCORE_ROUNDINGS = 2 * (X + 7) * (X + 1) + 22 * (X + 1)

UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
# Images without boxes among others, all of them, one box, and many: 1/n is different for each.
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40, 2))
SHORTEST = 8.0  # of all sides
FCOS_SIZE = 8.0  # of anchors
SIZE, FURTHEST, ANCHORS = 24.0, 96.0, 300  # RetinaNet's: of anchors, of all coordinates

Named = dict[str, Tensor]
Results = tuple[Named, Named]


class Heads(NamedTuple):
    theirs: Any
    ours: Any
    arguments: dict[str, Any]


FCOS = Heads(
    FCOSHead,
    own_fcos.Head,
    {"in_channels": 32, "num_anchors": 1, "num_classes": 5, "num_convs": 1},
)
RETINANET = Heads(
    RetinaNetRegressionHead, own_retinanet.RegressionHead, {"in_channels": 16, "num_anchors": 1}
)


def run(
    heads: Heads, of: str, values: dict[str, Any], dtype: torch.dtype, loss: str | None = None
) -> Results:
    """Losses, and their sum's gradients by what the head gave. loss: RetinaNet's."""
    head = getattr(heads, of)(**heads.arguments)
    if loss is not None:
        head._loss_type = loss
    outputs = values["head_outputs"]
    with autocast(outputs["bbox_regression"].device.type, dtype):
        losses = head.compute_loss(**values)
    losses = {"bbox_regression": losses} if loss is not None else losses
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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_fcos(counts: tuple[int, ...], seed: int, dtype: torch.dtype, device: str) -> None:
    values = fcos_problem(counts, seed, dtype)
    (losses, gradients), (others, other_gradients) = (
        run(FCOS, of, moved(values, device), dtype) for of in ("theirs", "ours")
    )
    pairs = sum((each >= 0).sum().item() for each in values["matched_idxs"])
    assert (pairs > 0) == any(counts)

    # Both decode to the same bits. Then both are wrong by what tests/torch/comparison.py derives,
    # in u: a pair's loss <= 2 by 48, adding P of them by P of their sizes; a box' gradient by
    # 316 / side, and a delta's is the anchor's size times that, rounded once, over the number.
    u = UNIT_ROUNDOFF[dtype]
    number = max(pairs, 1)
    close = {"atol": 2 * (48 + 2 * number) * u, "rtol": 0}
    torch.testing.assert_close(others["bbox_regression"], losses["bbox_regression"], **close)
    close["atol"] = 2 * 316 * u * FCOS_SIZE / SHORTEST / number
    name = "bbox_regression"
    torch.testing.assert_close(other_gradients[name], gradients[name], **close)
    assert (gradients[name].abs().amax() > 0) == (pairs > 0)

    # The rest is the same formulas. What each entry, and its gradient before the division, is wrong
    # by is SCORE_ROUNDINGS, for scores of at most X; N of them are added up in another order: by
    # N u of their sum, for none is negative.
    outputs = values["head_outputs"]
    for loss, output in (("classification", "cls_logits"), ("bbox_ctrness", "bbox_ctrness")):
        assert outputs[output].abs().max() <= X
        entries = outputs[output].numel() if loss == "classification" else pairs
        total = losses[loss].item() * number
        close["atol"] = 2 * entries * (SCORE_ROUNDINGS + total) * u / number
        torch.testing.assert_close(others[loss], losses[loss], **close)
        close["atol"] = 2 * SCORE_ROUNDINGS * u / number
        torch.testing.assert_close(other_gradients[output], gradients[output], **close)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_retinanet(
    counts: tuple[int, ...], seed: int, dtype: torch.dtype, loss: str, device: str
) -> None:
    values, name = retinanet_problem(counts, seed, dtype), "bbox_regression"
    (losses, gradients), (others, other_gradients) = (
        run(RETINANET, of, moved(values, device), dtype, loss) for of in ("theirs", "ours")
    )
    numbers = torch.tensor([(each >= 0).sum() for each in values["matched_idxs"]])
    assert (numbers > 0).tolist() == [count > 0 for count in counts]

    # As above, in u, for GIoU: 48 a loss <= 2, and P of them P of their sizes; 316 / side a
    # gradient. Decoding has exp, whose last bits depend on where in a vector a number stands: a
    # corner is off by 4 of a coordinate's u, four corners by 16 / side * coordinate of all lengths,
    # which are products of at most 3 in a gradient. DIoU's terms, of squares, are as exact. CIoU
    # has, besides, v, right to about 30, over 1 - iou + v, at least 0.1 and right to 20: 250 / side
    # more.
    u = UNIT_ROUNDOFF[dtype]
    decoding = 3 * 16 * FURTHEST / SHORTEST
    more = 250 * (loss == "ciou")
    atol = 2 * 2.5 * (48 + more + decoding + int(numbers.sum())) * u
    torch.testing.assert_close(others[name], losses[name], rtol=0, atol=atol)
    # The largest delta's derivative is exp(0.2) of the anchor's size; two corners add up.
    largest = 2 * 1.3 * SIZE / SHORTEST
    each = largest * (316 + more + decoding) * u / (numbers.clamp(min=1) * len(counts))
    apart = (other_gradients[name] - gradients[name]).abs()
    assert torch.all(apart <= 2 * each[:, None, None])
    assert ((gradients[name] != 0).flatten(1).any(1) == (numbers > 0)).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("heads", "problem", "loss"),
    [(FCOS, fcos_problem, None), *((RETINANET, retinanet_problem, loss) for loss in LOSSES)],
)
def test_is_as_near_as_the_original_under_autocast(
    heads: Heads, problem: Any, loss: str | None, seed: int
) -> None:
    values = problem((3, 0, 5), seed, torch.bfloat16)
    exact = run(heads, "theirs", moved(values, "cpu", torch.float64), torch.float64, loss)
    halves = (
        run(heads, of, moved(values, "cpu"), torch.bfloat16, loss) for of in ("ours", "theirs")
    )
    assert_as_near(*halves, exact)


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


def total(losses: Any) -> Tensor:
    return sum(losses.values()) if isinstance(losses, dict) else losses


of_each_head = pytest.mark.parametrize(
    ("heads", "problem"), [(FCOS, fcos_problem), (RETINANET, retinanet_problem)]
)


@of_each_head
def test_nobody_waits_for_the_device(heads: Heads, problem: Any) -> None:
    """On the Meta device, whose numbers nobody can ask for."""
    values = moved(problem((3, 0, 5), 0, torch.float32), "meta")
    head = heads.ours(**heads.arguments)
    head._loss_type = "giou"  # RetinaNet's
    loss = total(head.compute_loss(**values))
    assert loss.shape == ()
    loss.backward()


if torch.cuda.is_available():

    @of_each_head
    def test_nobody_waits_for_the_gpu(heads: Heads, problem: Any) -> None:
        values = moved(problem((3, 0, 5), 0, torch.float32), "cuda")
        head = heads.ours(**heads.arguments)
        head._loss_type = "giou"
        assert waits(lambda: total(head.compute_loss(**values)).backward()) == 0


# --- Faster R-CNN: all that is matched is equal ---


def both() -> tuple[FasterRCNN, FasterRCNN]:
    """torchvision's and ours, which have no other weights: they only match."""
    models = faster_rcnn.small_model(), faster_rcnn.small_model()
    use_boxloss(models[1])
    return models


def proposed(counts: tuple[int, ...], seed: int, device: str) -> tuple[list[Tensor], ...]:
    """Boxes near the ground truth and others, more in some images; ground-truth boxes, labels."""
    torch.manual_seed(seed)
    _, targets = torchvision_batch(faster_rcnn.SIDE, counts)
    proposals = []
    for place, target in enumerate(targets):
        _, others = torchvision_batch(faster_rcnn.SIDE, (60 + 7 * place,))
        near = target["boxes"].repeat(5, 1)
        proposals.append(torch.cat((others[0]["boxes"], near + 3 * torch.randn(near.shape))))
    named = proposals, *([each[name] for each in targets] for name in ("boxes", "labels"))
    return tuple([each.to(device) for each in values] for values in named)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_anchors_get_the_same_boxes(counts: tuple[int, ...], seed: int, device: str) -> None:
    proposals, boxes, _ = proposed(counts, seed, device)
    anchors = [proposals[0]] * len(counts)
    targets = [{"boxes": each} for each in boxes]
    (labels, matched), (own_labels, own_matched) = (
        model.rpn.assign_targets_to_anchors(anchors, targets) for model in both()
    )
    assert len(own_labels) == len(own_matched) == len(counts)
    for place, count in enumerate(counts):
        assert torch.equal(own_labels[place], labels[place])
        assert own_labels[place].dtype == labels[place].dtype
        positive = labels[place] == 1
        assert positive.any() == (count > 0)
        assert torch.equal(own_matched[place][positive], matched[place][positive])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("low", [0.5, 0.3])  # from there to 0.5 is ignored: by default nothing
def test_proposals_get_the_same_boxes(
    low: float, counts: tuple[int, ...], seed: int, device: str
) -> None:
    proposals, boxes, classes = proposed(counts, seed, device)
    classes = [each + 1 for each in classes]  # 0 is the background
    models = both()
    for model in models:
        model.roi_heads.proposal_matcher.low_threshold = low
    (rows, labels), (own_rows, own_labels) = (
        model.roi_heads.assign_targets_to_proposals(proposals, boxes, classes) for model in models
    )
    for place, count in enumerate(counts):
        assert torch.equal(own_labels[place], labels[place])
        assert (labels[place] == -1).any() == (low < 0.5 and count > 0)
        positive = labels[place] > 0
        assert positive.any() == (count > 0)
        assert own_rows[place].shape == rows[place].shape
        assert torch.equal(own_rows[place][positive], rows[place][positive])
        assert (own_rows[place] >= 0).all()


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


# --- All ---


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("seed", long_but(range(3), [0]))
@pytest.mark.parametrize(
    "train",
    [fcos.train, faster_rcnn.train, *(partial(retinanet.train, loss=each) for each in LOSSES)],
)
def test_training(train: Any, seed: int, counts: tuple[int, ...]) -> None:
    assert_same_training(train, seed, counts=counts)


@pytest.mark.parametrize("seed", long_but(range(3), [0]))
@pytest.mark.parametrize("name", small_torchvision.SMALL)
def test_training_of_others(name: str, seed: int) -> None:
    assert_same_training(partial(small_torchvision.train, name), seed)


@pytest.mark.parametrize("example", [fcos, retinanet, faster_rcnn])
def test_example_runs(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(example, 1, capsys)
