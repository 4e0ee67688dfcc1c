# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Assignment: from a matching cost to the pairs of least total cost, as indices for the losses."""

from importlib import import_module
from itertools import pairwise
from operator import index
from typing import Any

import torch
from torch import Tensor


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"hungarian_match needs {name}, which cannot be imported: pip install scipy"
        ) from error


def _check_tensors(cost: Tensor, offsets: Tensor) -> None:
    for name, tensor in (("cost", cost), ("offsets", offsets)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}; it must be a tensor")
    if cost.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"cost is {cost.dtype}; it must be float32 or float64")
    if cost.dim() not in (2, 3):
        raise ValueError(
            f"cost has shape {tuple(cost.shape)}; it must be (queries, T) or (layers, queries, T)"
        )
    if offsets.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"offsets is {offsets.dtype}; it must be int32 or int64")
    if offsets.dim() != 1 or not len(offsets):
        raise ValueError(f"offsets has shape {tuple(offsets.shape)}; it must be (images + 1,)")
    if not offsets.is_cpu and offsets.device != cost.device:
        raise RuntimeError(
            f"offsets is on {offsets.device}, cost on {cost.device}; "
            "offsets must be there or on the CPU"
        )


def _queries_of_group(groups: int, queries: int) -> int:
    try:
        groups = index(groups)
    except TypeError:
        raise TypeError(f"groups is {groups!r}; it must be an integer") from None
    if groups < 1:
        raise ValueError(f"groups is {groups}; it must be at least 1")
    if queries % groups:
        raise ValueError(f"groups is {groups}; cost has {queries} queries, which it must divide")
    return queries // groups


def _check_offsets(offsets: list[int], columns: int) -> None:
    for b, offset in enumerate(offsets):
        if not 0 <= offset <= columns:
            raise ValueError(f"offsets[{b}] is {offset}; it must lie in [0, {columns}]")
        if b > 0 and offset < offsets[b - 1]:
            raise ValueError(
                f"offsets[{b}] is {offset}, less than offsets[{b - 1}], which is {offsets[b - 1]}; "
                "offsets must not decrease"
            )


def _on_host(tensors: list[Tensor]) -> list[Tensor]:
    """Copies to the host, with one synchronization for all tensors on the GPU."""
    cuda = next((each.device for each in tensors if each.is_cuda), None)
    if cuda is None:
        return [each.cpu() for each in tensors]
    copies = [
        torch.empty(each.shape, dtype=each.dtype, device="cpu", pin_memory=True).copy_(
            each, non_blocking=True
        )
        if each.is_cuda
        else each
        for each in tensors
    ]
    torch.cuda.current_stream(cuda).synchronize()
    return copies


def _assigned(
    solve: Any, layers: Any, images: list[tuple[int, int, int]], starts: range
) -> tuple[list[Any], list[Any]]:
    """SciPy's assignment: queries and columns, counted from each group's and image's first."""
    size = starts.step
    queries, columns = [], []
    for i, layer in enumerate(layers):
        for b, first, last in images:
            for start in starts:
                block = layer[start : start + size, first:last]
                try:
                    # SciPy would transpose it itself, but slower.
                    if last - first < size:
                        of_columns, of_queries = solve(block.T)
                    else:
                        of_queries, of_columns = solve(block)
                except ValueError as error:
                    raise ValueError(
                        f"cost of layer {i}, image {b}, group {start // size} has no assignment: "
                        f"{error}; matching_cost's argument nonfinite puts a number for NaN and "
                        "infinities"
                    ) from error
                queries.append(of_queries)
                columns.append(of_columns)
    return queries, columns


def hungarian_match(cost: Tensor, offsets: Tensor, *, groups: int = 1) -> tuple[Tensor, Tensor]:
    """The pairs of least total cost, for box_loss(..., pred_index=..., target_index=...).

    SciPy's linear_sum_assignment assigns each image's queries to its own columns, one layer and
    image after the other. The cost is copied to the host at once, the only synchronization with a
    GPU. Needs SciPy: ``pip install scipy``.

    Args:
        cost: (queries, T) or (layers, queries, T), float32 or float64, as from matching_cost.
        offsets: (images + 1), int32 or int64, on cost's device or on the CPU: image b owns columns
            offsets[b] to offsets[b + 1]. Columns of no image are in no pair.
        groups: the number of groups of consecutive queries that an image's are split into; each
            group is assigned separately, so that a true box has up to `groups` queries.

    Returns:
        pred_index and target_index, int64, on cost's device: (layers, pairs), or (pairs) for a cost
        without layers. Rows of pred (layers, images, queries, 4) and of target, as collate_matches
        numbers them: image after image, in each group after group. All layers have equally many
        pairs, so there is no padding. They are contiguous views of one tensor.

    Raises:
        ValueError: a bad shape; offsets that decrease or lie outside [0, T]; groups that do not
            divide the queries; NaN or -inf in an image's cost, or so many +inf that no assignment
            is feasible: matching_cost's nonfinite replaces them.
        TypeError: a bad dtype. RuntimeError: offsets on another device. ImportError: no SciPy.
    """
    numpy, optimize = _imported("numpy"), _imported("scipy.optimize")
    _check_tensors(cost, offsets)
    per_group = _queries_of_group(groups, cost.shape[-2])
    host, host_offsets = _on_host([cost.detach(), offsets])
    owned = host_offsets.tolist()
    _check_offsets(owned, cost.shape[-1])
    layers = (host if host.dim() == 3 else host[None]).numpy()
    _, queries, _ = layers.shape
    starts = range(0, queries, max(per_group, 1))
    images = [(b, first, last) for b, (first, last) in enumerate(pairwise(owned)) if first < last]
    # For each block of a layer: its number of pairs, its first query, and its first column.
    blocks = [
        (min(per_group, last - first), b * queries + start, first)
        for b, first, last in images
        for start in starts
    ]
    sizes, first_queries, first_columns = zip(*blocks, strict=True) if blocks else ((), (), ())
    rows = torch.empty(
        (2, len(layers), sum(sizes)), dtype=torch.int64, device="cpu", pin_memory=cost.is_cuda
    )
    if rows.numel():
        of_queries, of_columns = _assigned(optimize.linear_sum_assignment, layers, images, starts)
        first_of_layer = numpy.arange(len(layers))[:, None] * ((len(owned) - 1) * queries)
        first_of_pair = first_of_layer + numpy.repeat(first_queries, sizes)
        found = numpy.concatenate(of_queries) + first_of_pair.reshape(-1)
        # For a transposed block SciPy gives the pairs by column; sort them by query.
        order = found.argsort()
        pred_rows, target_rows = rows.numpy()
        pred_rows[:] = found[order].reshape(pred_rows.shape)
        target_rows[:] = numpy.concatenate(of_columns)[order].reshape(pred_rows.shape)
        target_rows += numpy.repeat(first_columns, sizes)
    if cost.dim() == 2:
        rows = rows.squeeze(1)
    pred_index, target_index = rows.to(cost.device, non_blocking=True).unbind()
    return pred_index, target_index
