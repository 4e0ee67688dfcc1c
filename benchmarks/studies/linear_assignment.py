# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does linear assignment take, of many small matrices and of few large ones?

linear_sum_assignment is timed beside torch-linear-assignment, which on a GPU solves by Triton
kernels, SciPy, lap and fastlap. Those of the CPU get one copy where the device is a GPU. Costs are
random, of float32 unless the case says otherwise; all solve the same matrices. A limit is
cost_limit: lap has it, too, and SciPy solves a larger matrix. On a CPU "one thread" is boxloss and
fastlap on one, as SciPy and lap always are. The sums of all must be SciPy's, and boxloss' indices
must be, too. What takes longer than a second is timed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from boxloss.torch import linear_sum_assignment
from torch import Tensor

from ..common.losses import installed, scipy_assignment
from ..runner.agreement import DisagreementError
from ..runner.clocks import wait
from ..runner.run import Row, Run, UnavailableError, Variant

# Matrices, rows and columns.
SIZES = {
    "65,536 of 4 x 4": (65536, 4, 4),
    "4,096 of 8 x 8": (4096, 8, 8),
    "4,096 of 16 x 16": (4096, 16, 16),
    "1,024 of 32 x 32": (1024, 32, 32),
    "112 of 300 x 20": (112, 300, 20),
    "112 of 300 x 150": (112, 300, 150),
    "64 of 256 x 256": (64, 256, 256),
    "256 of 450 x 450": (256, 450, 450),
    "8 of 1000 x 1000": (8, 1000, 1000),
    "1 of 2000 x 2000": (1, 2000, 2000),
    "1 of 5000 x 5000": (1, 5000, 5000),
}
KINDS = ("1,024 of 32 x 32", "64 of 256 x 256", "1 of 2000 x 2000")
DTYPES = {"float64": torch.float64, "float16": torch.float16}
QUICK = {name: (min(b, 5), min(n, 20), min(m, 20)) for name, (b, n, m) in SIZES.items()}
CASES = (*SIZES, *(f"{name}, {kind}" for name in KINDS for kind in (*DTYPES, "limit")))
SLOW = 1.0  # seconds
TOLERANCE = 1e-5  # of sums: torch-linear-assignment's duals are of float32


@dataclass(frozen=True)
class Case:
    name: str
    cost: Tensor  # (B, N, M)
    limit: float | None = None

    @property
    def columns(self) -> Row:
        return {"case": self.name, "matrices": len(self.cost)}


def make_case(name: str, size: tuple[int, int, int], device: torch.device) -> Case:
    """Made on the CPU: the same numbers on every device."""
    generator = torch.Generator().manual_seed(0)
    _, _, kind = name.partition(", ")
    cost = torch.rand(size, generator=generator, dtype=torch.float64)
    limit = 2 / size[2] if kind == "limit" else None  # leaves some without a pair
    return Case(name, cost.to(DTYPES.get(kind, torch.float32)).to(device), limit)


# --- Variants: each gives the column of each row, -1 for none ---

Solve = Callable[[Case], Any]


def boxloss(case: Case) -> Tensor:
    return linear_sum_assignment(case.cost, cost_limit=case.limit).column_of_row


def boxloss_of_one_thread(case: Case) -> Tensor:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return boxloss(case)
    finally:
        torch.set_num_threads(threads)


def refuse_limit(case: Case) -> None:
    if case.limit is not None:
        raise UnavailableError("it has no limit")


def load_torch_linear_assignment(case: Case) -> Solve:
    refuse_limit(case)
    solve = installed("torch_linear_assignment").batch_linear_assignment
    if not case.cost.is_cuda:
        raise UnavailableError("on the CPU it is SciPy")
    return lambda case: solve(case.cost)


