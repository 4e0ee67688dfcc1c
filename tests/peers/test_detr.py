# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The DETRs' criteria of boxloss.torch.compat beside the originals: a row of CRITERIA for each.

That each model's losses are right is for test_use_boxloss.py.
"""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat.families.d_fine import d_fine_loss
from boxloss.torch.compat.families.deimv2 import deimv2_loss
from boxloss.torch.compat.families.detr import detr_loss
from boxloss.torch.compat.families.grounding_dino import grounding_dino_loss
from boxloss.torch.compat.families.lw_detr import lw_detr_loss
from boxloss.torch.compat.families.rt_detr import rt_detr_loss
from combinations import long_but
from criteria import Case, Criterion, Leaves, arguments_of, assert_close, made, run
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES
from rf_detr import RF_DETR
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    assert_reads_nothing,
    computed,
    moved,
    waits,
)
from torch import distributed
from transformers import (
    Deimv2Config,
    DetrConfig,
    DFineConfig,
    GroundingDinoConfig,
    LwDetrConfig,
    RTDetrConfig,
)
from transformers.loss import loss_for_object_detection
from transformers.loss.loss_d_fine import DFineForObjectDetectionLoss
from transformers.loss.loss_deimv2 import Deimv2ForObjectDetectionLoss
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss
from transformers.loss.loss_grounding_dino import GroundingDinoForObjectDetectionLoss
from transformers.loss.loss_lw_detr import LwDetrForObjectDetectionLoss
from transformers.loss.loss_rt_detr import RTDetrForObjectDetectionLoss
from ultralytics_rt_detr import ULTRALYTICS_RT_DETR

from examples import detr

BINS = 32

# --- Without denoising queries ---


def plain_values(
    counts: tuple[int, ...], _: int, seed: int, *, classes: int, encoder: tuple[str, ...] = ()
) -> Leaves:
    """The decoder's layers, and the encoder's, where that has names."""
    random = cases.generator(seed)
    shape = (LAYERS + bool(encoder), len(counts), QUERIES)
    both = cases.logits((*shape, classes), random), cases.boxes(shape, random)
    of_encoder = {name: each[-1] for name, each in zip(encoder, both, strict=False)}
    return {"outputs_class": both[0][:LAYERS], "outputs_coord": both[1][:LAYERS], **of_encoder}


detr_values = partial(plain_values, classes=CLASSES + 1)
lw_detr_values = partial(
    plain_values, classes=CLASSES, encoder=("enc_outputs_class", "enc_outputs_coord")
)


# --- Grounding DINO ---

TOKENS = 24


def text_of(images: int) -> dict[str, Any]:
    """Each image's prompt has classes and tokens of its own."""
    random = cases.generator(images)
    maps = [torch.eye(CLASSES + more, TOKENS, dtype=torch.int64) for more in (0, 2, 1, 0)[:images]]
    for each in maps:  # a second token for some
        each |= torch.rand(each.shape, generator=random, dtype=torch.float64) < 0.05
    length = TOKENS - 2 - torch.arange(images)[:, None, None]
    mask = (torch.arange(TOKENS) < length).repeat(1, QUERIES, 1)
    return {"label_maps": tuple(maps), "text_mask": mask}


def grounding_dino_values(counts: tuple[int, ...], _: int, seed: int) -> Leaves:
    """As the model gives them, -inf for what is no text."""
    encoder = "encoder_logits", "encoder_pred_boxes"
    values = plain_values(counts, 0, seed, classes=TOKENS, encoder=encoder)
    for name in ("outputs_class", "encoder_logits"):
        values[name][..., -2:] = -torch.inf
    return values


# --- With denoising queries ---


def rt_detr_values(counts: tuple[int, ...], noisy: int, seed: int) -> Leaves:
    random = cases.generator(seed)
    images, queries = len(counts), noisy + QUERIES
    return {
        "outputs_class": cases.logits((images, LAYERS, queries, CLASSES), random),
        "outputs_coord": cases.boxes((images, LAYERS, queries), random),
        "enc_topk_logits": cases.logits((images, QUERIES, CLASSES), random),
        "enc_topk_bboxes": cases.boxes((images, QUERIES), random),
    }


