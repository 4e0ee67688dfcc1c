# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Batches from one tensor for each image, and pairs from one match for each."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy
import pytest
import torch
from boxloss.torch import check_indices, collate_matches, collate_padded, collate_ragged
from called import Called
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import boxes
from torch import Tensor

CPU = torch.device("cpu")
COUNTS = (2, 0, 5, 1)


def images(
    device: torch.device, dtype: torch.dtype = torch.float32, counts: Sequence[int] = COUNTS
) -> list[Tensor]:
    return [boxes((count,), device, dtype, seed=count) for count in counts]


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
@pytest.mark.parametrize(("counts", "slots"), [(COUNTS, None), (COUNTS, 7), ((0, 0), None)])
def test_boxes(
    device: torch.device, counts: tuple[int, ...], slots: int | None, dtype: torch.dtype
) -> None:
    each = images(device, dtype, counts)
    rows, offsets = collate_ragged(each)
    assert torch.equal(rows, torch.cat(each))
    assert offsets.tolist() == [*accumulate(counts, initial=0)]
    padded, lengths = collate_padded(each, slots)
    most = max(counts) if slots is None else slots
    assert (padded.shape, padded.dtype) == ((len(counts), most, 4), dtype)
    assert lengths.tolist() == list(counts)
    assert offsets.dtype == lengths.dtype == torch.int64
    assert {rows.device, offsets.device, padded.device, lengths.device} == {each[0].device}
    for image, boxes_of_image in zip(padded, each, strict=True):
        assert torch.equal(image[: len(boxes_of_image)], boxes_of_image)
        assert not image[len(boxes_of_image) :].any()


def test_gradients_flow_through(device: torch.device) -> None:
    each = [image.requires_grad_() for image in images(device)]
    for collated in (collate_ragged(each)[0], collate_padded(each)[0]):
        gradients = torch.autograd.grad(collated.sum(), each)
        assert all(bool((gradient == 1).all()) for gradient in gradients)


GOOD_BOXES = torch.ones(2, 4)
BAD_BOXES: list[tuple[type[Exception], Any, str]] = [
    (TypeError, None, "boxes is NoneType; it must hold one tensor for each image"),
    (TypeError, iter([GOOD_BOXES]), "boxes is list_iterator; it must hold one tensor for"),
    (ValueError, [], "boxes is empty: it must hold one tensor for each image"),
    (TypeError, [GOOD_BOXES, [[0.0] * 4]], r"boxes\[1\] is list; it must be a tensor$"),
    (TypeError, GOOD_BOXES[None].numpy(), r"boxes\[0\] is ndarray; it must be a tensor$"),
    (ValueError, [GOOD_BOXES, GOOD_BOXES[0]], r"boxes\[1\] has shape \(4,\); it must be \(n, 4\)"),
    (TypeError, [GOOD_BOXES, GOOD_BOXES.double()], r"boxes\[1\] is torch.float64, boxes\[0\] is "),
    (RuntimeError, [GOOD_BOXES, GOOD_BOXES.to("meta")], r"boxes\[1\] is on meta, boxes\[0\] on "),
]


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
@pytest.mark.parametrize(("error", "given", "text"), BAD_BOXES)
def test_bad_boxes(
    collate: Callable[..., object], error: type[Exception], given: Any, text: str
) -> None:
    with pytest.raises(error, match=f"^{text}"):
        collate(given)


@pytest.mark.parametrize("collate", [collate_ragged, collate_padded])
def test_counts_are_copied_without_a_wait(
    collate: Callable[[list[Tensor]], tuple[Tensor, Tensor]],
) -> None:
    """To the Meta device, whose copies are as a GPU's."""
    each = images(torch.device("meta"))
    with Called() as called:
        collate(each)
    copies = [given for function, given in called.calls if function == "_to_copy"]
    assert [given["non_blocking"] for given in copies] == [True]


