# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""torchvision's Faster R-CNN, trained with its own matching and with boxloss in its place.

    python -m examples.faster_rcnn

The matching is boxloss/torch/compat/families/faster_rcnn.py. The losses, smooth L1 of deltas, stay
torchvision's own. The model is small and random. Needs boxloss and torchvision.
"""

from boxloss.torch.compat import use_boxloss
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.ops import MultiScaleRoIAlign

from examples import training
from examples.training import STEPS, Replace, Run, keep

SIDE = 64  # of images, in pixels


def small_model(kind: type[FasterRCNN] = FasterRCNN, **parts: nn.Module) -> FasterRCNN:
    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=8, padding=1), nn.ReLU())
    backbone.out_channels = 16
    return kind(
        backbone,
        min_size=SIDE,
        rpn_anchor_generator=AnchorGenerator(((16, 24, 32),), ((0.5, 1.0, 2.0),)),
        rpn_post_nms_top_n_train=100,
        box_roi_pool=MultiScaleRoIAlign(["0"], output_size=3, sampling_ratio=2),
        box_head=TwoMLPHead(16 * 3 * 3, 32),
        box_predictor=FastRCNNPredictor(32, 5),
        **parts,
    )


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    shown = "loss_rpn_box_reg"
    return training.train_torchvision(small_model, SIDE, replace, seed, steps, shown)


if __name__ == "__main__":
    training.show("The proposals' box loss", train(), boxloss=train(use_boxloss))
