# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's RetinaNet, trained with its own matcher and losses and with boxloss' instead.

    python -m examples.retinanet

They are boxloss/torch/compat/families/retinanet.py. The model is small and random. Needs boxloss
and torchvision.
"""

from boxloss.torch.compat import use_boxloss
from torch import nn
from torchvision.models.detection import RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.retinanet import RetinaNetHead

from examples import training
from examples.training import STEPS, Replace, Run, keep

SIDE = 64  # of images, in pixels


def small_model(loss: str = "giou") -> RetinaNet:
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 16
    anchors = AnchorGenerator(((16, 24, 32),), ((0.5, 1.0, 2.0),))
    number = anchors.num_anchors_per_location()[0]
    head = RetinaNetHead(in_channels=16, num_anchors=number, num_classes=5)
    head.regression_head._loss_type = loss
    return RetinaNet(backbone, num_classes=5, min_size=SIDE, anchor_generator=anchors, head=head)


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    return training.train_torchvision(small_model, SIDE, replace, seed, steps)


if __name__ == "__main__":
    training.show("The box loss", train(), boxloss=train(use_boxloss))
