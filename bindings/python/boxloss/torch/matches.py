# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Indices for the losses, from a matcher's pairs."""

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from .arguments import whole

_INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}
_A_PAIR = "it must be a pair (src, tgt) of 1-D integer tensors"


def _has_entries(values: Any) -> bool:
    return isinstance(values, (list, tuple)) or getattr(values, "ndim", 0) > 0


def _is_layered(indices: Sequence[Any]) -> bool:
    """Whether this is [layer][image] of pairs, not [image] of pairs, judging by the first entry."""
    first = indices[0]
    if not isinstance(first, (list, tuple)):
        return False
    if not first:
        return True
    # The first image's pair, or a src. As a src can be a list too, its entries tell.
    inner = first[0]
    return isinstance(inner, (list, tuple)) and len(inner) > 0 and _has_entries(inner[0])


def _index_tensor(values: Any, k: int, name: Callable[[int], str]) -> Tensor:
    """src or tgt, number k of all, as a tensor; name(k) is what errors call it."""
    tensor: Tensor
    if isinstance(values, Tensor):
        tensor = values
    elif isinstance(values, (list, tuple)):
        # torch takes a list of tensors for numbers if each has one element.
        if any(map(_has_entries, values)):
            raise TypeError(f"{name(k)} is a list of lists or tensors; it must hold integers")
        try:
            tensor = torch.as_tensor(values, dtype=None if values else torch.int64, device="cpu")
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name(k)} does not hold integers: {error}") from error
    else:
        try:
            tensor = torch.from_numpy(values)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{name(k)} is no tensor, and makes none: {error}") from error
    if tensor.dtype not in _INTEGERS:
        raise TypeError(f"{name(k)} is {tensor.dtype}; it must be int8 to int64, or uint8")
    if tensor.dim() != 1:
        raise ValueError(f"{name(k)} has shape {tuple(tensor.shape)}; it must be (n,)")
    if not tensor.is_cpu:
        raise RuntimeError(f"{name(k)} is on {tensor.device}; it must be on the CPU")
    return tensor


def _sources_and_targets(
    matches: list[Any], entry: Callable[[int], str]
) -> tuple[list[Tensor], list[Tensor]]:
    """The src and the tgt of each pair, as tensors; entry(k) is what errors call pair k."""
    for k, match in enumerate(matches):
        if not isinstance(match, (list, tuple)):
            raise TypeError(f"{entry(k)} is a {type(match).__name__}; {_A_PAIR}")
        if len(match) != 2:
            raise TypeError(f"{entry(k)} has length {len(match)}; {_A_PAIR}")
    halves = [half for match in matches for half in match]

    def name(k: int) -> str:
        return f"{entry(k // 2)}: {('src', 'tgt')[k % 2]}"

    # Checked for all at once, since there may be hundreds; errors are rare.
    if not (
        set(map(type, halves)) == {Tensor}
        and {half.dtype for half in halves} <= _INTEGERS
        and {half.ndim for half in halves} == {1}
        and {half.is_cpu for half in halves} == {True}
    ):
        halves = [_index_tensor(half, k, name) for k, half in enumerate(halves)]
    return halves[::2], halves[1::2]


def _true_boxes(counts: Sequence[int] | Tensor) -> list[int]:
    if isinstance(counts, Tensor):
        if not counts.is_cpu:
            raise RuntimeError(f"counts is on {counts.device}; it must be on the CPU")
        counts = counts.tolist()
    if not hasattr(counts, "__len__"):
        raise TypeError(f"counts is {counts!r}; it must hold one number for each image")
    if len(counts) == 0:
        raise ValueError("counts is empty: it must hold one number for each image, at least one")
    return [whole(count, f"counts[{b}]") for b, count in enumerate(counts)]


def _raise_outside(
    values: Tensor, limits: Tensor, sizes: list[int], entry: Callable[[int], str]
) -> None:
    """Names the first index out of range: values and limits hold srcs in row 0, tgts in row 1."""
    bad = (values < 0) | (values >= limits)
    column = int(bad.any(0).nonzero()[0])
    row = int(bad[:, column].nonzero()[0])
    k, place = 0, column
    while place >= sizes[k]:
        place -= sizes[k]
        k += 1
    raise ValueError(
        f"{entry(k)}: {('src', 'tgt')[row]}[{place}] is {int(values[row, column])}; "
        f"it must lie in [0, {int(limits[row, column])})"
    )


