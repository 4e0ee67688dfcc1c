# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The losses of rotated boxes as Gaussians, by their matrices as the papers have them, in double.

Of boxes of moderate sides that are not nearly equal: matrices lose the digits of others.
"""

import csv
from collections.abc import Callable
from math import pi
from pathlib import Path
from typing import get_args

import torch
from boxloss._options import RotatedLoss
from torch import Tensor

LOSSES = get_args(RotatedLoss)


def covariances(boxes: Tensor, unit: str, spread: float, floor: float, power: float = 1) -> Tensor:
    """R diag(w² / spread + floor, h² / spread + floor)^power R'."""
    *_, w, h, angle = boxes.unbind(-1)
    angle = -angle * pi / 180 if unit == "degrees" else angle
    turn = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos()), -1)
    turn = turn.unflatten(-1, (2, 2))
    variances = torch.stack((w, h), -1).square() / spread + floor
    return turn @ torch.diag_embed(variances**power) @ turn.mT


def probiou(p: Tensor, t: Tensor, unit: str, floor: float = 1e-15) -> Tensor:
    of_p, of_t = (covariances(each, unit, 12, floor) for each in (p, t))
    mean = (of_p + of_t) / 2
    shape = torch.logdet(mean) - (torch.logdet(of_p) + torch.logdet(of_t)) / 2
    return (1 - (-square_of(p, t, mean) / 8 - shape / 2).exp()).sqrt()


def kld(p: Tensor, t: Tensor, unit: str, tau: float = 1, floor: float = 1e-15) -> Tensor:
    of_p, of_t = (covariances(each, unit, 4, floor) for each in (p, t))
    trace = trace_of(torch.linalg.solve(of_p, of_t))
    logs = torch.logdet(of_p) - torch.logdet(of_t)
    return by_distance((trace + square_of(p, t, of_p) - 2 + logs) / 2, tau)


def gwd(p: Tensor, t: Tensor, unit: str, tau: float = 1, floor: float = 1e-15) -> Tensor:
    of_p, of_t = (covariances(each, unit, 4, floor) for each in (p, t))
    root = covariances(p, unit, 4, floor, 0.5)
    cross = torch.linalg.eigvalsh(root @ of_t @ root).sqrt().sum(-1)
    square = (p - t)[..., :2].square().sum(-1) + trace_of(of_p) + trace_of(of_t) - 2 * cross
    areas = 4 * (torch.linalg.det(of_p) * torch.linalg.det(of_t)) ** 0.25
    return by_distance(square / areas, tau)


def kfiou(p: Tensor, t: Tensor, unit: str, floor: float = 1e-15) -> Tensor:
    of_p, of_t = (covariances(each, unit, 4, floor) for each in (p, t))
    product = of_p - of_p @ torch.linalg.solve(of_p + of_t, of_p)
    p_area, t_area, common = (4 * torch.linalg.det(each).sqrt() for each in (of_p, of_t, product))
    return 1 - common / (p_area + t_area - common)


def square_of(p: Tensor, t: Tensor, covariance: Tensor) -> Tensor:
    """Of the centres' distance, in units of the covariance."""
    d = (p - t)[..., :2, None]
    return (d.mT @ torch.linalg.solve(covariance, d)).squeeze((-1, -2))


def trace_of(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1).sum(-1)


def by_distance(square: Tensor, tau: float) -> Tensor:
    return 1 - 1 / (tau + torch.log1p(square.sqrt()))


FORMULAS: dict[str, Callable[..., Tensor]] = {
    function.__name__: function for function in (probiou, kld, gwd, kfiou)
}


def pairs_by_area() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """pred and target of tests/core/rotated_pairs.csv, with their exact losses without eps."""
    with (Path(__file__).parents[1] / "core/rotated_pairs.csv").open() as file:
        rows = [[float(each) for each in row[1:]] for row in list(csv.reader(file))[1:]]
    numbers = torch.tensor(rows, dtype=torch.float64)
    losses = 1 - numbers[:, 10:]
    return numbers[:, :5], numbers[:, 5:10], {"iou": losses[:, 0], "giou": losses[:, 1]}
