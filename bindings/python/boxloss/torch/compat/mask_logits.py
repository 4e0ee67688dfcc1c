# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What a layer predicts: the logits of masks, or features and queries, whose product they are."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Product(NamedTuple):
    """Logits as rfdetr's head gives them in training.

    Attributes:
        features: (images, channels, height, width). queries: (images, queries, channels).
        bias: of one element.
    """

    features: Tensor
    queries: Tensor
    bias: Tensor


Logits = Tensor | Product  # (images, queries, height, width)


def wide(values: Tensor) -> Tensor:
    """At least in float32."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class Sampling(NamedTuple):
    """Of grid_sample.

    Attributes:
        mode: of ground truth; predictions are sampled by "bilinear".
        padding: of both, beyond the outermost pixels' centres.
    """

    mode: str = "bilinear"
    padding: str = "zeros"


def at(masks: Tensor, points: Tensor, mode: str = "bilinear", padding: str = "zeros") -> Tensor:
    """Of (n, masks, height, width) at (n, points, 2), in [-1, 1], as theirs: (n, masks, points), at
    least in float32."""
    masks = wide(masks)
    grid = points[:, :, None].to(masks.dtype)
    found = functional.grid_sample(masks, grid, mode, padding, align_corners=False)
    return found[..., 0]


def logits_at(layer: Logits, points: Tensor, padding: str) -> Tensor:
    """(images, queries, points), of points as in `at`. Features are sampled first: they are fewer
    than queries."""
    if isinstance(layer, Tensor):
        return at(layer, points, padding=padding)
    return wide(layer.queries) @ at(layer.features, points, padding=padding) + wide(layer.bias)


def logits_of(layer: Logits, rows: Tensor, counts: Sequence[int]) -> Tensor:
    """(n, height, width), of rows of (images * queries).

    Args:
        counts: of a product how many rows each image has, image after image. One product for all
            would be of as many as the fullest has, at full size.
    """
    if isinstance(layer, Tensor):
        return layer.flatten(0, 1).index_select(0, rows)
    queries = layer.queries.flatten(0, 1).index_select(0, rows).split(counts)
    features = layer.features.flatten(2)
    own = [each @ its for each, its in zip(queries, features, strict=True)]
    return (torch.cat(own) + layer.bias).unflatten(1, layer.features.shape[2:])
