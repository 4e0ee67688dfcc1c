# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Criteria of masks beside their originals, at the points of one seed."""

import pickle
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from accelerate import PartialState
from boxloss.torch.compat import use_boxloss
from processes import divide_once, two_processes
from small_masks import CLASSES, SMALL, WITH_BOXES
from surroundings import DEVICES, moved, waits
from torch import Tensor, distributed, nn
from torch.utils._pytree import tree_leaves

from examples.training import random_boxes

SIDES = (40, 56)
# Of each image how many masks, and their height and width.
BATCHES = {
    "none in one": ((3, 0, 5), [SIDES] * 3),
    "none": ((0, 0), [SIDES] * 2),
    "few": ((2, 1, *[0] * 10), [SIDES] * 12),
    "more than queries": ((9, 2), [SIDES] * 2),
    "of other sizes": ((4, 3, 2), [SIDES, (56, 40), (24, 60)]),
}
DTYPES = {torch.bool: 0, torch.uint8: 0, torch.float16: 1e-3, torch.float32: 0}


QUERIES = {"RfDetr": 18}  # in three groups
# What theirs cannot do.
REFUSED = {("RfDetr", "none"), ("RfDetr", "of other sizes")}
NAMES = [name for name in ("Mask2Former", "MaskFormer", *WITH_BOXES) if name in SMALL]
COMPARED = [pair for pair in product(NAMES, BATCHES) if pair not in REFUSED]


def made(name: str = "Mask2Former") -> nn.Module:
    torch.manual_seed(0)
    return SMALL[name]()


def arguments(
    counts: tuple[int, ...], sides: list[tuple[int, int]], name: str = "Mask2Former"
) -> dict[str, Any]:
    """Of 6 queries, in two layers."""
    torch.manual_seed(1)
    shape = len(counts), QUERIES.get(name, 6)

    def layer() -> tuple[Tensor, Tensor]:
        masks = torch.randn(*shape, 16, 24)
        logits = torch.randn(*shape, CLASSES + (name not in ("RfDetr", "ConditionalDetr")))
        return masks.requires_grad_(), logits.requires_grad_()

    (masks, logits), (other_masks, other_logits) = layer(), layer()
    targets = [(torch.rand(n, *side) > 0.6).float() for n, side in zip(counts, sides, strict=True)]
    labels = [torch.randint(CLASSES, (n,)) for n in counts]
    if name not in WITH_BOXES:
        names = "masks_queries_logits", "class_queries_logits"
        return {
            **dict(zip(names, (masks, logits), strict=True)),
            "auxiliary_predictions": [dict(zip(names, (other_masks, other_logits), strict=True))],
            "mask_labels": targets,
            "class_labels": labels,
        }
    boxes, other_boxes = (
        random_boxes(shape[0] * shape[1]).view(*shape, 4).requires_grad_() for _ in range(2)
    )
    of_images = zip(labels, map(random_boxes, counts), targets, strict=True)
    given = {
        "logits": logits,
        "pred_boxes": boxes,
        "pred_masks": masks,
        "labels": [
            dict(zip(("class_labels", "boxes", "masks"), each, strict=True)) for each in of_images
        ],
        "outputs_class": torch.stack((other_logits, logits)),
        "outputs_coord": torch.stack((other_boxes, boxes)),
    }
    if name == "RfDetr":
        encoder_masks, encoder_logits = layer()
        of_encoder = encoder_logits, other_boxes, encoder_masks
        names = "enc_outputs_class", "enc_outputs_coord", "enc_outputs_masks"
        given |= dict(zip(names, of_encoder, strict=True))
        given["outputs_masks"] = [other_masks, masks]
    return given


def losses_of(model: Any, given: dict[str, Any]) -> dict[str, Tensor]:
    torch.manual_seed(2)
    return called(model, given)


def called(model: Any, given: dict[str, Any]) -> dict[str, Tensor]:
    if hasattr(model, "criterion"):
        losses: dict[str, Tensor] = model.criterion(**given)
        return losses
    device = given["logits"].device
    total, losses, _ = model.loss_function(device=device, config=model.config, **given)
    return {"total": total, **losses}


