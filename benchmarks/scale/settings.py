# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""How far each sweep goes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..common.cases import SEED_SHAPE
from ..common.timing import Effort


@dataclass(frozen=True)
class Settings:
    """Written into the report: a run is resumed with the same ones only."""

    pairs: tuple[str, ...]  # dtypes of the dense pairs
    sizes: tuple[int, ...]  # their numbers
    batches: tuple[int, ...]  # images of a batch, with the article's number of slots
    slots: tuple[int, ...]  # of each image, with the article's batch
    article: tuple[int, int]  # its batch and slots
    crowd: tuple[int, int]  # images and slots of the distributions
    means: tuple[float, ...]  # boxes per image of the distributions
    seconds: float  # each clock watches a group of calls so long, or for the fewest rounds
    fewest_rounds: int
    rank_sizes: tuple[int, ...]  # boxes of each rank
    parameters: tuple[int, ...]  # of the networks whose gradients ranks add up
    rank_rounds: int

    @property
    def effort(self) -> Effort:
        return Effort(self.seconds, self.fewest_rounds)


def powers(first: int, last: int) -> tuple[int, ...]:
    return tuple(10**k for k in range(first, last + 1))


GPU = Settings(
    pairs=("f32/f32", "bf16/u8"),
    sizes=powers(2, 9),
    batches=(16, 64, 256, 1024, 4096, 16_384, 65_536),
    slots=(16, 64, 256, 1024, 4096),
    article=SEED_SHAPE,
    crowd=(1024, 1024),
    means=(1.9, 100),
    seconds=0.1,
    fewest_rounds=10,
    rank_sizes=powers(2, 8),
    parameters=(25_000_000, 100_000_000),
    rank_rounds=40,
)
CPU = Settings(
    pairs=GPU.pairs,
    sizes=powers(2, 7),
    batches=(16, 64, 256, 1024, 4096),
    slots=(16, 64, 256, 1024),
    article=GPU.article,
    crowd=GPU.crowd,
    means=GPU.means,
    seconds=0.1,
    fewest_rounds=5,
    rank_sizes=powers(2, 6),
    parameters=(1_000_000, 4_000_000),
    rank_rounds=10,
)
QUICK = Settings(
    pairs=GPU.pairs,
    sizes=powers(2, 4),
    batches=(8, 32),
    slots=(16, 64),
    article=(32, 64),
    crowd=(32, 64),
    means=(1.9, 20),
    seconds=0.002,
    fewest_rounds=3,
    rank_sizes=powers(2, 3),
    parameters=(10_000, 100_000),
    rank_rounds=3,
)


def settings_for(device: torch.device, quick: bool) -> Settings:
    return QUICK if quick else CPU if device.type == "cpu" else GPU
