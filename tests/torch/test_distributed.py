# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One normalizer for the losses of several ranks, and losses of DTensors, on two ranks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss.torch import (
    BoxLoss,
    box_loss,
    box_losses,
    giou_loss,
    global_normalizer,
    rotated_box_loss,
)
from called import Called
from combinations import pairwise_cases
from comparison import BOX_GRADIENT, UNIT_ROUNDOFF
from problems import REDUCTIONS, Problem, boxes, problem
from torch import Tensor, distributed, multiprocessing
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh

CPU = torch.device("cpu")
COUNTS = (3, 7)  # boxes of each rank


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64], ids=str)
def test_one_rank(device: torch.device, dtype: torch.dtype) -> None:
    for number in (5, 0):
        count = torch.tensor(number, dtype=dtype, device=device)
        count.requires_grad_(dtype.is_floating_point)
        normalizer = global_normalizer(count)
        assert normalizer.item() == max(number, 1)
        assert (normalizer.dtype, normalizer.shape) == (torch.float32, ())
        assert normalizer.device == count.device
        assert not normalizer.requires_grad
        assert count.item() == number


def test_an_integer_stays_on_the_cpu() -> None:
    # Beyond the integers of float32, too.
    for count in (4, 2**40 + 2**20 + 1):
        assert global_normalizer(count).device.type == "cpu"
        assert global_normalizer(count).item() == torch.tensor(count).float().item()


def test_a_count_has_no_dimension() -> None:
    with pytest.raises(ValueError, match=r"^count has shape \(1,\); it must have no dimension$"):
        global_normalizer(torch.tensor([5]))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32], ids=str)
def test_one_launch_before_the_sum_and_one_behind(device: torch.device, dtype: torch.dtype) -> None:
    count = torch.tensor(5, dtype=dtype, device=device)
    with Called() as called:
        global_normalizer(count)
    assert called.names == ["div", "clamp_min_"]


def rank_boxes(seed: int) -> list[Tensor]:
    return [boxes((count,), CPU, seed=seed + count) for count in COUNTS]


def train_one_rank(rank: int, folder: Path) -> None:
    assert global_normalizer(0).item() == 0.5  # max(0, 1) / 2
    with Called() as called:
        normalizer = global_normalizer(torch.tensor(COUNTS[rank]))
    assert called.names == ["div", "allreduce_", "clamp_min_"]
    of_one = distributed.new_group([1])
    if rank == 1:
        assert global_normalizer(3, of_one).item() == 3
    else:
        with pytest.raises(
            ValueError, match=r"^group is without this rank, 0; it must be one that"
        ):
            global_normalizer(3, of_one)
    shift = torch.zeros(4, requires_grad=True)
    pred, target = rank_boxes(1)[rank], rank_boxes(2)[rank]
    giou_loss(pred + shift, target, normalizer=normalizer).backward()
    # What DistributedDataParallel does with gradients.
    distributed.all_reduce(shift.grad)
    shift.grad /= len(COUNTS)
    torch.save((normalizer, shift.grad), folder / f"rank{rank}")


def run_one_rank(rank: int, folder: Path) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=len(COUNTS)
    )
    train_one_rank(rank, folder)
    check_dtensors()
    distributed.barrier()  # no rank hangs up on the other
    distributed.destroy_process_group()


@pytest.mark.parametrize("count", [None, "3", 3j])
def test_what_counts_nothing(count: Any) -> None:
    text = rf"^count is {type(count).__name__}; it must be an integer or a tensor$"
    with pytest.raises(TypeError, match=text):
        global_normalizer(count)


@pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo")
def test_on_two_ranks(tmp_path: Path) -> None:
    multiprocessing.spawn(run_one_rank, (tmp_path,), nprocs=len(COUNTS))
    shift = torch.zeros(4, requires_grad=True)
    giou_loss(torch.cat(rank_boxes(1)) + shift, torch.cat(rank_boxes(2))).backward()
    for rank in range(len(COUNTS)):
        normalizer, gradient = torch.load(tmp_path / f"rank{rank}")
        assert normalizer.item() == sum(COUNTS) / 2
        # Means of ten gradients of boxes longer than 4: ten additions of numbers up to 4 / 4.
        apart = 2 * (BOX_GRADIENT / 4 + 10) * UNIT_ROUNDOFF[torch.float32]
        assert torch.allclose(gradient, shift.grad, rtol=0, atol=apart)


# --- Losses of DTensors are those of the whole tensors: on each of two ranks ---

IMAGES_APART = ("dense", "zero_padded", "lengths", "mask")
ACROSS_IMAGES = ("dense", "offsets", "indices", "sets")


def problems() -> Iterator[Problem]:
    """Three images, two of them on the first rank; or one, and none on the second."""
    options = {"pairing": IMAGES_APART, "reduction": REDUCTIONS, "images": (3, 1)}
    for case in pairwise_cases(options):
        values = problem(case["pairing"], CPU, weight=torch.float32, reduction=case["reduction"])
        for name, each in values.items():
            if isinstance(each, Tensor):
                values[name] = each[: case["images"]]
        if case["reduction"] == "mean":
            values["normalizer"] = torch.tensor(7.0)
        yield values


GRADIENTS = ("pred", "target", "weight")


def leaves(values: Problem) -> Problem:
    return {
        name: each.detach().requires_grad_(name in GRADIENTS) if isinstance(each, Tensor) else each
        for name, each in values.items()
    }