@pytest.mark.parametrize(("slots", "text"), [(3, r"boxes\[2\] has 5"), (0, r"boxes\[0\] has 2")])
def test_too_few_slots(slots: int, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text} boxes; slots is {slots}$"):
        collate_padded(images(CPU), slots)


@pytest.mark.parametrize(
    ("error", "slots", "text"),
    [
        (TypeError, 7.0, r"slots is 7\.0; it must be an integer$"),
        (ValueError, -1, r"slots is -1; it must be at least 0, and less than 2\^63$"),
    ],
)
def test_slots_that_are_no_number(error: type[Exception], slots: Any, text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        collate_padded(images(CPU), slots)


def test_padding_takes_as_many_operations_for_any_number_of_images() -> None:
    """A copy for each image took five times as long as collate_ragged."""
    counts = []
    for number in (1, 100):
        with Called() as called:
            collate_padded([GOOD_BOXES] * number, 3)
        counts.append(len(called.calls))
    assert counts[0] == counts[1]


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


# Three images, with 2, 0 and 3 ground-truth boxes.
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


def test_nobody_waits_for_the_gpu(gpu: torch.device) -> None:
    each, matches = images(gpu), as_tensors(MATCHES)

    def collate() -> list[Any]:
        of_matches = collate_matches(matches, TRUE_BOXES, QUERIES, device=gpu)
        return [*collate_ragged(each), *collate_padded(each), *of_matches]

    expected = collate()
    torch.cuda.set_sync_debug_mode("error")
    try:
        results = collate()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(*pair) for pair in zip(results, expected, strict=True))


@st.composite
def matches_and_counts(draw: st.DrawFn) -> tuple[list[list[Match]], list[int]]:
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))

    def match(count: int) -> Match:
        size = draw(st.integers(0, count))
        src, tgt = draw(st.permutations(range(QUERIES))), draw(st.permutations(range(count)))
        return list(src[:size]), list(tgt[:size])

    layers = draw(st.integers(1, 3))
    return [[match(count) for count in counts] for _ in range(layers)], counts


# However the pairs are held.
HOLDS: list[Callable[[list[int]], Any]] = [
    lambda half: torch.tensor(half, dtype=torch.int64),
    lambda half: half,
    tuple,
    lambda half: [numpy.int64(number) for number in half],
    lambda half: numpy.array(half, dtype=numpy.int32),
]


@settings(max_examples=100)
@given(
    given=matches_and_counts(),
    more=st.none() | st.integers(0, 3),
    hold=st.sampled_from(HOLDS),
    pair=st.sampled_from([tuple, list]),
)
@example(([[([], []), ([1], [0])]], [1, 1]), None, HOLDS[0], tuple)
@example(([[([], []), ([], [])]], [0, 0]), 2, HOLDS[0], tuple)
def test_matches_are_those_counted(
    given: tuple[list[list[Match]], list[int]],
    more: int | None,
    hold: Callable[[list[int]], Any],
    pair: Callable[[Any], Any],
) -> None:
    layers, counts = given
    held = [[pair(map(hold, match)) for match in layer] for layer in layers]
    most = max(sum(len(src) for src, _ in layer) for layer in layers)
    pairs = None if more is None else most + more
    results = collate_matches(held, counts, QUERIES, pairs=pairs)
    assert tuple(result.tolist() for result in results) == rows_of_matches(layers, counts, pairs)
    of_one = collate_matches(tuple(held[-1]), counts, QUERIES, pairs=most)
    wanted = rows_of_matches(layers[-1:], counts, most)
    assert [result.tolist() for result in of_one] == [rows[0] for rows in wanted]
    assert all(result.is_contiguous() for result in (*results, *of_one))


def index(*values: float) -> Tensor:
    return torch.tensor(values, dtype=None if values else torch.int64)


