# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Each way that a project's own quick start has to a model: there, too, boxloss is put in, and
gives the original's loss."""

import copy
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import ultralytics
from boxloss.torch.compat import has_boxloss, use_boxloss
from combinations import long_but
from models import DAILY, batch_of, calls, loss, made
from small_detrs import SMALL
from small_torchvision import SIDE
from small_yolos import KINDS
from test_yolo_trainer import NETWORKS, options, wrapped
from torch import nn
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.utils import LOGGER

from examples.training import keep

Way = Callable[[Any, Path], Any]


def from_folder(model: Any, folder: Path, **options: Any) -> nn.Module:
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder, **options).train()


def from_checkpoint(model: Any, folder: Path) -> Any:
    """Of which Ultralytics keeps four arguments."""
    torch.save({"model": model, "train_args": vars(model.args)}, folder / "model.pt")
    return ultralytics.YOLO(folder / "model.pt").model.train()


def another_box_predictor(model: Any, _: Path) -> nn.Module:
    model.roi_heads.box_predictor = FastRCNNPredictor(32, 7)
    return model


OF_TRANSFORMERS: dict[str, Way] = {
    "a saved folder": from_folder,
    "another head": partial(from_folder, num_labels=7, ignore_mismatched_sizes=True),
}
WAYS: list[tuple[str, str, Way]] = [
    *((name, way, OF_TRANSFORMERS[way]) for name in SMALL for way in OF_TRANSFORMERS),
    *((f"YOLO{kind}", "a checkpoint", from_checkpoint) for kind in KINDS),
    ("Faster R-CNN", "another head", another_box_predictor),
]


DAILY_WAYS = [each for each in WAYS if each[0] in DAILY]


@pytest.mark.parametrize("case", long_but(WAYS, DAILY_WAYS), ids=lambda case: ", ".join(case[:2]))
def test_ways(case: tuple[str, str, Way], tmp_path: Path) -> None:
    name, way, come = case
    model = come(made(name), tmp_path)
    original = copy.deepcopy(model)
    use_boxloss(model)
    if way == "a checkpoint":  # whose arguments a trainer completes
        for each in (original, model):
            each.args = copy.deepcopy(made(name).args)
    torch.manual_seed(0)
    assert loss(name, model) == pytest.approx(loss(name, original), rel=1e-4)
    assert calls(model, name)


# --- YOLO("…") and RTDETR("…") ---


def saved(kind: str, folder: Path) -> Any:
    wrapped(folder, kind).save(folder / "model.pt")
    return NETWORKS[kind][0](folder / "model.pt")


LOADED: dict[str, Callable[[Any], Any]] = {
    "": lambda wrapper: wrapper,
    "fused": lambda wrapper: (wrapper.fuse(), wrapper)[1],
    "half": lambda wrapper: (wrapper.model.half(), wrapper)[1],
    "its model": lambda wrapper: wrapper.model,
}


@pytest.mark.parametrize("way", LOADED)
@pytest.mark.parametrize("kind", long_but(NETWORKS, ["YOLO26", "RT-DETR"]))
def test_loaded(kind: str, way: str, tmp_path: Path) -> None:
    """Each of its trainings makes a model of its own."""
    wrapper = saved(kind, tmp_path)
    target = LOADED[way](wrapper)
    before = vars(wrapper.model) | {"args": dict(wrapper.model.args)}
    replaced = use_boxloss(target)
    kinds = [type(wrapper.model).__name__, "train"]
    assert [each.rpartition(".")[2] for each in replaced.names] == kinds
    assert vars(wrapper.model) == before
    assert has_boxloss(wrapper)
    assert has_boxloss(wrapper.model)
    replaced.restore()
    assert not has_boxloss(wrapper)
    assert not has_boxloss(wrapper.model)


class Told:
    """What Ultralytics logs of boxloss."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        monkeypatch.setattr(LOGGER, "info", lambda line, *_: self.lines.append(str(line)))

    def count(self) -> int:
        return sum(each.startswith("boxloss ") for each in self.lines)


class Own(DetectionTrainer):
    """As docs/detectors.md has it."""

    def set_model_attributes(self) -> None:
        super().set_model_attributes()
        use_boxloss(self.model)


class OwnModel(DetectionTrainer):
    def get_model(self, *given: Any, **named: Any) -> Any:
        model = super().get_model(*given, **named)
        use_boxloss(model)
        return model


def test_trainings_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ultralytics ends each with another model."""
    told, wrapper = Told(monkeypatch), saved("YOLO11", tmp_path)
    use_boxloss(wrapper.model)
    with pytest.raises(ValueError, match="boxloss already"):
        use_boxloss(wrapper)
    for trainings in (1, 2):
        wrapper.train(**options(tmp_path))
        assert has_boxloss(wrapper.trainer.model)
        assert has_boxloss(wrapper)
        assert told.count() == trainings
    wrapper.reset_callbacks()
    replaced = use_boxloss(wrapper)
    wrapper.train(**options(tmp_path))
    assert told.count() == 3
    replaced.restore()
    wrapper.train(**options(tmp_path))
    assert told.count() == 3
    assert not has_boxloss(wrapper.trainer.model)