def distribute(values: Problem, mesh: Any, placements: list[Any]) -> Problem:
    return leaves(
        {
            name: distribute_tensor(
                each, mesh, [Replicate()] * mesh.ndim if name == "normalizer" else placements
            )
            if isinstance(each, Tensor)
            else each
            for name, each in values.items()
        }
    )


def results_of(function: Callable[..., Any], values: Problem) -> tuple[Tensor, ...]:
    results = function(**values)
    return (results,) if isinstance(results, Tensor) else results


def assert_same(function: Callable[..., Any], whole: Problem, parts: Problem) -> None:
    """Sums within the roundings of two of positive numbers and of theirs; all else equal."""
    wanted, results = results_of(function, whole), results_of(function, parts)
    for each, result in zip(wanted, results, strict=True):
        assert result.shape == each.shape
        full = result.full_tensor()
        assert torch.allclose(full, each, rtol=3 * 2.0**-24 if each.dim() == 0 else 0, atol=0)
    with torch.no_grad():
        for each, result in zip(results_of(function, parts), results, strict=True):
            assert each.placements == result.placements
            assert torch.equal(each.to_local(), result.to_local())
    wanted[0].sum().backward()
    results[0].sum().full_tensor().backward()
    for name in GRADIENTS:
        if name in whole:
            gradient = parts[name].grad
            assert gradient.placements == parts[name].placements
            assert torch.equal(gradient.full_tensor(), whole[name].grad), name


def check_shards(mesh: Any) -> None:
    for values in problems():
        parts = distribute(values, mesh, [Shard(0)])
        assert_same(box_losses, leaves(values), leaves(parts))
        placed = box_loss(**parts).placements
        assert placed == ((Shard(0),) if values["reduction"] == "none" else (Partial(),))
    values = problem("lengths", CPU, reduction="sum", loss="giou", angle_unit="degrees")
    assert_same(rotated_box_loss, leaves(values), distribute(values, mesh, [Shard(0)]))
    values = problem("dense", CPU, normalizer=7)
    parts = distribute(values, mesh, [Shard(0)])
    for function in (box_loss, giou_loss, BoxLoss("siou")):
        assert_same(function, leaves(values), leaves(parts))


def check_replicas(mesh: Any) -> None:
    for pairing, reduction in zip(ACROSS_IMAGES, ("mean", "none", "sum", "mean"), strict=True):
        values = problem(pairing, CPU, weight=torch.float32, reduction=reduction)
        assert_same(box_losses, leaves(values), distribute(values, mesh, [Replicate()]))


def check_two_dimensions(mesh: Any) -> None:
    values = problem("lengths", CPU, weight=torch.float32, reduction="sum")
    for placements in ([Shard(0), Replicate()], [Replicate(), Shard(0)], [Shard(0), Shard(0)]):
        parts = distribute(values, mesh, placements)
        assert_same(box_loss, leaves(values), parts)
        for of_boxes, of_loss in zip(placements, box_loss(**parts).placements, strict=True):
            assert of_loss == (Partial() if of_boxes == Shard(0) else Replicate())


def check_compiled(mesh: Any) -> None:
    parts = distribute(problem("lengths", CPU, reduction="sum"), mesh, [Shard(0)])
    gradients = []
    for function in (box_loss, torch.compile(box_loss, fullgraph=True, backend="aot_eager")):
        given = leaves(parts)
        function(**given).full_tensor().backward()
        gradients.append(given["pred"].grad.full_tensor())
    assert torch.equal(*gradients)


def check_errors(mesh: Any) -> None:
    def raises(error: type[Exception], text: str, values: Problem) -> None:
        for detached in (False, True):
            given = {
                name: each.detach() if detached and isinstance(each, Tensor) else each
                for name, each in values.items()
            }
            with pytest.raises(error, match=f"^box_loss: {text}"):
                box_loss(**given)

    def parts(pairing: str, placement: Any = None, **options: Any) -> Problem:
        values = problem(pairing, CPU, weight=torch.float32, **options)
        return distribute(values, mesh, [placement or Shard(0)])

    raises(ValueError, "reduction 'mean' of sharded boxes needs a normalizer", parts("dense"))
    for pairing, name in (("offsets", "offsets"), ("indices", "pred_index")):
        raises(ValueError, f"{name} cannot be given with sharded boxes", parts(pairing))
    raises(
        ValueError,
        r"pred is placed \(Shard\(dim=1\),\); allowed are Shard\(0\) and Replicate\(\)",
        parts("dense", Shard(1), reduction="none"),
    )
    good = parts("mask", reduction="sum")
    for name in ("target", "weight", "mask"):
        replica = {name: good[name].redistribute(mesh, [Replicate()])}
        text = rf"{name} is placed \(Replicate\(\),\) on .*; it must be \(Shard\(dim=0\),\) on "
        raises(ValueError, text, {**good, **replica})
    plain = {name: good[name].full_tensor() for name in ("target", "weight", "mask")}
    for name, each in {**plain, "normalizer": torch.tensor(7.0)}.items():
        text = f"{name} is no DTensor, but others are; all must be"
        raises(TypeError, text, {**good, name: each})


def check_dtensors() -> None:
    import boxloss.torch.dtensor  # noqa: F401

    line = init_device_mesh("cpu", (2,))
    check_shards(line)
    check_replicas(line)
    check_two_dimensions(init_device_mesh("cpu", (2, 1)))
    check_compiled(line)
    check_errors(line)