def run(model: Any, given: dict[str, Any]) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Losses and gradients; random numbers are taken alike."""
    losses = losses_of(model, given)
    leaves = [each for each in tree_leaves(given) if isinstance(each, Tensor)]
    leaves = [each for each in leaves if each.requires_grad]
    gradients = torch.autograd.grad(sum(losses.values()), leaves, materialize_grads=True)
    return losses, [*gradients, torch.rand(1)]


def swapped(name: str = "Mask2Former") -> nn.Module:
    model = made(name)
    use_boxloss(model, check=False)
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "which"), COMPARED)
def test_losses_gradients_and_random_numbers(name: str, which: str, device: str) -> None:
    given = moved(arguments(*BATCHES[which], name), device)
    losses, gradients = run(made(name).to(device), given)
    ours, by_ours = run(swapped(name).to(device), given)
    assert {*ours} == {*losses}
    for loss, each in losses.items():
        torch.testing.assert_close(ours[loss], each, rtol=1e-6, atol=0)
    for one, other in zip(by_ours, gradients, strict=True):
        scale = other.abs().max().item() if other.isfinite().all() else 0
        assert which == "none" or (one - other).abs().max() <= 2e-6 * scale
        assert one.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks_of_any_dtype(dtype: torch.dtype) -> None:
    """Theirs takes those of the logits alone."""
    model, given = swapped(), arguments(*BATCHES["of other sizes"])
    losses = losses_of(model, given)
    given["mask_labels"] = [each.to(dtype) for each in given["mask_labels"]]
    assert losses_of(model, given) == losses


Change = Callable[[dict[str, Any]], Any]
FAULTS: dict[str, tuple[Change, str]] = {
    "a label": (lambda given: given["class_labels"][2].fill_(5), "class_labels: .* 2, row 0 is 5"),
    "NaN": (
        lambda given: given["mask_labels"][2][4, 7].fill_(torch.nan),
        "mask_labels: image 2, row 4 has a value that is not finite",
    ),
    "fewer labels": (
        lambda given: given["class_labels"].__setitem__(0, torch.zeros(2, dtype=torch.int64)),
        r"mask_labels\[0\] has shape \(3, 40, 56\), class_labels\[0\] \(2,\)",
    ),
    "a dimension": (
        lambda given: given["mask_labels"].__setitem__(1, torch.zeros(40, 56)),
        r"mask_labels\[1\] has shape \(40, 56\)",
    ),
    "an image": (lambda given: given["class_labels"].pop(), "3 images, class_labels has 2"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str) -> None:
    model, given = swapped(), arguments(*BATCHES["none in one"])
    change, told = FAULTS[what]
    change(given)
    with pytest.raises(ValueError, match=told):
        losses_of(model, given)


if "RfDetr" in SMALL:

    def test_no_masks_is_no_loss() -> None:
        """RF-DETR's own cannot be differentiated."""
        losses, gradients = run(swapped("RfDetr"), arguments(*BATCHES["none"], "RfDetr"))
        assert all(each == 0 for name, each in losses.items() if "mask" in name)
        assert all(each.isfinite().all() for each in gradients)


def on_a_rank(rank: int) -> None:
    """The first one has no masks."""
    PartialState(cpu=True)  # gloo
    for name in NAMES:
        model = made(name)
        divide_once(sys.modules[type(model).__module__])
        given = arguments((5 * rank, 0), [SIDES] * 2, name)
        theirs, ours = (losses_of(each, given) for each in (model, swapped(name)))
        for loss, each in ours.items():
            if rank or name != "RfDetr":  # which has losses of shape (0, height, width)
                torch.testing.assert_close(each, theirs[loss], rtol=1e-6, atol=0)
    distributed.destroy_process_group()


@pytest.mark.long
def test_ranks() -> None:
    two_processes(on_a_rank)


def test_a_pickle_holds_the_original() -> None:
    model: Any = swapped()
    loaded = pickle.loads(pickle.dumps(model.criterion))
    assert type(loaded) is type(made().criterion)


if torch.cuda.is_available():

    @pytest.mark.parametrize("name", NAMES)
    def test_nobody_waits(name: str) -> None:
        model = swapped(name).cuda()
        given = moved(arguments(*BATCHES["none in one"], name), "cuda")
        run(model, given)
        assert waits(lambda: run(model, given)) == 0
