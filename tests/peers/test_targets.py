# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth as it is in the wild: taken where the original takes it, and never in silence where
it is wrong."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest
import torch
from boxloss.torch.compat import MMDetLoss, check_targets, detr_loss_boxes, faults, use_boxloss
from boxloss.torch.compat.faults import GroundTruth
from boxloss.torch.compat.targets import ground_truth_of
from combinations import long_but
from models import (
    DAILY,
    MODELS,
    OF_TORCHVISION,
    ORIENTED,
    ULTRALYTICS,
    WITH_BOXES,
    Batch,
    batch_of,
    loss_of,
    made,
    mostly_long,
    mostly_long_with_boxes,
    project_of,
)
from small_detrs import SMALL
from surroundings import moved
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

OF_TRANSFORMERS = ("DETR", "Deformable DETR", "RT-DETR", "D-FINE")
OF_SSD = [name for name in OF_TORCHVISION if "SSD" in name]
YOLO = [name for name in MODELS if project_of(name) in (ULTRALYTICS, ORIENTED)]
YOLOS = [name for name in YOLO if "YOLO" in name]


def without_denoising(model: nn.Module) -> nn.Module:
    """For which the network looks up labels, and raises itself."""
    for part in (getattr(model, "config", None), *model.modules()):
        if hasattr(part, "num_denoising"):
            part.num_denoising = 0
    return model


def assert_same_loss(name: str, batch: Batch) -> None:
    model = made(name)
    wanted = loss_of(name, model, batch).item()
    use_boxloss(model, check=False)
    assert loss_of(name, model, batch).item() == pytest.approx(wanted, rel=1e-5)


def targets_of(name: str, batch: Batch) -> list[dict[str, Tensor]]:
    return batch[project_of(name).targets]


def change(name: str, what: str, image: int, row: int, value: Any) -> Batch:
    """A batch with another label, or another last number of a box, or last side, if negative."""
    batch, labels = batch_of(name), project_of(name).labels
    if name in YOLO:
        row = (batch["batch_idx"] == image).nonzero()[row, 0]
        values = batch["cls" if what == "label" else "bboxes"]
    else:
        values = targets_of(name, batch)[image]["boxes" if what == "box" else labels]
    values[row if what == "label" else (row, 3 if value < 0 else -1)] = value
    return batch


CLASSES = 5
FAULTS = [("label", CLASSES), ("label", -1), ("box", float("nan")), ("box", -0.25)]
UNSEEN = {
    # torchvision itself refuses a box of negative size, and its cross entropy a label.
    **{(name, "box", -0.25): AssertionError for name in OF_TORCHVISION if name not in OF_SSD},
    **{(name, "label", CLASSES): IndexError for name in OF_TORCHVISION if "R-CNN" in name},
}


@pytest.mark.parametrize(("what", "value"), FAULTS)
@mostly_long_with_boxes
def test_faults(name: str, what: str, value: float) -> None:
    batch = change(name, what, 2, 4, value)
    model = without_denoising(made(name))
    use_boxloss(model, check=False)
    if (name, what, value) in UNSEEN:
        with pytest.raises(UNSEEN[name, what, value]):
            loss_of(name, model, batch)
        return
    told = rf"image 2, row 4 is .*{'nan' if value != value else round(value)}"
    with pytest.raises(ValueError, match=told):
        loss_of(name, model, batch)


@pytest.mark.parametrize("name", long_but([*SMALL, *OF_TORCHVISION], DAILY))
def test_counts_that_differ(name: str) -> None:
    model = without_denoising(made(name))
    use_boxloss(model, check=False)
    for count in (2, 4):
        batch, key = batch_of(name), project_of(name).labels
        first = targets_of(name, batch)[0]
        first[key] = torch.cat((first[key], (first[key][-1:] + 1) % CLASSES))[:count]
        if count == 4 and name in OF_TORCHVISION:  # whose last label belongs to no box
            assert loss_of(name, model, batch) == loss_of(name, model, batch_of(name))
            continue
        with pytest.raises(ValueError, match=rf"has {count} {key}, 3 boxes"):
            loss_of(name, model, batch)


@pytest.mark.parametrize("name", long_but([*SMALL, *YOLOS], DAILY))
def test_lists_and_arrays(name: str) -> None:
    model = without_denoising(made(name))
    use_boxloss(model, check=False)
    for kind in (Tensor.tolist, Tensor.numpy):
        batch = batch_of(name)
        if name in YOLO:
            batch["cls"] = kind(batch["cls"])
        else:
            for each in targets_of(name, batch):
                each["boxes"] = kind(each["boxes"])
        with pytest.raises(TypeError, match=r"(boxes|cls) is (list|ndarray); it must be a tensor"):
            loss_of(name, model, batch)


