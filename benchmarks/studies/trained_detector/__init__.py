# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Does a detector train as well with boxloss, and how much sooner?

A face detector is trained to the end, once with each way to compute its box loss, from the same
weights on the same batches: face_detector's data, real faces in real photographs, others in
training than in the held-out pictures. At even steps the held-out average precision is noted, with
the seconds of training so far, so that the time to the same quality can be told. On a GPU three or
four minutes under bf16 autocast; on CPU cores a smaller detector, fewer steps and about ten
minutes. Needs scikit-image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from boxloss.torch import collate_padded, giou_loss
from torch import Tensor

from ...common.cases import near
from ...common.losses import EPS, Loss, giou, masked_loss
from ...runner.agreement import compare, mean_giou_truth
from ...runner.run import Run
from ..face_detector.data import FacePictures, Split
from .model import CELLS, SCALES
from .pictures import MOST_FACES, Assigned, DrawnPictures, assign_all, draw
from .training import SEED, LayOut, Targets, Task, Training, positions, train

# --- Variants: 1 - GIoU of every pair of a box and its cell's prediction, divided by their number


def by_image(pairs: Sequence[Assigned]) -> Targets:
    boxes, cells = zip(*pairs, strict=True)
    return torch.cat(boxes), torch.cat(cells), list(map(len, boxes))


def padded(pairs: Sequence[Assigned]) -> Targets:
    boxes, cells = (list(each) for each in zip(*pairs, strict=True))
    target, lengths = collate_padded(boxes)
    where = torch.nn.utils.rnn.pad_sequence(cells, batch_first=True)
    return target, where, lengths


def by_index(pairs: Sequence[Assigned]) -> Targets:
    return torch.cat([boxes for boxes, _ in pairs]), positions(pairs).int()


# The losses


def loop_loss(pred: Tensor, flat: Tensor, cells: Tensor, counts: list[int]) -> Tensor:
    total = torch.zeros((), device=pred.device)
    for row, where, truths in zip(pred, cells.split(counts), flat.split(counts), strict=True):
        guesses = row.index_select(0, where)
        total = total + (1 - giou(guesses, truths.float())).sum()
    return total / max(len(flat), 1)


def padded_loss(pred: Tensor, target: Tensor, cells: Tensor, lengths: Tensor) -> Tensor:
    guesses = pred.gather(1, cells[..., None].expand(-1, -1, 4))
    return masked_loss(guesses, target, lengths)


def indexed_loss(pred: Tensor, flat: Tensor, index: Tensor) -> Tensor:
    return giou_loss(pred, flat, pred_index=index, eps=EPS, eps_mode="clamp")


class Variant(NamedTuple):
    lay_out: LayOut
    loss: Loss


OURS, EAGER, SLOWEST = "boxloss, by index", "eager, padded", "eager, in a loop"
VARIANTS = {
    OURS: Variant(by_index, indexed_loss),
    EAGER: Variant(padded, padded_loss),
    SLOWEST: Variant(by_image, loop_loss),
}

# --- Agreement: predictions near the true boxes, NaN in all cells without a face ---


def probe(pairs: Sequence[Assigned]) -> Tensor:
    """(B, 256, 4): in each cell with a face a jittered, well-ordered copy of its box."""
    boxes = torch.cat([each for each, _ in pairs])
    pred = torch.full((len(pairs) * CELLS**2, 4), torch.nan)
    pred[positions(pairs)] = near(boxes, torch.Generator().manual_seed(SEED))
    return pred.view(len(pairs), CELLS**2, 4)


def check(name: str, variant: Variant, pairs: Sequence[Assigned], device: torch.device) -> None:
    """DisagreementError, unless loss and gradient of these pairs are right."""
    pred = probe(pairs)
    leaf = pred.to(device).requires_grad_()
    targets = (
        each.to(device) if isinstance(each, Tensor) else each for each in variant.lay_out(pairs)
    )
    loss = variant.loss(leaf, *targets)
    (gradient,) = torch.autograd.grad(loss, leaf)
    expected = mean_giou_truth(pred, positions(pairs), torch.cat([boxes for boxes, _ in pairs]))
    compare(name, loss, gradient.cpu(), expected, f"{len(pairs)} pictures")


