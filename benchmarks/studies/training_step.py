# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What does a whole training step of a real detector cost, with its own criterion and with boxloss?

Forward, criterion, backward and a step of AdamW, under autocast to bfloat16, of models of their
real size with random weights: DETRs of transformers, YOLO11m of Ultralytics, Faster R-CNN R50 of
torchvision, RF-DETR-Nano. Images are noise and have as many ground-truth boxes as COCO's, or,
crowded, 100 each. original has its own criterion, boxloss what use_boxloss puts there; compiled is
the whole model by torch.compile, RF-DETR as its own trainer compiles it, with its criterion's
compiled parts. In graphs has fixed shapes and is compiled into CUDA graphs, as
examples/rt_detr_compiled.py. no criterion has the sum of all outputs in its place, so that the
original less that is the criterion's share; Faster R-CNN, which samples by its matching, cannot go
without.
transformers 5.23 freezes the backbones of DETR and Deformable DETR: their steps have no backward of
one. A second pass counts what a step asks for. Needs transformers (with SciPy, PIL), torchvision,
ultralytics and rfdetr (with its extra "train"), each for its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch.compat import FixedTargets, use_boxloss
from torch import Tensor, nn

from ..common.losses import isolate_ultralytics
from ..runner.agreement import DisagreementError
from ..runner.run import Row, Run, UnavailableError, Variant, compile_now

DEVICES = ("cuda",)
BOXES = ("COCO", "crowded")

# Ground truth of 16 images, as many on average as COCO's 7.3; smaller batches take the first.
COCO = (3, 1, 12, 7, 2, 20, 5, 0, 4, 9, 1, 15, 6, 2, 25, 5)
CROWD = 100
CLASSES = 80

Batch = Callable[[nn.Module], Tensor]  # the sum of a model's losses on it


# --- Detectors ---


@dataclass(frozen=True)
class Detector:
    make: Callable[[int], nn.Module]  # for images of this side
    batch: Callable[[list[Tensor], list[Tensor], list[Tensor]], Batch]  # images, boxes, labels
    drop: Callable[[nn.Module], None] | None  # takes the criterion out
    size: tuple[int, int]  # images, and their side in pixels
    quick: tuple[int, int]
    use_boxloss: Callable[[nn.Module], Any] = use_boxloss
    compile: Callable[[nn.Module], Any] = torch.compile
    fixed: Callable[[Any], Any] | None = None  # a batch in fixed shapes, of `batch`'s arguments


def detr(kind: str, stages: tuple[str, ...] | None = None) -> Callable[[int], nn.Module]:
    """Of the default size; stages are a ResNet-50's, where the default would load a backbone."""

    def make(side: int) -> nn.Module:
        import transformers

        options = {}
        if stages:
            resnet = transformers.ResNetConfig(out_features=[*stages])
            options = {"backbone_config": resnet, "auxiliary_loss": True}
        config = getattr(transformers, f"{kind}Config")(num_labels=CLASSES, **options)
        return getattr(transformers, f"{kind}ForObjectDetection")(config)

    return make


def detr_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    pixels = torch.stack(images)
    pairs = zip(boxes, labels, strict=True)
    wanted = [{"boxes": box, "class_labels": label} for box, label in pairs]
    return lambda model: model(pixel_values=pixels, labels=wanted).loss


def fixed_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    """For any batch whose images have as many boxes as the fullest of this one, or fewer."""
    pixels = torch.stack(images)
    most = max(map(len, boxes))
    pairs = zip(boxes, labels, strict=True)
    wanted = FixedTargets.of(
        [{"boxes": box, "class_labels": label} for box, label in pairs], most * len(images)
    )

    def loss(model: nn.Module) -> Tensor:
        from examples.rt_detr_compiled import fixed_denoising

        with fixed_denoising(most):
            return model(pixel_values=pixels, labels=wanted).loss

    return loss


def detr_without_criterion(model: Any) -> None:
    def outputs(logits: Tensor, *others: Any, **named: Any) -> tuple[Tensor, None, None]:
        tensors = [each for each in (*others, *named.values()) if isinstance(each, Tensor)]
        return sum(_sum(each) for each in tensors if each.requires_grad), None, None

    model.loss_function = outputs


