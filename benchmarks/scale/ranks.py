# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times a training step's parts on several GPUs, or processes, that share one normalizer.

Each rank has boxes of its own. A time is the slowest rank's, from a barrier to the end of the work.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from boxloss.torch import giou_loss, global_normalizer
from torch import Tensor, distributed
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import spawn

from ..common.agreement import DisagreementError
from ..common.spread import tenths
from ..common.timing import WARM_UPS, Call, Calls, gradient, wait
from .agreement import UNIT, exact_sum, loss_allowed
from .cases import Row, bytes_of_pair, dense_pairs
from .settings import Settings

PAIR = "f32/f32"
CALLS = 10  # one behind the other, for the time in a stream of steps

COUNT = "all-reduce of the count"
LOSS, NORMALIZED, STEP = "loss", "loss, one normalizer", "loss + backward"


def gradient_of(parameters: int) -> str:
    return f"all-reduce of {parameters:,} parameters"


def millions(number: int) -> str:
    """As words say it."""
    return f"{number / 10**6:g} million" if number >= 10**6 else f"{number:,}"


def step_with(parameters: int) -> str:
    """A training step's share of what is timed here: the network's own work is not."""
    return f"{STEP} + {gradient_of(parameters)}"


def measure_ranks(
    ranks: int, device: str, settings: Settings, sizes: Sequence[int], collectives: bool
) -> Iterator[Row]:
    """Each row as soon as it is there, from processes of its own. DisagreementError, unless the
    loss of all ranks is right."""
    queue = get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = spawn(
            _work,
            (ranks, device, folder, settings, tuple(sizes), collectives, queue),
            nprocs=ranks,
            join=False,
            daemon=True,
        )
        running = True
        while running:
            running = not processes.join(timeout=0.1)
            while not queue.empty():
                found = queue.get()
                if isinstance(found, DisagreementError):
                    raise found
                yield found


def _work(
    rank: int,
    ranks: int,
    device_type: str,
    folder: str,
    settings: Settings,
    sizes: Sequence[int],
    collectives: bool,
    queue: Any,
) -> None:
    device = torch.device(device_type, rank) if device_type == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, torch.get_num_threads() // ranks))
    distributed.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        init_method=f"file://{Path(folder) / 'store'}",
        rank=rank,
        world_size=ranks,
        device_id=device if device.type == "cuda" else None,
    )
    try:
        for row in _rows(device, settings, sizes, collectives):
            if rank == 0:
                queue.put(row)
    except DisagreementError as error:  # the same one in all ranks
        if rank == 0:
            queue.put(error)
    finally:
        distributed.destroy_process_group()


def _rows(
    device: torch.device, settings: Settings, sizes: Sequence[int], collectives: bool
) -> Iterator[Row]:
    one = torch.ones((), device=device)
    flat = {n: torch.ones(n, device=device) for n in settings.parameters}
    add_up: Calls = {gradient_of(n): partial(_average, each) for n, each in flat.items()}
    if collectives:
        moved = {COUNT: one.nbytes} | {gradient_of(n): each.nbytes for n, each in flat.items()}
        calls: Calls = {COUNT: partial(_average, one), **add_up}
        for name, times in _timed(calls, device, settings.rank_rounds).items():
            yield {"part": "collective", "step": name, "bytes": moved[name], "microseconds": times}
    forward, backward = bytes_of_pair(PAIR)
    for boxes in sizes:
        pred, target = dense_pairs(PAIR, boxes, device, seed=distributed.get_rank())
        difference = check(pred, target)
        normalized = partial(normalized_loss, pred, target, torch.tensor(boxes, device=device))
        with torch.no_grad():
            calls = {LOSS: partial(giou_loss, pred, target), NORMALIZED: normalized}
            times = _timed(calls, device, settings.rank_rounds)
        step = partial(gradient, normalized, pred)
        calls = {STEP: step}
        calls |= {step_with(n): partial(_both, step, add_up[gradient_of(n)]) for n in flat}
        times |= _timed(calls, device, settings.rank_rounds)
        for name, each in times.items():
            yield {
                "part": "step",
                "step": name,
                "boxes": boxes,
                "bytes": boxes * (forward if name in (LOSS, NORMALIZED) else forward + backward),
                "microseconds": each,
                "difference": difference,
            }


def normalized_loss(pred: Tensor, target: Tensor, count: Tensor) -> Tensor:
    return giou_loss(pred, target, normalizer=global_normalizer(count))


def _average(numbers: Tensor) -> None:
    """As DistributedDataParallel does. gloo has sums only, and for a time any numbers will do."""
    average = distributed.ReduceOp.AVG if numbers.is_cuda else distributed.ReduceOp.SUM
    distributed.all_reduce(numbers, average)


def _both(one: Call, other: Call) -> None:
    one()
    other()


def check(pred: Tensor, target: Tensor) -> float:
    """How far the ranks' average loss is from the exact mean of all their boxes, of which each rank
    has another number; DisagreementError if too far."""
    ranks, boxes = distributed.get_world_size(), len(pred)
    mine = boxes - distributed.get_rank() * (boxes // (2 * ranks))
    pred, target = pred.detach()[:mine], target[:mine]
    loss = normalized_loss(pred, target, torch.tensor(mine, device=pred.device))
    sums = torch.tensor(
        [loss.item(), exact_sum(pred, target), mine], dtype=torch.float64, device=pred.device
    )
    distributed.all_reduce(sums)
    losses, exact, all_boxes = sums.tolist()
    difference: float = abs(losses / ranks - exact / all_boxes)
    # A loss is at most 2, and the normalizer has as many roundings as its docstring says.
    allowed = loss_allowed(boxes) + 2 * (ranks + 2) * UNIT
    if not difference <= allowed:
        raise DisagreementError(
            f"{ranks} ranks: loss {losses / ranks:.9g}, but the formula in fp64 gives "
            f"{exact / all_boxes:.9g}; allowed difference {allowed:.2g}; {boxes:,} boxes each"
        )
    return difference


def _timed(calls: Calls, device: torch.device, rounds: int) -> dict[str, dict[str, Any]]:
    """By name and clock. Calls take turns, and all ranks make the same number of them."""
    for call in calls.values():
        for _ in range(WARM_UPS):
            call()
    return {
        name: {"wall": each, "stream": stream}
        for (name, each), stream in zip(
            _rounds(calls, device, rounds, 1).items(),
            _rounds(calls, device, max(3, rounds // 4), CALLS).values(),
            strict=True,
        )
    }


def _rounds(
    calls: Calls, device: torch.device, rounds: int, count: int
) -> dict[str, dict[str, float]]:
    """Of `count` calls one behind the other, the time of one."""
    seconds = torch.empty(rounds, len(calls), dtype=torch.float64)
    order = random.Random(0)  # of all ranks the same
    places = list(enumerate(calls.values()))
    for turn in range(rounds):
        for place, call in order.sample(places, len(places)):
            distributed.barrier()
            wait(device)
            start = time.perf_counter()
            for _ in range(count):
                call()
            wait(device)
            seconds[turn, place] = (time.perf_counter() - start) / count
    slowest = seconds.to(device)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    return {call: tenths(each, 1e6) for call, each in zip(calls, slowest.T.tolist(), strict=True)}
