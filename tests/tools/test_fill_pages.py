# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Tables are filled from results, and a stale figure is told."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pandas")

from benchmarks.runner.results import Results, summary

ROOT = Path(__file__).parents[2]
TIMES = {
    ("detr", "forward"): {"boxloss": 53.04, "eager": 3813.0},
    ("detr", "backward"): {"boxloss": 394.0, "eager": 11_560.0},
    ("dense", "forward"): {"boxloss": 61.75},
}


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """tools/fill_pages, with results of its own: m/two.json."""
    loader = SourceFileLoader("fill_pages", str(ROOT / "tools/fill_pages"))
    spec = spec_from_loader("fill_pages", loader)
    assert spec is not None
    module: Any = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their names
    loader.exec_module(module)
    module.RESULTS = tmp_path_factory.mktemp("results")
    (module.RESULTS / "m").mkdir()
    machine = {"boxloss": "0.2.0", "torch": "2.15.0+cpu", "cpu": "AMD EPYC, 2 cores, AVX-512"}
    results = Results("two", [{"commit": "0123456789ab", "machine": machine}])
    for (case, measured), times in TIMES.items():
        for name, time in times.items():
            row = {"case": case, "pass": measured, "variant": name, "quantity": "gpu", "unit": "µs"}
            results.add(row | summary([0.9 * time, time, 1.2 * time]) | {"run": 0})
    results.write(module.RESULTS / "m" / "two.json")
    return module


def filled(tool: Any, text: str) -> tuple[str, list[str]]:
    text, problems = tool.fill(ROOT / "docs/page.md", text)
    return text, [problem.partition(": ")[2] for problem in problems]


def table(tool: Any, *lines: str) -> list[str]:
    text, problems = filled(
        tool, "\n".join(("<!-- table m/two.json", *lines, "-->", "stale", "<!-- end -->"))
    )
    assert not problems, problems
    again, _ = filled(tool, text)
    assert again == text
    return [line for line in text.splitlines() if line.startswith("|")]


def test_a_table_is_a_pivot_in_the_order_of_its_recipe(tool: Any) -> None:
    recipe = ("rows: case | pass", "columns: variant", "case: dense | detr", "labels: detr = DETR")
    assert table(tool, *recipe) == [
        "| case | pass | boxloss | eager |",
        "| --- | --- | --: | --: |",
        "| dense | forward | 61.8 | - |",
        "| DETR | forward | 53.0 | 3,813 |",
        "| DETR | backward | 394 | 11,560 |",
    ]


def test_a_table_of_ratios_of_spread_and_of_another_unit(tool: Any) -> None:
    recipe = ("rows: pass", "columns: variant", "case: detr", "pass: forward")
    of_eager = ("variant: eager", "relative to: variant = boxloss")
    assert table(tool, *recipe, *of_eager)[-1] == "| forward | 71.9 |"
    assert table(tool, *recipe, "show: spread", "unit: ms")[-1] == (
        "| forward | 0.053 (0.050 to 0.058) | 3.81 (3.62 to 4.19) |"
    )


@pytest.mark.parametrize(
    ("figure", "problem"),
    [
        ("53.0 µs<!--= detr; forward; boxloss -->", None),
        ("53 µs<!-- m/two.json; case: detr; pass: forward; variant: boxloss -->", None),
        ("3.8 ms<!--= detr; forward; eager -->", None),
        ("72<!--= detr; forward; eager; over boxloss --> times", None),
        ("1.4 %<!--= detr; forward; boxloss; over eager -->", None),
        ("68.3<!--= detr; forward; eager; low; over boxloss --> times", None),
        ("72 ms<!--= detr; forward; eager; over boxloss -->", "'ms' is no unit of what is in ''"),
        ("53.0 KiB<!--= detr; forward; boxloss -->", "'KiB' is no unit of what is in 'µs'"),
        ("11,560 µs<!--= max -->", None),
        ("from AP50 on, 53.0 µs<!--= min -->", None),
        ("54.0 µs<!--= detr; forward; boxloss -->", "54.0 is 53.0 in m/two.json"),
        ("3.8 µs<!--= detr; forward; eager -->", "3.8 is 3,813.0 in m/two.json"),
        ("53.0 µs<!--= detr; forward; eager; boxloss -->", "two values of variant"),
        ("53.0 µs<!--= detr; boxloss -->", "2 rows, where one"),
        ("53.0 µs<!--= detr; sideways -->", "'sideways' is in 0 columns"),
        ("53.0 µs<!-- m/three.json; detr -->", "there is no benchmarks/results/m/three.json"),
        ("some words<!--= detr; forward; boxloss -->", "no figure before this comment"),
    ],
)
def test_a_stale_figure_is_told(tool: Any, figure: str, problem: str | None) -> None:
    _, problems = filled(tool, f"<!-- results m/two.json -->\nIt takes {figure}.")
    assert (
        [problem] == [each[: len(problem or "")] for each in problems] if problem else not problems
    )


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("rows: case", "columns: variant"), "detr, boxloss: more than one row"),
        (("rows: case", "columns: variant", "pass: up"), "no row has the pass 'up'"),
        (("rows: case", "columns: sum"), "there is no column 'sum'"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_told(
    tool: Any, lines: tuple[str, ...], problem: str
) -> None:
    text = "\n".join(("<!-- table m/two.json", *lines, "-->", "<!-- end -->"))
    unchanged, (told,) = filled(tool, text)
    assert unchanged == text
    assert told.startswith(problem)


def test_the_runs_are_listed(tool: Any) -> None:
    text, problems = filled(tool, "<!-- runs -->\nstale\n<!-- end -->")
    assert not problems
    assert text.splitlines()[3:] == [
        "| m/two | 0.2.0 | 0123456 | 2.15.0 | AMD EPYC, 2 cores |",
        "<!-- end -->",
    ]


def test_readme_says_where_a_figure_is_from(tool: Any) -> None:
    lines = ["<!-- results m/two.json -->", "| 5 ms |", "    sleep 5 s", "", "```", "5 ms", "```"]
    text = "\n".join([*lines, "It takes 53.0 µs<!--= detr; forward; boxloss -->, or {}."])
    for words, problem in (("so", ""), ("5 µs", "5 µs"), ("12 times", "12 times"), ("5 %", "5 %")):
        _, problems = tool.fill(ROOT / "README.md", text.format(words))
        told = f"README.md:8: no comment says where {problem} is from"
        assert problems == [told] * bool(problem)
