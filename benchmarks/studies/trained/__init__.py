# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Does a detector trained from scratch find as much with boxloss as with its own criterion?

Each is trained both ways: from the same weights, on the same batches, by AdamW with a warm-up and a
cosine, under autocast to bfloat16. Pictures are composed of photographs, faces and digits; those of
the test are of none that training has seen. mAP50-95 is pycocotools' of the test, computed in
float32. A seed gives the first weights, the batches and how they are augmented, and what a model
draws. cuDNN is deterministic, sums by atomics, as in a DETR's deformable attention, are not: two
trainings with the very same criterion may differ. So `paired` judges by six seeds what of a
difference is chance. Seconds are of training alone. Of a model trained with its own criterion, both
criteria also give the loss of the same outputs, and a YOLO's own in float32, too: what that changes
is bfloat16's. In fixed shapes the limit, of denoising queries too, is as many boxes as the fullest
picture has.

    python -m benchmarks trained --cases YOLO11n --seeds 0 --json trained-0.json
    python -m benchmarks trained --json trained.json --add trained-0.json trained-1.json

Needs scikit-image, scikit-learn, pycocotools, SciPy; ultralytics, transformers, each for its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from boxloss.torch.compat import use_boxloss

from ...runner.results import Row
from ...runner.run import Run
from .detectors import DETECTORS, criterion_in_float32
from .paired import SEEDS, judged
from .scenes import CROWD_COUNTS, compose
from .training import POINTS, Change, Point, Way, train

DEVICES = ("cuda",)
CASES = tuple(DETECTORS)
TRAIN, TEST = 4096, 512  # pictures
QUICK_TRAIN, QUICK_TEST, QUICK_IMAGES = 8, 4, 4

LIMITS = {"max_boxes": CROWD_COUNTS[1], "denoising_boxes": CROWD_COUNTS[1]}
# The first is what ratios are taken to.
VARIANTS = {
    "boxloss": Way(use_boxloss),
    "original": Way(lambda model: None),
    "original, in float32": Way(criterion_in_float32),
    "boxloss, in fixed shapes": Way(partial(use_boxloss, **LIMITS), in_fixed_shapes=True),
}
USUAL = ("boxloss", "original")
MORE = {"YOLO11n": ("original, in float32",), "RT-DETR-R18": ("boxloss, in fixed shapes",)}


def ways(case: str) -> tuple[str, ...]:
    return (*USUAL, *MORE.get(case, ()))


def of_same_outputs(case: str) -> dict[str, Change]:
    """In fixed shapes the denoising queries are others."""
    found = {name: VARIANTS[name] for name in ways(case)}
    return {name: way.change for name, way in found.items() if not way.in_fixed_shapes}


# --- Measuring ---


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", nargs="+", type=int, default=[*SEEDS])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=USUAL)


def measure(run: Run) -> None:
    torch.backends.cudnn.deterministic = True
    scenes = (
        compose("train", QUICK_TRAIN if run.quick else TRAIN, run.device),
        compose("test", QUICK_TEST if run.quick else TEST, run.device),
    )
    for name in run.each({name: partial(str, name) for name in DETECTORS}):
        detector = DETECTORS[name]
        if run.quick:
            detector = replace(detector, images=QUICK_IMAGES, steps=POINTS)
        for seed in run.options.seeds:
            try:
                for variant in run.options.variants:
                    if VARIANTS[variant].in_fixed_shapes and detector.fixed is None:
                        run.skip(variant, f"{name} is not tried in fixed shapes")
                        continue
                    compared = of_same_outputs(name) if variant == "original" else {}
                    for point in train(detector, VARIANTS[variant], seed, *scenes, compared):
                        record(run, {"case": name, "seed": seed}, variant, point)
            except ImportError as error:
                run.skip(name, f"not installed ({error})")
                break
            run.show({"case": name, "seed": seed, "trained": 100})


def record(run: Run, columns: Row, variant: str, point: Point) -> None:
    at = columns | {"trained": point.percent}
    about = at | {"variant": variant}
    run.record(about, "training", "s", point.seconds)
    run.record(about, "loss", "", point.loss)
    for quantity, value in point.precision.items():
        run.record(about, quantity, "", value)
    for criterion, loss in point.same_outputs.items():
        run.record(at | {"variant": criterion}, "loss of the same outputs", "", loss)


# --- The picture ---

PANELS = {"mAP50-95": "mAP50-95", "loss": "training loss"}


def draw(frame: Any, machine: Mapping[str, str]) -> Any:
    """A column for each detector, a line for each training."""
    from ...runner import pictures as drawing

    names = [name for name in DETECTORS if name in set(frame["case"])]
    figure, panels = drawing.plt.subplots(
        len(PANELS), len(names), figsize=(3 + 2.7 * len(names), 4), sharex=True, squeeze=False
    )
    colours = (drawing.BLUE, drawing.DARK, drawing.PALE_BLUE, drawing.DARK_BLUE)
    colours = dict(zip(VARIANTS, colours, strict=True))
    shown_variants = [each for each in colours if each in set(frame["variant"])]
    for quantity, line in zip(PANELS, panels, strict=True):
        line[0].set_ylabel(PANELS[quantity], fontsize=8)
        for name, panel in zip(names, line, strict=True):
            shown = drawing.pick(frame, case=name, quantity=quantity)
            for (variant, _), training in shown.groupby(["variant", "seed"]):
                style = {"color": colours[variant], "linewidth": 1, "alpha": 0.8}
                panel.plot(training["trained"], training["median"], **style)
            panel.set_ylim(bottom=0)
            drawing.quiet_axes(panel)
    for name, head, foot in zip(names, panels[0], panels[-1], strict=True):
        found = drawing.pick(frame, case=name, quantity="mAP50-95", trained=100)
        head.set_title("\n".join((name, *judged(found))), fontsize=8)
        foot.set_xlabel("% of the steps", fontsize=8)
    for variant in shown_variants:
        panels[0][0].plot([], [], color=colours[variant], label=variant)
    panels[0][0].legend(fontsize=8, frameon=False, loc="lower right")
    figure.set_layout_engine("constrained")
    title = f"Trained both ways, a line for each seed: {drawing.where(machine)}"
    drawing.title_figure(figure, title)
    return figure


PICTURES = {"trained": draw}
