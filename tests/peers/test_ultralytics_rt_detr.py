# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The criterion of Ultralytics' RT-DETR by use_boxloss beside its own, on the same numbers."""

import copy
from typing import Any

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.ultralytics_rt_detr import replace_heads
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES
from surroundings import (
    HALVES,
    assert_as_near,
    assert_reads_nothing,
    autocast,
    computed,
    default_dtype,
    moved,
    rounded,
    waits,
)
from torch import Tensor, nn
from ultralytics import RTDETR
from ultralytics.models.utils.loss import RTDETRDetectionLoss
from ultralytics.models.utils.ops import HungarianMatcher
from ultralytics.nn.tasks import RTDETRDetectionModel

from examples import yolo

MODES: dict[str, dict[str, Any]] = {
    "varifocal": {"use_vfl": True},
    "focal": {},
    "cross entropy": {"use_fl": False},
    "last layer": {"use_vfl": True, "aux_loss": False},
}
SMALL = {
    **yolo.SMALL,
    "head": [[[2, 3], 1, "RTDETRDecoder", ["nc", 32, QUERIES, 4, 4, 2, 32]]],
}
GROUPS = 2
CLOSE = 1e-12  # in double: see test_rfdetr.py, which has more scores and pairs

Leaves = dict[str, Tensor]


def small_model() -> RTDETRDetectionModel:
    model = RTDETRDetectionModel(SMALL, verbose=False)
    model.nc = SMALL["nc"]  # as a trainer sets it
    return model.to(torch.get_default_dtype())  # its attention has some of float32


def leaves(counts: tuple[int, ...], seed: int = 0) -> Leaves:
    random = cases.generator(seed)
    shapes = {"": QUERIES, "dn_": 2 * max(counts) * GROUPS}
    made = {}
    for name, queries in shapes.items():
        shape = LAYERS, len(counts), queries
        made[f"{name}bboxes"] = cases.boxes(shape, random)
        made[f"{name}scores"] = cases.logits((*shape, CLASSES), random)
    return made


def truth(counts: tuple[int, ...], dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    labels = cases.cast(cases.true_boxes(counts, cases.generator(100)), dtype)
    return {
        "bboxes": torch.cat([each["boxes"] for each in labels]),
        "cls": torch.cat([each["class_labels"] for each in labels]),
        "gt_groups": list(counts),
    }


def noise(counts: tuple[int, ...]) -> dict[str, Any]:
    first = 2 * max(counts) * torch.arange(GROUPS)[:, None]
    return {
        "dn_pos_idx": [(first + torch.arange(each)).flatten() for each in counts],
        "dn_gt_idx": list(torch.arange(sum(counts)).split(counts)),
        "dn_num_group": GROUPS,
    }


def arguments_of(values: Leaves, batch: dict[str, Any], is_noisy: bool) -> dict[str, Any]:
    noisy = {name: each for name, each in values.items() if "dn_" in name}
    more = {**noisy, "dn_meta": noise(tuple(batch["gt_groups"]))} if is_noisy else {}
    return {"preds": (values["bboxes"], values["scores"]), "batch": batch, **more}


def run(
    criterion: nn.Module,
    counts: tuple[int, ...],
    is_noisy: bool,
    dtype: torch.dtype = torch.float64,
    of: torch.dtype = torch.float64,
    seed: int = 0,
) -> tuple[Leaves, Leaves]:
    """Losses, and their sum's gradients, of numbers that `of` has, too."""
    values = {
        name: each.requires_grad_() for name, each in rounded(leaves(counts, seed), of).items()
    }
    values = moved(values, "cpu", dtype)
    with autocast("cpu", dtype), default_dtype(computed(dtype)):
        losses = criterion(**arguments_of(values, truth(counts, computed(dtype)), is_noisy))
    total = sum(losses.values())
    gradients = torch.autograd.grad(total, [*values.values()], materialize_grads=True)
    return losses, dict(zip(values, gradients, strict=True))


def both(**mode: Any) -> tuple[nn.Module, nn.Module]:
    original = RTDETRDetectionLoss(nc=CLASSES, **mode)
    replaced = copy.deepcopy(original)
    replace_heads(replaced)
    return original, replaced


@pytest.mark.parametrize("is_noisy", [False, True], ids=["", "denoising"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_losses_and_gradients(mode: str, counts: tuple[int, ...], is_noisy: bool) -> None:
    results = (run(each, counts, is_noisy and any(counts)) for each in both(**MODES[mode]))
    for theirs, ours in zip(*results, strict=True):
        assert theirs.keys() == ours.keys()
        for name, value in theirs.items():
            assert (ours[name] - value).norm() <= CLOSE * (1 + value.norm()), name


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_is_as_near_as_the_original_under_autocast(seed: int, dtype: torch.dtype) -> None:
    original, replaced = both(use_vfl=True)
    given = {"counts": (3, 0, 5), "is_noisy": True, "of": dtype, "seed": seed}
    exact = run(original, **given)
    assert_as_near(run(replaced, dtype=dtype, **given), run(original, dtype=dtype, **given), exact)


def test_reads_nothing_on_the_host() -> None:
    _, replaced = both(use_vfl=True)
    values = leaves((3, 0, 5))
    assert_reads_nothing(replaced, **arguments_of(values, truth((3, 0, 5)), True))


if torch.cuda.is_available():

    def test_never_waits() -> None:
        _, replaced = both(use_vfl=True)
        arguments = arguments_of(leaves((3, 0, 5)), truth((3, 0, 5)), True)
        noise = arguments.pop("dn_meta")  # which a model has on the host
        arguments = moved(arguments, "cuda")
        assert waits(lambda: replaced(**arguments, dn_meta=noise)) == 0


class OwnMatcher(HungarianMatcher):
    pass


def test_is_refused() -> None:
    for change in ({"matcher": OwnMatcher()}, {"use_uni_match": True}):
        model = small_model()
        model.criterion = model.init_criterion()
        for name, value in change.items():
            setattr(model.criterion, name, value)
        with pytest.raises(ValueError, match=r"OwnMatcher|use_uni_match"):
            use_boxloss(model)
        assert type(model) is RTDETRDetectionModel


def test_trainings() -> None:
    """Each makes a model of its own."""
    wrapper = RTDETR("rtdetr-l.yaml")
    replaced = use_boxloss(wrapper)
    assert [each.rpartition(".")[2] for each in replaced.names] == ["RTDETRDetectionModel", "train"]
    assert not hasattr(wrapper.model, "nc")  # which its trainer will set
