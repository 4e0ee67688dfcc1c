# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What boxloss.torch.compat's matcher makes of others' keys, and what is refused; tests/peers has
the adapters beside the originals."""

from itertools import accumulate
from typing import Any

import pytest
import torch
from boxloss.torch import collate_matches
from boxloss.torch.compat import HungarianMatcher, MMDetLoss, detr_loss_boxes
from boxloss.torch.compat.detr import _rows_there
from problems import boxes
from torch import Tensor

CPU = torch.device("cpu")
COUNTS = (3, 0, 6)
FIRSTS = [*accumulate(COUNTS, initial=0)]
QUERIES, CLASSES = 8, 5


def inputs(labels: str = "labels") -> tuple[dict[str, Tensor], list[dict[str, Tensor]], Tensor]:
    """Outputs, targets, and the targets' boxes as one list."""
    random = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(len(COUNTS), QUERIES, CLASSES, generator=random)
    pred, target = (
        boxes(shape, CPU, torch.float64, "cxcywh", seed) / 64
        for seed, shape in enumerate([(len(COUNTS), QUERIES), (sum(COUNTS),)])
    )
    targets = [
        {labels: torch.arange(len(each)) % CLASSES, "boxes": each} for each in target.split(COUNTS)
    ]
    return {"logits": logits, "pred_boxes": pred}, targets, target


def test_the_matcher_leaves_out_what_is_infinite() -> None:
    outputs, targets, _ = inputs()
    outputs["pred_boxes"] = outputs["pred_boxes"].clone()
    outputs["pred_boxes"][2, 2:] = torch.inf  # six boxes; L1 alone: GIoU would be NaN
    pairs = HungarianMatcher(0, 5, 0)(outputs, targets)
    assert [len(src) for src, _ in pairs] == [3, 0, 2]
    assert pairs[2][0].tolist() == [0, 1]


def test_losses_of_one_layer_are_deprecated() -> None:
    outputs, targets, _ = inputs()
    with pytest.warns(FutureWarning, match=r"will go in 0\.5: call boxloss\.torch\.set_criterion"):
        detr_loss_boxes(outputs, targets, MATCHES, 3)


MATCHES = [([5, 0, 7], [1, 1, 0]), ([], []), ([2], [4])]


def test_the_keys_of_detr_itself() -> None:
    outputs, targets, _ = inputs("class_labels")
    wanted = HungarianMatcher(1, 5, 2)(outputs, targets)
    outputs["pred_logits"] = outputs.pop("logits")
    targets[1]["labels"] = targets[1].pop("class_labels")  # each image by itself
    for pair, each in zip(HungarianMatcher(1, 5, 2)(outputs, targets), wanted, strict=True):
        assert torch.equal(torch.stack(pair), torch.stack(each))


SHAPES = [
    ((2, 8, 4), "pred_boxes has 2 images, targets has 3"),
    ((3, 2, 8, 4), r"pred_boxes has shape \(3, 2, 8, 4\); it must be \(images, queries, 4\)"),
    ((3, 8, 5), r"pred_boxes has shape \(3, 8, 5\); it must be"),
]


@pytest.mark.parametrize(("shape", "text"), SHAPES)
def test_predictions_of_other_images(shape: tuple[int, ...], text: str) -> None:
    """Their rows might all be in the list, and the numbers look right."""
    _, targets, _ = inputs()
    outputs = {"pred_boxes": torch.rand(shape), "logits": torch.rand(*shape[:-1], CLASSES)}
    with pytest.raises(ValueError, match=f"^{text}"):
        detr_loss_boxes(outputs, targets, MATCHES, 3)
    with pytest.raises(ValueError, match=f"^{text}"):
        HungarianMatcher()(outputs, targets)


def test_true_boxes_of_a_bad_shape() -> None:
    outputs, targets, _ = inputs()
    targets[1]["boxes"] = torch.empty(0)  # as datasets may have none
    wanted = detr_loss_boxes(outputs, targets, MATCHES, 3)
    assert all(loss.isfinite() for loss in wanted.values())
    targets[2]["boxes"] = targets[2]["boxes"][:, None]
    text = r"^targets\[2\]: boxes has shape \(6, 1, 4\); it must be \(n, 4\)$"
    with pytest.raises(ValueError, match=text):
        detr_loss_boxes(outputs, targets, MATCHES, 3)
    with pytest.raises(ValueError, match=text):
        HungarianMatcher()(outputs, targets)


