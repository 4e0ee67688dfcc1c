# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""use_boxloss puts a criterion into each model that it knows, and takes it out again.

That a criterion is right is for the test of each; those of transformers' other models are here.
"""

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import ultralytics
from boxloss.torch.compat import ranks, use_boxloss
from boxloss.torch.compat.versions import is_before
from combinations import long_but
from models import (
    DAILY,
    OF_TORCHVISION,
    WITH_BOXES,
    calls,
    loss,
    made,
    mostly_long,
    project_of,
)
from peft import LoraConfig, get_peft_model, inject_adapter_in_model
from small_detrs import SMALL
from surroundings import default_dtype
from test_yolo import theirs, without_eps  # noqa: F401
from torch import distributed, nn
from torch.optim.swa_utils import AveragedModel
from torchvision.models.detection import FasterRCNN
from transformers import DetrModel

from examples import detr
from examples.training import Replace, keep

ROOT = Path(__file__).parents[2]
# In double each box' gradient is right to about 316 * 2 u = 7e-14 of its size
# (tests/torch/comparison.py) and all else is rounded less. Through the network they are added with
# both signs: a hundredfold of that, relative to the norm of all gradients. RPN's own objectness is
# a float32: of entries with three roundings, whose mean has one for each halving of up to 1,024.
CLOSE = 1e-11


@pytest.mark.parametrize("counts", long_but([(3, 0, 5), (0, 0)], [(3, 0, 5)]), ids=str)
@pytest.mark.parametrize(
    ("name", "in_training", "change"),
    [
        *product(SMALL, [True, False], [use_boxloss]),
        *product(OF_TORCHVISION, [True], [use_boxloss]),
        ("DETR", True, detr.adapt),
    ],
)
def test_losses_and_gradients(
    name: str, in_training: bool, change: Replace, counts: tuple[int, ...]
) -> None:
    """Of the second step."""
    with default_dtype(torch.float64):
        model = made(name).train(in_training)
        batch = project_of(name).batch(counts)
        results = []
        for replace in (keep, change):
            replace(model)
            for _ in range(2):
                model.zero_grad()
                torch.manual_seed(0)  # for dropout, denoising and samples
                output = model(**batch)
                losses = output if name in OF_TORCHVISION else {**output.loss_dict}
                total = sum(losses.values()) if losses is output else output.loss
                total.backward()
            if losses is not output:
                losses["total"] = total
            others = getattr(output, "auxiliary_outputs", None)
            results.append((losses, others, {n: p.grad for n, p in model.named_parameters()}))
    (original, *auxiliary, exact), (losses, others, gradients) = results
    assert losses.keys() == original.keys()
    for each, value in original.items():
        close = CLOSE if value.dtype == torch.float64 else 14 * 2.0**-24
        assert abs(losses[each] - value) <= close * (1 + value), each
    torch.testing.assert_close([others], auxiliary, rtol=0, atol=0)
    norm = torch.stack([each.norm() for each in exact.values() if each is not None]).norm()
    assert norm >= (0.01 if any(counts) or name in SMALL else 0)
    for each, gradient in exact.items():
        if gradient is None:
            assert gradients[each] is None or not gradients[each].any(), each
        else:
            assert (gradients[each] - gradient).norm() <= CLOSE * norm, each


@pytest.mark.usefixtures("without_eps")
@mostly_long
def test_uses_boxloss_until_it_is_restored(name: str) -> None:
    """A deep copy keeps it."""
    with default_dtype(torch.float64):
        model = made(name)
        before = loss(name, model)
        keys, kind = list(model.state_dict()), type(model).__name__
        replaced = use_boxloss(model)
        assert abs(loss(name, model) - before) <= CLOSE * before * 1e4  # YOLO's scores are float32
        assert calls(model, name)
        assert list(model.state_dict()) == keys
        assert type(model).__name__ == model.__class__.__name__ == kind
        assert all("boxloss" not in key and "boxloss" in its for key, its in replaced.names.items())
        copied = copy.deepcopy(model)
        for _ in range(2):  # the second time nothing is left to do
            replaced.restore()
            assert loss(name, model) == before
        assert not calls(model, name)
        assert calls(copied, name)
        parameters = (each.parameters() for each in (model, copied))
        assert all(torch.equal(one, other) for one, other in zip(*parameters, strict=True))


def test_names() -> None:
    def names(name: str) -> list[str]:
        return [
            f"{each.rpartition('.')[2]} {its.removeprefix('boxloss.torch.compat.families.')}"
            for each, its in use_boxloss(made(name)).names.items()
        ]

    assert names("DETR") == ["ForObjectDetectionLoss detr.detr_loss"]
    assert names("YOLO11") == ["DetectionModel yolo.DetectionModel"]
    heads = [
        "RetinaNet retinanet.Model",
        "RetinaNetClassificationHead retinanet.ClassificationHead",
        "RetinaNetRegressionHead retinanet.RegressionHead",
    ]
    assert names("RetinaNet") == heads
    assert names("RetinaNet, l1") == heads[:2]  # boxloss has no l1 of deltas


# In a process of its own, in which boxloss cannot be imported.
LOADS = """
import sys
sys.modules["boxloss"] = None
import torch
for file in sys.argv[1:]:
    model = torch.load(file, weights_only=False)
    print(type(model).__module__, type(model).__name__)
