# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""task_aligned_match against the rule in plain torch (task_aligned.py), and what it is to torch."""

import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import (
    TaskAlignedMatch,
    box_losses,
    check_indices,
    task_aligned_match,
    use_implementation,
)
from devices import Implementation
from task_aligned import OVERLAP_ERROR, Problem, plain, problem
from torch import Tensor
from torch._subclasses import FakeTensorMode

CPU = torch.device("cpu")


def on(device: torch.device, values: Problem) -> Problem:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in values.items()}


def check(values: Problem, device: torch.device = CPU) -> int:
    """Gives how many anchors rounding may have decided."""
    results = task_aligned_match(**on(device, values))
    assert isinstance(results, TaskAlignedMatch)
    wanted = plain(values)
    shape = values["scores"].shape[:2]
    for result, dtype in zip(results, (torch.int64, torch.float32, torch.float32), strict=True):
        assert (result.shape, result.dtype, result.device.type) == (shape, dtype, device.type)
        assert result.is_contiguous()
        assert not result.requires_grad
    index, score, overlap = (each.cpu() for each in results)
    same = index == wanted.target_index
    assert (same | wanted.is_open).all()
    assert (score[index < 0] == 0).all()
    assert (overlap[index < 0] == 0).all()
    overlap_error = (overlap - wanted.overlap).abs()
    assert (overlap_error[same] <= OVERLAP_ERROR).all()
    # Boxes that have what they should have. A score is one metric over another times an overlap.
    wrong = index[~same], wanted.target_index[~same]
    whole = same & ~torch.isin(wanted.target_index, torch.cat(wrong))
    beta = values.get("beta", 6.0)
    relative = (2 * beta + 1) * OVERLAP_ERROR / wanted.overlap.clamp(min=1e-3) + 1e-6
    if values["scores"].dtype in (torch.float16, torch.bfloat16):
        relative = relative + 2 * torch.finfo(values["scores"].dtype).eps
    score_error = (score - wanted.score).abs()
    assert (score_error[whole] <= (relative * wanted.score)[whole] + 1e-9).all()
    return int((~same).sum())


def some_options(seed: int) -> Problem:
    pick = random.Random(seed).choice
    options: Problem = {
        "images": pick([1, 2, 5]),
        "boxes": pick([1, 5, 12, 40]),
        "is_padded": pick([False, True]),
        "scores": pick([torch.float32, torch.float32, torch.float16, torch.bfloat16]),
        "topk": pick([1, 7, 10, 13, 10_000]),
        "topk2": pick([None, None, 1, 4]),
        "alpha": pick([0.5, 0.5, 1.0, 0.0, 0.7]),
        "beta": pick([6.0, 6.0, 1.0, 2.5]),
        "min_side": pick([0.0, 16.0, 16.0, 40.0]),
    }
    options["small_side"] = pick([None, options["min_side"] / 2])
    if pick([False, False, False, True]):
        options["pred"] = torch.float64
    return options


def test_is_the_rule(device: torch.device) -> None:
    different = anchors = 0
    for seed in range(300):
        values = problem(seed, **some_options(seed))
        different += check(values, device)
        anchors += values["scores"][..., 0].numel()
    assert different <= 1e-4 * anchors


def test_every_implementation(implementation: Implementation) -> None:
    if "kokkos" in implementation.name:
        with pytest.raises(TypeError, match=f"^task_aligned_match: {implementation.name} does not"):
            task_aligned_match(**problem(0, implementation.device))
        return
    for seed in range(4):
        check(problem(seed, topk2=(None, 1)[seed % 2], min_side=16.0), implementation.device)


