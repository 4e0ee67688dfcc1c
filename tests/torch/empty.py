# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Problems with nothing to compute, of every operation: as frameworks' tensors can be empty."""

from functools import partial
from typing import Any, NamedTuple

import torch
from problems import Problem


def _boxes(device: torch.device, *shape: int) -> torch.Tensor:
    """Not empty where slots or rows are left: NaN that must reach nothing."""
    return torch.full((*shape, 4), float("nan"), device=device)


def _indices(device: torch.device, *numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def empty_problems(device: torch.device) -> dict[str, Problem]:
    """Of the losses."""
    boxes, indices = partial(_boxes, device), partial(_indices, device)

    def grid(*shape: int) -> Problem:
        return {"pred": boxes(*shape), "target": boxes(*shape)}

    def lists(pred: int, target: int, *shape: int, row: int = -1) -> Problem:
        index = torch.full(shape, row, device=device)
        both = {"pred_index": index, "target_index": index.int()}
        return {"pred": boxes(2, pred), "target": boxes(target), **both}

    no_mask = torch.ones(2, 0, dtype=torch.bool, device=device)
    return {
        "no boxes": grid(0),
        "no images": grid(0, 5),
        "no slots": grid(2, 0),
        "no boxes, strides that do not merge": {
            name: boxes(0, 6, 7)[:, :3, :5] for name in ("pred", "target")
        },
        "mask, no slots": {**grid(2, 0), "mask": no_mask},
        "lengths, no images": {**grid(0, 5), "lengths": indices()},
        "lengths of zero": {**grid(2, 5), "lengths": indices(0, 0)},
        "no slots in planes": {n: boxes(2, 3, 0).mT.contiguous().mT for n in ("pred", "target")},
        "offsets, no rows": {"pred": boxes(2, 5), "target": boxes(0), "offsets": indices(0, 0, 0)},
        "offsets, no images": {"pred": boxes(0, 5), "target": boxes(3), "offsets": indices(0)},
        "offsets, no slots": {"pred": boxes(2, 0), "target": boxes(3), "offsets": indices(0, 1, 3)},
        "no pairs": lists(3, 4, 0),
        "no sets": lists(3, 4, 0, 2),
        "pairs of nothing": lists(3, 4, 2, 5),
        "pairs, no rows": lists(0, 0, 2, 5, row=0),
        "no pairs, one index": {
            "pred": boxes(3),
            "target": boxes(2, 0),
            "pred_index": indices().reshape(2, 0),
        },
    }


class Empty(NamedTuple):
    """A call, and the number that fills each of its results."""

    function: str
    values: Problem
    results: tuple[int, ...]


def empty_matches(device: torch.device) -> dict[str, Empty]:
    """Of the matcher and the assigners, and losses of what they leave."""
    boxes, indices = partial(_boxes, device), partial(_indices, device)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.full(shape, float("nan"), device=device)

    def costs(pred: tuple[int, ...], target: int, *offsets: int) -> Problem:
        return {"pred": boxes(*pred), "target": boxes(target), "offsets": indices(*offsets)}

    def assignment(cost: tuple[int, ...], *offsets: int) -> Problem:
        return {"cost": numbers(*cost), "offsets": indices(*offsets)}

    def anchors(shape: tuple[int, ...], target: int, *offsets: int, **options: Any) -> Problem:
        lists = {"anchors": boxes(*shape), "target": boxes(target), "offsets": indices(*offsets)}
        return {**lists, "high": 0.0, "low": -1.0, "low_quality": "overwrite", **options}

    def aligned(scores: tuple[int, int, int], target: tuple[int, ...], *offsets: int) -> Problem:
        return {
            "scores": numbers(*scores),
            "pred": boxes(*scores[:2]),
            "points": numbers(scores[1], 2),
            "target": boxes(*target),
            "offsets": indices(*offsets) if offsets else None,
            "labels": torch.zeros(target, dtype=torch.int64, device=device),
        }

    cost_problems = {
        "no images in layers": costs((2, 0, 3), 4, 2),
        "no layers": costs((0, 2, 3), 4, 0, 2, 4),
        "no queries": costs((2, 0), 4, 0, 2, 4),
        "no columns": costs((2, 2, 3), 0, 0, 0, 0),
    }
    no_images = cost_problems["no images in layers"]
    classes = {"logits": numbers(2, 0, 3, 5), "labels": indices(0, 1, 2, 3)}
    no_classes = {"logits": numbers(2, 3, 0), "labels": indices(0, 1, 2, 3)}
    cost_options = {
        "no images, softmax": {**no_images, **classes},
        "no images, focal": {**no_images, **classes, "class_mode": "focal"},
        "no classes": {
            **{**costs((2, 3), 4, 0, 2, 4), **no_classes, "class_mode": "sigmoid"},
            **{"iou_weight": 0.0, "l1_weight": 0.0},
        },
    }
    assignments = {
        "no images in layers": assignment((2, 6, 3), 0),
        "no layers": assignment((0, 6, 3), 0, 1, 3),
        "no queries": assignment((2, 0, 3), 0, 1, 3),
        "no columns": assignment((2, 6, 0), 0, 0, 0),
    }
    matrices = {
        "no matrices": {"cost": numbers(0, 3, 4)},
        "no rows": {"cost": numbers(0, 4)},
        "no columns": {"cost": numbers(2, 3, 0)},
        "lengths of no rows": {
            **{"cost": numbers(2, 3, 4), "cost_limit": 1.0},
            "lengths": torch.tensor([[0, 4], [0, 0]], device=device),
        },
    }
    max_ious = {
        "no images of own anchors": anchors((0, 3), 4, 2),
        "no anchors of images": anchors((2, 0), 4, 0, 1, 4),
        "no boxes, forced": anchors((2, 3), 0, 0, 0, 0, low_quality="force"),
    }
    task_aligned = {
        "no images": aligned((0, 3, 5), (4,), 2),
        "no anchors, padded": aligned((2, 0, 5), (2, 4)),
        "no classes": {**aligned((2, 3, 0), (0,), 0, 0, 0)},
        "no boxes, padded": aligned((2, 3, 5), (2, 0)),
        "only padding": {**aligned((2, 3, 5), (2, 4)), "target": boxes(2, 4).nan_to_num()},
    }

    def of_classes(shape: tuple[int, ...], count: int, mode: str = "mal") -> Problem:
        return {
            **{"logits": numbers(*shape), "mode": mode, "reduction": "sum"},
            "target_index": torch.full(shape[:-1], -2, device=device),
            "labels": torch.zeros(count, dtype=torch.int64, device=device),
            **({} if mode == "softmax" else {"quality": numbers(count)}),
        }

    class_losses = {
        f"no {what}, {mode}": of_classes(shape, count, mode)
        for mode in ("mal", "softmax")
        for what, shape, count in (
            ("layers", (0, 2, 3, 4), 5),
            ("images", (2, 0, 3, 4), 5),
            ("queries", (0, 4), 5),
            ("boxes", (2, 3, 4), 0),
        )
    }
    class_losses["no classes"] = of_classes((2, 3, 0), 5)
    class_losses["no queries by mean"] = {**of_classes((2, 0, 4), 5), "reduction": "mean"}

    def of_distributions(shape: tuple[int, ...], mode: str = "fgl", count: int = 5) -> Problem:
        """Of two bins, which no query reads."""
        of_fgl = {
            **{"reference": boxes(*shape), "target": boxes(count)},
            "edges": torch.tensor([-1.0, 1.0], device=device),
        }
        layer = shape[-2:]
        of_ddf = {"teacher": numbers(*layer, 8), "confidence": numbers(*layer)}
        return {
            **{"logits": numbers(*shape, 8), "mode": mode},
            "target_index": torch.full(shape, -2, device=device),
            **(of_fgl if mode == "fgl" else of_ddf),
        }

    distribution_losses = {
        f"no {what}, {mode}": of_distributions(shape, mode)
        for mode in ("fgl", "ddf")
        for what, shape in (
            ("layers", (0, 2, 3)),
            ("images", (2, 0, 3)),
            ("queries", (0,)),
            ("query that counts", (2, 2, 3)),
        )
    }
    distribution_losses["no boxes"] = of_distributions((2, 3), count=0)
    distribution_losses["no boxes by sum"] = {
        **of_distributions((2, 3), count=0),
        **{"target_index": torch.zeros(2, 3, dtype=torch.int64, device=device), "reduction": "sum"},
    }
    kinds = {
        "matching_cost": ({**cost_problems, **cost_options}, (0,)),
        "pairwise_iou": (cost_problems, (0,)),
        "hungarian_match": (assignments, (-1, -1, -1)),
        "linear_sum_assignment": (matrices, (-1, -1)),
        "max_iou_match": (max_ious, (-1, 0)),
        "task_aligned_match": (task_aligned, (-1, 0, 0)),
        "class_loss": (class_losses, (0,)),
        "distribution_loss": (distribution_losses, (0,)),
    }
    return {
        f"{function}, {name}": Empty(function, values, results)
        for function, (problems, results) in kinds.items()
        for name, values in problems.items()
    }
