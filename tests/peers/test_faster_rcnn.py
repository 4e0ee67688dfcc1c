# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.faster_rcnn beside torchvision's: all that is matched is equal."""

import pytest
import torch
from boxloss.torch.compat import use_boxloss
from dense_training import assert_same_training
from surroundings import DEVICES, assert_example_runs
from torch import Tensor
from torchvision.models.detection import FasterRCNN

from examples import faster_rcnn
from examples.training import torchvision_batch

# Images without boxes among others, all of them, one box, and many.
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40, 2))


def both() -> tuple[FasterRCNN, FasterRCNN]:
    """torchvision's and ours, which have no other weights: they only match."""
    models = faster_rcnn.small_model(), faster_rcnn.small_model()
    use_boxloss(models[1])
    return models


def problem(counts: tuple[int, ...], seed: int, device: str) -> tuple[list[Tensor], ...]:
    """Boxes near true ones and others, in some more images than in others; true boxes, labels."""
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
    proposals, boxes, _ = problem(counts, seed, device)
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
    proposals, boxes, classes = problem(counts, seed, device)
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


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_training(seed: int, counts: tuple[int, ...]) -> None:
    assert_same_training(faster_rcnn.train, seed, counts)


def test_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(faster_rcnn, 1, capsys)