def test_labels_of_other_boxes() -> None:
    """Together they are as many as the boxes."""
    outputs, targets, _ = inputs()
    targets[0]["labels"], targets[2]["labels"] = targets[2]["labels"], targets[0]["labels"]
    with pytest.raises(ValueError, match=r"^targets\[0\] has 6 labels, 3 boxes$"):
        HungarianMatcher()(outputs, targets)


BAD_NUMBERS: list[tuple[type[Exception], Any, str]] = [
    (ValueError, torch.ones(2), r"has shape \(2,\); it must have one element"),
    (ValueError, torch.ones(0), r"has shape \(0,\); it must have one element"),
    (TypeError, "3", "is str; it must be a number, or a tensor of one element"),
    (TypeError, None, "is NoneType; it must be a number, or a tensor of one element"),
]


@pytest.mark.parametrize(("error", "number", "text"), BAD_NUMBERS)
def test_what_divides_no_sum(error: type[Exception], number: Any, text: str) -> None:
    outputs, targets, _ = inputs()
    with pytest.raises(error, match=f"^num_boxes {text}$"):
        detr_loss_boxes(outputs, targets, MATCHES, number)
    if number is not None:
        with pytest.raises(error, match=f"^avg_factor {text}$"):
            MMDetLoss()(torch.ones(5, 4), torch.ones(5, 4), avg_factor=number)


def test_what_is_no_tensor() -> None:
    outputs, targets, _ = inputs()

    def raises(text: str, call: Any, *given: Any, **options: Any) -> None:
        with pytest.raises(TypeError, match=f"^{text}"):
            call(*given, **options)

    lists = {**outputs, "pred_boxes": outputs["pred_boxes"].tolist()}
    numpys = [{**targets[0], "boxes": targets[0]["boxes"].numpy()}, *targets[1:]]
    for call, more in ((detr_loss_boxes, (MATCHES, 3)), (HungarianMatcher(), ())):
        raises("outputs: pred_boxes is list; it must be a tensor$", call, lists, targets, *more)
        text = r"targets\[0\]: boxes is ndarray; it must be a tensor$"
        raises(text, call, outputs, numpys, *more)
    unlabelled = [targets[0], {**targets[1], "labels": []}, targets[2]]
    text = r"targets\[1\]: labels is list; it must be a tensor$"
    raises(text, HungarianMatcher(), outputs, unlabelled)

    pred = torch.ones(5, 4)
    raises("MMDetLoss: weight is list; it must be a tensor$", MMDetLoss(), pred, pred, [1.0] * 5)
    raises("MMDetLoss: pred is list; it must be a tensor$", MMDetLoss(), [], pred, avg_factor=2)
    raises("loss_weight is str; it must be a number$", MMDetLoss, loss_weight="2")


def test_pairs_made_on_the_device() -> None:
    """Those on a GPU, which are not checked there."""
    pairs = [(torch.tensor(src).long(), torch.tensor(tgt).long()) for src, tgt in MATCHES]
    found = _rows_there(pairs, FIRSTS, QUERIES)
    wanted = collate_matches(MATCHES, COUNTS, QUERIES)
    assert torch.equal(torch.stack(found), torch.stack(wanted))
    with pytest.raises(ValueError, match=r"^indices has 2 images, targets has 3$"):
        _rows_there(pairs[:2], FIRSTS, QUERIES)
    pairs[0], pairs[2] = (pairs[0][0], pairs[2][1]), (pairs[2][0], pairs[0][1])
    text = r"^indices\[0\]: src has shape \(3,\), tgt has \(1,\); both must be \(k,\)$"
    with pytest.raises(ValueError, match=text):
        _rows_there(pairs, FIRSTS, QUERIES)


def test_a_bad_reduction_is_a_value_error() -> None:
    pred, target = boxes((5,), CPU, seed=1), boxes((5,), CPU, seed=2)
    text = "^reduction_override is 'average'; it must be one of "
    with pytest.raises(ValueError, match=text):
        MMDetLoss()(pred, target, reduction_override="average")  # type: ignore[arg-type]
