# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RT-DETR trained in fixed shapes and compiled, in CUDA graphs where there is a GPU: accumulated
gradients, a scaler, an average of weights, a schedule."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch.compat import FixedTargets, use_boxloss
from processes import two_processes
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from examples import rt_detr, training

MOST = 6
STEPS = 100
ACCUMULATED = 2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Change = Callable[[nn.Module], Any]


def losses_of_training(
    change: Change, steps: int = STEPS, seed: int = 0, error: float = 0.0
) -> list[Tensor]:
    """Of each step, whose batch has other counts, and the average's weights in the end. All weights
    first get a relative error of either sign. Denoising queries have no noise: compiled, its random
    numbers would be others."""
    torch.manual_seed(0)
    model = rt_detr.small_model()
    model.config.label_noise_ratio = model.config.box_noise_scale = 0.0
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1 + error * torch.randn_like(parameter).sign()
    use_boxloss(model, max_boxes=MOST)
    model.to(DEVICE).train()
    for layer in model.modules():  # after train(), which would set it again
        if type(layer).__name__.endswith("EncoderLayer"):
            layer.training = False
    run = change(model)
    for parameter in model.parameters():  # else the first gradients lie in a graph's memory
        parameter.grad = torch.zeros_like(parameter)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps // ACCUMULATED)
    scaler = torch.amp.GradScaler(DEVICE, growth_interval=10)
    torch.manual_seed(seed)
    found = []
    for step in range(steps):
        images, labels = training.transformers_batch((MOST, step % MOST, 0))
        images, wanted = images.to(DEVICE), FixedTargets.of(labels, max_boxes=MOST)
        loss = run(pixel_values=images, labels=wanted.to(DEVICE)).loss
        scaler.scale(loss / ACCUMULATED).backward()
        if step % ACCUMULATED:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=False)
            schedule.step()
            average.update_parameters(model)
        found.append(loss.detach().double().cpu())
    weights = nn.utils.parameters_to_vector(average.parameters()).detach()
    return [*found, weights.double().abs().sum().cpu()]


def eager(model: nn.Module) -> Any:
    return model


def in_graphs(model: nn.Module) -> Any:
    """Without a GPU the compiler makes no code, which takes minutes."""
    if DEVICE == "cuda":
        return torch.compile(model, mode="reduce-overhead")
    return torch.compile(model, backend="aot_eager")


@pytest.mark.long
def test_the_same_losses_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled sums are in another order. They change no more than errors of some units in the last
    place of each weight do, which every step repeats in its own roundings."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    plain, compiled, *perturbed = (
        torch.stack(losses_of_training(change, error=units * torch.finfo().eps))
        for change, units in ((eager, 0), (in_graphs, 0), *((eager, 2**i) for i in range(4)))
    )
    allowed = (torch.stack(perturbed) / plain - 1).abs().max()
    assert 0 < allowed < 1e-3
    assert (compiled / plain - 1).abs().max() <= STEPS**0.5 * allowed


def on_a_rank(rank: int) -> None:
    distributed.init_process_group("gloo")

    def compiled(model: nn.Module) -> Any:
        return torch.compile(DistributedDataParallel(model), backend="aot_eager")

    wanted, found = (
        torch.stack(losses_of_training(way, 6, rank)).float()
        for way in (DistributedDataParallel, compiled)
    )
    torch.testing.assert_close(found, wanted)
    distributed.destroy_process_group()


@pytest.mark.long
def test_in_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, whose sums have one order."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    two_processes(on_a_rank)
