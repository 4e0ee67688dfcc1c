# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Times a training step's parts on several GPUs, or processes, that share one normalizer.

Each rank has boxes of its own. A time is the slowest rank's, from a barrier to the end of the work.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from boxloss.torch import giou_loss, global_normalizer
from torch import Tensor, distributed
from torch.multiprocessing import get_context
from torch.multiprocessing.spawn import spawn

from ...common.exact import loss_allowed
from ...runner.agreement import UNIT, DisagreementError
from ...runner.clocks import WARM_UPS, Call, Calls, Samples, wait
from ...runner.results import Row
from ...runner.run import Run, gradient
from . import Sizes, bytes_of_box, dense_pairs, exact_sum

PAIR = "f32/f32"
COUNT = "all-reduce of the count"
LOSS, NORMALIZED, STEP = "loss", "loss, one normalizer", "loss + backward"


def gradients_of(parameters: int) -> str:
    return f"all-reduce of {parameters:,} parameters"


def step_with(parameters: int) -> str:
    """A training step's share of what is timed here: the network's own work is not."""
    return f"{STEP} + {gradients_of(parameters)}"


def measure_ranks(run: Run, sizes: Sizes) -> None:
    """Rows as soon as they are there, from processes of their own. DisagreementError, unless the
    loss of all ranks is right."""
    ranks, gpus = run.options.gpus, torch.cuda.device_count()
    on_gpu = run.device.type == "cuda"
    if on_gpu and gpus < ranks:
        run.skip("several GPUs", f"--gpus {ranks} given, but there is {gpus}")
        return
    if on_gpu:
        torch.cuda.empty_cache()  # the ranks' own processes need it
    last = step_with(sizes.parameters[-1])
    done = {
        boxes
        for boxes in sizes.of_rank
        if run.has(sweep="ranks", ranks=ranks, boxes=boxes, variant=last)
    }
    left = tuple(boxes for boxes in sizes.of_rank if boxes not in done)
    if not left:
        return
    run.say(f"\n[bold]{ranks} ranks[/], {', '.join(f'{each:,}' for each in left)} boxes each")
    queue = get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (ranks, run.device.type, folder, sizes, left, queue)
        processes = spawn(_work, arguments, nprocs=ranks, join=False, daemon=True)
        running = True
        while running:
            running = not processes.join(timeout=0.1)
            while not queue.empty():
                found = queue.get()
                if isinstance(found, DisagreementError):
                    raise found
                columns, samples = found
                run.record_samples({"ranks": ranks} | columns, {"wall": samples})
                run.show({"ranks": ranks} | columns)


def _work(
    rank: int,
    ranks: int,
    device_type: str,
    folder: str,
    sizes: Sizes,
    left: tuple[int, ...],
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
        for found in _measured(device, sizes, left):
            if rank == 0:
                queue.put(found)
    except DisagreementError as error:  # the same one in all ranks
        if rank == 0:
            queue.put(error)
    finally:
        distributed.destroy_process_group()


def _measured(
    device: torch.device, sizes: Sizes, left: tuple[int, ...]
) -> Iterator[tuple[Row, Samples]]:
    rounds = sizes.rank_rounds
    one = torch.ones((), device=device)
    flat = {n: torch.ones(n, device=device) for n in sizes.parameters}
    add_up: Calls = {gradients_of(n): partial(_average, each) for n, each in flat.items()}
    moved = [one.nbytes, *(each.nbytes for each in flat.values())]
    timed = _samples({COUNT: partial(_average, one), **add_up}, device, rounds)
    for (name, samples), of in zip(timed.items(), moved, strict=True):
        yield {"sweep": "all-reduce", "bytes": of}, {name: samples}
    for boxes in left:
        pred, target = dense_pairs(PAIR, boxes, device, seed=distributed.get_rank())
        check(pred, target)
        normalized = partial(normalized_loss, pred, target, torch.tensor(boxes, device=device))
        columns = {"sweep": "ranks", "boxes": boxes}
        forward, both = (boxes * of_box for of_box in bytes_of_box(PAIR).values())
        with torch.no_grad():
            calls: Calls = {LOSS: partial(giou_loss, pred, target), NORMALIZED: normalized}
            yield columns | {"bytes": forward}, _samples(calls, device, rounds)
        step = partial(gradient, pred, normalized)
        calls = {STEP: step}
        calls |= {step_with(n): partial(_both, step, add_up[gradients_of(n)]) for n in flat}
        yield columns | {"bytes": both}, _samples(calls, device, rounds)


def normalized_loss(pred: Tensor, target: Tensor, count: Tensor) -> Tensor:
    return giou_loss(pred, target, normalizer=global_normalizer(count))


def _average(numbers: Tensor) -> None:
    """As DistributedDataParallel does. gloo has sums only, and for a time any numbers will do."""
    average = distributed.ReduceOp.AVG if numbers.is_cuda else distributed.ReduceOp.SUM
    distributed.all_reduce(numbers, average)


def _both(one: Call, other: Call) -> None:
    one()
    other()


def check(pred: Tensor, target: Tensor) -> None:
    """DisagreementError, unless the ranks' average loss is the mean of all their boxes, of which
    each rank has another number."""
    ranks, boxes = distributed.get_world_size(), len(pred)
    mine = boxes - distributed.get_rank() * (boxes // (2 * ranks))
    pred, target = pred.detach()[:mine], target[:mine]
    loss = normalized_loss(pred, target, torch.tensor(mine, device=pred.device))
    sums = torch.tensor(
        [loss.item(), exact_sum(pred, target), mine], dtype=torch.float64, device=pred.device
    )
    distributed.all_reduce(sums)
    losses, exact, all_boxes = sums.tolist()
    # A loss is at most 2, and the normalizer has as many roundings as its docstring says.
    allowed = loss_allowed(boxes) + 2 * (ranks + 2) * UNIT
    if not abs(losses / ranks - exact / all_boxes) <= allowed:
        raise DisagreementError(
            f"{ranks} ranks: loss {losses / ranks:.9g}, but the formula in fp64 gives "
            f"{exact / all_boxes:.9g}; allowed difference {allowed:.2g}; {boxes:,} boxes each"
        )


def _samples(calls: Calls, device: torch.device, rounds: int) -> Samples:
    """Of the slowest rank. Calls take turns, and all ranks make the same number of them."""
    for call in calls.values():
        for _ in range(WARM_UPS):
            call()
    seconds = torch.empty(rounds, len(calls), dtype=torch.float64)
    order = random.Random(0)  # of all ranks the same
    places = list(enumerate(calls.values()))
    for turn in range(rounds):
        for place, call in order.sample(places, len(places)):
            distributed.barrier()
            wait(device)
            start = time.perf_counter()
            call()
            wait(device)
            seconds[turn, place] = time.perf_counter() - start
    slowest = seconds.to(device)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    return dict(zip(calls, slowest.T.tolist(), strict=True))
