# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's FCOS, trained with its own head's loss and with boxloss in its place.

    python -m examples.fcos

The loss is boxloss/torch/compat/families/fcos.py. The model is small and random. Needs boxloss and
torchvision.
"""

from boxloss.torch.compat import use_boxloss
from torch import nn
from torchvision.models.detection import FCOS
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.fcos import FCOSHead

from examples import training
from examples.training import STEPS, Replace, Run, keep

SIDE = 128  # of images, in pixels


def small_model() -> FCOS:
    backbone = nn.Sequential(nn.Conv2d(3, 32, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 32
    head = FCOSHead(in_channels=32, num_anchors=1, num_classes=5, num_convs=1)
    nn.init.constant_(head.regression_head.bbox_reg.bias, 2.0)  # begin with boxes of 32 pixels
    anchors = AnchorGenerator(((8,),), ((1.0,),))
    return FCOS(backbone, num_classes=5, min_size=SIDE, anchor_generator=anchors, head=head)


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    return training.train_torchvision(small_model, SIDE, replace, seed, steps)


if __name__ == "__main__":
    training.show("The box loss", train(), boxloss=train(use_boxloss))
