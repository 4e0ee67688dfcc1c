# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Criteria of masks beside their originals, at the points of one seed."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch.compat import use_boxloss
from small_masks import CLASSES, SMALL
from surroundings import DEVICES, moved, waits
from torch import Tensor, nn

SIDES = (40, 56)
# Of each image how many masks, and their height and width.
BATCHES = {
    "none in one": ((3, 0, 5), [SIDES] * 3),
    "none": ((0, 0), [SIDES] * 2),
    "more than queries": ((9, 2), [SIDES] * 2),
    "of other sizes": ((4, 3, 2), [SIDES, (56, 40), (24, 60)]),
}
DTYPES = {torch.bool: 0, torch.uint8: 0, torch.float16: 1e-3, torch.float32: 0}


def criterion(name: str = "Mask2Former") -> nn.Module:
    torch.manual_seed(0)
    model: Any = SMALL[name]()
    return model.criterion


def arguments(counts: tuple[int, ...], sides: list[tuple[int, int]]) -> dict[str, Any]:
    """Of 6 queries, in two layers."""
    torch.manual_seed(1)

    def layer() -> dict[str, Tensor]:
        masks = torch.randn(len(counts), 6, 16, 24)
        logits = torch.randn(len(counts), 6, CLASSES + 1)
        return {
            "masks_queries_logits": masks.requires_grad_(),
            "class_queries_logits": logits.requires_grad_(),
        }

    masks = [torch.rand(n, *side) > 0.6 for n, side in zip(counts, sides, strict=True)]
    return {
        **layer(),
        "auxiliary_predictions": [layer()],
        "mask_labels": [each.float() for each in masks],
        "class_labels": [torch.randint(CLASSES, (n,)) for n in counts],
    }


def losses_of(part: nn.Module, made: dict[str, Any]) -> tuple[dict[str, Tensor], list[Tensor]]:
    """And gradients; random numbers are taken alike."""
    torch.manual_seed(2)
    losses = part(**made)
    leaves = [
        each
        for each in (*made.values(), *made["auxiliary_predictions"][0].values())
        if isinstance(each, Tensor) and each.requires_grad
    ]
    gradients = torch.autograd.grad(sum(losses.values()), leaves)
    return losses, [*gradients, torch.rand(1)]


def swapped(part: nn.Module, name: str = "Mask2Former") -> nn.Module:
    holder: Any = SMALL[name]()
    holder.criterion = part
    use_boxloss(holder, check=False)
    return part


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", BATCHES)
@pytest.mark.parametrize("name", ["Mask2Former", "MaskFormer"])
def test_losses_gradients_and_random_numbers(name: str, which: str, device: str) -> None:
    part, made = criterion(name).to(device), moved(arguments(*BATCHES[which]), device)
    losses, gradients = losses_of(part, made)
    ours, by_ours = losses_of(swapped(part, name), made)
    assert list(ours) == list(losses)
    for loss, each in losses.items():
        torch.testing.assert_close(ours[loss], each, rtol=1e-6, atol=0)
    for one, other in zip(by_ours, gradients, strict=True):
        scale = other.abs().max().item() if other.isfinite().all() else 0
        assert which == "none" or (one - other).abs().max() <= 2e-6 * scale
        assert one.isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks_of_any_dtype(dtype: torch.dtype) -> None:
    """Theirs takes those of the logits alone."""
    part, made = swapped(criterion()), arguments(*BATCHES["of other sizes"])
    losses, _ = losses_of(part, made)
    made["mask_labels"] = [each.to(dtype) for each in made["mask_labels"]]
    again, _ = losses_of(part, made)
    assert again == losses


Change = Callable[[dict[str, Any]], Any]
FAULTS: dict[str, tuple[Change, str]] = {
    "a label": (lambda made: made["class_labels"][2].fill_(5), "class_labels: image 2, row 0 is 5"),
    "NaN": (
        lambda made: made["mask_labels"][2][4, 7].fill_(torch.nan),
        "mask_labels: image 2, row 4 has a value that is not finite",
    ),
    "fewer labels": (
        lambda made: made["class_labels"].__setitem__(0, torch.zeros(2, dtype=torch.int64)),
        r"mask_labels\[0\] has shape \(3, 40, 56\), class_labels\[0\] \(2,\)",
    ),
    "a dimension": (
        lambda made: made["mask_labels"].__setitem__(1, torch.zeros(40, 56)),
        r"mask_labels\[1\] has shape \(40, 56\)",
    ),
    "an image": (lambda made: made["class_labels"].pop(), "3 images, class_labels has 2"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str) -> None:
    part, made = swapped(criterion()), arguments(*BATCHES["none in one"])
    change, told = FAULTS[what]
    change(made)
    with pytest.raises(ValueError, match=told):
        part(**made)


def test_a_pickle_holds_the_original() -> None:
    loaded = pickle.loads(pickle.dumps(swapped(criterion())))
    assert type(loaded) is type(criterion())


if torch.cuda.is_available():

    @pytest.mark.parametrize("name", ["Mask2Former", "MaskFormer"])
    def test_nobody_waits(name: str) -> None:
        part = swapped(criterion(name).cuda(), name)
        made = moved(arguments(*BATCHES["of other sizes"]), "cuda")
        losses_of(part, made)
        assert waits(lambda: losses_of(part, made)) == 0
