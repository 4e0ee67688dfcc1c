# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What ``python -m boxloss.profile`` leaves out to measure what a criterion takes."""

from collections.abc import Callable
from typing import Any

import pytest
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.stand_in import ImpossibleError, put_stand_ins
from small_torchvision import SMALL
from torch import Tensor

from examples import faster_rcnn, mask2former, retinanet, rt_detr, yolo
from examples.training import torchvision_batch, transformers_batch

images, labels = transformers_batch()
masks, batch, pictures = mask2former.batch(2, 0), yolo.random_batch(), torchvision_batch(64)

Loss = Callable[[Any], Tensor]


def of_rt_detr(model: Any) -> Tensor:
    return model(pixel_values=images, labels=labels).loss


def of_yolo(model: Any) -> Tensor:
    return model(batch)[0].sum()


def of_torchvision(model: Any) -> Tensor:
    return sum(model(*pictures).values())


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (rt_detr.small_model, of_rt_detr),
        (mask2former.small_model, lambda model: model(**masks).loss),
        (yolo.small_model, of_yolo),
        (lambda: yolo.small_model(**yolo.LIKE_26), of_yolo),
        (retinanet.small_model, of_torchvision),
    ],
    ids=["RT-DETR", "Mask2Former", "YOLO11", "YOLO26", "RetinaNet"],
)
def test_the_criterion_is_left_out_and_the_network_learns(
    make: Callable[[], Any], loss: Loss
) -> None:
    model = make().train()
    use_boxloss(model)
    loss(model).backward()
    learned = {name for name, each in model.named_parameters() if each.grad is not None}
    for each in put_stand_ins(model, loss):
        each.criterion = None  # it cannot be called
    model.zero_grad()
    loss(model).backward()
    assert {name for name, each in model.named_parameters() if each.grad is not None} == learned


@pytest.mark.parametrize("make", [faster_rcnn.small_model, SMALL["SSD"]])
def test_a_matcher_alone_cannot_be_left_out(make: Callable[[], Any]) -> None:
    model = make().train()
    use_boxloss(model)
    with pytest.raises(ImpossibleError, match="boxloss replaces no loss that the step calls"):
        put_stand_ins(model, of_torchvision)
