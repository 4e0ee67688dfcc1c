# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The DETRs' criteria of boxloss.torch.compat beside transformers': a row of CRITERIA for each.

Models are trained here, too; that each one's losses are right is for test_use_boxloss.py. What
D-FINE has of RT-DETR's is for that one's row, with bounds; the rest is compared in double.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import detr_cases as cases
import pytest
import torch
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.d_fine_criterion import d_fine_loss
from boxloss.torch.compat.deimv2_criterion import deimv2_loss
from boxloss.torch.compat.detr_criterion import detr_loss
from boxloss.torch.compat.grounding_dino_criterion import grounding_dino_loss
from boxloss.torch.compat.lw_detr_criterion import lw_detr_loss
from boxloss.torch.compat.rt_detr_criterion import rt_detr_loss
from detr_cases import CLASSES, COUNTS, LAYERS, QUERIES, UNIT_ROUNDOFF, Targets
from small_detrs import SMALL
from surroundings import (
    DEVICES,
    HALVES,
    assert_as_near,
    assert_example_runs,
    assert_reads_nothing,
    autocast,
    computed,
    default_dtype,
    moved,
    rounded,
    rounding_of,
    waits,
)
from torch import Tensor, distributed, multiprocessing
from training_cases import CLOSE, assert_same_in_model, assert_same_training
from transformers import (
    Deimv2Config,
    DetrConfig,
    DFineConfig,
    GroundingDinoConfig,
    LwDetrConfig,
    RTDetrConfig,
)
from transformers.loss.loss_d_fine import DFineForObjectDetectionLoss
from transformers.loss.loss_deimv2 import Deimv2ForObjectDetectionLoss
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss
from transformers.loss.loss_grounding_dino import GroundingDinoForObjectDetectionLoss
from transformers.loss.loss_lw_detr import LwDetrForObjectDetectionLoss
from transformers.loss.loss_rt_detr import RTDetrForObjectDetectionLoss

from examples import detr, rt_detr, rt_detr_compiled
from examples.training import Replace, train_transformers

BINS = 32
Leaves = dict[str, Tensor]


class Case(NamedTuple):
    """What a criterion is given, but for the configuration."""

    counts: tuple[int, ...]
    values: Leaves
    labels: Targets
    denoising: dict[str, Any] | None

    @property
    def groups(self) -> int:
        return self.denoising["dn_num_group"] if self.denoising else 0

    @property
    def pairs(self) -> int:
        return sum(min(QUERIES, count) for count in self.counts)

    @property
    def number(self) -> int:
        return max(sum(self.counts), 1)


class Errors(NamedTuple):
    """How far apart two right ones can be."""

    losses: dict[str, float]
    total: float  # but for the rounding of adding up
    gradients: dict[str, float]


@dataclass(frozen=True)
class Criterion:
    ours: Any
    theirs: Any
    config: Callable[..., Any]
    options: tuple[dict[str, Any], ...]  # of the configuration: each is compared
    values: Callable[[tuple[int, ...], int, int], Leaves]  # of counts, denoising queries, seed
    last: Any  # where the last layer lies
    auxiliary: int  # how many outputs are told
    errors: Callable[[Case, Any, list[str], float], Errors] | None = None  # None: CLOSE
    dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32, *HALVES)
    groups: tuple[int, ...] = (0, 2)  # of denoising queries
    text: Callable[[int], dict[str, Any]] = lambda images: {}  # by the number of images
    by_default: bool = True  # Does the default dtype decide what the original computes in?


def denoising_of(counts: tuple[int, ...], groups: int) -> dict[str, Any] | None:
    """As RT-DETR numbers its denoising queries: positive ones, then as many negative ones."""
    most = max(counts)
    if not most or not groups:
        return None
    first = 2 * most * torch.arange(groups)[:, None]
    return {
        "dn_positive_idx": tuple((first + torch.arange(count)).flatten() for count in counts),
        "dn_num_group": groups,
        "dn_num_split": [2 * most * groups, QUERIES],
    }


# --- DETR ---


def detr_values(counts: tuple[int, ...], _: int, seed: int) -> Leaves:
    random = cases.generator(seed)
    shape = (LAYERS, len(counts), QUERIES)
    return {
        "outputs_class": cases.logits((*shape, CLASSES + 1), random),
        "outputs_coord": cases.boxes(shape, random),
    }