def yolo(side: int) -> nn.Module:
    isolate_ultralytics()
    from ultralytics.nn.tasks import DetectionModel

    model = DetectionModel("yolo11m.yaml", verbose=False)
    model.args = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5, epochs=100)
    return model


def yolo_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    counts = torch.tensor([len(each) for each in boxes], device=images[0].device)
    batch = {
        "img": torch.stack(images),
        "batch_idx": torch.arange(len(boxes), device=counts.device).repeat_interleave(counts),
        "cls": torch.cat(labels),
        "bboxes": torch.cat(boxes),
    }
    return lambda model: model(batch)[0].sum()


def yolo_without_criterion(model: Any) -> None:
    def outputs(preds: Any, batch: Any) -> tuple[Tensor, None]:
        return _sum(preds["boxes"]) + _sum(preds["scores"]), None

    model.criterion = outputs


def faster_rcnn(side: int) -> nn.Module:
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    return fasterrcnn_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=CLASSES + 1,
        min_size=side,
        max_size=side,
    )


def faster_rcnn_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    side = images[0].shape[-1]
    targets = []
    for box, label in zip(boxes, labels, strict=True):
        centres, sides = (side * box).split(2, 1)
        corners = torch.cat((centres - sides / 2, centres + sides / 2), 1)
        targets.append({"boxes": corners, "labels": label + 1})

    def loss(model: nn.Module) -> Tensor:
        torch.manual_seed(0)  # proposals are sampled
        return sum(model(images, targets).values())

    return loss


class RfDetr(nn.Module):
    """A model of rfdetr, and its criterion, as its trainer makes them."""

    def __init__(self, side: int) -> None:
        super().__init__()
        from rfdetr.config import RFDETRNanoConfig, TrainConfig
        from rfdetr.models import lwdetr

        config = RFDETRNanoConfig(pretrain_weights=None, num_classes=CLASSES, resolution=side)
        training = TrainConfig(dataset_dir=".", output_dir=".")
        self.model: Any = lwdetr.build_model_from_config(config, training)
        self.criterion: Any = lwdetr.build_criterion_from_config(config, training)[0]

    def forward(self, images: Any, targets: list[dict[str, Tensor]]) -> Tensor:
        losses = self.criterion(self.model(images), targets)
        return sum(weight * losses[name] for name, weight in self.criterion.weight_dict.items())


def rf_detr_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    from rfdetr.utilities.tensors import nested_tensor_from_tensor_list

    samples = nested_tensor_from_tensor_list(images)
    pairs = zip(boxes, labels, strict=True)
    targets = [{"boxes": box, "labels": label} for box, label in pairs]
    return lambda model: model(samples, targets)


def rf_detr_without_criterion(model: Any) -> None:
    def outputs(found: dict[str, Any], targets: Any) -> dict[str, Tensor]:
        layers = [found, *found["aux_outputs"], found["enc_outputs"]]
        named = ("pred_logits", "pred_boxes")
        return {"all": sum(_sum(layer[name]) for layer in layers for name in named)}

    outputs.weight_dict = {"all": 1}  # type: ignore[attr-defined]
    del model.criterion
    model.criterion = outputs


def compiled_rf_detr(model: Any) -> Any:
    model.model = torch.compile(model.model)
    model.criterion.matcher.enable_compiled_l1_cost()
    model.criterion.enable_compiled_detection_losses()
    return model


def _sum(value: Tensor) -> Tensor:
    return value.float().sum()


