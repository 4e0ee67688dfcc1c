# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Masks in fixed shapes: the losses and gradients of lists, at the same points."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from boxloss.torch.compat import FixedTargets, collate_fixed, use_boxloss
from boxloss.torch.compat.families import mask2former, rf_detr_masks
from models import loss_of, project_of
from models import made as made_model
from small_masks import SMALL, WITH_BOXES
from surroundings import assert_reads_nothing
from test_masks import BATCHES, NAMES, SIDES, arguments, called, losses_of, run, swapped
from torch import Tensor
from torch._dynamo.testing import CompileCounter

MOST = 9
each_criterion = pytest.mark.parametrize("name", NAMES)


def fixed(given: dict[str, Any], most: int = MOST, **options: Any) -> dict[str, Any]:
    names = [name for name in ("labels", "mask_labels", "class_labels") if name in given]
    lists = zip(*(given[name] for name in names), strict=True)
    samples = [dict(zip(names, each, strict=True)) for each in lists]
    return {**given, **collate_fixed(samples, max_boxes=most, **options)}


def parts_of(given: dict[str, Any]) -> list[Tensor]:
    """Boxes, labels, offsets and masks."""
    rows = given.get("labels", given.get("class_labels"))
    return [*rows, given.get("mask_labels", rows.masks)]


def of_parts(given: dict[str, Any], *parts: Tensor) -> dict[str, Any]:
    *rows, masks = parts
    if "labels" in given:
        return {**given, "labels": FixedTargets(*rows, MOST, masks)}
    return {**given, "class_labels": FixedTargets(*rows, MOST), "mask_labels": masks}


def moved_behind(given: dict[str, Any]) -> dict[str, Any]:
    """With padding before the first image's masks."""
    boxes, labels, offsets, masks = parts_of(given)
    free = len(labels) - int(offsets[-1])
    boxes, labels, masks = (each.roll(free, 0) for each in (boxes, labels, masks))
    return of_parts(given, boxes, labels, offsets + free, masks)


def same_points(
    order: Sequence[int], sizes: Sequence[tuple[int, int]], device: torch.device
) -> list[Tensor]:
    """Of the first pairs, however many there are, in all layers."""
    torch.manual_seed(3)
    drawn = [(2 * torch.rand(300, points, 2) - 1)[:count] for count, points in sizes]
    return [points.repeat(len(order), 1, 1, 1) for points in drawn]


@pytest.mark.parametrize("which", [name for name in BATCHES if name != "of other sizes"])
@each_criterion
def test_losses_and_gradients(name: str, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is in no pair predicts no numbers; such ones' gradients are 0."""
    for module in (mask2former, rf_detr_masks):
        monkeypatch.setattr(module, "draw", same_points)
    model, given = swapped(name), arguments(*BATCHES[which], name)
    given["pred_masks" if name in WITH_BOXES else "masks_queries_logits"].data[1, 5] = torch.nan
    if name in WITH_BOXES:
        given["pred_boxes"].data[1, 5] = 9  # DETR's matcher sees no masks
    losses, gradients = run(model, given)
    for in_rows in (fixed(given), moved_behind(fixed(given))):
        ours, by_ours = run(model, in_rows)
        torch.testing.assert_close(ours, losses, rtol=1e-6, atol=0)
        for one, other in zip(by_ours, gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=2e-6 * other.abs().max().item())
            assert (one[other == 0] == 0).all()


@pytest.mark.parametrize("name", SMALL)
def test_a_model_gives_the_same(name: str) -> None:
    """At the points of the seed, where each image has as many masks as fit."""
    model, batch = made_model(name), project_of(name).batch((2, 2))
    use_boxloss(model, max_boxes=2)
    ours, wanted = (loss_of(name, model, given) for given in (fixed(batch, 2), batch))
    torch.testing.assert_close(ours, wanted, rtol=1e-6, atol=0)


@each_criterion
def test_reads_nothing_on_the_host(name: str) -> None:
    model, given = swapped(name), arguments(*BATCHES["none in one"], name)
    parts = parts_of(fixed(given))

    def criterion(parts: list[Tensor], given: dict[str, Any]) -> None:
        losses_of(model, of_parts(given, *parts))

    assert_reads_nothing(criterion, on="cuda", parts=parts, given=given)


@each_criterion
def test_compiles_once_for_all_counts(name: str) -> None:
    torch.compiler.reset()
    model, graphs = swapped(name), CompileCounter()
    compiled = torch.compile(partial(called, model), backend=graphs, fullgraph=True)
    for counts in ((3, 0, 5), (0, 0, 0), (9, 1, 2)):
        given = fixed(arguments(counts, [SIDES] * 3, name))
        wanted = losses_of(model, given)
        torch.manual_seed(2)
        torch.testing.assert_close(compiled(given), wanted)
    assert graphs.frame_count == 1


def test_faults() -> None:
    given = arguments(*BATCHES["none in one"])
    with pytest.raises(ValueError, match=r"mask_labels\[2\] has 5 masks; max_boxes is 4"):
        fixed(given, 4)
    with pytest.raises(ValueError, match=r"class_labels: .* a label must lie in \[0, 1\)"):
        fixed(given, num_labels=1)
    with pytest.raises(ValueError, match=r"height and width .*\(24, 60\).* must be the same"):
        fixed(arguments(*BATCHES["of other sizes"]))
    with_boxes = fixed(arguments(*BATCHES["none in one"], "Detr"))
    labels = arguments(*BATCHES["none in one"], "Detr")["labels"]
    del labels[1]["masks"]
    with pytest.raises(ValueError, match=r'labels\[1\] has no "masks"'):
        FixedTargets.of(labels, max_boxes=MOST)
    with pytest.raises(ValueError, match="masks is NoneType; beside FixedTargets"):
        losses_of(swapped("Detr"), {**with_boxes, "labels": FixedTargets(*with_boxes["labels"])})
    lists = given["mask_labels"]
    for masks, told in ((lists, "list"), (torch.cat(lists), r"\(8, 40, 56\)")):
        with pytest.raises(ValueError, match=rf"mask_labels is {told}; .* \(27, height, width\)"):
            losses_of(swapped(), {**fixed(given), "mask_labels": masks})


def test_the_largest_are_kept() -> None:
    masks, labels = torch.arange(6) < torch.tensor([4, 1, 3])[:, None, None], torch.arange(3)
    given = {"mask_labels": [masks[:0], masks], "class_labels": [labels[:0], labels]}
    found = fixed(given, 2, drop_smallest=True)
    assert torch.equal(found["mask_labels"], torch.cat((masks[::2], torch.zeros(2, 1, 6).bool())))
    _, labels, offsets = found["class_labels"]
    assert (labels.tolist(), offsets.tolist()) == ([0, 2, 0, 0], [0, 0, 2])
