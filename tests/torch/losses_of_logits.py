# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Problems of the losses of logits: of classes, and of sides by "fgl" and "ddf"."""

from types import SimpleNamespace
from typing import Any, get_args

import torch
from boxloss._options import ClassLossMode
from boxloss.torch.compat.families.d_fine import bin_edges
from combinations import pairwise
from problems import FLOATING, REDUCTIONS, Problem
from torch import Tensor

CLASS_MODES: tuple[str, ...] = get_args(ClassLossMode)
OF_QUALITY = ("varifocal", "mal", "ia_bce", "bce")
OF_NUMBERS = ("focal", "varifocal", "mal", "ia_bce")  # alpha and gamma
TARGETS = 6
BOXES = 5
OF_SIDES = ("fgl", "ddf")
MODES = (*CLASS_MODES, *OF_SIDES)
INTEGERS = ("target_index", "labels")
SEVERAL_OF_A_QUERY = ("logits", "reference", "teacher")
NORMALIZERS: dict[str, Any] = {
    "number": 3,
    "int64": torch.tensor(7),
    "float32": torch.tensor(2.5),
    "by layer": torch.tensor([1.5, 0.25], dtype=torch.float64),
}
TABLE: dict[str, tuple[Any, ...]] = {
    "mode": MODES,
    "rows": ((5,), (3, 5), (2, 3, 5)),  # queries; with images; with layers
    "reduced": (*REDUCTIONS, *NORMALIZERS),
    "numbers": (None, (0.5, 0.0), (0.0, 1.25), (1.0, 3.0), (-1.0, 2.0)),
    "quality": ("of boxes", "of queries", None),
    "weight": (None, 1, 1 / 1024),  # of the last all together are less than 1
    "others": (None, 0, -1, -2),  # what all queries but the first layer's, or image's, have
    "floating": FLOATING,
    "logits": FLOATING,
    "integers": (torch.int32, torch.int64),
}

# A mean of few boxes, or of none, in the second layer.
FEW = pairwise(mode=MODES, reduced=("mean",), weight=(1 / 1024,), others=(0, -1, -2))


def class_problem(
    mode: str,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    shape: tuple[int, ...] = (2, 3, 5, 7),
    **options: object,
) -> Problem:
    """Logits of at most 4, queries without a box or left out, and rows and labels there are not."""
    random = torch.Generator().manual_seed(3)

    def numbers(*size: int) -> Tensor:
        return torch.rand(size, generator=random, dtype=torch.float64)

    values: Problem = {
        "logits": (8 * numbers(*shape) - 4).to(device, dtype),
        "target_index": torch.randint(-3, TARGETS + 1, shape[:-1], generator=random).to(device),
        "labels": torch.tensor([3, 0, shape[-1], -1, shape[-1] - 1, 2], device=device),
        "mode": mode,
        "weight": (0.5 + numbers(shape[-1])).to(device, torch.float32),
    }
    if mode in OF_QUALITY:
        values["quality"] = numbers(TARGETS).to(device, torch.float16)
    if mode == "softmax":
        values["no_object_weight"] = 0.25
    return {**values, **options}


def by_query(values: Problem) -> Problem:
    """The same qualities, a query's own; of queries without a box NaN, which nobody reads."""
    quality, index = values["quality"], values["target_index"]
    own = quality[index.clip(0, TARGETS - 1)]
    of_query = own.where((index >= 0) & (index < TARGETS), torch.nan)
    return {**{n: v for n, v in values.items() if n != "quality"}, "query_quality": of_query}


def distribution_problem(
    mode: str,
    dtype: torch.dtype = torch.float64,
    rows: tuple[int, ...] = (3, 2, 9),
    bins: int = 33,
    **options: object,
) -> Problem:
    """Numbers that every dtype holds, and queries as in class_problem."""
    random = torch.Generator().manual_seed(3)

    def uniform(*shape: int) -> Tensor:
        return torch.randint(1, 64, shape, generator=random, dtype=torch.float64) / 64

    given: Problem = {
        "logits": (16 * uniform(*rows, 4 * bins) - 8).to(dtype),
        "target_index": torch.randint(-3, BOXES + 1, rows, generator=random),
        "quality": uniform(*rows),
        "mode": mode,
    }
    if mode == "fgl":
        given["reference"], given["target"] = uniform(*rows, 4), uniform(BOXES, 4)
        config = SimpleNamespace(up=0.5, reg_scale=4.0, max_num_bins=bins - 1)
        given["edges"] = bin_edges(config, given["quality"])
    else:
        layer = rows[-2:]
        given["teacher"] = (16 * uniform(*layer, 4 * bins) - 8).to(dtype)
        given["confidence"] = uniform(*layer)
    return {**given, **options}


