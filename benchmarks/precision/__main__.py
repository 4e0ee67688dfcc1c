# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How much of a box loss' gradient is left under mixed precision.

    python -m benchmarks.precision --quick
    python -m benchmarks.precision --json precision.json --plot precision.svg

Under AMP a head gives float16 or bfloat16 boxes. Pairs of a prediction, rounded to that dtype, and
a true box in float32 go to each project's own loss under autocast, and, as the same numbers in
float64, once more to the same loss. An error is |result - exact| / |exact|: of all pairs of a size
together, of the median pair, of the worst. The gradient has the prediction's dtype: rounding the
exact one to it is the least error that any loss can have. cxcywh is divided by the picture's size,
as in DETR; other boxes are xyxy in pixels, Ultralytics' in cells of its finest grid. Needs boxloss
and rich; transformers, torchvision, Ultralytics and mmdetection's files for their losses.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..common.losses import UnavailableError
from ..common.output import write_json
from ..common.program import begin, make_parser, open_console, parsed
from .losses import IN_PIXELS, ROUNDED, VARIANTS, PairLoss, Variant
from .measure import PICTURE, Pairs, make_pairs, measure, measure_rounding
from .report import DTYPES, MEASURES, ROUNDING, SIDES, Row, plot, table, table_of_large

PAIRS, QUICK_PAIRS = 4096, 128
LARGE = 400  # pixels; float16 ends at 65504, the area of 256 x 256


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    console = open_console()
    skipped: dict[str, str] = {}
    losses = load({**VARIANTS, **IN_PIXELS}, skipped)
    command, machine = begin("precision", arguments, options.device, console)
    for name, reason in skipped.items():
        console.print(f"[yellow]skipped {name}[/]: {reason}")

    count = QUICK_PAIRS if options.quick else PAIRS
    rows = list(by_side(losses, count, options.device))
    large = list(of_large_boxes(losses, count, options.device))
    for dtype in DTYPES:
        for measured in MEASURES:
            console.print(table(rows, dtype, measured))
    console.print(table_of_large(large))
    if options.json:
        document = {
            "command": command,
            "machine": machine,
            "skipped": skipped,
            "picture": PICTURE,
            "pairs": count,
            "errors": rows,
            "large_boxes": large,
        }
        write_json(options.json, _finite(document))
    if options.plot:
        plot(rows, machine, options.plot)
    return 0


def load(variants: Mapping[str, Variant], skipped: dict[str, str]) -> dict[str, PairLoss]:
    """`skipped` collects who is not, and why."""
    losses = {}
    for name, variant in variants.items():
        try:
            losses[name] = variant.load()
        except UnavailableError as reason:
            skipped[name] = str(reason)
    return losses


def by_side(losses: Mapping[str, PairLoss], count: int, device: torch.device) -> Iterator[Row]:
    for dtype_name, dtype in DTYPES.items():
        for side in SIDES:

            def pairs(name: str, side: int = side, dtype: torch.dtype = dtype) -> Pairs:
                return make_pairs(side, VARIANTS[name].format, dtype, count, device)

            errors = {
                name: measure(losses[name], pairs(name)) for name in VARIANTS if name in losses
            }
            errors[ROUNDING] = measure_rounding(losses[ROUNDED], pairs(ROUNDED))
            for name, each in errors.items():
                yield {"variant": name, "dtype": dtype_name, "side": side} | asdict(each)


def of_large_boxes(
    losses: Mapping[str, PairLoss], count: int, device: torch.device
) -> Iterator[Row]:
    for name, variant in {**VARIANTS, **IN_PIXELS}.items():
        if name in losses:
            pairs = make_pairs(LARGE, variant.format, torch.float16, count, device)
            where = {"variant": name, "dtype": "float16", "side": LARGE}
            yield where | asdict(measure(losses[name], pairs))


def _finite(value: Any) -> Any:
    """With null for what JSON has not, NaN and infinities."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = make_parser("precision", __doc__)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=".svg, .png or .pdf")
    return parsed(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