def collate_matches(
    indices: Sequence[Any],
    counts: Sequence[int] | Tensor,
    queries: int,
    *,
    device: torch.device | str | None = None,
    pairs: int | None = None,
) -> tuple[Tensor, Tensor]:
    """A matcher's pairs, for box_loss(..., pred_index=pred_index, target_index=target_index).

    (src, tgt) of an image matches its prediction src[i] with its ground-truth box tgt[i]. pred then
    has shape (layers, images, queries, 4) or (images, queries, 4), and target is all images' boxes
    one after the other, as from collate_ragged. Both are copied to a GPU at once, asynchronously.

    Args:
        indices: ``[layer][image]`` or ``[image]`` of (src, tgt), lists or tuples; src and tgt are
            integers on the CPU, of shape (n): tensors, arrays or lists; n may be 0.
        counts: how many ground-truth boxes each image has, on the CPU.
        queries: how many predictions each image has in a layer.
        device: the results' device; the CPU when not given.
        pairs: the results' last dimension, for shapes that stay the same, as CUDA graphs need; the
            largest number of pairs in a layer when not given.

    Returns:
        pred_index and target_index, int64, (layers, pairs), or (pairs) for [image]: rows of pred
        and of target, image after image, then -1. They are contiguous views of one tensor.

    Raises:
        ValueError: indices or counts is empty; a layer has not as many images as counts, or src
            not as many entries as tgt; an index lies outside its image; a layer has too many pairs.
        TypeError: bad nesting, or a bad dtype. RuntimeError: a tensor is not on the CPU.
    """
    if not isinstance(indices, (list, tuple)):
        raise TypeError(f"indices is a {type(indices).__name__}; it must be a list")
    if not indices:
        raise ValueError("indices is empty: it must hold one entry for each layer or image")
    true_boxes = _true_boxes(counts)
    queries = whole(queries, "queries")
    images = len(true_boxes)
    layered = _is_layered(indices)
    layers = indices if layered else [indices]

    def layer_name(i: int) -> str:
        return f"indices[{i}]" if layered else "indices"

    def entry(k: int) -> str:
        return f"{layer_name(k // images)}[{k % images}]"

    for i, layer in enumerate(layers):
        if not isinstance(layer, (list, tuple)):
            raise TypeError(f"indices[{i}] is a {type(layer).__name__}; it must be a list of pairs")
        if len(layer) != images:
            raise ValueError(f"{layer_name(i)} has {len(layer)} images; counts has {images}")
    srcs, tgts = _sources_and_targets([match for layer in layers for match in layer], entry)
    sizes = [src.numel() for src in srcs]
    for k, tgt in enumerate(tgts):
        if tgt.numel() != sizes[k]:
            raise ValueError(
                f"{entry(k)}: src has {sizes[k]} entries, tgt has {tgt.numel()}; "
                "it must be the same number"
            )
    totals = [sum(sizes[k : k + images]) for k in range(0, len(sizes), images)]
    most = max(totals)
    pairs = most if pairs is None else whole(pairs, "pairs")
    if most > pairs:
        crowded = next(i for i, total in enumerate(totals) if total > pairs)
        raise ValueError(f"{layer_name(crowded)} has {totals[crowded]} pairs; pairs is {pairs}")

    # The pair (src, tgt) that each index belongs to. torch.repeat_interleave would wake
    # other threads for this, and torch.tensor is slow with long lists.
    ends = torch.frombuffer(array("q", accumulate(sizes)), dtype=torch.int64)
    owners = torch.bincount(ends).cumsum(0)[:-1]
    # For each (src, tgt): its image's first rows of pred and of target, and their numbers.
    first_predictions = [k * queries for k in range(len(sizes))]
    first_boxes = [*accumulate(true_boxes, initial=0)][:-1] * len(layers)
    numbers = [*first_predictions, *first_boxes, *[queries] * len(sizes), *true_boxes * len(layers)]
    table = torch.frombuffer(array("q", numbers), dtype=torch.int64).view(4, len(sizes))
    firsts, limits = table.index_select(1, owners).split(2)

    values = torch.cat([*srcs, *tgts]).long().view(2, sum(sizes))
    if ((values < 0) | (values >= limits)).any():
        _raise_outside(values, limits, sizes, entry)
    device = torch.device("cpu" if device is None else device)
    padded = torch.full(
        (2, len(layers), pairs),
        -1,
        dtype=torch.int64,
        device="cpu",
        pin_memory=device.type == "cuda",
    )
    for i, rows in enumerate((values + firsts).split(totals, dim=1)):
        padded[:, i, : totals[i]] = rows
    if not layered:
        padded = padded.squeeze(1)
    pred_index, target_index = padded.to(device, non_blocking=True).unbind()
    return pred_index, target_index