GOOD = (index(4, 1), index(0, 1))
NONE = (index(), index())
INTEGERS = "it must be int8 to int64, or uint8$"
A_PAIR = r"it must be a pair \(src, tgt\) of 1-D"
# A layer of two images with 2 and 3 boxes.
BAD_LAYERS: list[tuple[type[Exception], list[Any], str]] = [
    (ValueError, [GOOD], r" has 1 images; counts has 2$"),
    (ValueError, [GOOD, (index(1, 2, 3), index(0))], r"\[1\]: src has 3 entries, tgt has 1; it "),
    (ValueError, [(index(-1), index(0)), GOOD], r"\[0\]: src\[0\] is -1; it must lie in \[0, 6\)$"),
    (ValueError, [GOOD, (index(1, 2), index(2, 3))], r"\[1\]: tgt\[1\] is 3; it must lie in \[0,"),
    (TypeError, [GOOD, (index(1.0), index(0))], rf"\[1\]: src is torch.float32; {INTEGERS}"),
    (TypeError, [GOOD, ([1], ["0"])], r"\[1\]: tgt does not hold integers: "),
    (TypeError, [GOOD, (index(1), None)], r"\[1\]: tgt is no tensor, and makes none: "),
    (ValueError, [GOOD, (index(1)[None], index(0))], r"\[1\]: src has shape \(1, 1\); it must be "),
    (RuntimeError, [GOOD, (index(1).to("meta"), index(0))], r"\[1\]: src is on meta; it must be "),
    (TypeError, [GOOD, index(1)], rf"\[1\] is a Tensor; {A_PAIR}"),
    (TypeError, [GOOD, (index(1),)], rf"\[1\] has length 1; {A_PAIR}"),
    (TypeError, [GOOD, [GOOD, GOOD]], r"\[1\]: src is a list of lists or tensors; it must hold "),
]


@pytest.mark.parametrize(("error", "layer", "text"), BAD_LAYERS)
def test_errors_of_matches(error: type[Exception], layer: list[Any], text: str) -> None:
    with pytest.raises(error, match="^indices" + text):
        collate_matches(layer, [2, 3], QUERIES)
    with pytest.raises(error, match=r"^indices\[2\]" + text):
        collate_matches([[GOOD, NONE], [NONE, GOOD], layer], [2, 3], QUERIES)


LAYER = [GOOD, NONE]
FIVE_PAIRS = [([4, 1], [0, 1]), ([5, 0, 3], [2, 0, 1])]
BAD_ARGUMENTS: list[tuple[type[Exception], dict[str, Any], str]] = [
    (ValueError, {"indices": []}, "indices is empty: it must hold one entry for each "),
    (TypeError, {"indices": index(1)}, "indices is a Tensor; it must be a list$"),
    (ValueError, {"indices": [[], LAYER]}, r"indices\[0\] has 0 images; counts has 2$"),
    (TypeError, {"indices": [GOOD, LAYER]}, r"indices\[1\]: src is a list of lists or tensors; "),
    (ValueError, {"indices": FIVE_PAIRS, "pairs": 4}, "indices has 5 pairs; pairs is 4$"),
    (TypeError, {"pairs": 2.5}, "pairs is 2.5; it must be an integer$"),
    (ValueError, {"queries": -5}, "queries is -5; it must be at least 0, and less"),
    (ValueError, {"counts": []}, "counts is empty: it must hold one number for each "),
    (TypeError, {"counts": 3}, "counts is 3; it must hold one number for each image$"),
    (TypeError, {"counts": [2, 3.5]}, r"counts\[1\] is 3.5; it must be an integer$"),
    (ValueError, {"counts": index(2, -3)}, r"counts\[1\] is -3; it must be at least 0, and"),
    (RuntimeError, {"counts": index(2, 3).to("meta")}, "counts is on meta; it must be on the CPU$"),
]


@pytest.mark.parametrize(("error", "changed", "text"), BAD_ARGUMENTS)
def test_errors_of_the_nesting_and_numbers(
    error: type[Exception], changed: dict[str, Any], text: str
) -> None:
    with pytest.raises(error, match=f"^{text}"):
        collate_matches(**{"indices": LAYER, "counts": [2, 3], "queries": QUERIES, **changed})
