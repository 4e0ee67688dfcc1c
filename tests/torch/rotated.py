# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Pairs of rotated boxes whose losses by area are known."""

import csv
from pathlib import Path
from typing import get_args

import torch
from boxloss._options import RotatedLoss
from torch import Tensor

LOSSES = get_args(RotatedLoss)


def pairs_by_area() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """pred and target of tests/core/rotated_pairs.csv, with their exact losses without eps."""
    with (Path(__file__).parents[1] / "core/rotated_pairs.csv").open() as file:
        rows = [[float(each) for each in row[1:]] for row in list(csv.reader(file))[1:]]
    numbers = torch.tensor(rows, dtype=torch.float64)
    losses = 1 - numbers[:, 10:]
    return numbers[:, :5], numbers[:, 5:10], {"iou": losses[:, 0], "giou": losses[:, 1]}
