# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python export_model.py model.pt2`` writes the package that aot_inductor.cpp runs.

It needs a C++ compiler, which AOTInductor calls.
"""

import sys

import torch
from boxloss.torch import box_loss
from torch import Tensor, nn

IMAGES, SLOTS, FEATURES = 2, 4, 8


class Validation(nn.Module):
    """A head that predicts boxes, and how far these are from the true ones."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(FEATURES, 4)

    def forward(self, features: Tensor, target: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        pred = self.head(features).sigmoid()
        return pred, box_loss(
            pred,
            target,
            "ciou",
            offsets=offsets,
            pred_format="cxcywh",
            target_format="cxcywh",
        )


torch.manual_seed(0)
example = torch.rand(IMAGES, SLOTS, FEATURES), torch.rand(3, 4), torch.tensor([0, 1, 3])
boxes = torch.export.Dim("boxes")  # the number of ground-truth boxes differs between batches
program = torch.export.export(Validation().eval(), example, dynamic_shapes=(None, {0: boxes}, None))
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
