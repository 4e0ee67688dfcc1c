# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""examples/oriented_detr.py: its criterion pair by pair, its precision by hand; it trains."""

import sys
from itertools import accumulate, permutations, product
from math import pi
from pathlib import Path

import pytest
import torch
from boxloss.torch import rotated_box_loss
from torch import Tensor

from examples import oriented_detr
from examples.oriented_detr import Detector, average_precision, criterion, evaluate, train
from examples.rectangles import COLOURS, MOST, SIDE, Targets, corners, draw

# --- The criterion, one pair of boxes after the other ---


def box_terms(p: Tensor, t: Tensor) -> Tensor:
    giou = rotated_box_loss(p, t, "giou", eps=0.0)
    return 2 * giou + 5 * (p - t)[:4].abs().sum() + 1 - (2 * (p - t)[4]).cos()


def focal(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Of classes that are there, and that are not."""
    p = logits.sigmoid()
    return -0.25 * (1 - p) ** 2 * p.log(), -0.75 * p**2 * (1 - p).log()


def plain_criterion(logits: Tensor, boxes: Tensor, targets: Targets) -> Tensor:
    """Pairs are chosen so that they add least, so the least sum of all ways is theirs."""
    total = 2 * focal(logits)[1].sum()
    for layer, image in product(*map(range, logits.shape[:2])):
        own = slice(*targets.offsets[image : image + 2])
        present, absent = focal(logits[layer, image])
        added = 2 * (present - absent)[:, targets.labels[own]]
        for query, row in product(*map(range, added.shape)):
            terms = box_terms(boxes[layer, image, query], targets.boxes[own][row])
            added = added.index_put((torch.tensor(query), torch.tensor(row)), terms, True)
        added = added if added.shape[0] < added.shape[1] else added.T
        fewer, more = added.shape
        ways = [added[range(fewer), way].sum() for way in permutations(range(more), fewer)]
        total = total + torch.stack(ways).min()
    return total / max(len(targets.boxes), 1)


@pytest.mark.parametrize("counts", [(2, 0, 5, 1, 3, 2), (0, 0)], ids=str)
def test_criterion(device: torch.device, counts: tuple[int, ...]) -> None:
    """Some queries are near a box, up to turns; one image has more boxes than queries."""
    random = torch.Generator().manual_seed(3)
    some = draw(9, random)[1].boxes.double()
    rows, shape = sum(counts), (2, len(counts), 3)
    targets = Targets(
        some[:rows],
        torch.randint(len(COLOURS), (rows,), generator=random),
        torch.tensor([0, *accumulate(counts)]),
    )
    moved = torch.rand(*shape, 5, generator=random, dtype=torch.float64) / 9
    boxes = some[torch.randint(len(some), shape, generator=random)] + moved
    boxes[..., 4] += pi * torch.randint(-3, 4, shape, generator=random)
    logits = 2 * torch.randn(*shape, len(COLOURS), generator=random, dtype=torch.float64)
    leaves = [each.requires_grad_() for each in (logits, boxes)]

    on_device = [each.detach().to(device).requires_grad_() for each in leaves]
    found = criterion(*on_device, targets.to(device))
    expected = plain_criterion(*leaves, targets)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-9, atol=0)
    gradients = torch.autograd.grad(found, on_device)
    for ours, plain in zip(
        gradients, torch.autograd.grad(expected, leaves, materialize_grads=True), strict=True
    ):
        torch.testing.assert_close(ours.cpu(), plain, rtol=1e-9, atol=1e-11)


# --- Training ---


def test_a_few_steps_of_training(device: torch.device) -> None:
    def losses() -> list[float]:
        torch.manual_seed(0)
        return train(Detector().to(device), 25, seed=0, device=str(device))

    first = losses()
    assert sum(first[-5:]) < 0.75 * sum(first[:5])
    if device.type == "cpu":
        assert losses() == first


def test_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "picture.png"
    monkeypatch.setattr(oriented_detr, "STEPS", 2)
    monkeypatch.setattr(sys, "argv", ["oriented_detr", "--picture", str(file)])
    oriented_detr.main()
    steps, before, after = capsys.readouterr().out.splitlines()
    assert steps.startswith("2 steps in ")
    assert before.startswith("before training: AP50 0.0")
    assert after.startswith("after training: AP50 0.0")
    assert 10_000 < file.stat().st_size < 150_000


def test_rectangles_are_where_their_boxes_are() -> None:
    """The last of each image, which no other covers; around one that is alone there is noise."""
    images, targets = draw(50, torch.Generator().manual_seed(0))
    counts = targets.offsets.diff()
    assert set(counts.tolist()) == set(range(1, MOST + 1))
    axis = (torch.arange(SIDE) + 0.5) / SIDE
    pixels = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
    for image, count, last in zip(images, counts, targets.offsets[1:] - 1, strict=True):
        points = corners(targets.boxes[last, None])[0][:, None, None]
        sides = points.roll(-1, 0) - points
        x, y = (pixels - points).unbind(-1)
        turn = sides[..., 0] * y - sides[..., 1] * x
        depth = SIDE * (turn / sides.norm(dim=-1)).amin(0)
        inside = image[:, depth > 0.51]
        assert torch.allclose(inside, COLOURS[targets.labels[last], :, None])
        assert count > 1 or image[:, depth < -0.51].max() <= 0.4


# --- Average precision ---


def test_average_precision_by_hand() -> None:
    """Of three boxes. By rank: the first box is found; found again; the second is found, loosely;
    nothing; the third, which was found more loosely before, is found."""
    scores = torch.tensor([0.1, 0.9, 0.7, 0.8, 0.2])
    overlaps = torch.tensor([[0.0, 0, 0.9], [0.8, 0, 0], [0, 0.6, 0], [0.9, 0.3, 0], [0.1, 0, 0.2]])
    found = average_precision(scores, overlaps, torch.tensor([0.5, 0.75]))
    expected = [(1 + 2 / 3 + 3 / 5) / 3, (1 + 2 / 5) / 3]
    assert found.tolist() == pytest.approx(expected)


def test_precision_is_the_highest_at_this_recall_or_above() -> None:
    overlaps = torch.tensor([[0.0, 0], [1, 0], [0, 1]])
    found = average_precision(torch.tensor([3.0, 2, 1]), overlaps, torch.tensor([0.5]))
    assert found.tolist() == pytest.approx([2 / 3])


def test_evaluation() -> None:
    """Found is what has the place and class of a box in its image; half a turn is none."""
    _, targets = draw(40, torch.Generator().manual_seed(0))
    counts = targets.offsets.diff()
    exists = torch.arange(MOST) < counts[:, None]
    boxes = torch.ones(40, MOST, 5)
    boxes[exists] = targets.boxes + torch.tensor([0, 0, 0, 0, pi])
    logits = torch.full((40, MOST, len(COLOURS)), -9.0)
    logits[exists] += 18 * torch.eye(len(COLOURS))[targets.labels]
    assert evaluate(logits, boxes, targets).tolist() == pytest.approx([1] * 10)
    for wrong in ((logits.roll(1, -1), boxes), (logits.roll(1, 0), boxes.roll(1, 0))):
        assert evaluate(*wrong, targets).max() < 0.5