def d_fine_values(counts: tuple[int, ...], noisy: int, seed: int) -> Leaves:
    """RT-DETR's, of one layer more than have corners."""
    random = cases.generator(seed + 1)
    shape = len(counts), LAYERS - 1, noisy + QUERIES
    return {
        **rt_detr_values(counts, noisy, seed),
        "predicted_corners": 2 * cases.logits((*shape, 4 * (BINS + 1)), random),
        "initial_reference_points": cases.boxes(shape, random),
    }


# --- All ---

SIZES = {"num_labels": CLASSES, "num_queries": QUERIES}
DETR = Criterion(
    detr_loss,
    ForObjectDetectionLoss,
    # Without a backbone of its own it would ask for timm's.
    partial(
        DetrConfig,
        backbone_config=detr.small_model().config.backbone_config,
        decoder_layers=LAYERS,
        **SIZES,
    ),
    (
        {"auxiliary_loss": True},
        {"auxiliary_loss": False},
        {"auxiliary_loss": True, "giou_cost": 3, "eos_coefficient": 0.2}
        | {"giou_loss_coefficient": 4, "bbox_loss_coefficient": 7},
    ),
    detr_values,
    last=-1,
    auxiliary=LAYERS - 1,
    groups=(0,),
)
D_FINE = Criterion(
    d_fine_loss,
    DFineForObjectDetectionLoss,
    partial(DFineConfig, max_num_bins=BINS, **SIZES),
    # Then true sides lie outside of all bins.
    ({}, {"auxiliary_loss": False, "weight_loss_fgl": 0.7}, {"up": 0.01}),
    d_fine_values,
    last=(slice(None), -1),
    auxiliary=LAYERS - 1,
)
ADAPTED = "DETR, adapted"
CRITERIA = {
    "DETR": DETR,
    ADAPTED: replace(DETR, ours=detr.adapted),
    "Grounding DINO": Criterion(
        grounding_dino_loss,
        GroundingDinoForObjectDetectionLoss,
        partial(GroundingDinoConfig, decoder_layers=LAYERS, **SIZES),
        (
            {"auxiliary_loss": True},
            {"auxiliary_loss": False, "two_stage": False, "focal_alpha": -1.0},
            {"auxiliary_loss": True, "class_cost": 3.0, "focal_alpha": 0.4, "decoder_layers": 2},
        ),
        grounding_dino_values,
        last=-1,
        auxiliary=LAYERS - 1,
        groups=(0,),
        text=text_of,
    ),
    "LW-DETR": Criterion(
        lw_detr_loss,
        LwDetrForObjectDetectionLoss,
        partial(LwDetrConfig, decoder_layers=LAYERS, **SIZES),
        (
            {"group_detr": 4},
            {"group_detr": 3},  # as in evaluation some queries are in no group
            {"group_detr": 4, "auxiliary_loss": False, "focal_alpha": 0.4},
            {"group_detr": 4, "class_loss_coefficient": 3, "giou_cost": 4, "decoder_layers": 2},
        ),
        lw_detr_values,
        last=-1,
        auxiliary=LAYERS - 1,
        groups=(0,),
    ),
    "RT-DETR": Criterion(
        rt_detr_loss,
        RTDetrForObjectDetectionLoss,
        partial(RTDetrConfig, **SIZES),
        (
            {},
            {"auxiliary_loss": False, "matcher_gamma": 1.0, "focal_loss_alpha": 0.4},
            {"use_focal_loss": False, "matcher_giou_cost": 3.0, "weight_loss_vfl": 3.0},
        ),
        rt_detr_values,
        last=(slice(None), -1),
        auxiliary=LAYERS,
        by_default=False,
    ),
    "D-FINE": D_FINE,
    "DEIMv2": replace(
        D_FINE,
        ours=deimv2_loss,
        theirs=Deimv2ForObjectDetectionLoss,
        config=partial(Deimv2Config, max_num_bins=BINS, **SIZES),
        options=(
            {},
            {"auxiliary_loss": False},
            {"use_dense_one_to_one": False},
            {"mal_alpha": 0.4, "focal_loss_gamma": 1.5, "weight_loss_mal": 3.0},
        ),
    ),
    "RF-DETR": RF_DETR,
    "Ultralytics' RT-DETR": ULTRALYTICS_RT_DETR,
}
REPLACED = [name for name in CRITERIA if name != ADAPTED]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", long_but(range(2), [0]))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize(
    ("name", "groups", "options"),
    [
        pytest.param(name, groups, options, id=f"{name},{groups},{options}")
        for name, of in CRITERIA.items()
        for groups in of.groups
        for options in of.options
    ],
)
def test_losses_and_gradients(
    name: str, groups: int, options: dict[str, Any], counts: tuple[int, ...], seed: int, device: str
) -> None:
    of = CRITERIA[name]
    config, case = of.config(**options), made(of, counts, groups, seed)
    results = (run(of, each, case, config, torch.float64, device) for each in (of.ours, of.theirs))
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("seed", long_but(range(2), [0]))
@pytest.mark.parametrize("name", CRITERIA)
def test_is_as_near_as_the_original(
    name: str, seed: int, counts: tuple[int, ...], dtype: torch.dtype, device: str
) -> None:
    of = CRITERIA[name]
    case, config = made(of, counts, seed=seed, dtype=dtype), of.config(**of.options[0])
    exact = run(of, of.theirs, case, config, torch.float64)
    original, replaced = (
        run(of, each, case, config, dtype, device) for each in (of.theirs, of.ours)
    )
    # Sums are near by chance: the total, and loss_ddf, whose terms have both signs.
    for each in (exact[0], original[0], replaced[0]):
        for loss in [name for name in each if name == "total" or "ddf" in name]:
            del each[loss]
    assert_as_near(replaced, original, exact)
    assert {each.dtype for each in replaced[0].values()} == {computed(dtype)}


