# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches from one tensor for each image, and pairs from one match for each."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import (
    check_indices,
    collate_matches,
    collate_padded,
    collate_ragged,
    giou_loss,
)
from comparison import LOSS, roundoff
from hypothesis import given
from hypothesis import strategies as st
from problems import boxes
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

COUNTS = (2, 0, 5, 1)


def images(device: torch.device, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [boxes((count,), device, dtype, seed=count) for count in COUNTS]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
def test_ragged(device: torch.device, dtype: torch.dtype) -> None:
    each = images(device, dtype)
    rows, offsets = collate_ragged(each)
    assert torch.equal(rows, torch.cat(each))
    assert offsets.tolist() == [0, 2, 2, 7, 8]
    assert offsets.dtype == torch.int64
    assert rows.device == offsets.device == each[0].device


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
@pytest.mark.parametrize("slots", [None, 5, 7])
def test_padded(device: torch.device, slots: int | None, dtype: torch.dtype) -> None:
    each = images(device, dtype)
    padded, lengths = collate_padded(each, slots)
    assert padded.shape == (4, slots or 5, 4)
    assert padded.dtype == dtype
    assert lengths.tolist() == list(COUNTS)
    assert padded.device == lengths.device == each[0].device
    for image, boxes_of_image in zip(padded, each, strict=True):
        assert torch.equal(image[: len(boxes_of_image)], boxes_of_image)
        assert not image[len(boxes_of_image) :].any()


def test_all_layouts_give_one_loss(device: torch.device) -> None:
    each = images(device)
    pred = boxes((4, 5), device, seed=9)
    padded, lengths = collate_padded(each)
    rows, offsets = collate_ragged(each)
    check_indices(pred, padded, lengths=lengths)
    check_indices(pred, rows, offsets=offsets)
    loss = giou_loss(pred, padded, lengths=lengths)
    zero_padded = giou_loss(pred, padded, zero_padded=True)
    ragged = giou_loss(pred, rows, offsets=offsets)
    for other in (zero_padded, ragged):
        assert torch.allclose(loss, other, rtol=1e-6, atol=2 * LOSS * roundoff(torch.float32))


def test_images_without_boxes(device: torch.device) -> None:
    none = [boxes((0,), device)] * 2
    rows, offsets = collate_ragged(none)
    assert rows.shape == (0, 4)
    assert offsets.tolist() == [0, 0, 0]
    padded, lengths = collate_padded(none)
    assert padded.shape == (2, 0, 4)
    assert lengths.tolist() == [0, 0]


def test_gradients_flow_through(device: torch.device) -> None:
    each = [image.requires_grad_() for image in images(device)]
    for collated in (collate_ragged(each)[0], collate_padded(each)[0]):
        gradients = torch.autograd.grad(collated.sum(), each)
        assert all(bool((gradient == 1).all()) for gradient in gradients)


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_errors(device: torch.device, collate: Callable[[list[Tensor]], object]) -> None:
    good = boxes((2,), device)
    with pytest.raises(ValueError, match="boxes is empty: it must hold one tensor for each image"):
        collate([])
    for other, kind in ((good.tolist(), "list"), (None, "NoneType")):
        with pytest.raises(TypeError, match=rf"^boxes\[1\] is {kind}; it must be a tensor$"):
            collate([good, other])
    with pytest.raises(ValueError, match=r"boxes\[1\] has shape \(4,\); it must be \(n, 4\)"):
        collate([good, good[0]])
    with pytest.raises(ValueError, match=r"boxes\[0\] has shape \(2, 3\); it must be \(n, 4\)"):
        collate([good[:, :3], good])
    with pytest.raises(TypeError, match=r"boxes\[1\] is torch.float64, boxes\[0\] is "):
        collate([good, good.double()])
    with pytest.raises(RuntimeError, match=r"boxes\[1\] is on meta, boxes\[0\] on "):
        collate([good, good.to("meta")])


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_arrays_are_no_tensors(collate: Callable[..., object]) -> None:
    numpy = pytest.importorskip("numpy")
    for arrays in ([numpy.zeros((2, 4))], numpy.zeros((3, 2, 4))):
        with pytest.raises(TypeError, match=r"^boxes\[0\] is ndarray; it must be a tensor$"):
            collate(arrays)


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_counts_are_copied_without_a_wait(
    collate: Callable[[list[Tensor]], tuple[Tensor, Tensor]],
) -> None:
    """To the Meta device, whose copies are as a GPU's."""

    each = images(torch.device("meta"))
    waits = []

    class Copies(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if function is torch.ops.aten._to_copy.default:
                waits.append(not kwargs.get("non_blocking", False))
            return function(*args, **kwargs)

    with Copies():
        collate(each)
    assert waits == [False]


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_nobody_waits_for_the_gpu(
    device: torch.device, collate: Callable[[list[Tensor]], tuple[Tensor, Tensor]]
) -> None:
    if device.type != "cuda":
        pytest.skip("only a GPU is waited for")
    each = images(device)
    expected = collate(each)
    torch.cuda.set_sync_debug_mode("error")
    try:
        results = collate(each)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(*pair) for pair in zip(results, expected, strict=True))


@pytest.mark.parametrize(("slots", "crowded"), [(3, "boxes[2] has 5"), (0, "boxes[0] has 2")])
def test_too_few_slots(device: torch.device, slots: int, crowded: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{crowded} boxes; slots is {slots}")):
        collate_padded(images(device), slots)


QUERIES = 6
Match = tuple[list[int], list[int]]


def rows_of_matches(
    layers: list[list[Match]], counts: list[int], pairs: int | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Rows of pred and of target, found by counting."""
    results: tuple[list[list[int]], list[list[int]]] = ([], [])
    first_prediction = 0
    for layer in layers:
        pred_rows, target_rows, first_box = [], [], 0
        for (src, tgt), count in zip(layer, counts, strict=True):
            for i, j in zip(src, tgt, strict=True):
                pred_rows.append(first_prediction + i)
                target_rows.append(first_box + j)
            first_prediction += QUERIES
            first_box += count
        results[0].append(pred_rows)
        results[1].append(target_rows)
    most = max(map(len, results[0])) if pairs is None else pairs
    for rows in (*results[0], *results[1]):
        rows += [-1] * (most - len(rows))
    return results


def as_tensors(layers: list[list[Match]], dtype: torch.dtype = torch.int64) -> list[list[Any]]:
    return [
        [tuple(torch.tensor(half, dtype=dtype) for half in match) for match in layer]
        for layer in layers
    ]


# Three images, with 2, 0 and 3 true boxes.
TRUE_BOXES = [2, 0, 3]
MATCHES: list[list[Match]] = [
    [([4, 1], [0, 1]), ([], []), ([5, 0, 3], [2, 0, 1])],
    [([], []), ([], []), ([], [])],
    [([0], [1]), ([], []), ([2], [2])],
]
ROWS = (
    [[4, 1, 17, 12, 15], [-1] * 5, [36, 50, -1, -1, -1]],
    [[0, 1, 4, 2, 3], [-1] * 5, [1, 4, -1, -1, -1]],
)


def test_matches_by_hand(device: torch.device) -> None:
    assert rows_of_matches(MATCHES, TRUE_BOXES) == ROWS
    results = collate_matches(as_tensors(MATCHES), TRUE_BOXES, QUERIES, device=device)
    for result, wanted in zip(results, ROWS, strict=True):
        assert result.tolist() == wanted
        assert result.dtype == torch.int64
        assert result.device.type == device.type
        assert result.is_contiguous()
    assert results[0]._base is results[1]._base is not None
    pred, rows = boxes((3, 3, QUERIES), device), boxes((5,), device)
    check_indices(pred, rows, pred_index=results[0], target_index=results[1])


@pytest.mark.parametrize("layer", range(3))
def test_matches_of_one_layer(device: torch.device, layer: int) -> None:
    only = MATCHES[layer]
    results = collate_matches(as_tensors([only])[0], TRUE_BOXES, QUERIES, device=device)
    for result, wanted in zip(results, rows_of_matches([only], TRUE_BOXES), strict=True):
        assert result.tolist() == wanted[0]
        assert result.is_contiguous()


@pytest.mark.parametrize("pairs", [5, 8])
def test_matches_padded_to_a_size(device: torch.device, pairs: int) -> None:
    results = collate_matches(as_tensors(MATCHES), TRUE_BOXES, QUERIES, device=device, pairs=pairs)
    assert tuple(r.tolist() for r in results) == rows_of_matches(MATCHES, TRUE_BOXES, pairs)
    for result in collate_matches([([], [])], [0], QUERIES, device=device, pairs=pairs):
        assert result.tolist() == [-1] * pairs


@pytest.mark.parametrize("layered", [True, False])
@pytest.mark.parametrize("images", [1, 2, 3])
def test_both_nestings(layered: bool, images: int) -> None:
    # However the pairs are held, and also where the first ones are empty.
    numpy = pytest.importorskip("numpy")
    full: Match = ([2, 0], [0, 1])
    for layer in ([full] * images, [([], []), *[full] * (images - 1)], [([], [])] * images):
        for hold in (
            torch.tensor,
            lambda half, **_: half,
            lambda half, **_: tuple(half),
            lambda half, **_: [numpy.int64(number) for number in half],
            lambda half, **_: numpy.array(half, dtype=numpy.int32),
        ):
            for pair in (tuple, list):
                held = [pair(hold(half, dtype=torch.int64) for half in match) for match in layer]
                given = [held, tuple(held)] if layered else held
                wanted = rows_of_matches([layer, layer] if layered else [layer], [2] * images)
                for result, rows in zip(
                    collate_matches(given, [2] * images, QUERIES), wanted, strict=True
                ):
                    assert result.tolist() == (rows if layered else rows[0])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
def test_narrow_matches(dtype: torch.dtype) -> None:
    # The rows do not fit the dtype of the matches.
    layers: list[list[Match]] = [[([72], [100])] * 600]
    narrow = as_tensors(layers, dtype)
    mixed = [[*as_tensors(layers)[0][:1], *narrow[0][1:]]]
    for matches in (narrow, mixed):
        pred_index, target_index = collate_matches(matches, [101] * 600, 100)
        assert pred_index.tolist() == [[100 * b + 72 for b in range(600)]]
        assert target_index.tolist() == [[101 * b + 100 for b in range(600)]]
        assert pred_index.dtype == target_index.dtype == torch.int64


def test_matches_with_strides_and_counts_of_any_kind() -> None:
    pair = torch.tensor([[4, 0], [1, 1]]).T
    for counts in ([2, 3], (2, 3), torch.tensor([2, 3]), torch.tensor([2, 3], dtype=torch.uint8)):
        pred_index, target_index = collate_matches([tuple(pair), tuple(pair)], counts, QUERIES)
        assert pred_index.tolist() == [4, 1, 10, 7]
        assert target_index.tolist() == [0, 1, 2, 3]


def test_matches_whatever_the_default_device_is() -> None:
    with torch.device("meta"):
        results = collate_matches(MATCHES, TRUE_BOXES, QUERIES)
    assert tuple(result.tolist() for result in results) == ROWS


def test_matches_do_not_wait_for_the_gpu(device: torch.device) -> None:
    if device.type != "cuda":
        pytest.skip("only a GPU is waited for")
    matches = as_tensors(MATCHES)
    collate_matches(matches, TRUE_BOXES, QUERIES, device=device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        results = collate_matches(matches, TRUE_BOXES, QUERIES, device=device)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert tuple(result.tolist() for result in results) == ROWS


@st.composite
def matches_and_counts(draw: st.DrawFn) -> tuple[list[list[Match]], list[int]]:
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))

    def match(count: int) -> Match:
        size = draw(st.integers(0, count))
        src, tgt = draw(st.permutations(range(QUERIES))), draw(st.permutations(range(count)))
        return list(src[:size]), list(tgt[:size])

    layers = draw(st.integers(1, 3))
    return [[match(count) for count in counts] for _ in range(layers)], counts


@given(given=matches_and_counts(), more=st.none() | st.integers(0, 3))
def test_matches_are_those_counted(
    given: tuple[list[list[Match]], list[int]], more: int | None
) -> None:
    layers, counts = given
    most = max(sum(len(src) for src, _ in layer) for layer in layers)
    pairs = None if more is None else most + more
    results = collate_matches(as_tensors(layers), counts, QUERIES, pairs=pairs)
    assert tuple(result.tolist() for result in results) == rows_of_matches(layers, counts, pairs)


def index(*values: float) -> Tensor:
    return torch.tensor(values, dtype=None if values else torch.int64)


GOOD = (index(4, 1), index(0, 1))
NONE = (index(), index())


@pytest.mark.parametrize(
    ("layer", "error", "text"),
    [
        ([GOOD], ValueError, r" has 1 images; counts has 2$"),
        ([GOOD, NONE, GOOD], ValueError, r" has 3 images; counts has 2$"),
        (
            [GOOD, (index(1, 2, 3), index(0))],
            ValueError,
            r"\[1\]: src has 3 entries, tgt has 1; it must be the same number$",
        ),
        (
            [GOOD, (index(1, 6), index(0, 3))],
            ValueError,
            r"\[1\]: src\[1\] is 6; it must lie in \[0, 6\)$",
        ),
        (
            [(index(-1), index(0)), GOOD],
            ValueError,
            r"\[0\]: src\[0\] is -1; it must lie in \[0, 6\)$",
        ),
        (
            [GOOD, (index(1, 2), index(2, 3))],
            ValueError,
            r"\[1\]: tgt\[1\] is 3; it must lie in \[0, 3\)$",
        ),
        (
            [(index(1), index(-1)), (index(9), index(0))],
            ValueError,
            r"\[0\]: tgt\[0\] is -1; it must lie in \[0, 2\)$",
        ),
        (
            [GOOD, (index(1.0), index(0))],
            TypeError,
            r"\[1\]: src is torch.float32; it must be int8 to int64, or uint8$",
        ),
        (
            [GOOD, (index(1), torch.tensor([True]))],
            TypeError,
            r"\[1\]: tgt is torch.bool; it must be int8 to int64, or uint8$",
        ),
        ([GOOD, ([1.5], [0])], TypeError, r"\[1\]: src is torch.float32; it must be int8 to "),
        ([GOOD, ([1], ["0"])], TypeError, r"\[1\]: tgt does not hold integers: "),
        ([GOOD, (index(1), None)], TypeError, r"\[1\]: tgt is no tensor, and makes none: "),
        (
            [GOOD, (index(1)[None], index(0))],
            ValueError,
            r"\[1\]: src has shape \(1, 1\); it must be \(n,\)$",
        ),
        (
            [GOOD, (index(1).to("meta"), index(0))],
            RuntimeError,
            r"\[1\]: src is on meta; it must be on the CPU$",
        ),
        ([GOOD, index(1)], TypeError, r"\[1\] is a Tensor; it must be a pair \(src, tgt\) of 1-D"),
        ([GOOD, (index(1),)], TypeError, r"\[1\] has length 1; it must be a pair \(src, tgt\) of "),
        (
            [GOOD, ((index(1), index(0)), (index(1), index(0)))],
            TypeError,
            r"\[1\]: src is a list of lists or tensors; it must hold integers$",
        ),
    ],
)
def test_errors_of_matches(layer: list[Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match="^indices" + text):
        collate_matches(layer, [2, 3], QUERIES)
    with pytest.raises(error, match=r"^indices\[2\]" + text):
        collate_matches([[GOOD, NONE], [NONE, GOOD], layer], [2, 3], QUERIES)


def test_errors_of_the_nesting_and_counts() -> None:
    layer = [GOOD, NONE]
    with pytest.raises(ValueError, match=r"^indices is empty: it must hold one entry for each "):
        collate_matches([], [2, 3], QUERIES)
    with pytest.raises(TypeError, match=r"^indices is a Tensor; it must be a list$"):
        collate_matches(index(1), [2, 3], QUERIES)
    with pytest.raises(ValueError, match=r"^indices\[0\] has 0 images; counts has 2$"):
        collate_matches([[], layer], [2, 3], QUERIES)
    with pytest.raises(TypeError, match=r"^indices\[1\] is a Tensor; it must be a list of pairs$"):
        collate_matches([layer, index(1)], [2, 3], QUERIES)
    with pytest.raises(TypeError, match=r"^indices\[1\]\[0\] is a Tensor; it must be a pair "):
        collate_matches([layer, GOOD], [2, 3], QUERIES)
    with pytest.raises(TypeError, match=r"^indices\[1\]: src is a list of lists or tensors; "):
        collate_matches([GOOD, layer], [2, 3], QUERIES)
    with pytest.raises(TypeError, match=r"^indices\[0\] is a Tensor; it must be a pair "):
        collate_matches(GOOD, [2, 3], QUERIES)
    with pytest.raises(ValueError, match=r"^counts is empty: it must hold one number for each "):
        collate_matches(layer, [], QUERIES)
    with pytest.raises(TypeError, match=r"^counts is 3; it must hold one number for each image$"):
        collate_matches(layer, 3, QUERIES)
    with pytest.raises(ValueError, match=r"^queries is -5; it must be at least 0$"):
        collate_matches(layer, [2, 3], -5)
    with pytest.raises(TypeError, match=r"^pairs is 2.5; it must be an integer$"):
        collate_matches(layer, [2, 3], QUERIES, pairs=2.5)
    with pytest.raises(TypeError, match=r"^counts\[1\] is 3.5; it must be an integer$"):
        collate_matches(layer, [2, 3.5], QUERIES)
    with pytest.raises(ValueError, match=r"^counts\[1\] is -3; it must be at least 0$"):
        collate_matches(layer, torch.tensor([2, -3]), QUERIES)
    with pytest.raises(RuntimeError, match=r"^counts is on meta; it must be on the CPU$"):
        collate_matches(layer, index(2, 3).to("meta"), QUERIES)


def test_too_few_pairs() -> None:
    matches = as_tensors(MATCHES)
    with pytest.raises(ValueError, match=r"^indices\[1\] has 5 pairs; pairs is 4$"):
        collate_matches([matches[1], matches[0]], TRUE_BOXES, QUERIES, pairs=4)
    with pytest.raises(ValueError, match=r"^indices has 5 pairs; pairs is 4$"):
        collate_matches(matches[0], TRUE_BOXES, QUERIES, pairs=4)
