# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' own trainer on a small data set, with boxloss in place."""

import math
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss.torch.compat import has_boxloss, use_boxloss
from boxloss.torch.compat.families import ultralytics_rt_detr
from boxloss.torch.compat.families.oriented_yolo import OrientedLoss
from boxloss.torch.compat.families.yolo import DetectionLoss
from boxloss.torch.compat.families.yolo_with_more import BoxesOfLoss
from combinations import long_but
from PIL import Image
from small_yolos import KEYPOINTS, KINDS
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from ultralytics import RTDETR, YOLO
from ultralytics.models.rtdetr.train import RTDETRTrainer
from ultralytics.models.yolo import detect, obb, pose, segment
from ultralytics.utils import LOCAL_RANK, RANK, YAML, checks
from ultralytics_rt_detr import SMALL

from examples import yolo
from examples.training import Replace, keep, random_boxes

COUNTS = (3, 0, 5, 1, 2, 0, 7, 4)  # ground-truth boxes of each image
SIDE = 64
NETWORKS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"YOLO{kind}": (YOLO, {**yolo.SMALL, **changes}) for kind, changes in KINDS.items()},
    "RT-DETR": (RTDETR, SMALL),
}
OURS = DetectionLoss, BoxesOfLoss, OrientedLoss, ultralytics_rt_detr.DetectionLoss