@pytest.mark.parametrize("pred_format", ["xyxy", "xywh", "cxcywh"])
def test_formats(device: torch.device, pred_format: str) -> None:
    values = problem(1)
    first, last = values["pred"].chunk(2, -1)
    if pred_format != "xyxy":
        values["pred"] = torch.cat((first, last - first), -1)
    if pred_format == "cxcywh":
        values["pred"] = torch.cat(((first + last) / 2, last - first), -1)
    check({**values, "pred_format": pred_format}, device)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "columns": lambda each: each.mT.contiguous().mT,
    "wider rows": lambda each: torch.cat((each, each + 1), -1)[..., : each.shape[-1]],
    "images last": lambda each: each.movedim(0, -1).contiguous().movedim(-1, 0),
    "requires a gradient": lambda each: each.clone().requires_grad_(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_padded", [False, True])
def test_tensors_are_read_where_they_lie(
    device: torch.device, layout: str, is_padded: bool
) -> None:
    values = on(device, problem(2, is_padded=is_padded))
    wanted = task_aligned_match(**values)
    for name in ("scores", "pred", "points", "target"):
        moved = {**values, name: LAYOUTS[layout](values[name])}
        before = moved[name].clone()
        for result, each in zip(task_aligned_match(**moved), wanted, strict=True):
            assert torch.equal(result, each)
        assert torch.equal(moved[name], before)


@pytest.mark.parametrize("is_padded", [False, True])
def test_labels_and_offsets_need_not_be_neighbours(device: torch.device, is_padded: bool) -> None:
    values = on(device, problem(2, is_padded=is_padded))
    wanted = task_aligned_match(**values)
    for name in ("labels",) if is_padded else ("labels", "offsets"):
        apart = torch.stack((values[name], values[name] + 99), -1).int()[..., 0]
        for result, each in zip(task_aligned_match(**{**values, name: apart}), wanted, strict=True):
            assert torch.equal(result, each)


def test_offsets_may_be_on_the_cpu(device: torch.device) -> None:
    values = problem(2)
    wanted = task_aligned_match(**on(device, values))
    results = task_aligned_match(**{**on(device, values), "offsets": values["offsets"]})
    assert all(map(torch.equal, results, wanted))


def test_points_of_each_image(device: torch.device) -> None:
    values = problem(3)
    shifted = values["points"] + torch.tensor([[[0.0, 0.0]], [[3.0, 1.0]], [[-5.0, 2.0]]])
    check({**values, "points": shifted}, device)


def test_points_in_any_order(device: torch.device) -> None:
    values = problem(4, size=256)
    order = torch.randperm(len(values["points"]), generator=torch.Generator().manual_seed(4))
    check({**values, "points": values["points"][order]}, device)


def test_nothing_to_match(device: torch.device) -> None:
    values, padded = problem(5), problem(5, is_padded=True)
    in_images = ("scores", "pred", "target", "labels")
    for each in (
        {**values, "target": values["target"][:0], "labels": values["labels"][:0]}
        | {"offsets": torch.zeros(4, dtype=torch.int64)},
        {**padded, "target": padded["target"][:, :0], "labels": padded["labels"][:, :0]},
        {**padded, "target": torch.zeros_like(padded["target"])},
        {**padded, **{name: padded[name][:0] for name in in_images}},
        {**values, **{name: values[name][:, :0] for name in ("scores", "pred")}}
        | {"points": values["points"][:0]},
    ):
        index, score, overlap = task_aligned_match(**on(device, each))
        assert index.shape == score.shape == overlap.shape == each["scores"].shape[:2]
        assert (index == -1).all()
        assert score.eq(0).all()
        assert overlap.eq(0).all()


def test_nan_is_no_candidate(device: torch.device) -> None:
    values = problem(6, boxes=30)
    values["scores"][:, ::7] = math.nan
    values["pred"][:, 1::7, 2] = math.nan
    values["points"][2::7, 0] = math.nan
    values["target"][::5, 3] = math.nan
    values["scores"][:, 3::7, 0] = math.nan  # of a class: a box of another has the anchor
    check(values, device)
    index = task_aligned_match(**on(device, values)).target_index
    assert (index[:, ::7] < 0).all()
    assert (index[:, 1::7] < 0).all()
    assert (index[:, 2::7] < 0).all()


def test_the_losses_take_it(device: torch.device) -> None:
    values = on(device, problem(7))
    index, score, overlap = task_aligned_match(**values)
    assert (index >= 0).any()
    rows = torch.arange(index.numel(), device=device)
    pairs = {"pred_index": rows, "target_index": index.flatten()}
    check_indices(values["pred"], values["target"], **pairs)
    losses = box_losses(values["pred"], values["target"], "ciou", reduction="none", **pairs)
    own = index.flatten() >= 0
    error = (1 - losses.loss - overlap.flatten())[own]
    assert (error.abs() <= 2 * OVERLAP_ERROR).all()
    assert (losses.loss[~own] == 0).all()
    assert (score <= overlap.amax() + 1e-6).all()


# --- What it is to torch ---


def test_the_same_bits_every_time(device: torch.device) -> None:
    values = on(device, problem(8, images=8, boxes=40))
    wanted = task_aligned_match(**values)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            for result, each in zip(task_aligned_match(**values), wanted, strict=True):
                assert torch.equal(result, each)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_whole(device: torch.device, dynamic: bool) -> None:
    def step(values: Problem) -> TaskAlignedMatch:
        return task_aligned_match(**{**values, "scores": values["scores"] * 0.5})

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seed in range(3):
        values = problem(seed, device, min_side=16.0)
        values["pred"].requires_grad_()
        wanted = step(values)
        for result, each in zip(compiled(values), wanted, strict=True):
            assert torch.equal(result, each)
            assert not result.requires_grad


class Assigner(torch.nn.Module):
    def forward(self, *tensors: Tensor) -> TaskAlignedMatch:
        return task_aligned_match(*tensors, topk=7, topk2=1)


def test_exports() -> None:
    names = ("scores", "pred", "points", "target", "offsets", "labels")
    values = problem(9)
    boxes = torch.export.Dim("boxes")
    dynamic = {"tensors": (None, None, None, {0: boxes}, None, {0: boxes})}
    program = torch.export.export(
        Assigner(), tuple(values[each] for each in names), dynamic_shapes=dynamic
    )
    other = problem(10)
    assert len(other["target"]) != len(values["target"])
    arguments = [other[each] for each in names]
    for result, each in zip(program.module()(*arguments), Assigner()(*arguments), strict=True):
        assert torch.equal(result, each)


def test_fake_and_meta(device: torch.device) -> None:
    for is_padded in (False, True):
        values = problem(11, is_padded=is_padded)
        shape = values["scores"].shape[:2]
        there = on(device, values)
        with FakeTensorMode() as mode:
            fake = {
                k: mode.from_tensor(v) if isinstance(v, Tensor) else v for k, v in there.items()
            }
            results = task_aligned_match(**fake)
            assert {each.device.type for each in results} == {device.type}
        meta = task_aligned_match(**on(torch.device("meta"), values))
        assert {each.device.type for each in meta} == {"meta"}
        for each in (*results, *meta):
            assert each.shape == shape


@pytest.mark.parametrize("is_padded", [False, True])
def test_opcheck(device: torch.device, is_padded: bool) -> None:
    values = problem(12, device, is_padded=is_padded)
    values["pred"].requires_grad_()
    torch.library.opcheck(torch.ops.boxloss.task_aligned_match.default, (), values)


def test_aten_changes_nothing(device: torch.device) -> None:
    with use_implementation("aten"):
        check(problem(13), device)


GOOD = problem(14, images=2)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda run, scores: torch.vmap(run)(scores[None]),
        lambda run, scores: torch.func.grad(lambda x: run(x).sum())(scores),
        lambda run, scores: torch.func.jvp(run, (scores,), (scores,)),
    ],
    ids=["vmap", "grad", "jvp"],
)
def test_function_transforms_are_refused(transformed: Any) -> None:
    def run(scores: Tensor) -> Tensor:
        return task_aligned_match(**{**GOOD, "scores": scores}).score

    with pytest.raises(RuntimeError, match=r"^task_aligned_match: the transforms of torch\.func "):
        transformed(run, GOOD["scores"])