@pytest.mark.parametrize("name", REPLACED)
def test_reads_nothing_on_the_host(name: str) -> None:
    of = CRITERIA[name]
    config = of.config(**of.options[0])
    assert_reads_nothing(of.ours, config=config, **arguments_of(of, made(of)))


if torch.cuda.is_available():

    @pytest.mark.parametrize("name", REPLACED)
    def test_never_waits(name: str) -> None:
        of = CRITERIA[name]
        config = of.config(**of.options[0])
        arguments = arguments_of(of, Case(*moved(tuple(made(of)), "cuda")), "cuda")
        assert waits(lambda: of.ours(config=config, **arguments)) == 0


# --- Several ranks ---


class TwoProcesses:
    """accelerate's state, which transformers' DETR asks."""

    _shared_state = ("there",)
    num_processes = 2


class Torchrun:
    """Where nobody has asked accelerate for anything."""

    _shared_state: ClassVar[dict[str, Any]] = {}


@pytest.mark.parametrize("state", [TwoProcesses, Torchrun])
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("name", REPLACED)
def test_ranks(
    name: str, counts: tuple[int, ...], state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other of two has twice as many boxes."""
    of = CRITERIA[name]
    config, case = of.config(**of.options[0]), made(of, counts)
    alone = run(of, of.theirs, case, config, torch.float64)
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda *_: 2)
    monkeypatch.setattr(distributed, "all_reduce", lambda each, *_, **__: each.mul_(3))
    monkeypatch.setattr(loss_for_object_detection, "PartialState", state)
    monkeypatch.setattr(loss_for_object_detection, "reduce", lambda each: 3 * each)
    ours, theirs = (run(of, each, case, config, torch.float64) for each in (of.ours, of.theirs))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)
    # These originals average; RF-DETR's whenever there are ranks.
    if any(counts) and (name == "RF-DETR" or (name == "DETR" and state is TwoProcesses)):
        assert theirs[0]["total"] < 0.9 * alone[0]["total"]
