# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What one build says of itself, as JSON: times, and the bits of its results.

It uses nothing but what every build has had from the first on, `giou_loss`, or `box_loss` for
another loss.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import boxloss.torch
import torch
from torch import Tensor

from ..common.cases import DENSE_PAIRS, Case, dense_case, seed_case
from ..common.groups import BOTH, FORWARD
from ..common.timing import Calls, Effort, gpu_times, host_times, wall_times

SIZES = {"cuda": (2**18, 2**25), "cpu": (2**12, 2**18)}
EFFORT = Effort(0.15, 5)
HOST_CALLS_AHEAD = 200

Loss = Callable[..., Tensor]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", required=True)
    parser.add_argument("--loss", required=True)
    parser.add_argument("--pairs", nargs="+", required=True)
    options = parser.parse_args()
    device = torch.device(options.device)
    loss: Loss = (
        boxloss.torch.giou_loss
        if options.loss == "giou"
        else partial(boxloss.torch.box_loss, loss=options.loss)
    )
    times: dict[str, dict[str, float]] = {}
    digests: dict[str, str] = {}
    for pair in options.pairs:
        for case in cases(pair, device):
            for layout, arguments in calls_of(case).items():
                name = f"{case.name}, {layout}"
                call = partial(loss, case.pred, **arguments)
                times[name] = measure(call, case.pred, device)
                digests[name] = digest(call, case.pred)
            torch.cuda.empty_cache()
    for pair in DENSE_PAIRS:
        digests |= kinks(loss, pair, device)
    json.dump({"times": times, "digests": digests}, sys.stdout)
    return 0


def cases(pair: str, device: torch.device) -> list[Case]:
    dense = [dense_case(pair, boxes, device) for boxes in SIZES[device.type]]
    return [seed_case(pair, device), *dense]


def calls_of(case: Case) -> dict[str, dict[str, Any]]:
    if case.kind == "dense":
        return {"dense": {"target": case.layouts["dense"][0]}}
    padded, lengths = case.layouts["lengths"]
    flat, offsets = case.layouts["offsets"]
    return {
        "padded": {"target": padded, "zero_padded": True},
        "lengths": {"target": padded, "lengths": lengths},
        "ragged": {"target": flat, "offsets": offsets},
    }


def measure(call: Callable[[], Tensor], pred: Tensor, device: torch.device) -> dict[str, float]:
    def forward() -> Tensor:
        with torch.no_grad():
            return call()

    def both() -> Tensor:
        (gradient,) = torch.autograd.grad(call(), pred)
        return gradient

    calls: Calls = {FORWARD: forward, BOTH: both}
    if device.type == "cpu":
        return wall_times(calls, device, EFFORT)
    gpu, refused = gpu_times(calls, EFFORT)
    if refused:
        raise RuntimeError(f"cannot be captured: {refused}")
    host = host_times(calls, device, EFFORT, HOST_CALLS_AHEAD)
    return gpu | {f"{name}, host": seconds for name, seconds in host.items()}


def digest(call: Callable[..., Tensor], *leaves: Tensor) -> str:
    """Of the bits of the loss and of its gradients, where NaN is NaN, of whatever sign."""
    loss = call()
    results = [loss, *torch.autograd.grad(loss.sum(), leaves)]
    bits = hashlib.sha256()
    for result in results:
        flat = result.detach().cpu().flatten()
        flat = flat.masked_fill(flat.isnan(), torch.nan)
        bits.update(flat.view(torch.uint8).numpy().tobytes())
    return bits.hexdigest()


def kinks(loss: Loss, pair: str, device: torch.device) -> dict[str, str]:
    """Small integers, among them ties, identical, empty and inverted boxes; NaN, formats, modes."""
    generator = torch.Generator().manual_seed(1)
    shape = (64, 33, 4)
    pred_dtype, target_dtype = (each.dtype for each in dense_pair(pair))
    pred = torch.randint(0, 5, shape, generator=generator).to(pred_dtype)
    pred[::7, 0, 1] = torch.nan
    target = torch.randint(0, 5, shape, generator=generator).to(target_dtype)
    weight = torch.rand(shape[:-1], generator=generator).to(device).requires_grad_()
    pred, target = pred.to(device).requires_grad_(), target.to(device)
    leaves = [pred, weight]
    if target.is_floating_point():
        leaves.append(target.requires_grad_())
    digests = {}
    for mode, eps in (("add", 1e-7), ("clamp", 4.0), ("add", 0.0)):
        for form in ("xyxy", "xywh", "cxcywh"):
            for reduction in ("none", "mean"):
                call = partial(
                    loss,
                    pred,
                    target,
                    weight=weight,
                    reduction=reduction,
                    eps=eps,
                    eps_mode=mode,
                    pred_format=form,
                )
                digests[f"kinks, {pair}, {form}, {mode} {eps}, {reduction}"] = digest(call, *leaves)
    return digests


def dense_pair(pair: str) -> tuple[Tensor, Tensor]:
    case = dense_case(pair, 1, torch.device("cpu"))
    return case.pred, case.layouts["dense"][0]


if __name__ == "__main__":
    sys.exit(main())