# --- Errors ---

PADDED = problem(14, images=2, is_padded=True)
ANCHORS = len(GOOD["points"])
ROWS = len(GOOD["target"])
# What is changed, and what the error says.
ERRORS: list[tuple[type[Exception], Problem, str]] = [
    (TypeError, {"scores": 1}, "scores is int; it must be a tensor"),
    (TypeError, {"offsets": [0, 1]}, "offsets is list; it must be a tensor"),
    (TypeError, {"scores": GOOD["scores"].long()}, "scores is int64; it must be float64, "),
    (TypeError, {"points": GOOD["points"].int()}, "points is int32; it must be float64, "),
    (TypeError, {"pred": GOOD["pred"].bool()}, "pred is bool; it must be float64"),
    (TypeError, {"labels": GOOD["labels"].float()}, "labels is float32; it must be int32 or int64"),
    (TypeError, {"offsets": GOOD["offsets"].short()}, "offsets is int16; it must be int32 or"),
    (ValueError, {"scores": GOOD["scores"][0]}, "scores has shape [336, 4]; it must be (images, "),
    (ValueError, {"pred": GOOD["pred"][:1]}, "pred has shape [1, 336, 4]; it must be [2, 336, 4]"),
    (ValueError, {"points": GOOD["points"][1:]}, "points has shape [335, 2]; it must be [336, 2],"),
    (ValueError, {"points": GOOD["points"][None]}, "points has shape [1, 336, 2]; it must be [336"),
    (ValueError, {"target": GOOD["target"][:, :3]}, f"target has shape [{ROWS}, 3]; its last dim"),
    (
        ValueError,
        {"target": PADDED["target"]},
        "target has shape [2, 12, 4]; with offsets it must ",
    ),
    (ValueError, {"offsets": None}, f"target has shape [{ROWS}, 4]; without offsets it must be"),
    (ValueError, {"offsets": GOOD["offsets"][1:]}, "offsets has shape [2]; it must be [3], one mo"),
    (ValueError, {"labels": GOOD["labels"][1:]}, f"labels has shape [{ROWS - 1}]; it must be ["),
    (ValueError, {**PADDED, "labels": PADDED["labels"][:1]}, "labels has shape [1, 12]; it must "),
    (ValueError, {**PADDED, "labels": PADDED["labels"][..., None]}, "labels has shape [2, 12, 1];"),
    (ValueError, {"scores": GOOD["scores"].to_sparse()}, "scores is Sparse; it must be dense"),
    (ValueError, {"topk": 0}, "topk is 0; it must be at least 1"),
    (ValueError, {"topk2": -1}, "topk2 is -1; it must be at least 1"),
    (ValueError, {"alpha": -0.5}, "alpha is -0.5; it must be finite and not negative"),
    (ValueError, {"beta": math.inf}, "beta is inf; it must be finite and not negative"),
    (ValueError, {"min_side": math.nan}, "min_side is nan; it must be finite and not negative"),
    (ValueError, {"pred_format": "xxyy"}, "pred_format is 'xxyy'; allowed: 'xyxy', 'xywh', "),
    (ValueError, {"labels": GOOD["labels"] + 4}, "the label of row 0 of target is "),
    (ValueError, {**PADDED, "labels": PADDED["labels"] - 9}, "the label of row "),
    (ValueError, {"offsets": GOOD["offsets"] - 1}, "offsets[0] is -1; it must lie in [0, "),
    (ValueError, {"offsets": GOOD["offsets"] + 1}, f"offsets[2] is {ROWS + 1}; it must lie in [0"),
    (ValueError, {"offsets": torch.tensor([2, 1, 3])}, "offsets[1] is 1, less than offsets[0], "),
    (RuntimeError, {"pred": GOOD["pred"].to("meta")}, "pred is on meta, scores is on cpu; all mus"),
    (RuntimeError, {"labels": GOOD["labels"].to("meta")}, "labels is on meta, scores is on cpu; "),
]