@pytest.mark.parametrize("trainer", [Own, OwnModel])
def test_a_trainer_of_the_users_own(trainer: type, tmp_path: Path) -> None:
    wrapper = saved("YOLO11", tmp_path)
    wrapper.train(trainer=trainer, **options(tmp_path))
    assert has_boxloss(wrapper.trainer.model)
    assert has_boxloss(wrapper.trainer.ema.ema)


def test_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = saved("YOLO26", tmp_path)
    wrapper.add_callback("on_fit_epoch_end", lambda trainer: setattr(trainer, "stop", True))
    with pytest.MonkeyPatch.context() as patch:  # which ends it as a whole one
        patch.setattr(DetectionTrainer, "final_eval", lambda _: None)
        wrapper.train(**options(tmp_path, epochs=3))
    told = Told(monkeypatch)
    wrapper = ultralytics.YOLO(wrapper.trainer.last)
    use_boxloss(wrapper)
    wrapper.train(resume=True)
    assert told.count() == 1
    assert has_boxloss(wrapper.trainer.model)


def test_a_pickle_of_a_wrapper(tmp_path: Path) -> None:
    wrapper = saved("YOLO11", tmp_path)
    use_boxloss(wrapper)
    loaded = pickle.loads(pickle.dumps(wrapper))
    assert type(loaded) is ultralytics.YOLO
    assert not has_boxloss(loaded)
    assert not has_boxloss(loaded.model)
    assert has_boxloss(copy.deepcopy(wrapper))


def test_where_boxloss_would_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxloss.torch.compat import ultralytics_models

    wrapper = saved("YOLO11", tmp_path)
    use_boxloss(wrapper)
    monkeypatch.setattr(ultralytics.engine.model.Model, "tune", lambda *_, **__: None)
    monkeypatch.setattr(ultralytics.engine.model.Model, "train", lambda *_, **__: None)
    with pytest.warns(UserWarning, match=r"^tune\(\) trains in other processes"):
        wrapper.tune()
    for drops in (True, False):
        monkeypatch.setattr(ultralytics_models, "DROPS_CALLBACKS", drops)
        for device in ("cpu", 0, [0], "0,1", [0, 1]):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                wrapper.train(device=device)
            is_lost = drops and device in ("0,1", [0, 1])
            assert any("set_model_attributes" in str(each.message) for each in caught) == is_lost


# --- First slips ---


def test_what_it_returns_is_no_model() -> None:
    model = made("DETR")
    replaced = use_boxloss(model)
    assert has_boxloss(model)
    assert not has_boxloss(made("DETR"))
    told = "replaces\n  transformers.loss.loss_for_object_detection.ForObjectDetectionLoss\n  by "
    assert told + "boxloss.torch.compat.families.detr.detr_loss" in repr(replaced)
    for slip in (replaced, lambda: replaced.train(), lambda: use_boxloss(replaced)):
        with pytest.raises((TypeError, AttributeError), match=r"without 'model = '"):
            slip()


# --- What users do with a model, and give it ---


@pytest.mark.parametrize("name", ["FCOS", "RetinaNet", "SSD", "Faster R-CNN"])
def test_torch_script(name: str) -> None:
    model = made(name).eval()
    use_boxloss(model)
    images = [torch.rand(3, SIDE, SIDE)]
    (right,) = model(images)
    _, (found,) = torch.jit.script(model)(images)
    assert right.keys() == found.keys()
    assert all(torch.equal(found[key], right[key]) for key in right)
    assert calls(model.train(), name)  # the model itself is as it was


@pytest.mark.parametrize("name", long_but([*SMALL, "RF-DETR"], DAILY))
def test_losses_may_be_changed_in_place(name: str) -> None:
    """Each by itself."""
    totals = []
    for replace in (keep, use_boxloss):
        model = made(name)
        replace(model)
        batch = batch_of(name)
        torch.manual_seed(0)
        output = model(**batch)
        losses = getattr(output, "loss_dict", output)
        pair = losses.pop("loss_bbox") * losses.pop("loss_giou")
        for each in losses:
            losses[each] *= 2.0
        total = pair + sum(each for loss, each in losses.items() if loss.startswith("loss"))
        total.backward()
        totals.append(total.item())
    assert totals[1] == pytest.approx(totals[0], rel=1e-4)
