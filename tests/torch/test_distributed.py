# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""One normalizer for the losses of several ranks, and losses of DTensors, on two ranks."""

from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss.torch import giou_loss, global_normalizer
from called import Called
from comparison import BOX_GRADIENT, UNIT_ROUNDOFF
from dtensors import check_dtensors
from problems import boxes
from torch import distributed, multiprocessing

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


def rank_boxes(seed: int) -> list[torch.Tensor]:
    return [boxes((count,), torch.device("cpu"), seed=seed + count) for count in COUNTS]


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