DETECTORS = {
    **{
        name: Detector(make, detr_batch, detr_without_criterion, (16, 640), (2, 256), fixed=fixed)
        for name, make, fixed in (
            ("DETR-R50", detr("Detr", ("stage4",)), fixed_batch),
            ("Deformable-DETR-R50", detr("DeformableDetr", ("stage2", "stage3", "stage4")), None),
            ("RT-DETR-R50", detr("RTDetr"), fixed_batch),
            ("D-FINE-L", detr("DFine"), None),
        )
    },
    "RF-DETR-Nano": Detector(
        RfDetr,
        rf_detr_batch,
        rf_detr_without_criterion,
        (16, 384),
        (2, 128),
        use_boxloss=lambda model: use_boxloss(model.criterion),
        compile=compiled_rf_detr,
    ),
    "YOLO11m": Detector(yolo, yolo_batch, yolo_without_criterion, (16, 640), (2, 128)),
    "Faster R-CNN R50": Detector(faster_rcnn, faster_rcnn_batch, None, (4, 800), (2, 128)),
}

CASES = (*DETECTORS, *(f"{name}, {boxes}" for name in DETECTORS for boxes in BOXES))

# --- Cases ---


@dataclass(frozen=True)
class Case:
    name: str
    boxes: str  # "COCO" or "crowded"
    quick: bool
    device: torch.device

    @property
    def detector(self) -> Detector:
        return DETECTORS[self.name]

    @property
    def size(self) -> tuple[int, int]:
        return self.detector.quick if self.quick else self.detector.size

    @property
    def columns(self) -> Row:
        return {"case": self.name, "boxes": self.boxes, "images": self.size[0]}

    def model(self) -> nn.Module:
        torch.manual_seed(0)
        try:
            return self.detector.make(self.size[1]).to(self.device).train()
        except ImportError as error:
            raise UnavailableError(f"not installed ({error})") from error

    def batch(self, fixed: bool = False) -> Batch:
        """The same numbers on every device."""
        generator = torch.Generator().manual_seed(0)
        count, side = self.size
        crowd = CROWD // 10 if self.quick else CROWD
        counts = COCO[:count] if self.boxes == "COCO" else (crowd,) * count
        images = torch.rand(count, 3, side, side, generator=generator).to(self.device)
        sides = 0.05 + 0.35 * torch.rand(sum(counts), 2, generator=generator)
        centres = 0.2 + 0.6 * torch.rand(sum(counts), 2, generator=generator)
        boxes = torch.cat((centres, sides), 1).to(self.device)
        labels = torch.randint(CLASSES, (sum(counts),), generator=generator).to(self.device)
        make = self.detector.fixed if fixed else self.detector.batch
        return make([*images], [*boxes.split(counts)], [*labels.split(counts)])


# --- Variants ---


class Step:
    """A training step; `loss` is that of the last one."""

    def __init__(
        self,
        case: Case,
        change: Callable[[nn.Module], Any],
        compile: Callable[[nn.Module], Any] = lambda model: model,
        fixed: bool = False,
    ) -> None:
        self.loss = torch.zeros(())
        model = case.model()
        change(model)
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
        self._model = compile(model)
        self._batch = case.batch(fixed)
        self._device = case.device.type

    def __call__(self) -> None:
        torch.manual_seed(0)  # of denoising queries
        self._optimizer.zero_grad()
        with torch.autocast(self._device, torch.bfloat16):
            self.loss = self._batch(self._model)
        self.loss.backward()
        self._optimizer.step()


def load(case: Case) -> Step:
    return Step(case, case.detector.use_boxloss)


def load_original(case: Case) -> Step:
    return Step(case, lambda model: None)


def load_without_criterion(case: Case) -> Step:
    if case.detector.drop is None:
        raise UnavailableError(f"{case.name} cannot go without its criterion")
    return Step(case, case.detector.drop)


def load_compiled(case: Case, is_original: bool) -> Step:
    change = (lambda model: None) if is_original else case.detector.use_boxloss
    step = Step(case, change, case.detector.compile)
    compile_now(step)
    return step


def load_in_graphs(case: Case) -> Step:
    if case.detector.fixed is None:
        raise UnavailableError(f"{case.name} is not tried in fixed shapes")
    in_graphs = partial(torch.compile, mode="reduce-overhead")
    step = Step(case, case.detector.use_boxloss, in_graphs, fixed=True)
    compile_now(step)
    return step


