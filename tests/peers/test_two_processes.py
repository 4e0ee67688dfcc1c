# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Two processes (gloo) with boxloss and with the originals: what ends, what hangs, and whether both
learn the same. docs/detectors.md has the table."""

from contextlib import nullcontext
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rf_detr
import torch
from accelerate import PartialState
from boxloss.torch.compat import has_boxloss, use_boxloss
from boxloss.torch.compat.proof import CLOSE
from models import Batch, made, project_of
from processes import divide_once, two_processes
from torch import Tensor, distributed, multiprocessing, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves, tree_map_only
from transformers import Trainer, TrainingArguments

from examples.training import Replace, keep, transformers_batch

PATIENCE = timedelta(seconds=60)  # of a rank that waits for the other
FEW, MORE, NONE = (1, 2), (3, 0, 5), (0, 0)


class Scene(NamedTuple):
    """The numbers of boxes of each rank's images, a batch for each step."""

    first: tuple[tuple[int, ...], ...]
    second: tuple[tuple[int, ...], ...]
    accumulates: bool = False
    finds_unused: bool = False
    joins: bool = False  # until both have no more batches
    evaluates: bool = False  # the first rank alone, at last
    shards: bool = False  # parameters, by FSDP


SCENES = {
    "a rank without boxes": Scene((NONE, MORE), (FEW, MORE)),
    "and unused parameters found": Scene((NONE, MORE), (FEW, MORE), finds_unused=True),
    "a step without boxes": Scene((NONE, MORE), (NONE, MORE)),
    "accumulated gradients": Scene((MORE, FEW), (FEW, FEW), accumulates=True),
    "a smaller last batch": Scene((MORE, (2,)), (MORE, MORE)),
    "a batch more": Scene((MORE, FEW, MORE), (FEW, MORE), joins=True),
    "a rank evaluates": Scene((MORE,), (FEW,), evaluates=True),
    "shards": Scene((FEW, MORE), (MORE, FEW), shards=True),
}
# The original's fate and boxloss'; all else ends, and learns the same.
FATES = {
    ("DETR", "a rank evaluates"): ("hangs", "ends"),
    ("DETR", "a batch more"): ("aborts", "aborts"),
    ("RT-DETR", "a rank without boxes"): ("lacks gradients", "lacks gradients"),
    ("RT-DETR", "a step without boxes"): ("lacks gradients", "lacks gradients"),
    ("RF-DETR", "a rank evaluates"): ("hangs", "hangs"),
    ("RF-DETR", "a batch more"): ("aborts", "aborts"),
}
WORDS = {"imed out": "hangs", "Expected to have finished reduction": "lacks gradients"}
NAMES = ["DETR", "RT-DETR", "RF-DETR", "YOLO11", "RetinaNet"]
WAYS = keep, use_boxloss
Job = tuple[str, Replace]


class OfOutputs(nn.Module):
    """rfdetr's criterion behind a network of one parameter."""

    def __init__(self, criterion: nn.Module) -> None:
        super().__init__()
        self.criterion = criterion
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, outputs: Any, targets: Any) -> Tensor:
        outputs = tree_map_only(Tensor, lambda each: self.scale * each, outputs)
        return rf_detr.total_of(self.criterion, self.criterion(outputs, targets))


def run(name: str, scene: Scene, replace: Replace, rank: int) -> tuple[Tensor, Tensor]:
    """Losses and gradients."""
    model, loss_of = made(name), project_of(name).loss
    replace(model)
    assert has_boxloss(model) == (replace is use_boxloss)
    if name == "RF-DETR":
        model, loss_of = OfOutputs(model), lambda model, batch: model(**batch)
    if scene.shards:
        parallel = fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    else:
        parallel = DistributedDataParallel(model, find_unused_parameters=scene.finds_unused)
    steps = scene[rank]
    losses = []
    with parallel.join() if scene.joins else nullcontext():
        for step, counts in enumerate(steps):
            torch.manual_seed(step)
            batch = project_of(name).batch(counts)
            waits = scene.accumulates and step < len(steps) - 1
            with parallel.no_sync() if waits else nullcontext():
                loss = loss_of(parallel, batch)
                loss.backward()
            losses.append(loss.detach())
    if scene.evaluates and rank == 0:
        with torch.no_grad():
            losses.append(loss_of(model.train(name == "RetinaNet"), batch))
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    whole = [each.full_tensor() if scene.shards else each for each in gradients]
    return torch.stack(losses), nn.utils.parameters_to_vector(whole)


