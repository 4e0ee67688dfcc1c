# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What strides can express is read where it lies, and gradients lie like their boxes."""

import pytest
import torch
from boxloss.torch import box_loss, box_losses, giou_loss
from devices import Implementation
from layouts import Arrange, in_planes, in_rows_of_85, transposed, with_gaps
from problems import Problem, boxes, problem
from torch import Tensor

pytestmark = pytest.mark.asan


def head_output(device: torch.device, shape: tuple[int, ...] = (2, 3, 5)) -> Tensor:
    """(images, 4, height, width)"""
    return boxes(shape, device, seed=1).movedim(-1, 1).contiguous()


def permuted(head: Tensor) -> Tensor:
    return head.permute(0, 2, 3, 1)


def flattened(head: Tensor) -> Tensor:
    return head.flatten(2).transpose(1, 2)


def copies_made(values: Problem) -> int:
    """How many tensors the call copies before it computes."""
    with torch.profiler.profile() as profile:
        giou_loss(**values)
    return sum(event.name == "aten::clone" for event in profile.events())


def test_only_what_strides_cannot_express_is_copied(device: torch.device) -> None:
    values = problem("mask", device)
    values["pred"] = in_rows_of_85(values["pred"])
    assert copies_made(values) == 0
    values["pred"] = transposed(values["pred"])
    assert copies_made(values) == 0
    values["mask"] = with_gaps(values["mask"])
    assert copies_made(values) == 1
    target = boxes((2, 3, 5), device)
    collapsing = boxes((5, 2, 3), device).permute(1, 2, 0, 3)
    reversed_order = boxes((5, 3, 2), device).permute(2, 1, 0, 3)
    planes = boxes((2, 3, 5), device).movedim(-1, 1).contiguous().movedim(1, -1)
    anchors = boxes((2, 3, 5), device).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for pred, copies in ((collapsing, 0), (reversed_order, 1), (planes, 0), (anchors, 1)):
        assert copies_made({"pred": pred, "target": target}) == copies


@pytest.mark.parametrize("view", [permuted, flattened])
def test_a_head_gets_its_gradient_without_a_copy(
    implementation: Implementation, view: Arrange
) -> None:
    head = head_output(implementation.device)
    target = torch.zeros_like(view(head))
    target[..., 2:] = 32
    leaf = head.clone().requires_grad_()
    with torch.profiler.profile() as profile:
        box_loss(view(leaf), target).backward()
    copies = [e.name for e in profile.events() if e.name in ("aten::clone", "aten::copy_")]
    assert copies == []
    assert leaf.grad is not None
    assert leaf.grad.is_contiguous()
    other = head.clone().requires_grad_()
    box_loss(view(other).contiguous(), target).backward()
    torch.testing.assert_close(leaf.grad, other.grad)


def test_each_incoming_gradient_has_strides_of_its_own(implementation: Implementation) -> None:
    pred, target = (boxes((2, 5), implementation.device, seed=seed) for seed in (1, 2))
    loss, l1, _ = box_losses(pred.requires_grad_(), target, reduction="none")
    by_loss, by_l1 = torch.rand(2, 2, 5, device=pred.device)
    expected, *others = (
        torch.autograd.grad((loss, l1), pred, grads, retain_graph=True)
        for grads in ((by_loss, by_l1), (in_planes(by_loss), by_l1), (by_loss, in_planes(by_l1)))
    )
    for gradient in others:
        torch.testing.assert_close(gradient, expected)
