# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Tables are filled from results."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

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


def table(tool: Any, *lines: str) -> list[str]:
    page = "\n".join(("<!-- table m/two.json", *lines, "-->", "stale", "<!-- end -->"))
    text, problems = tool.fill(page)
    assert not problems
    assert tool.fill(text) == (text, [])
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


def test_means_and_deviations(tool: Any) -> None:
    recipe = ("rows: case", "columns: variant", "case: detr", "variant: boxloss", "over: pass")
    assert table(tool, *recipe)[-1] == "| detr | 224 ± 241 |"


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
    unchanged, (told,) = tool.fill(text)
    assert unchanged == text
    assert told.startswith(f"table m/two.json: {problem}")


@pytest.mark.parametrize(
    "text", ["It takes 5 ms<!--= detr -->.", "<!-- results m/two.json -->", "<!-- table m/two.json"]
)
def test_a_comment_that_fills_nothing_is_told(tool: Any, text: str) -> None:
    unchanged, (problem,) = tool.fill(text)
    assert unchanged == text
    assert problem.startswith("neither a table with its end nor one that is made: <!--")