# --- Training ---


def measure(run: Run) -> None:
    scale = SCALES["quick" if run.quick else "gpu" if run.device.type == "cuda" else "cpu"]
    run.say(
        f"{scale.steps:,} steps of {scale.batch} pictures, judged {scale.evaluations} times on "
        f"{scale.test_pictures:,} held-out ones"
    )

    def drawn(split: Split, count: int) -> DrawnPictures:
        made = draw(split, SEED, count)
        return DrawnPictures(made.pictures.to(run.device), made.boxes)

    train_set = drawn("train", scale.train_pictures)
    task = Task(train_set, assign_all(train_set), drawn("test", scale.test_pictures))
    pairs = [as_drawn for as_drawn, _ in task.assigned[: scale.batch]]
    for name, variant in VARIANTS.items():
        check(name, variant, pairs, run.device)
    run.say(f"{len(VARIANTS)} variants agree on one batch, in loss and gradient. Training ...")
    torch.backends.cudnn.benchmark = True  # all batches have one size
    about = {"pictures": scale.batch, "steps": scale.steps}
    for name, variant in VARIANTS.items():
        if not run.has(**about, variant=name, quantity="step"):  # which comes last
            training = train(scale, variant.lay_out, variant.loss, task, run.device)
            record(run, about | {"variant": name}, training, task.shown)
    run.show(about, ratios=("step", "loss"))


NUMBERS = ("x1", "y1", "x2", "y2", "score")


def record(run: Run, about: dict[str, Any], training: Training, shown: list[int]) -> None:
    """The evaluations, what is seen in the shown pictures, and last what sums it up."""
    for each in training.evaluations:
        at = about | {"evaluated at": each.step}
        run.record(at, "seconds", "s", each.seconds)
        run.record(at, "AP50", "", each.quality.ap50)
        run.record(at, "AP", "", each.quality.ap)
        run.record(at, "mean IoU", "", each.quality.mean_iou)
        if each.box_loss is not None:
            run.record(at, "box loss", "", each.box_loss)
    for when, pictures in (("before", training.before), ("after", training.after)):
        for picture, detections in zip(shown, pictures, strict=True):
            for place, numbers in enumerate(detections):
                at = about | {"picture": picture, "when": when, "detection": place}
                for quantity, number in zip(NUMBERS, numbers, strict=True):
                    run.record(at, quantity, "", number)
    run.record(about, "loss", "ms", training.loss_ms)
    run.record(about, "step", "ms", training.step_ms)


# --- Pictures ---

PART_OF_BEST = 0.95


def threshold(frame: Any) -> float:
    """The AP50 that counts as trained: a part of the best that every variant reaches."""
    best = frame[frame["quantity"] == "AP50"].groupby("variant")["median"].max()
    return PART_OF_BEST * float(best.min())


def histories(frame: Any) -> dict[str, Any]:
    """Of each variant a frame with a row for each evaluation."""
    evaluated = frame[frame["evaluated at"].notna()]
    return {
        name: rows.pivot(index="evaluated at", columns="quantity", values="median")
        for name, rows in evaluated.groupby("variant", sort=False)
    }


