# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What one build makes of the problems: each result under a name of its own, or the refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import boxloss.torch
import torch
from torch import Tensor

from .problems import LAYOUTS, RUNS, Problem, Record, Records

RUNS_OF_CROWDED = 8


def records_of(problems: Iterable[Problem], implementation: str, device: torch.device) -> Records:
    with boxloss.torch.use_implementation(implementation):
        return {problem.name: record_of(problem, device) for problem in problems}


def record_of(problem: Problem, device: torch.device) -> Record:
    try:
        results = results_of(problem, device)
        if problem.is_crowded and device.type != "cpu":
            runs = [results, *(results_of(problem, device) for _ in range(RUNS_OF_CROWDED - 1))]
            results = {name + RUNS: torch.stack([run[name] for run in runs]) for name in results}
    except Exception as error:
        # torch numbers the nested tensors that a process makes: [3, j37, 4].
        return re.sub(r"\bj\d+\b", "j", f"{type(error).__name__}: {error}")
    return {name: result.detach().cpu() for name, result in results.items()}


def results_of(problem: Problem, device: torch.device) -> dict[str, Tensor]:
    arguments = {name: placed(problem, name, device) for name in problem.arguments}
    leaves = {name: arguments[name].requires_grad_() for name in problem.leaves}
    for name in problem.nested:
        arguments[name] = torch.nested.nested_tensor_from_jagged(
            arguments[name], problem.jagged.to(device)
        )
    results = flat("result", getattr(boxloss.torch, problem.function)(**arguments))
    generator = torch.Generator().manual_seed(0)
    sources = results
    for prefix in ("d", "dd") if problem.is_twice else ("d",):
        differentiable = [each for each in sources.values() if each.requires_grad]
        if not (differentiable and leaves):
            break
        incoming = [of_incoming(problem, each, generator) for each in differentiable]
        gradients = torch.autograd.grad(
            differentiable,
            list(leaves.values()),
            incoming,
            create_graph=problem.is_twice,
            allow_unused=True,
        )
        sources = {
            f"{prefix} {name}": gradient
            for name, gradient in zip(leaves, gradients, strict=True)
            if gradient is not None
        }
        results = results | sources
    return results


def placed(problem: Problem, name: str, device: torch.device) -> Any:
    """The argument on the device; no process may change what others of its problems read."""
    given = problem.arguments[name]
    if not isinstance(given, Tensor):
        return given
    given = given.to(device, copy=True)
    layout = problem.layouts.get(name)
    return LAYOUTS[layout](given) if layout else given


def flat(name: str, result: Any) -> dict[str, Tensor]:
    """All tensors in it, whatever it is made of."""
    if isinstance(result, Tensor):
        if result.is_nested:
            return {f"{name} values": result.values(), f"{name} offsets": result.offsets()}
        return {name: result}
    members = result._asdict() if hasattr(result, "_asdict") else dict(enumerate(result))
    parts = [flat(f"{name}.{key}", each) for key, each in members.items()]
    return {key: each for part in parts for key, each in part.items()}


def of_incoming(problem: Problem, result: Tensor, generator: torch.Generator) -> Tensor:
    if problem.incoming == "ones":
        return torch.ones((), dtype=result.dtype, device=result.device).expand_as(result)
    values = torch.rand(result.shape, generator=generator, dtype=torch.float64) * 2 - 0.5
    return values.to(result.device, result.dtype)
