# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Training on a device that neither torch nor boxloss knows, beside the same on the CPU.

    python train.py build/toy_backend.so

The device comes from two libraries: torch_device gives torch its tensors, toy_backend.cpp gives
boxloss its loops. The weights, features and boxes of "toy" stay in the device's memory.
"""

import sys

import boxloss
import boxloss.torch  # the losses: they take tensors of any device that has a backend
import torch
from boxloss.torch import giou_loss
from torch import Tensor, nn
from torch_device import toy_device as toy_device  # gives torch the device

STEPS = 5

# Both devices compute the loss in float32 by the same formula, and the rest of the step by torch's
# operators of the CPU. So they differ by roundings, if at all: where a compiler fuses products and
# sums, or sums are in another order. A rounding is at most 2^-24 of a result; those of a GIoU,
# whose terms are at most 1, add up to fewer than 40 in each of the two, and a step of this head, at
# this rate, passes no more on to the weights.
ROUNDING = 2.0**-24


def train(device: str) -> tuple[list[float], Tensor]:
    """The loss of each step, and the weights afterwards."""
    torch.manual_seed(0)
    features = torch.randn(2, 4, 8).to(device)
    # The first image has three ground-truth boxes, the second one: a list, and where images begin.
    target = torch.tensor(
        [[0.3, 0.3, 0.2, 0.4], [0.7, 0.4, 0.3, 0.3], [0.5, 0.8, 0.8, 0.2], [0.4, 0.6, 0.5, 0.5]]
    ).to(device)
    offsets = torch.tensor([0, 3, 4]).to(device)
    head = nn.Linear(8, 4).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        boxes = head(features).sigmoid()  # centre and size, in an image whose sides are 1
        loss = giou_loss(
            boxes, target, offsets=offsets, pred_format="cxcywh", target_format="cxcywh"
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, head.weight.detach().cpu()


def refusal() -> str:
    """What toy/example does not serve is refused, not computed elsewhere in silence."""
    boxes = torch.rand(3, 4).to("toy")
    index = torch.tensor([2, 0]).to("toy")
    try:
        giou_loss(boxes, boxes, pred_index=index, target_index=index)
    except TypeError as error:
        return str(error)
    raise AssertionError("pairs by index were computed")


def main(backend: str) -> None:
    boxloss.load_backend(backend)
    print("implementations:", ", ".join(boxloss.torch.implementations()))

    on_toy, weights = train("toy")
    on_cpu, expected = train("cpu")
    print("step         toy         cpu")
    for step, losses in enumerate(zip(on_toy, on_cpu, strict=True)):
        print(f"{step:4}" + "".join(f"{loss:12.8f}" for loss in losses))
    bound = STEPS * 2 * 40 * ROUNDING
    torch.testing.assert_close(on_toy, on_cpu, rtol=0, atol=bound)
    torch.testing.assert_close(weights, expected, rtol=0, atol=bound)
    apart = (weights - expected).abs().max().item()
    print(f"Then the weights are within {apart:.1e}, of {bound:.1e} that roundings may make.")

    print("pairs by index:", refusal())


if __name__ == "__main__":
    main(*sys.argv[1:])