def draw_training(frame: Any, machine: dict[str, str]) -> Any:
    """Held-out quality over the seconds of training, and the losses over the steps."""
    from ...runner import pictures as drawing
    from ...runner.results import number

    colours = {OURS: drawing.BLUE, EAGER: drawing.LINES[1], SLOWEST: drawing.DARK}
    # The curves lie on one another: the lower ones are wide, the upper ones thin or broken.
    curves: dict[str, dict[str, Any]] = {
        SLOWEST: {"linewidth": 3.6, "alpha": 0.35},
        EAGER: {"linewidth": 1.8},
        OURS: {"linewidth": 1.2, "linestyle": (0, (2, 1.5))},
    }
    figure, (left, right) = drawing.plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    enough, found = threshold(frame), histories(frame)
    left.axhline(enough, color=drawing.DARK, linewidth=0.8, linestyle=":")
    for row, name in enumerate(VARIANTS):
        history = found[name].iloc[1:]  # a log axis has no zero
        colour = colours[name]
        left.plot(history["seconds"], history["AP50"], color=colour, linewidth=1.6)
        first = history[history["AP50"] >= enough].iloc[0]
        left.plot(first["seconds"], first["AP50"], "o", color=colour, markersize=5)
        words = f"{name}: {number(first['seconds'])} s to {enough:.3f}"
        weight = "bold" if name == OURS else None
        style = {"ha": "right", "fontsize": 9, "color": colour, "weight": weight}
        left.text(0.98, 0.3 - 0.09 * row, words, transform=left.transAxes, **style)
    for name, style in curves.items():
        right.plot(found[name]["box loss"], color=colours[name], label=name, **style)
    left.set_xscale("log")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_ylim(0, 1)
    left.set_xlabel("seconds of training, logarithmic", fontsize=8, color=drawing.DARK)
    left.set_title("Average precision (IoU 0.5) on held-out pictures", fontsize=9, loc="left")
    right.legend(frameon=False, fontsize=9)
    right.set_ylim(bottom=0)
    right.set_xlabel("training step", fontsize=8, color=drawing.DARK)
    title = "Training loss of the boxes, 1 − GIoU, mean between evaluations"
    right.set_title(title, fontsize=9, loc="left")
    for panel in (left, right):
        drawing.quiet_axes(panel)
    of = frame.iloc[0]
    drawing.title_figure(
        figure,
        f"A face detector trained for {of['steps']:,} steps of {of['pictures']} pictures: "
        f"{drawing.where(machine)}",
    )
    return figure


def draw_pictures(frame: Any, machine: dict[str, str]) -> Any:
    """The same held-out pictures above before and below after training with boxloss."""
    from ...runner import pictures as drawing

    predicted = drawing.LINES[1]
    label = {"facecolor": predicted, "edgecolor": "none", "pad": 0.6}
    source = FacePictures("test", SEED, MOST_FACES)
    seen = frame[frame["picture"].notna() & (frame["variant"] == OURS)]
    seen = seen[seen["run"] == seen["run"].max()]  # an earlier run may have seen more
    if seen.empty:
        return None
    shown = seen["picture"].astype(int).unique()
    figure, panels = drawing.plt.subplots(
        2, len(shown), squeeze=False, figsize=(2.1 * len(shown), 4.9), layout="constrained", dpi=66
    )
    for panel_row, when in zip(panels, ("before", "after"), strict=True):
        for panel, index in zip(panel_row, shown, strict=True):
            picture, truths = source[index]
            panel.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            for box in truths.tolist():
                drawing.outline(panel, box, edgecolor=drawing.LINES[2], linewidth=2.2)
            of = seen[(seen["picture"] == index) & (seen["when"] == when)]
            for _, found in of.groupby("detection"):
                *box, score = found["median"]
                drawing.outline(panel, box, edgecolor=predicted, linewidth=1.4, linestyle="--")
                style = {"color": "white", "fontsize": 6, "va": "top", "bbox": label}
                panel.text(*box[:2], f"{score:.2f}", **style)
            panel.set(xticks=[], yticks=[], xlim=(-0.5, 255.5), ylim=(255.5, -0.5))
        panel_row[0].set_ylabel(f"{when} training", fontsize=10)
    words = "Held-out pictures: true boxes solid, predicted ones dashed, with their scores"
    drawing.title_figure(figure, words)
    return figure


PICTURES = {"trained_detector": draw_training, "trained-pictures.png": draw_pictures}