# The first is what ratios are taken to.
VARIANTS: dict[str, Variant[Case, Step]] = {
    "boxloss": Variant(load),
    "original": Variant(load_original),
    "no criterion": Variant(load_without_criterion),
    "boxloss, compiled": Variant(partial(load_compiled, is_original=False), True),
    "original, compiled": Variant(partial(load_compiled, is_original=True), True),
    "boxloss, in graphs": Variant(load_in_graphs, True),
}

# How far the first losses may be apart, relative: heads give bfloat16, in which the originals form
# corners, 2^-8 of a coordinate, and matches that are nearly equal may be others. A wrong weight, or
# a loss left out, is more.
APART = 0.03

# --- Measuring ---


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS])


def measure(run: Run) -> None:
    for case in run.each(cases(run)):
        steps = run.load({name: VARIANTS[name] for name in run.options.variants}, case)
        check(case, steps)
        run.time(case.columns, dict(steps), ("stream",))
        run.count(case.columns, dict(steps))


def check(case: Case, steps: dict[str, Step]) -> None:
    """DisagreementError, unless the first losses are the original's."""
    losses = {}
    for name, step in steps.items():
        if name in ("original", "boxloss"):
            step()
            losses[name] = step.loss.item()
    if len(losses) == 2:
        original, ours = losses["original"], losses["boxloss"]
        if not abs(ours - original) <= APART * abs(original):
            raise DisagreementError(f"{case.name}: the loss is {ours}, the original's {original}")


def cases(run: Run) -> dict[str, Callable[[], Case]]:
    return {
        f"{name}, {boxes}": partial(Case, name, boxes, run.quick, run.device)
        for name in DETECTORS
        for boxes in BOXES
    }


# --- The picture ---

DRAWN = ("RT-DETR-R50", "D-FINE-L", "RF-DETR-Nano", "YOLO11m")
BARS = ("original", "original, compiled", "boxloss")
IN_WORDS = {"COCO": "boxes as\nin COCO", "crowded": "100 boxes\nan image"}


def draw(frame: Any, machine: Mapping[str, str]) -> Any:
    """A column for each detector, a row for each kind of images."""
    from ..runner import pictures as drawing

    timed = drawing.pick(frame, quantity="stream", variant=[*BARS])
    names = [name for name in DRAWN if name in set(timed["case"])]
    if not names:
        return None
    size = (2 + 1.9 * len(names), 2.6)
    figure, panels = drawing.plt.subplots(
        len(BOXES), len(names), figsize=size, sharex="col", sharey=True, squeeze=False
    )
    for boxes, line in zip(BOXES, panels, strict=True):
        line[0].set_ylabel(IN_WORDS[boxes], fontsize=8)
        for name, panel in zip(names, line, strict=True):
            draw_steps(panel, drawing.pick(timed, case=name, boxes=boxes))
    for name, panel in zip(names, panels[0], strict=True):
        panel.set_title(name, fontsize=9)
    figure.set_layout_engine("constrained")
    title = f"A whole training step, ms, whiskers are quartiles: {drawing.where(machine)}"
    drawing.title_figure(figure, title)
    return figure


def draw_steps(panel: Any, timed: Any) -> None:
    """Bars from zero; what was not measured has none."""
    from ..runner import pictures as drawing

    colours = dict(zip(BARS, (drawing.GREY, drawing.PALE_BLUE, drawing.BLUE), strict=True))
    for row in timed.itertuples():
        middle, low, high = (each / 1000 for each in (row.median, row.low, row.high))
        place, spread = BARS.index(row.variant), [[middle - low], [high - middle]]
        style = {"color": colours[row.variant], "ecolor": drawing.DARK, "height": 0.68}
        drawn = panel.barh(place, middle, xerr=spread, **style)
        panel.bar_label(drawn, [drawing.number(middle)], padding=3, fontsize=8)
    panel.set_yticks(range(len(BARS)), BARS)
    panel.set_ylim(len(BARS) - 0.5, -0.5)
    panel.margins(x=0.3)
    drawing.quiet_axes(panel)


PICTURES = {"training_step": draw}