def test_each_image_may_have_classes_of_its_own() -> None:
    """As with prompts."""

    def collated(label: int) -> GroundTruth:
        labels = (0, 4), (1, label), (4,)
        boxes = torch.rand(5, 4).split([len(each) for each in labels])
        pairs = zip(boxes, map(torch.tensor, labels), strict=True)
        given = [{"boxes": each, "class_labels": its} for each, its in pairs]
        return ground_truth_of(given, "class_labels", [5, 2, 5], has_sizes=True)

    truth = collated(1)
    with pytest.raises(ValueError, match=r"image 1, row 1 is 2; a label must lie in \[0, 2\)"):
        collated(2)
    limits = torch.tensor([5, 5, 2, 2, 5])
    rows = faults.Rows(truth.boxes, truth.labels, truth.offsets, "class_labels", limits, True)
    assert faults._in_few_launches(rows) == 1
    assert faults._in_few_launches(rows._replace(labels=truth.labels.clamp(min=2))).isnan()
    for angle in (0.5, torch.inf):
        oriented = rows._replace(boxes=torch.cat((truth.boxes, truth.boxes[:, :1] * angle), 1))
        assert faults._in_few_launches(oriented).isnan() == (angle == torch.inf)


# Of targets and their word for labels.
HARMLESS: dict[str, Callable[[list[dict[str, Tensor]], str], Any]] = {
    "empty boxes": lambda given, _: given[1].update(boxes=torch.tensor([])),
    "empty labels": lambda given, key: given[1].update({key: torch.empty(0, 1).long()}),
    "columns of labels": lambda given, key: [
        each.update({key: each[key][:, None]}) for each in given
    ],
    "doubles": lambda given, _: [each.update(boxes=each["boxes"].double()) for each in given[::2]],
    "some int32": lambda given, key: given[0].update({key: given[0][key].int()}),
    "a label without a box": lambda given, key: given[1].update({key: torch.zeros(1).long()}),
    "one more label": lambda given, key: given[0].update({key: torch.ones(4).long()}),
    "labels of no images": lambda given, key: given[1].update({key: torch.tensor([])}),
}


@pytest.mark.parametrize("what", HARMLESS)
@pytest.mark.parametrize("name", long_but([*OF_TRANSFORMERS, *OF_TORCHVISION], DAILY))
def test_takes_what_the_original_takes(name: str, what: str) -> None:
    batch, changed = batch_of(name), batch_of(name)
    HARMLESS[what](targets_of(name, changed), project_of(name).labels)
    model = without_denoising(made(name))
    # RetinaNet makes a class for each pair of columns of labels; Mask R-CNN's own losses take none.
    given = batch if what == "columns of labels" and name != "Mask R-CNN" else changed
    try:
        wanted = loss_of(name, model, given)
    except Exception:  # then boxloss may take it or say why not
        return
    use_boxloss(model, check=False)
    assert loss_of(name, model, changed).item() == pytest.approx(wanted.item(), rel=1e-5)


@pytest.mark.parametrize("name", OF_SSD)
def test_boxes_without_height(name: str) -> None:
    """An assertion of torchvision's."""
    batch, model = batch_of(name), made(name)
    box = targets_of(name, batch)[2]["boxes"][4]
    box[3] = box[1]
    use_boxloss(model, check=False)
    with pytest.raises(ValueError, match=r"image 2, row 4 is .* sizes must be more than 0"):
        loss_of(name, model, batch)


def test_padding_of_ultralytics() -> None:
    """A box whose corners do not add up to more than 0."""
    batch = batch_of("YOLO11")
    for right in (75, 65):  # to the left of the image, and still some of it inside
        left = -right - 60
        batch["bboxes"][0] = torch.tensor([(left + right) / 2, 15, right - left, 20.0]) / 128
        assert_same_loss("YOLO11", batch)


