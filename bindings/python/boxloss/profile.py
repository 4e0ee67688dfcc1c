# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m boxloss.profile FILE.py:make``: does boxloss make your training step faster here?

make is a function of yours. It returns a new model, in training mode and on its device, and a
function that takes this model to its loss on a batch. Use a batch of your data: its boxes decide
how much there is to gain.

    def make():  # transformers
        model = RTDetrForObjectDetection.from_pretrained("PekingU/rtdetr_r50vd").cuda().train()
        return model, lambda model: model(pixel_values=images, labels=labels).loss

    def make():  # Ultralytics
        model = YOLO("yolo11n.yaml").model.cuda().train()
        model.args = get_cfg()  # of ultralytics.cfg
        return model, lambda model: model(batch)[0].sum()

    def make():  # torchvision
        model = retinanet_resnet50_fpn_v2().cuda().train()
        return model, lambda model: sum(model(images, targets).values())

A step is zero_grad, this function, backward and a fused AdamW, whose learning rate is 0, so that
all steps begin with the same weights. If you train under autocast, so must the function.

With --max-boxes the ground truth is also tried in fixed shapes, on a GPU by
torch.compile(model, mode="reduce-overhead"). The function must give it to the model as `labels=`,
or to Ultralytics' as its batch.
"""

from __future__ import annotations

import argparse
import gc
import math
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from torch import Tensor, nn

from boxloss._trace import counts_of, trace
from boxloss.torch.compat import FixedTargets, pad_batch, use_boxloss
from boxloss.torch.compat.replace import has_replacement
from boxloss.torch.compat.stand_in import ImpossibleError, put_stand_ins

Loss = Callable[[nn.Module], Any]
Change = Callable[[nn.Module, Loss], nn.Module]  # gives what is called in its place
Times = list[float]  # milliseconds
Counts = dict[str, float]
ROUNDS = 2  # what slows down the machine for a while then widens the quartiles
STEPS_IN_TRACE = 3


class UsageError(Exception):
    """What was given is wrong."""


class RefusedError(Exception):
    """use_boxloss does not serve the model."""


def require(holds: Any, words: str) -> None:
    if not holds:
        raise UsageError(words)


# --- Variants: what is done to a new model ---


def keep(model: nn.Module, loss: Loss) -> nn.Module:
    """Its own criterion."""
    return model


def put_boxloss(model: nn.Module, loss: Loss) -> nn.Module:
    """Into the model, or into the part of it that use_boxloss knows, such as rfdetr's criterion."""
    unknown: TypeError | None = None
    for name, part in model.named_modules():
        try:
            use_boxloss(part)
            if name:
                say(f"boxloss is put into the model's part '{name}', not into the model")
            return model
        except TypeError as error:
            unknown = unknown or error
        except ValueError as error:
            raise RefusedError(error) from error
    raise RefusedError(unknown) from unknown


def drop_criterion(model: nn.Module, loss: Loss) -> nn.Module:
    put_boxloss(model, loss)
    put_stand_ins(model, loss)
    return model


class FixedShapes(nn.Module):
    """Calls a model with the same batches in fixed shapes, which each is given once."""

    def __init__(self, model: nn.Module, max_boxes: int, on_gpu: bool) -> None:
        super().__init__()
        self.model, self.max_boxes = model, max_boxes
        self.run = torch.compile(model, mode="reduce-overhead") if on_gpu else model
        self.batches: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def forward(self, *given: Any, **options: Any) -> Any:
        key = id(options.get("labels", given[0] if given else None))
        if key not in self.batches:
            try:
                self.batches[key] = self._fixed(given, options), given, options
            except (TypeError, ValueError) as error:
                raise ImpossibleError(f"not possible: {error}") from error
        (given, options), *_ = self.batches[key]
        return self.run(*given, **options)

    def _fixed(self, given: Any, options: dict[str, Any]) -> Any:
        """With as many denoising queries as the first batch has in lists."""
        if "labels" in options:
            labels, most = options["labels"], self.max_boxes
            self._replace(max(len(each["boxes"]) for each in labels))
            return given, {**options, "labels": FixedTargets.of(labels, max_boxes=most)}
        if given and isinstance(given[0], dict) and "batch_idx" in given[0]:
            self._replace(None)
            return (pad_batch(given[0], max_boxes=self.max_boxes), *given[1:]), options
        raise ImpossibleError("not possible: the step gives no labels= and no batch of Ultralytics")

    def _replace(self, denoising_boxes: int | None) -> None:
        if self.batches:
            return
        fewest = None if denoising_boxes is None else max(1, denoising_boxes)
        use_boxloss(self.model, max_boxes=self.max_boxes, denoising_boxes=fewest)


