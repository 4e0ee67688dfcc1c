# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The same values, lying in memory in other ways."""

from collections.abc import Callable

from torch import Tensor

Arrange = Callable[[Tensor], Tensor]


def contiguous(values: Tensor) -> Tensor:
    return values.contiguous()


def in_planes(values: Tensor) -> Tensor:
    """Coordinate after coordinate of each image."""
    return values.mT.contiguous().mT


def transposed(values: Tensor) -> Tensor:
    return values.transpose(0, -2).contiguous().transpose(0, -2)


def scattered(values: Tensor) -> Tensor:
    """With something else between any two of the numbers."""
    wide = values.new_full((*values.shape, 2), float("nan") if values.is_floating_point() else 99)
    wide[..., 0] = values
    return wide[..., 0]


def in_rows_of_85(values: Tensor) -> Tensor:
    """A slice of rows that hold something else around it, which does not lie on 16 bytes."""
    rows = values.new_full(
        (*values.shape[:-1], 85), float("nan") if values.is_floating_point() else 99
    )
    own = rows[..., 1 : 1 + values.shape[-1]]
    own.copy_(values)
    return own


def slot_gaps(values: Tensor) -> Tensor:
    return with_gaps(values, -2)


def with_gaps(values: Tensor, dim: int = -1) -> Tensor:
    """Along one dimension."""
    return values.repeat_interleave(2, dim).movedim(dim, 0)[::2].movedim(0, dim)


def first_dimension_last(values: Tensor) -> Tensor:
    return values.movedim(0, -1).contiguous().movedim(-1, 0)


def one_image(values: Tensor) -> Tensor:
    """Other values: the first image's, expanded."""
    return values[:1].expand_as(values)


# Without gaps or overlaps: gradients lie like them.
DENSE: tuple[Arrange, ...] = (contiguous, in_planes, transposed)
LAYOUTS = (*DENSE, scattered, in_rows_of_85, slot_gaps, one_image)
