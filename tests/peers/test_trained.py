# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of trainings judges by pycocotools and paired seeds, and has a YOLO's own criterion in
float32; RT-DETR's parameters have the same gradients both ways."""

from copy import deepcopy
from itertools import repeat

import pytest
import torch
from boxloss.torch.compat import use_boxloss

pytest.importorskip("pycocotools")
pytest.importorskip("transformers")
pytest.importorskip("ultralytics")

from benchmarks.studies.trained.detectors import DETECTORS, criterion_in_float32, yolo11n
from benchmarks.studies.trained.paired import verdict
from benchmarks.studies.trained.scenes import Scenes
from benchmarks.studies.trained.training import judged, losses_of_same_outputs

YOLO = DETECTORS["YOLO11n"]
BOXES = [torch.tensor([[10.0, 20, 30, 50], [40, 40, 300, 200]]), torch.zeros(0, 4)]
LABELS = [torch.tensor([3, 10]), torch.zeros(0, dtype=torch.long)]


def precisions(all_boxes: float, small: float) -> object:
    return pytest.approx({"mAP50-95": all_boxes, "mAP50-95, small": small})


def test_the_truth_has_a_precision_of_1_and_less_if_it_is_moved_or_incomplete() -> None:
    scenes = Scenes(torch.zeros(2, 3, 320, 320, dtype=torch.uint8), BOXES, LABELS)
    truth = torch.cat((BOXES[0], torch.ones(2, 1), LABELS[0][:, None]), 1)
    none = torch.zeros(0, 6)
    moved = truth + torch.tensor([4.0, 0, 4, 0, 0, 0])
    assert judged([truth, none], scenes) == precisions(1, 1)
    assert judged([truth[1:], none], scenes) == precisions(0.5, 0)
    # IoUs of 16 / 24 and 256 / 264 pass 4 and 10 of the thresholds 0.5, 0.55 ... 0.95.
    assert judged([moved, none], scenes) == precisions(0.7, 0.4)
    assert judged([none, none], scenes) == precisions(0, 0)


def test_a_criterion_in_float32_ignores_autocast() -> None:
    """Beside others, on outputs that are the same."""
    torch.manual_seed(0)
    model = yolo11n()
    pictures, labels = torch.rand(2, 3, 64, 64), [torch.zeros(1)] * 2
    boxes = [torch.tensor([[0.5, 0.5, 0.4, 0.6]])] * 2  # large enough to have anchors
    variants = {"original": lambda model: None, "in float32": criterion_in_float32}
    losses = losses_of_same_outputs(YOLO, model, variants, repeat((pictures, boxes, labels)))
    batch = {"img": pictures, "batch_idx": torch.arange(2.0)}
    batch |= {"bboxes": torch.cat(boxes), "cls": torch.cat(labels)}
    criterion = model.init_criterion()
    with torch.autocast("cpu", torch.bfloat16):
        found = model.forward(pictures)
        rounded = criterion(found, batch)[0].sum()
    exact = criterion(found | {key: found[key].float() for key in ("boxes", "scores")}, batch)[0]
    assert losses == pytest.approx({"original": rounded.item(), "in float32": exact.sum().item()})
    assert losses["original"] != pytest.approx(losses["in float32"])


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ([0.01, -0.01, 0.01, -0.01, 0.01, -0.01], "the same"),
        ([0.01, 0.011, 0.009, 0.01, 0.01, 0.012], "different"),
        ([0.1, -0.1, 0.1, -0.1, 0.1, -0.1], "not known"),
    ],
)
def test_six_pairs_are_judged(differences: list[float], word: str) -> None:
    originals = [0.3, 0.31, 0.28, 0.29, 0.33, 0.3]
    ours = [each + more for each, more in zip(originals, differences, strict=True)]
    assert verdict(ours, originals).startswith(word)


def test_both_criteria_of_rt_detr_give_all_parameters_the_same_gradients() -> None:
    torch.manual_seed(0)
    model = DETECTORS["RT-DETR-R18"].make().train()
    pictures = torch.rand(2, 3, 160, 160)  # as many places as queries
    boxes = [torch.tensor([[0.5, 0.5, 0.4, 0.6], [0.3, 0.2, 0.1, 0.05]]), torch.zeros(0, 4)]
    labels = [torch.tensor([3, 10]), torch.zeros(0, dtype=torch.long)]
    gradients = []
    for change in (use_boxloss, lambda model: None):
        copied = deepcopy(model)
        change(copied)
        torch.manual_seed(1)  # of denoising queries
        DETECTORS["RT-DETR-R18"].batch([*pictures], boxes, labels)(copied).backward()
        own = (each.grad for each in copied.parameters())
        gradients.append(torch.cat([each.flatten() for each in own if each is not None]))
    ours, original = gradients
    assert (ours - original).norm() <= 1e-6 * original.norm()