def load_scipy(_: Case) -> Solve:
    assign = scipy_assignment()

    def solve(case: Case) -> list[np.ndarray[Any, Any]]:
        costs = case.cost.cpu().numpy()
        if case.limit is None:
            return [_by_row(len(each), *assign(each)) for each in costs]
        columns = costs.shape[2]
        of_all = (_by_row(sum(each.shape), *assign(_extended(each, case.limit))) for each in costs)
        return [np.where(each < columns, each, -1)[: costs.shape[1]] for each in of_all]

    return solve


def _extended(cost: np.ndarray[Any, Any], limit: float) -> np.ndarray[Any, Any]:
    """The matrix in which each row and column may also be left alone, at half the limit."""
    rows, columns = cost.shape
    alone = np.full((rows + columns, rows + columns), limit / 2)
    alone[:rows, :columns] = cost
    alone[rows:, columns:] = 0
    return alone


def _by_row(rows: int, row: Any, column: Any) -> np.ndarray[Any, Any]:
    by_row = np.full(rows, -1)
    by_row[row] = column
    return by_row


def load_lap(_: Case) -> Solve:
    lapjv = installed("lap").lapjv
    return lambda case: [
        lapjv(
            each,
            extend_cost=case.limit is not None or each.shape[0] != each.shape[1],
            cost_limit=np.inf if case.limit is None else case.limit,
            return_cost=False,
        )[0]
        for each in case.cost.cpu().numpy()
    ]


def load_fastlap(case: Case, threads: int | None = None) -> Solve:
    refuse_limit(case)
    solve = installed("fastlap").solve_lap_batch

    def by_rows(case: Case) -> list[list[int]]:
        of_all = solve(case.cost.cpu().double().numpy(), n_threads=threads)
        return [[-1 if column is None else column for column in rows] for _, rows, _ in of_all]

    return by_rows


VARIANTS: dict[str, Variant[Case, Solve]] = {
    "boxloss": Variant(lambda _: boxloss),
    "torch-linear-assignment": Variant(load_torch_linear_assignment),
    "SciPy": Variant(load_scipy),
    "lap": Variant(load_lap),
    "fastlap": Variant(load_fastlap),
}
ON_CPU = VARIANTS | {
    "boxloss, one thread": Variant(lambda _: boxloss_of_one_thread),
    "fastlap, one thread": Variant(partial(load_fastlap, threads=1)),
}


def check(case: Case, name: str, found: Any, wanted: Any) -> None:
    """DisagreementError, unless sums, and boxloss' indices, are SciPy's."""
    found = found.cpu().numpy() if isinstance(found, Tensor) else np.asarray(found)
    wanted = np.asarray(wanted)
    if name.startswith("boxloss") and not np.array_equal(found, wanted):
        raise DisagreementError(f"{case.name}: another assignment than SciPy's")
    cost = case.cost.cpu().double().numpy()

    def total(by_row: Any) -> float:
        values = np.take_along_axis(cost, np.maximum(by_row, 0)[..., None], -1)[..., 0]
        return float(np.where(by_row >= 0, values, case.limit or 0).sum())

    if not np.isclose(total(found), total(wanted), rtol=TOLERANCE):
        raise DisagreementError(f"{case.name}: {name} has another sum than SciPy")


# --- Measuring ---


def measure(run: Run) -> None:
    sizes = QUICK if run.quick else SIZES
    names = {name: sizes[name.partition(", ")[0]] for name in CASES}
    cases = {name: partial(make_case, name, size, run.device) for name, size in names.items()}
    for case in run.each(cases):
        solvers = run.load(VARIANTS if run.on_gpu else ON_CPU, case)
        calls = {name: partial(solve, case) for name, solve in solvers.items()}
        wanted = load_scipy(case)(case)
        for name, call in dict(calls).items():
            check(case, name, wanted if name == "SciPy" else call(), wanted)  # which may compile
            begun = perf_counter()
            call()
            wait(run.device)
            seconds = perf_counter() - begun
            if seconds > SLOW:
                run.record(case.columns | {"variant": name}, "stream", "µs", 1e6 * seconds)
                del calls[name]
        run.time(case.columns, calls, ("stream", "gpu"), {"boxloss": partial(boxloss, case)})
