# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What one build says of itself, in a process of its own: the boxloss on its path may be any.

What it asks for, of boxloss.torch, are names that every build has had for long; what the problems
ask for beyond that is a refusal where it is missing.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import boxloss.torch
import torch
from torch import Tensor

from ...common.cases import SEED_PAIRS, Case, boxloss_giou, dense_case, seed_case
from ...runner.clocks import Calls, Effort, gpu_samples, host_samples, wall_samples
from ...runner.run import BOTH, FORWARD, gradient
from .. import matched_pairs, matcher
from .problems import ROTATED, Problem, Record, draw_problems

# On every machine alike, and more than one, so that work is shared: aten's sums depend on it.
THREADS = 2
SMALL, LARGE = 2**12, {"cuda": 2**25, "cpu": 2**20}
EFFORT = Effort(0.15, 5)


def about(device: torch.device) -> dict[str, Any]:
    def words_of(function: str) -> tuple[str, ...]:
        known = getattr(boxloss.torch, function, None)
        return get_args(get_type_hints(known)["loss"]) if known else ()

    rotated = [ROTATED + word for word in words_of("rotated_box_loss")]
    return {
        "site": str(Path(boxloss.torch.__file__).parents[2]),
        "losses": [*words_of("box_loss"), *rotated],
        "implementations": boxloss.torch.implementations(),
        "capability": boxloss.torch.cpu_capability(),
    }


# --- Results: each under a name of its own, or what a problem's error says ---


def results(
    device: torch.device, losses: list[str], implementations: list[str], every: int
) -> dict[str, dict[str, Record]]:
    torch.set_num_threads(THREADS)
    problems = list(draw_problems(losses, device.type))[::every]
    found = {}
    for name in implementations:
        with boxloss.torch.use_implementation(name):
            found[name] = {problem.name: record_of(problem, device) for problem in problems}
    return found


def record_of(problem: Problem, device: torch.device) -> Record:
    try:
        return {name: each.detach().cpu() for name, each in results_of(problem, device).items()}
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def results_of(problem: Problem, device: torch.device) -> dict[str, Tensor]:
    arguments = {  # copies: no implementation may change what others read
        name: given.to(device, copy=True) if isinstance(given, Tensor) else given
        for name, given in problem.arguments.items()
    }
    leaves = {name: arguments[name].requires_grad_() for name in problem.leaves}
    found = sources = flat("result", getattr(boxloss.torch, problem.function)(**arguments))
    for prefix in ("d", "dd") if problem.is_twice else ("d",):
        wanted = [each for each in sources.values() if each.requires_grad]
        if not (wanted and leaves):
            break
        incoming = [of_incoming(each, len(leaves) == 1) for each in wanted]
        options = {"create_graph": problem.is_twice, "allow_unused": True}
        gradients = torch.autograd.grad(wanted, [*leaves.values()], incoming, **options)
        named = zip(leaves, gradients, strict=True)
        sources = {f"{prefix} {name}": each for name, each in named if each is not None}
        found = found | sources
    return found


def flat(name: str, result: Any) -> dict[str, Tensor]:
    """All tensors in it, whatever it is made of."""
    if isinstance(result, Tensor):
        return {name: result}
    members = result._asdict() if hasattr(result, "_asdict") else dict(enumerate(result))
    parts = [flat(f"{name}.{key}", each) for key, each in members.items()]
    return {key: each for part in parts for key, each in part.items()}


def of_incoming(result: Tensor, is_ones: bool) -> Tensor:
    ones = torch.ones((), dtype=result.dtype, device=result.device).expand_as(result)
    drawn = torch.rand(result.shape, generator=torch.Generator().manual_seed(0)) * 2 - 0.5
    return ones if is_ones else drawn.to(ones)


# --- Times ---


def times(device: torch.device, rows: list[str] | None) -> dict[str, float]:
    """Seconds by row; of those rows alone whose case is among the given ones."""
    found: dict[str, float] = {}
    for case, calls in cases(device):
        if rows is None or any(row.startswith(f"{case}: ") for row in rows):
            found |= {f"{case}: {name}": each for name, each in clocks(calls(), device).items()}
            if device.type == "cuda":
                torch.cuda.empty_cache()
    return found


def clocks(calls: Calls, device: torch.device) -> dict[str, float]:
    if device.type == "cpu":
        samples = wall_samples(calls, device, EFFORT)
    else:
        samples, refused = gpu_samples(calls, EFFORT)
        if refused:
            raise RuntimeError(f"cannot be captured: {refused}")
        host = host_samples(calls, device, EFFORT)
        samples |= {f"{name}, host": each for name, each in host.items()}
    return {name: statistics.median(each) for name, each in samples.items()}


def cases(device: torch.device) -> Iterator[tuple[str, Callable[[], Calls]]]:
    """By name, and what makes the calls: not all of them would fit into memory at once."""

    def of_loss(make: Callable[[], Case], layout: str) -> Calls:
        case = make()
        return passes(case.on(boxloss_giou(layout), layout), case.pred)

    for pair in SEED_PAIRS:
        for size, boxes in ("small", SMALL), ("large", LARGE[device.type]):
            make = partial(dense_case, pair, boxes, device)
            yield f"dense, {size}, {boxes:,} boxes, {pair}", partial(of_loss, make, "dense")
        for layout in ("padded", "lengths", "offsets"):
            make = partial(seed_case, pair, device)
            yield f"seed batch, {layout}, {pair}", partial(of_loss, make, layout)
    yield "DETR's layers, box_losses by index", partial(layers_calls, device)
    yield "DETR's layers, matching_cost", partial(cost_calls, device)


def layers_calls(device: torch.device) -> Calls:
    case = matched_pairs.detr_case("detr", 6, 8, 300, 7, device)
    loss = matched_pairs.load_boxloss(case)
    return passes(lambda: loss(case.pred).total, case.pred)


def cost_calls(device: torch.device) -> Calls:
    case = matcher.make_case("rtdetr", matcher.Shape(6, 8, 300, 80, matcher.FOCAL), device)
    return {FORWARD: matcher.load_boxloss(case)}


def passes(loss: Callable[[], Tensor], leaf: Tensor) -> Calls:
    return {FORWARD: torch.no_grad()(loss), BOTH: partial(gradient, leaf, loss)}


def main() -> None:
    what, given, said = sys.argv[1:]
    options = torch.load(given)
    answer = {"about": about, "results": results, "times": times}[what]
    torch.save(answer(torch.device(options.pop("device")), **options), said)


if __name__ == "__main__":
    main()