def on_a_rank(rank: int, name: str, jobs: list[Job], folder: Path) -> None:
    divide_once()
    store = distributed.FileStore(f"{folder}/store", 2)
    results: list[Any] = []
    for number, (scene, replace) in enumerate(jobs):
        own = distributed.PrefixStore(f"{number}", store)
        distributed.init_process_group("gloo", timeout=PATIENCE, world_size=2, rank=rank, store=own)
        PartialState(cpu=True)
        try:
            results.append(run(name, SCENES[scene], replace, rank))
        except Exception as error:
            results.append(f"{error}")
        store.set(f"{number} {rank}", "")
        if not isinstance(results[-1], str):  # the other may still ask this process
            store.wait([f"{number} {1 - rank}"])
        PartialState._reset_state()
        distributed.destroy_process_group()
    torch.save(results, folder / f"{rank}")


def fates(name: str, jobs: list[Job], folder: Path) -> dict[Job, Any]:
    """A word, or what both ranks have."""
    folder.mkdir()
    try:
        two_processes(on_a_rank, name, jobs, folder)
    except multiprocessing.ProcessExitedException as error:
        if error.signal_name != "SIGABRT":
            raise
        return dict.fromkeys(jobs, "aborts")
    found: dict[Job, Any] = {}
    ranks = [torch.load(folder / f"{rank}") for rank in range(2)]
    for job, *both in zip(jobs, *ranks, strict=True):
        errors = " ".join(each for each in both if isinstance(each, str))
        words = [word for text, word in WORDS.items() if text in errors]
        assert len(words) == bool(errors), errors
        found[job] = words[0] if words else both
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_scenes(name: str, tmp_path: Path) -> None:
    jobs = list(product(SCENES, WAYS))
    fatal = [job for job in jobs if "aborts" in FATES.get((name, job[0]), ())]
    results = fates(name, [each for each in jobs if each not in fatal], tmp_path / "all")
    for number, job in enumerate(fatal):
        results |= fates(name, [job], tmp_path / str(number))
    for scene in SCENES:
        theirs, ours = (results[scene, way] for way in WAYS)
        found = tuple(each if isinstance(each, str) else "ends" for each in (theirs, ours))
        assert found == FATES.get((name, scene), ("ends", "ends")), scene
        if found == ("ends", "ends"):
            for one, other in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
                assert (one - other).norm() <= CLOSE / 10 * other.norm(), scene


def collate(items: list[dict[str, Any]]) -> Batch:
    pixels = torch.stack([each["pixel_values"] for each in items])
    return {"pixel_values": pixels, "labels": [each["labels"] for each in items]}


def train_on_a_rank(rank: int, folder: Path) -> None:
    """By transformers' Trainer; an epoch's last step has fewer images."""
    divide_once()
    torch.manual_seed(0)
    pairs = zip(*transformers_batch((3, 0, 5, 0, 0, 1, 2)), strict=True)
    images = [{"pixel_values": pixels, "labels": labels} for pixels, labels in pairs]
    options = {"use_cpu": True, "max_steps": 4, "optim": "sgd", "disable_tqdm": True}
    options |= {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    options |= {"report_to": "none", "save_strategy": "no", "learning_rate": 0.01}
    options |= {"prediction_loss_only": True}
    for replace in WAYS:
        model = made("DETR")
        replace(model)
        states = [nn.utils.parameters_to_vector(model.parameters()).detach()]
        arguments = TrainingArguments(f"{folder}/{rank}", **options)
        trainer = Trainer(model, arguments, collate, images, images)
        trainer.train()
        assert trainer.evaluate()["eval_loss"] > 0
        assert has_boxloss(model) == (replace is use_boxloss)
        states.append(nn.utils.parameters_to_vector(model.parameters()).detach())
        torch.save(states, folder / f"{replace.__name__} {rank}")


@pytest.mark.long
def test_trainer(tmp_path: Path) -> None:
    two_processes(train_on_a_rank, tmp_path)
    for rank in range(2):
        start, end = torch.load(tmp_path / f"keep {rank}")
        _, other_end = torch.load(tmp_path / f"use_boxloss {rank}")
        assert 0 < (other_end - end).norm() <= CLOSE / 10 * (end - start).norm()