def variants(max_boxes: int | None) -> dict[str, Change]:
    """boxloss comes first: where it is refused nothing else needs to be measured."""
    found: dict[str, Change] = {
        "boxloss": put_boxloss,
        "own criterion": keep,
        "no criterion": drop_criterion,
    }
    if max_boxes:
        found["boxloss, fixed shapes"] = lambda model, _: FixedShapes(
            model, max_boxes, next(model.parameters()).is_cuda
        )
    return found


# --- A step ---


def load(place: str) -> Any:
    path, _, name = place.rpartition(":")
    require(path and name, f"'{place}' given; it must be FILE.py:FUNCTION or MODULE:FUNCTION")
    if path.endswith(".py"):
        require(Path(path).is_file(), f"there is no file '{path}'")
        sys.path.insert(0, str(Path(path).resolve().parent))
        found = runpy.run_path(path)
    else:
        try:
            found = vars(import_module(path))
        except ModuleNotFoundError as error:
            if not f"{path}.".startswith(f"{error.name}."):
                raise  # something that it imports
            words = f"there is no module '{path}'; the name of a file ends in .py"
            raise UsageError(words) from error
    require(callable(found.get(name)), f"'{path}' has no function '{name}'")
    return found[name]


def warm_step(
    make: Callable[[], Any], name: str, change: Change, warmup: int
) -> tuple[Callable[[], None], torch.device]:
    gc.collect()  # the model before this one
    say(f"{name}: making the model")
    torch.manual_seed(0)
    model, loss, device = checked(make())
    called = change(model, loss)
    learned = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=0.0, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        checked_loss(loss(called)).backward()
        optimizer.step()

    say(f"{name}: warming up, {warmup} steps")
    for _ in range(warmup):
        step()
    if isinstance(called, FixedShapes) and not called.batches:
        raise ImpossibleError("not possible: the step calls parts of the model, not the model")
    return step, device


def checked(made: Any) -> tuple[nn.Module, Loss, torch.device]:
    parts = made if isinstance(made, tuple) else (made,)
    require(
        len(parts) == 2 and isinstance(parts[0], nn.Module) and callable(parts[1]),
        f"the function returned {', '.join(type(each).__name__ for each in parts)}; it must return "
        "a torch.nn.Module and a function that takes it to its loss: "
        "return model, lambda model: model(**batch).loss",
    )
    model, loss = parts
    require(
        not has_replacement(model),
        "the model has boxloss already; make a new one each time, without",
    )
    require(model.training, "the model is in evaluation mode; call model.train()")
    device = next((each.device for each in model.parameters() if each.requires_grad), None)
    if device is None:
        raise UsageError("no parameter of the model requires a gradient; some must")
    require(
        device.type in ("cpu", "cuda"), f"the model is on '{device}'; it must be on cpu or cuda"
    )
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return model, loss, device


def checked_loss(loss: Any) -> Any:
    require(isinstance(loss, Tensor), f"the loss is a {type(loss).__name__}; it must be a tensor")
    require(
        loss.shape == () and loss.requires_grad,
        f"the loss has shape {tuple(loss.shape)} and {'a' if loss.requires_grad else 'no'} "
        "gradient; it must have shape () and a gradient",
    )
    return loss


def milliseconds(step: Callable[[], None], device: torch.device, steps: int) -> Times:
    """Of each step, one right behind the other: as in training the host may run ahead."""
    on_gpu = device.type == "cuda"
    marks: list[Any] = []
    for i in range(steps + 1):
        if i:
            step()
        marks.append(torch.cuda.Event(enable_timing=True) if on_gpu else time.perf_counter())
        if on_gpu:
            marks[-1].record()
    if on_gpu:
        torch.cuda.synchronize()
    return [a.elapsed_time(b) if on_gpu else 1e3 * (b - a) for a, b in pairwise(marks)]