if "YOLO11-obb" in MODELS:

    @pytest.mark.parametrize("sides", [(1.9, 40.0), (40.0, 1.9), (2.1, 2.1), (2.1, 40.0)])
    def test_small_oriented_boxes(sides: tuple[float, float]) -> None:
        """Below two pixels they are not learned, and from there on as if they were larger."""
        batch = batch_of("YOLO11-obb")
        batch["bboxes"][-1, 2:4] = torch.tensor(sides) / 128
        assert_same_loss("YOLO11-obb", batch)

    def test_padding_of_oriented_boxes() -> None:
        """A box whose numbers do not add up to more than 0, such as by its angle."""
        batch = batch_of("YOLO11-obb")
        for half_turns in (-20, -120):
            batch["bboxes"][0, 4] = math.pi * half_turns
            assert_same_loss("YOLO11-obb", batch)

    @pytest.mark.parametrize(("name", "numbers"), [("YOLO11", 5), ("YOLO11-obb", 4)])
    def test_boxes_of_another_kind(name: str, numbers: int) -> None:
        model, batch = made(name), batch_of(name)
        batch["bboxes"] = torch.rand(8, numbers)
        use_boxloss(model, check=False)
        told = rf"bboxes has shape \(8, {numbers}\); for this model it must be \(n, {9 - numbers}\)"
        with pytest.raises(ValueError, match=told):
            loss_of(name, model, batch)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch_idx": torch.tensor([2] * 5 + [0] * 3)}, "batch_idx decreases"),
        ({"batch_idx": torch.tensor([0] * 3 + [3] * 5)}, r"batch_idx\[3\] is 3; .* in \[0, 3\)"),
        ({"batch_idx": torch.tensor([-1] + [0] * 7)}, r"batch_idx\[0\] is -1"),
        ({"batch_idx": torch.full((8,), torch.nan)}, r"batch_idx\[0\] is nan"),
        ({"batch_idx": torch.zeros(6)}, "have 6, 8 and 8 rows"),
    ],
)
def test_boxes_of_other_images(change: Batch, told: str) -> None:
    model = made("YOLO11")
    use_boxloss(model, check=False)
    with pytest.raises(ValueError, match=told):
        loss_of("YOLO11", model, batch_of("YOLO11") | change)


def test_halves_of_yolo_are_widened_first() -> None:
    batch = batch_of("YOLO11")
    batch["bboxes"] = batch["bboxes"].bfloat16()
    batch["batch_idx"] = batch["batch_idx"].float()
    assert_same_loss("YOLO11", batch)


# --- What is not wanted besides ---


@pytest.mark.parametrize("name", long_but(SMALL, DAILY))
def test_evaluation_is_of_this_rank_alone(name: str) -> None:
    """Others may write a checkpoint meanwhile."""
    model = made(name).eval()
    use_boxloss(model)
    with (
        patch.object(torch.distributed, "is_initialized", lambda: True),
        patch.object(torch.distributed, "get_world_size", lambda *_: 2),
        patch.object(torch.distributed, "all_reduce", lambda *_, **__: pytest.fail("waits")),
        torch.no_grad(),
    ):
        assert loss_of(name, model, batch_of(name)).isfinite()


class NoDoubles(TorchDispatchMode):
    """MPS has none."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, Tensor) and each.dtype == torch.float64:
                raise TypeError(f"float64 by {function}")
        return result


@mostly_long
def test_makes_no_float64(name: str) -> None:
    model, batch = made(name), batch_of(name)
    with NoDoubles():
        try:
            loss_of(name, model, batch)
        except TypeError:
            return  # the original makes some
    use_boxloss(model, check=False)
    with NoDoubles():
        loss_of(name, model, batch).backward()


def test_adapters_make_no_float64() -> None:
    pred, true = torch.rand(1, 5, 4), [{"boxes": torch.rand(2, 4)}]
    pairs = [(torch.tensor([0, 1]), torch.tensor([0, 1]))]
    loss = MMDetLoss("giou")
    with NoDoubles():
        detr_loss_boxes({"pred_boxes": pred}, true, pairs, 3)
        loss(pred[0], pred[0], avg_factor=3)


def test_the_next_model_is_not_blamed() -> None:
    """For what a device has found in a step before."""
    answer, boxes = faults._new_answer(is_pinned=False), torch.ones(1, 4)
    answer.value.value = float("nan")
    rows = faults.Rows(boxes, torch.tensor([-1]), torch.tensor([0, 1]), "labels", 5, False)
    faults._asked.append(faults._Step(answer, None, boxes.device, lambda: rows))
    with pytest.raises(ValueError, match=r"^in a step before: labels: image 0, row 0 is -1"):
        use_boxloss(made("YOLO11"))
    use_boxloss(made("YOLO11"))


if torch.cuda.is_available():

    @pytest.mark.parametrize("what", ["label", "box"])
    @pytest.mark.parametrize("name", WITH_BOXES)
    def test_a_gpu_finds_faults(name: str, what: str) -> None:
        """The step's loss has no number, nobody waits, and a later call says why."""
        model = without_denoising(made(name)).cuda()
        use_boxloss(model)
        good = batch_of(name)
        bad = change(name, what, 2, 4, -1 if what == "label" else float("nan"))
        assert loss_of(name, model, moved(good, "cuda")).isfinite()
        check_targets()
        told = r"in a step before: .*image 2, row 4 is"
        # The second of two heads may find what the first has asked.
        if "26" not in name and "two heads" not in name:
            assert loss_of(name, model, moved(bad, "cuda")).isnan()
            with pytest.raises(ValueError, match=told):
                check_targets()
            check_targets()  # once

        def steps() -> None:
            loss_of(name, model, moved(bad, "cuda"))
            torch.cuda.synchronize()
            loss_of(name, model, moved(good, "cuda"))

        with pytest.raises(ValueError, match=told):
            steps()
        with suppress(ValueError):  # the other head's
            check_targets()