"""


# DETRs are replaced in two ways, which keep no hooks that cannot be pickled.
PICKLED = ["DETR", "RT-DETR", *(name for name in WITH_BOXES if name not in SMALL)]
OTHERS = [name for name in PICKLED if name not in DAILY]


@pytest.mark.parametrize(
    "names",
    [[name for name in PICKLED if name in DAILY], pytest.param(OTHERS, marks=pytest.mark.long)],
    ids=len,
)
def test_pickles_hold_the_original(names: Collection[str], tmp_path: Path) -> None:
    kinds = []
    for place, name in enumerate(names):
        model = made(name)
        before, kind = loss(name, model), type(model)
        kinds.append(f"{kind.__module__} {kind.__name__}")
        use_boxloss(model, check=False)
        if place % 2:
            loss(name, model)  # which makes the criterion, if it is not made yet
        torch.save(model, tmp_path / f"{place}.pt")
        loaded = torch.load(tmp_path / f"{place}.pt", weights_only=False)
        assert type(loaded) is kind
        assert not calls(loaded, name)
        assert loss(name, loaded) == pytest.approx(before, rel=1e-4)
        assert calls(model, name)  # which has not changed
    files = [str(tmp_path / f"{place}.pt") for place in range(len(names))]
    command = [sys.executable, "-c", LOADS, *files]
    quiet = os.environ | {"YOLO_VERBOSE": "false"}  # else Ultralytics tells of new settings
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == kinds


def test_save_pretrained(tmp_path: Path) -> None:
    model = made("DETR")
    use_boxloss(model)
    model.save_pretrained(tmp_path)
    loaded = detr.DetrForObjectDetection.from_pretrained(tmp_path).train()
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert not calls(loaded, "DETR")


compiled = partial(torch.compile, backend="eager")
LORA = LoraConfig(r=2, target_modules=["q_proj"])
WRAPPERS: dict[str, tuple[str, Callable[[nn.Module], nn.Module]]] = {
    "DataParallel": ("RT-DETR", nn.DataParallel),
    "an average": ("YOLO26", lambda model: AveragedModel(model, use_buffers=True)),
    "compiled": ("FCOS", compiled),
    "compiled DETR": ("DETR", compiled),
    "PEFT": ("RT-DETR", lambda model: get_peft_model(model, LORA)),
    "PEFT, in place": ("RT-DETR", lambda model: inject_adapter_in_model(LORA, model)),
}


@pytest.mark.parametrize("wrapper", long_but(WRAPPERS, {*WRAPPERS} - {"compiled DETR"}))
def test_wrapped(wrapper: str) -> None:
    """The model inside gets it, and the wrapper's steps have it."""
    torch.compiler.reset()
    name, wrap = WRAPPERS[wrapper]
    own, wrapped = wrap(made(name)), wrap(made(name))  # DataParallel computes on a GPU
    use_boxloss(wrapped)
    assert loss(name, wrapped) == pytest.approx(loss(name, own), rel=1e-4)
    assert calls(wrapped, name)


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/s", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_the_group_of_a_models_ddp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is asked for its ranks' boxes, where the original asks all."""
    asked: list[Any] = []
    monkeypatch.setattr(
        ranks, "global_normalizer", lambda count, group: asked.append(group) or count
    )
    model = made("LW-DETR")
    use_boxloss(model)
    asked.clear()
    group = distributed.new_group([0])
    loss("LW-DETR", model)
    wrapped = nn.parallel.DistributedDataParallel(
        model, process_group=group, find_unused_parameters=True
    )
    loss("LW-DETR", wrapped)
    assert asked == [None, group]