# --- What it says ---


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def quartiles(times: Times) -> list[float]:
    return quantiles(times, n=4, method="inclusive")


def table(times: Mapping[str, Any], counts: Mapping[str, Counts]) -> Iterator[str]:
    asked = ("launches", "waits")
    yield line("", "ms a step (quartiles)", *(("GPU busy, ms", *asked) if counts else ()))
    for name, taken in times.items():
        if isinstance(taken, str):
            yield line(name, taken)
            continue
        low, middle, high = map(number, quartiles(taken))
        cells = []
        if found := counts.get(name):
            busy = number(found["busy_microseconds"] / 1e3)
            cells = [busy, *(f"{found[each]:,.0f}" for each in asked)]
        yield line(name, f"{middle} ({low} to {high})", *cells)


def line(name: str, time: str, *cells: str) -> str:
    return "".join((f"{name:24}{time:26}", *(f"{each:>14}" for each in cells))).rstrip()


def sentence(times: Mapping[str, Any]) -> str:
    """A difference is clear where the quartiles do not overlap."""
    low, ours, high = quartiles(times["boxloss"])
    own_low, theirs, own_high = quartiles(times["own criterion"])
    said = "boxloss makes no clear difference to a step here"
    if high < own_low:
        said = f"boxloss makes a step {theirs / ours:.2f} times as fast here"
    elif low > own_high:
        said = f"boxloss makes a step {ours / theirs:.2f} times as slow here"
    said += f": {number(ours)} ms in place of {number(theirs)}"
    if not isinstance(without := times["no criterion"], str):
        share = max(0.0, 100 - 100 * median(without) / theirs)
        said += f"; what it replaces takes {share:.0f} % of a step"
    if not isinstance(fixed := times.get("boxloss, fixed shapes", ""), str):
        said += f"; in fixed shapes it takes {number(median(fixed))} ms"
    return f"{said}."


def measure(options: argparse.Namespace) -> None:
    make, changes = load(options.make), variants(options.max_boxes)
    times: dict[str, Any] = {name: [] for name in changes}
    for name, change in [*changes.items()] * ROUNDS:
        try:
            step, device = warm_step(make, name, change, options.warmup)
        except ImpossibleError as error:
            times[name] = str(error)
            continue
        times[name] += milliseconds(step, device, options.steps)
        say(f"{name}: {number(median(times[name]))} ms a step")
        del step  # and its model
    counts: dict[str, Counts] = {}
    if device.type == "cuda":  # at the end: a profiler that has run slows down what comes after
        for name, change in changes.items():
            if isinstance(times[name], str):
                continue
            step, _ = warm_step(make, name, change, options.warmup)
            say(f"{name}: counting")
            trace(step, 1)  # the first of a process may lack events
            counts[name] = counts_of(trace(step, STEPS_IN_TRACE), STEPS_IN_TRACE)
            del step
        if not all(each["kernels"] for each in counts.values()):
            counts = {}
            say("torch's profiler sees nothing on this GPU: no launches and waits")
    where = f"{torch.get_num_threads()} threads"
    if device.type == "cuda":
        where = torch.cuda.get_device_name()
    print(f"{options.make}, {ROUNDS * options.steps} steps with fused AdamW, {where}:")
    print(*table(times, counts), sentence(times), sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: measured; 1: boxloss does not serve the model; 2: something given is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m boxloss.profile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("make", metavar="FILE.py:FUNCTION", help="or MODULE:FUNCTION")
    parser.add_argument("--steps", type=int, default=10, help="timed in each of two rounds (10)")
    parser.add_argument(
        "--warmup", type=int, default=5, help="steps before each round (5); more if compiled"
    )
    parser.add_argument("--max-boxes", type=int, metavar="N", help="of an image, in fixed shapes")
    options = parser.parse_args(arguments)
    if options.max_boxes is not None and options.max_boxes < 1:
        parser.error("--max-boxes must be at least 1")
    if options.steps < 2 or options.warmup < 1:
        parser.error("--steps must be at least 2, --warmup at least 1")
    try:
        measure(options)
    except UsageError as error:
        say(f"python -m boxloss.profile: {error}")
        return 2
    except RefusedError as error:
        print(f"boxloss cannot serve this model: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