def moved(given: Problem, device: torch.device) -> Problem:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in given.items()}


def function_of(framework: Any, values: Problem) -> Any:
    is_of_sides = values["mode"] in OF_SIDES
    return framework.distribution_loss if is_of_sides else framework.class_loss


def logits_problem(
    mode: str,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
    rows: tuple[int, ...] = (2, 3, 5),
    **options: Any,
) -> Problem:
    """Of seven classes, or of five bins."""
    if mode in OF_SIDES:
        return moved(distribution_problem(mode, dtype, rows, 5, **options), device)
    return class_problem(mode, device, dtype, (*rows, 7), **options)


def with_options(
    mode: str,
    rows: tuple[int, ...] = (2, 3, 5),
    reduced: str = "mean",
    numbers: tuple[float, float] | None = None,
    quality: str | None = "of boxes",
    weight: float | None = 1,
    others: int | None = None,
    floating: torch.dtype = torch.float64,
    logits: torch.dtype = torch.float64,
    integers: torch.dtype = torch.int64,
) -> Problem:
    """A choice of each row of the table, of those that the mode has.

    Each image's last query is left out, and every third logit is 0.
    """
    values = logits_problem(mode, torch.device("cpu"), rows=rows)
    if others is not None:
        values["target_index"][1:] = others
    values["target_index"][..., -1] = -2
    values["logits"][..., ::3] = 0
    if mode in OF_QUALITY and quality == "of queries":
        values = by_query(values)
    if mode in ("bce", *OF_SIDES) and quality is None:
        del values["quality"]
    if mode == "ddf" and quality == "of queries":  # and so is the teacher
        values["teacher"] = values["teacher"].expand_as(values["logits"]) * 0.5
    if "weight" in values:
        values["weight"] = weight and values["weight"] * weight
    if numbers and mode in OF_SIDES:
        values["reg_scale" if mode == "fgl" else "temperature"] = 1 + numbers[1]
    if numbers and mode in OF_NUMBERS and (mode != "ia_bce" or numbers[0] >= 0):
        values |= dict(zip(("alpha", "gamma"), numbers, strict=True))
    dtypes = {"logits": logits, **dict.fromkeys(INTEGERS, integers)}
    for name, each in values.items():
        if isinstance(each, Tensor):
            values[name] = each.to(dtypes.get(name, floating))
    if reduced in REDUCTIONS:
        return {**values, "reduction": reduced}
    if mode == "ddf":
        return values
    normalizer = NORMALIZERS[reduced]
    one = reduced == "by layer" and len(rows) < 3
    return {**values, "normalizer": normalizer[0] if one else normalizer}


def spoiled(values: Problem) -> Problem:
    """With NaN where nobody may look: at what is left out, and at what is of a box where none is.

    Each image's last query must be left out.
    """
    index, mode = values["target_index"], values["mode"]
    none = index < 0
    last = torch.arange(index.shape[-1], device=index.device) == index.shape[-1] - 1
    places = {
        "logits": none if mode == "fgl" else index == -2,
        **{"query_quality": none, "reference": none, "teacher": last, "confidence": last},
        **({"quality": none} if mode in OF_SIDES else {}),
    }
    result = dict(values)
    for name in places.keys() & values.keys():
        place = places[name][..., None] if name in SEVERAL_OF_A_QUERY else places[name]
        result[name] = values[name].masked_fill(place, torch.nan)
    return result


def plain(values: Problem) -> Problem:
    """The same numbers in contiguous tensors of the CPU, of the widest dtypes, and 0 for NaN."""

    def widest(name: str, each: Tensor) -> Tensor:
        each = each.detach().cpu().contiguous()
        return each.long() if name in INTEGERS else each.double().nan_to_num(0)

    return {n: widest(n, v) if isinstance(v, Tensor) else v for n, v in values.items()}