def test_what_it_does_not_know() -> None:
    classifier = ultralytics.YOLO("yolo11n-cls.yaml")
    for model, known in (
        (nn.Linear(1, 1), "transformers.*FCOS"),
        ("yolo11n.pt", "transformers.*FCOS"),
        (
            DetrModel(made("DETR").config),
            "criterion, transformers's [^;]*RTDetrForObjectDetectionLoss",
        ),
        (classifier.model, "criterion, ultralytics's "),
        (classifier, "criterion, ultralytics's "),
    ):
        with pytest.raises(TypeError, match=rf"{known}.*coming-from\.md"):
            use_boxloss(model)
    with pytest.raises(TypeError, match=r"model is a torch\.nn\.modules\.linear\.Linear"):
        use_boxloss(nn.DataParallel(nn.Linear(1, 1)))


def test_a_class_of_the_users_own() -> None:
    """Which keeps what is replaced."""
    model = made("Faster R-CNN")
    model.__class__ = type("OwnHeads", (FasterRCNN,), {})
    use_boxloss(model)
    assert calls(model, "Faster R-CNN")


def test_a_criterion_of_the_users_own() -> None:
    model = made("DETR")
    model.loss_function = detr.adapted
    with pytest.raises(ValueError, match=r"model\.loss_function is examples\.detr\.adapted, which"):
        use_boxloss(model)
    model = made("DETR")
    replaced = use_boxloss(model)
    model.loss_function = detr.adapted
    replaced.restore()
    assert model.loss_function is detr.adapted


def test_a_version_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made("DETR")
    monkeypatch.setattr(sys.modules["transformers"], "__version__", "4.56.2")
    with pytest.raises(
        ValueError, match=r"transformers is 4\.56\.2; use_boxloss knows it from 4\.57"
    ):
        use_boxloss(model)
    assert not calls(model, "DETR")
    kinds = {"seg": "SegmentationModel from 8.4.190", "obb": "OBBModel from 8.4.130"}
    models = [(ultralytics.YOLO(f"yolo11n-{kind}.yaml"), told) for kind, told in kinds.items()]
    if not is_before("ultralytics", 8, 4, 130):
        monkeypatch.setattr(ultralytics, "__version__", "8.4.100")
    for model, told in models:
        for each in (model, model.model):
            words = f"is {ultralytics.__version__}; use_boxloss knows its {told}"
            with pytest.raises(ValueError, match=re.escape(words)):
                use_boxloss(each)
    use_boxloss(made("YOLO11"))


def test_schedule_of_a_made_criterion() -> None:
    """YOLO26's criterion has a schedule, in which a resumed training stands somewhere."""
    model = made("YOLO26")
    loss("YOLO26", model)
    for _ in range(3):
        model.criterion.update()
    state = model.criterion.updates, model.criterion.o2m, model.criterion.o2o
    before = loss("YOLO26", model)
    replaced = use_boxloss(model)
    assert type(model.criterion.one2one) is not theirs.v8DetectionLoss
    assert (model.criterion.updates, model.criterion.o2m, model.criterion.o2o) == state
    assert loss("YOLO26", model) == pytest.approx(before, rel=1e-4)
    replaced.restore()
    assert type(model.criterion.one2one) is theirs.v8DetectionLoss
    assert loss("YOLO26", model) == before


def test_imports_nothing_that_is_not_there() -> None:
    program = """
import sys
import boxloss.torch.compat
from torch import nn
try:
    boxloss.torch.compat.use_boxloss(nn.Linear(1, 1))
except TypeError:
    others = {"transformers", "ultralytics", "torchvision", "mmdet", "scipy"}
    print(*others & {*sys.modules})
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