def weights(model: torch.nn.Module) -> Tensor:
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def as_row(box: Tensor, kind: str) -> list[float]:
    """As Ultralytics reads it: a box, three corners as a polygon, or four, turned, or with
    keypoints."""
    half = box[2:] / 2
    if "seg" in kind or "obb" in kind:
        corners = half * torch.tensor([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        if "seg" in kind:
            return (box[:2] + corners[:3]).flatten().tolist()
        angle = math.pi * torch.rand(())
        x, y = corners.unbind(1)
        turned = (x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos())
        return (box[:2] + torch.stack(turned, 1)).clamp(0, 1).flatten().tolist()
    points = torch.rand(*KEYPOINTS) if "pose" in kind else torch.empty(0)
    return [*box.tolist(), *points.flatten().tolist()]


def data_set(folder: Path, kind: str = "") -> Path:
    """Images of noise and their boxes, as files."""
    torch.manual_seed(0)
    for each in ("images", "labels"):
        (folder / each).mkdir(exist_ok=True)
    for place, count in enumerate(COUNTS):
        pixels = torch.randint(256, (SIDE, SIDE, 3), dtype=torch.uint8)
        Image.fromarray(pixels.numpy()).save(folder / "images" / f"{place}.png")
        classes = torch.randint(5, (count,)).tolist()
        rows = zip(classes, [as_row(each, kind) for each in random_boxes(count)], strict=True)
        lines = [" ".join(map(str, [label, *box])) for label, box in rows]
        (folder / "labels" / f"{place}.txt").write_text("\n".join(lines))
    names = dict(enumerate("abcde"))
    about = {"path": str(folder), "train": "images", "val": "images", "names": names}
    about |= {"kpt_shape": KEYPOINTS} if "pose" in kind else {}
    YAML.save(folder / "data.yaml", about)
    return folder / "data.yaml"


def options(folder: Path, kind: str = "", **more: Any) -> dict[str, Any]:
    given = {"data": str(data_set(folder, kind)), "project": str(folder), "epochs": 1}
    given |= {"imgsz": SIDE, "batch": 4, "workers": 0, "device": "cpu"}
    return given | {"amp": False, "plots": False, "val": False} | more


# Of each step, without warm-up and for each batch.
STEP_OPTIONS = {"epochs": 2, "nbs": 4, "warmup_epochs": 0, "optimizer": "SGD"}
Training = tuple[list[float], Tensor, Tensor]  # losses of steps, weights before and afterwards


def wrapped(folder: Path, kind: str) -> Any:
    wrapper, network = NETWORKS[kind]
    YAML.save(folder / "model.yaml", network)
    return wrapper(folder / "model.yaml")


def train(folder: Path, kind: str, replace: Replace) -> Training:
    model = wrapped(folder, kind)
    replaced = replace(model)
    losses: list[float] = []
    starts: list[Tensor] = []
    model.add_callback("on_train_start", lambda each: starts.append(weights(each.model).clone()))
    model.add_callback("on_train_batch_end", lambda each: losses.append(each.loss.item()))
    model.train(**options(folder, kind, save=False, **STEP_OPTIONS))
    criterion = model.trainer.model.criterion
    uses_boxloss = isinstance(getattr(criterion, "one2one", criterion), OURS)
    assert uses_boxloss == (replace is use_boxloss)
    if replaced is not None:
        replaced.restore()
        names = {each.__module__ for each in model.callbacks["on_train_start"]}
        assert not any(each.startswith("boxloss") for each in names)
    return losses, starts[0], weights(model.trainer.model)


# In float32. A score is right to 13 * 64 roundings over its overlap, on both sides: where that is
# less than a tenth the score, which has its sixth power, is nothing beside the others. RT-DETR's is
# an overlap itself. Theirs of oriented boxes is right to 2e-6 (docs/rotated.md, "pixel, random"),
# half of 64 roundings. A step at most doubles what is apart.
CLOSE = 2 * 13 * 64 * 2.0**-24 / 0.1
STEPS = 4


@pytest.mark.parametrize("kind", long_but(NETWORKS, ["YOLO26", "RT-DETR"]))
def test_trains_to_the_same_weights(kind: str, tmp_path: Path) -> None:
    """Each YOLO's losses and gradients: test_yolo.py."""
    original, replaced = (train(tmp_path, kind, replace) for replace in (keep, use_boxloss))
    assert torch.equal(original[1], replaced[1])
    assert_same_training(original, replaced)


def assert_same_training(original: Training, replaced: Training) -> None:
    (losses, start, end), (others, _, other_end) = original, replaced
    assert len(losses) == len(others) == STEPS
    assert len(set(losses)) == STEPS
    for step, (other, loss) in enumerate(zip(others, losses, strict=True)):
        assert abs(other - loss) <= CLOSE * 2**step * abs(loss)
    way = (end - start).norm()
    assert way > 0
    assert (other_end - end).norm() <= CLOSE * 2**STEPS * way


def test_the_average_and_a_student(tmp_path: Path) -> None:
    """An epoch ends with the average model's validation; a student is trained by a teacher."""
    YOLO("yolo11n.yaml").save(tmp_path / "teacher.pt")
    model = YOLO("yolo11n.yaml")
    use_boxloss(model)
    criteria: list[Any] = []

    def look(trainer: Any) -> None:
        criteria.extend(each.criterion for each in (trainer.model, trainer.ema.ema))

    model.add_callback("on_fit_epoch_end", look)
    model.train(**options(tmp_path, val=True, distill_model=str(tmp_path / "teacher.pt")))
    assert criteria
    assert all(isinstance(each, DetectionLoss) for each in criteria)


# --- Two processes, which Ultralytics starts by a file that it writes ---


class OnCPU(DistributedDataParallel):
    def __init__(self, module: nn.Module, device_ids: Any, **options: Any) -> None:
        super().__init__(module, **options)


class ForTwo:
    """Of a trainer: the CPU in place of two GPUs, and gloo in place of NCCL."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.world_size, self.ddp = 2, LOCAL_RANK == -1
        self.noted: list[tuple[float, Tensor]] = []

    def _setup_ddp(self) -> None:
        distributed.init_process_group("gloo")
        nn.parallel.DistributedDataParallel = OnCPU  # type: ignore[misc]

    def final_eval(self) -> None:
        """Theirs asks for the current GPU."""


class Detection(ForTwo, detect.DetectionTrainer): ...


class Segmentation(ForTwo, segment.SegmentationTrainer): ...


class Pose(ForTwo, pose.PoseTrainer): ...


class Oriented(ForTwo, obb.OBBTrainer): ...


class RTDetr(ForTwo, RTDETRTrainer): ...


FOR_TWO = {
    "YOLO11": Detection,
    "YOLO11-seg": Segmentation,
    "YOLO11-pose": Pose,
    "YOLO11-obb": Oriented,
    "RT-DETR": RTDetr,
}


def note(trainer: Any) -> None:
    """After each step, in a file of the process."""
    trainer.noted.append((trainer.loss.item(), weights(trainer.model)))
    noted = *zip(*trainer.noted, strict=True), has_boxloss(trainer.model)
    torch.save(noted, Path(trainer.args.project) / f"rank{RANK}")


@pytest.mark.long
@pytest.mark.parametrize("kind", FOR_TWO)
def test_in_two_processes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", pickle)
    monkeypatch.setattr(checks, "check_requirements", lambda *_: True)

    def ranks(replace: Replace) -> list[tuple[list[float], list[Tensor], bool]]:
        model = wrapped(tmp_path, kind)
        replace(model)
        model.add_callback("on_train_batch_end", note)
        model.train(trainer=FOR_TWO[kind], **options(tmp_path, kind, **STEP_OPTIONS))
        return [torch.load(tmp_path / f"rank{rank}") for rank in range(2)]

    for original, replaced in zip(ranks(keep), ranks(use_boxloss), strict=True):
        assert [each[2] for each in (original, replaced)] == [False, True]
        assert_same_training(*((each[0], each[1][0], each[1][-1]) for each in (original, replaced)))
