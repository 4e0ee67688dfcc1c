# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""check_indices tells of wrong lengths, offsets and indices, which no kernel follows."""

import re
from typing import Any

import pytest
import torch
from boxloss.torch import box_loss, check_indices
from problems import boxes, problem

INT64 = torch.iinfo(torch.int64)


def test_good_indices_pass(device: torch.device) -> None:
    values = problem("offsets", device)
    values["offsets"] = torch.tensor([1, 3, 8, 8], device=device)
    check_indices(**values)
    check_indices(**problem("lengths", device))
    check_indices(**problem("dense", device))


@pytest.mark.parametrize(
    ("name", "numbers", "text"),
    [
        ("lengths", [5, -2, 9], r"lengths\[1\] is -2; it must lie in \[0, 5\]"),
        ("lengths", [5, 0, 6], r"lengths\[2\] is 6; it must lie in \[0, 5\]"),
        ("offsets", [-1, 3, 8, 8], r"offsets\[0\] is -1; it must lie in \[0, 12\]"),
        ("offsets", [0, 3, 13, 14], r"offsets\[2\] is 13; it must lie in \[0, 12\]"),
        (
            "offsets",
            [0, 4, 3, 2],
            r"offsets\[2\] is 3, less than offsets\[1\], which is 4; offsets must not decrease",
        ),
        (
            "offsets",
            [0, 3, 9, 12],
            r"offsets\[1\] and offsets\[2\] give image 1 6 boxes; pred has 5 slots",
        ),
    ],
)
def test_check_indices_names_the_first_bad_number(
    device: torch.device, name: str, numbers: list[int], text: str
) -> None:
    values = problem(name, device)
    values[name] = torch.tensor(numbers, device=device)
    with pytest.raises(ValueError, match=f"^{text}$"):
        check_indices(**values)


# Lists of 24 and of 5 rows.
def lists(device: torch.device) -> dict[str, torch.Tensor]:
    return {"pred": boxes((2, 3, 4), device), "target": boxes((5,), device)}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_good_pairs_pass(device: torch.device, dtype: torch.dtype) -> None:
    pred_index = torch.tensor([[0, 23, -1], [7, -1, -2]], dtype=dtype, device=device)
    target_index = torch.tensor([[4, 0, -1], [2, 3, -1]], dtype=dtype, device=device)
    for rows in (slice(None), 0, slice(0, 0)):
        check_indices(**lists(device), pred_index=pred_index[rows], target_index=target_index[rows])
    pairs = boxes((2, 3), device)
    check_indices(lists(device)["pred"], pairs, pred_index=pred_index)
    check_indices(pairs, lists(device)["target"], target_index=target_index)
    none = torch.full((3,), -1, dtype=dtype, device=device)
    check_indices(boxes((0,), device), boxes((2, 0), device), pred_index=none, target_index=none)


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("pred_index", [[0, 1], [-1, 24]], r"\[1, 1\] is 24; it must lie in \[0, 24\)"),
        ("pred_index", [[0, -3], [-2, 24]], r"\[0, 1\] is -3; it must lie in \[0, 24\)"),
        ("pred_index", [3, 23, 900], r"\[2\] is 900; it must lie in \[0, 24\)"),
        ("target_index", [[0, 1], [5, 24]], r"\[1, 0\] is 5; it must lie in \[0, 5\)"),
        ("target_index", [-1, INT64.min], rf"\[1\] is {INT64.min}; it must lie in \[0, 5\)"),
    ],
)
def test_check_indices_names_the_first_bad_index(
    device: torch.device, name: str, values: list, text: str
) -> None:
    index = torch.tensor(values, device=device)
    good = torch.zeros_like(index)
    pairs = boxes(tuple(index.shape), device)
    by_index = {**lists(device), "pred_index": good, "target_index": good}
    other = "target" if name == "pred_index" else "pred"
    for values in (by_index, {**by_index, other: pairs, f"{other}_index": None}):
        with pytest.raises(ValueError, match=rf"^{name}{text}, or be -1 or -2 for no pair$"):
            check_indices(**{**values, name: index})


@pytest.mark.parametrize(
    ("pairing", "change", "error"),
    [
        ("offsets", {"offsets": torch.tensor([0, 1])}, ValueError),
        ("lengths", {"lengths": torch.tensor([1.0, 2.0, 3.0])}, TypeError),
        ("indices", {"target_index": None}, ValueError),
    ],
)
def test_check_indices_says_what_box_loss_says(
    device: torch.device, pairing: str, change: dict[str, Any], error: type[Exception]
) -> None:
    values = problem(pairing, device)
    for name, given in change.items():
        values[name] = given.to(device) if isinstance(given, torch.Tensor) else given
    with pytest.raises(error) as wanted:
        box_loss(**values)
    with pytest.raises(error, match=f"^{re.escape(str(wanted.value))}$"):
        check_indices(**values)