def detr_errors(case: Case, config: DetrConfig, names: list[str], unit: float) -> Errors:
    queries = len(case.counts) * QUERIES
    of_boxes = unit * cases.box_loss_error(case.pairs) / case.number
    bbox, giou = config.bbox_loss_coefficient, config.giou_loss_coefficient
    kinds = {  # each one's error, and its factor in the total
        "loss_ce": (unit * cases.cross_entropy_error(queries), 1),
        "loss_bbox": (of_boxes, bbox),
        "loss_giou": (of_boxes, giou),
        "cardinality_error": (4 * QUERIES * UNIT_ROUNDOFF[torch.float32], 0),  # always float32
    }
    of_names = {name: kinds["_".join(name.split("_")[:2])] for name in names}
    of_class = cases.cross_entropy_gradient_error(queries, config.eos_coefficient)
    return Errors(
        {name: error for name, (error, _) in of_names.items()},
        sum(error * factor for error, factor in of_names.values()),
        {
            "outputs_class": unit * of_class,
            "outputs_coord": unit * cases.box_gradient_error(giou, bbox) / case.number,
        },
    )


# --- LW-DETR ---


def lw_detr_values(counts: tuple[int, ...], _: int, seed: int) -> Leaves:
    """The decoder's layers and the encoder's."""
    random = cases.generator(seed)
    shape = (LAYERS + 1, len(counts), QUERIES)
    scores, boxes = cases.logits((*shape, CLASSES), random), cases.boxes(shape, random)
    return {
        "outputs_class": scores[:-1],
        "outputs_coord": boxes[:-1],
        "enc_outputs_class": scores[-1],
        "enc_outputs_coord": boxes[-1],
    }


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
    random = cases.generator(seed)
    shape = (LAYERS + 1, len(counts), QUERIES)
    scores, boxes = cases.logits((*shape, TOKENS), random), cases.boxes(shape, random)
    scores[..., -2:] = -torch.inf
    return {
        "outputs_class": scores[:-1],
        "outputs_coord": boxes[:-1],
        "encoder_logits": scores[-1],
        "encoder_pred_boxes": boxes[-1],
    }


# --- RT-DETR ---


def rt_detr_values(counts: tuple[int, ...], noisy: int, seed: int) -> Leaves:
    random = cases.generator(seed)
    images, queries = len(counts), noisy + QUERIES
    return {
        "outputs_class": cases.logits((images, LAYERS, queries, CLASSES), random),
        "outputs_coord": cases.boxes((images, LAYERS, queries), random),
        "enc_topk_logits": cases.logits((images, QUERIES, CLASSES), random),
        "enc_topk_bboxes": cases.boxes((images, QUERIES), random),
    }


def scores_of(name: str, values: Leaves) -> Tensor:
    """Those that a loss is computed from."""
    scores = values["outputs_class"]
    if "_dn_" in name:
        return scores[:, int(name[-1]), :-QUERIES]
    if name.endswith(f"_aux_{LAYERS - 1}"):  # behind the decoder's layers comes the encoder
        return values["enc_topk_logits"]
    return scores[:, int(name[-1]) if "_aux_" in name else LAYERS - 1, -QUERIES:]


def rt_detr_errors(case: Case, config: RTDetrConfig, names: list[str], unit: float) -> Errors:
    losses = {}
    for name in names:
        is_noisy = "_dn_" in name
        pairs = sum(case.counts) * case.groups if is_noisy else case.pairs
        loss = "_".join(name.split("_")[:2])
        if loss == "loss_vfl":
            error = cases.varifocal_error(scores_of(name, case.values), pairs)
        else:
            error = cases.box_loss_error(pairs)
        shares = case.number * (case.groups if is_noisy else 1)
        losses[name] = unit * error * getattr(config, f"weight_{loss}") / shares
    of_boxes = cases.box_gradient_error(config.weight_loss_giou, config.weight_loss_bbox)
    gradients = {
        name: cases.VARIFOCAL_GRADIENT_ERROR if each.shape[-1] == CLASSES else of_boxes
        for name, each in case.values.items()
    }
    return Errors(
        losses,
        sum(losses.values()),
        {name: unit * error / case.number for name, error in gradients.items()},
    )