@pytest.mark.parametrize(("error", "change", "text"), ERRORS)
def test_what_is_refused(error: type[Exception], change: Problem, text: str) -> None:
    with pytest.raises(error, match="^" + re.escape("task_aligned_match: " + text)):
        task_aligned_match(**{**GOOD, **change})


def test_on_a_device_what_is_wrong_gets_no_anchor(gpu: torch.device) -> None:
    """Nobody looks: a label that names no class is read nowhere."""
    values = on(gpu, problem(12, images=2))
    right = task_aligned_match(**values).target_index
    labels = values["labels"].clone()
    labels[0], labels[1] = 4, -1
    index = task_aligned_match(**{**values, "labels": labels}).target_index
    assert not torch.isin(index, torch.tensor([0, 1], device=gpu)).any()
    assert torch.isin(right, torch.tensor([0, 1], device=gpu)).any()
    rows = len(labels)
    for offsets in ([0, 2, rows + 1], [-1, 2, rows], [2, 1, rows]):
        wrong = {**values, "offsets": torch.tensor(offsets, device=gpu)}
        assert (task_aligned_match(**wrong).target_index == -1).all()


def test_in_a_cuda_graph(gpu: torch.device) -> None:
    values = problem(15, gpu, is_padded=True, topk2=3)
    task_aligned_match(**values)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = task_aligned_match(**values)
    other = problem(16, gpu, is_padded=True, topk2=3)
    for name, each in other.items():
        if isinstance(each, Tensor):
            values[name].copy_(each)
    graph.replay()
    for result, each in zip(found, task_aligned_match(**other), strict=True):
        assert torch.equal(result, each)