# --- D-FINE ---


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
        {
            "auxiliary_loss": True,
            "giou_cost": 3,
            "giou_loss_coefficient": 4,
            "eos_coefficient": 0.2,
        },
    ),
    detr_values,
    last=-1,
    auxiliary=LAYERS - 1,
    errors=detr_errors,
    groups=(0,),
)
D_FINE = Criterion(
    d_fine_loss,
    DFineForObjectDetectionLoss,
    partial(DFineConfig, max_num_bins=BINS, **SIZES),
    ({}, {"auxiliary_loss": False}, {"up": 0.01}),  # then true sides lie outside of all bins
    d_fine_values,
    last=(slice(None), -1),
    auxiliary=LAYERS - 1,
    dtypes=(torch.float64,),
)
CRITERIA = {
    "DETR": DETR,
    "DETR, adapted": replace(
        DETR, ours=detr.adapted, dtypes=(torch.float64, torch.float32)
    ),  # halves: it is as near as the original
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
        dtypes=(torch.float64,),
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
        dtypes=(torch.float64,),
        groups=(0,),
    ),
    "RT-DETR": Criterion(
        rt_detr_loss,
        RTDetrForObjectDetectionLoss,
        partial(RTDetrConfig, **SIZES),
        ({}, {"auxiliary_loss": False}, {"use_focal_loss": False, "matcher_giou_cost": 3.0}),
        rt_detr_values,
        last=(slice(None), -1),
        auxiliary=LAYERS,
        errors=rt_detr_errors,
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
}
REPLACED = [name for name in CRITERIA if name != "DETR, adapted"]


def made(
    of: Criterion,
    counts: tuple[int, ...] = (3, 0, 5),
    groups: int | None = None,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Numbers in double that `dtype` has, too."""
    denoising = denoising_of(counts, of.groups[-1] if groups is None else groups)
    noisy = denoising["dn_num_split"][0] if denoising else 0
    values = rounded(of.values(counts, noisy, seed), dtype)
    return Case(counts, values, cases.true_boxes(counts, cases.generator(seed + 100)), denoising)


def arguments_of(of: Criterion, case: Case, device: str = "cpu") -> dict[str, Any]:
    """As the model calls it: the last layer's outputs are among them all."""
    noise = {"denoising_meta_values": case.denoising} if of.groups != (0,) else {}
    logits, pred_boxes = (case.values[f"outputs_{name}"][of.last] for name in ("class", "coord"))
    return {
        "logits": logits,
        "labels": case.labels,
        "device": torch.device(device),
        "pred_boxes": pred_boxes,
        **noise,
        **case.values,
        **moved(of.text(len(case.counts)), device),
    }


def run(
    of: Criterion,
    criterion: Any,
    case: Case,
    config: Any,
    dtype: torch.dtype,
    device: str = "cpu",
) -> cases.Results:
    """Total, losses by name, and the total's gradients. Halves are as autocast makes them."""
    values = moved(
        {name: each.requires_grad_() for name, each in case.values.items()}, device, dtype
    )
    labels, denoising = moved((cases.cast(case.labels, computed(dtype)), case.denoising), device)
    given = Case(case.counts, values, labels, denoising)
    with (
        autocast(device, dtype),
        default_dtype(computed(dtype)) if of.by_default else nullcontext(),
    ):
        arguments = arguments_of(of, given, device)
        total, losses, auxiliary = criterion(config=config, **arguments)
    assert len(auxiliary or ()) == (of.auxiliary if config.auxiliary_loss else 0)
    total.backward()
    gradients = {name: each.grad for name, each in values.items() if each.grad is not None}
    return moved((total, losses, gradients), "cpu")


def assert_close(ours: Leaves, theirs: Leaves) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert (ours[name] - value).norm() <= CLOSE * (1 + value.norm()), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize(
    ("name", "groups", "options", "dtype"),
    [
        pytest.param(name, groups, options, dtype, id=f"{name},{groups},{options},{dtype}")
        for name, of in CRITERIA.items()
        for groups in of.groups
        for options in of.options
        for dtype in of.dtypes
    ],
)
def test_losses_and_gradients(
    name: str,
    groups: int,
    options: dict[str, Any],
    dtype: torch.dtype,
    counts: tuple[int, ...],
    seed: int,
    device: str,
) -> None:
    of = CRITERIA[name]
    config, case = of.config(**options), made(of, counts, groups, seed, dtype)
    total, losses, gradients = run(of, of.ours, case, config, dtype, device)
    right, wanted, exact = run(of, of.theirs, case, config, torch.float64)
    if of.errors is None:
        assert_close({"total": total}, {"total": right})
        assert_close(losses, wanted)
        assert_close(gradients, exact)
        return

    unit = UNIT_ROUNDOFF[computed(dtype)]
    allowed = of.errors(case, config, list(wanted), unit)
    assert losses.keys() == wanted.keys()
    for each, value in wanted.items():
        assert losses[each].dtype == computed(dtype) or each.startswith("cardinality")
        assert abs(losses[each].double() - value) <= allowed.losses[each], each
    assert abs(total.double() - right) <= allowed.total + len(wanted) * unit * right.item()
    assert gradients.keys() == exact.keys()
    for each, value in exact.items():
        distance = (gradients[each].double() - value).abs()
        assert torch.all(distance <= allowed.gradients[each] + rounding_of(value, dtype)), each


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CRITERIA)
def test_is_as_near_as_the_original(name: str, seed: int, dtype: torch.dtype) -> None:
    of = CRITERIA[name]
    case, config = made(of, seed=seed, dtype=dtype), of.config(**of.options[0])
    exact = run(of, of.theirs, case, config, torch.float64)
    original, replaced = (run(of, each, case, config, dtype) for each in (of.theirs, of.ours))
    # Sums are near by chance: the total, and loss_ddf, whose terms have both signs.
    losses = {each: value for each, value in exact[1].items() if "ddf" not in each}
    assert_as_near(replaced[1:], original[1:], (losses, exact[2]))


def test_bounds_are_narrow() -> None:
    """Ten per cent more of one weight is far outside."""
    of = CRITERIA["RT-DETR"]
    case = made(of, groups=0)
    configs = of.config(), of.config(weight_loss_giou=2.2)
    (_, losses, gradients), (_, others, apart) = (
        run(of, of.ours, case, config, torch.float32) for config in configs
    )
    allowed = rt_detr_errors(case, configs[0], list(losses), UNIT_ROUNDOFF[torch.float32])
    assert abs(losses["loss_giou"] - others["loss_giou"]) > 100 * allowed.losses["loss_giou"]
    distance = (gradients["outputs_coord"] - apart["outputs_coord"]).abs().max()
    assert distance > 100 * allowed.gradients["outputs_coord"]


def test_d_fines_teacher_teaches_itself_nothing() -> None:
    """In a new network all layers have the teacher's corners."""
    of = CRITERIA["D-FINE"]
    case = made(of)
    case.values["predicted_corners"][:] = case.values["predicted_corners"][:, :1].clone()
    ours, theirs = (
        run(of, each, case, of.config(), torch.float64)[1] for each in (of.ours, of.theirs)
    )
    assert_close(ours, theirs)
    assert any("fgl" in name for name in ours)
    assert all(not value for name, value in ours.items() if "ddf" in name)


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


def compare_on_rank(rank: int, folder: Path) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    config = DETR.config(auxiliary_loss=True)
    for counts, average in ((((3, 0, 5), (1,)), 4.5), (((1,), (0,)), 1.0)):
        case = made(DETR, counts[rank], seed=rank)
        _, losses, _ = run(DETR, DETR.ours, case, config, torch.float64)
        # Without accelerate the original knows of this rank alone.
        _, wanted, _ = run(DETR, DETR.theirs, case, config, torch.float64)
        unit = UNIT_ROUNDOFF[torch.float64] / average
        for name, value in wanted.items():
            if "box" in name or "giou" in name:
                right = value * (case.number / average)
                assert abs(losses[name] - right) <= unit * cases.box_loss_error(case.pairs), name
    distributed.barrier()  # no rank hangs up on the other
    distributed.destroy_process_group()


def test_ranks_average_the_number_of_boxes(tmp_path: Path) -> None:
    multiprocessing.spawn(compare_on_rank, (tmp_path,), nprocs=2)


# --- Models ---


@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)])
@pytest.mark.parametrize("seed", range(2))
def test_an_adapted_model(counts: tuple[int, ...], seed: int) -> None:
    assert_same_in_model(detr.small_model, detr.adapt, counts, seed)


@pytest.mark.parametrize(
    ("name", "change"), [*((name, use_boxloss) for name in SMALL), ("DETR", detr.adapt)]
)
def test_training(name: str, change: Replace) -> None:
    assert_same_training(partial(train_transformers, SMALL[name]), 0, change=change)


@pytest.mark.parametrize(("example", "ways"), [(detr, 2), (rt_detr, 1), (rt_detr_compiled, 1)])
def test_example_runs(example: ModuleType, ways: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert_example_runs(example, ways, capsys)
