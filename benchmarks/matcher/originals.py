# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' own matchers, called for each layer as its criteria do.

Their code runs as it is: whole, with SciPy's assignment put out of action, or as far as the copy to
the host, where it is stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from torch import Tensor

from ..common.losses import UnavailableError, transformers_loss
from .cases import Case
from .formulas import FOCAL_ALPHA

# The pairs of an image: queries and true boxes.
Match = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Original:
    matches: Callable[[], list[list[Match]]]  # [layer][image]
    without_scipy: Callable[[], object]  # with the copies to the host
    costs: Callable[[], list[Tensor]]  # without; of each layer, (images, queries, T) in any shape


class _CopyReachedError(Exception):
    def __init__(self, cost: Tensor) -> None:
        super().__init__("the cost is about to be copied to the host")
        self.cost = cost


def load_original(case: Case) -> Original:
    matcher = load_matcher(case)
    assert case.logits is not None
    assert case.labels is not None
    groups = (case.shape.groups,) if case.shape.groups > 1 else ()
    layers = [
        {"logits": logits, "pred_boxes": boxes}
        for logits, boxes in zip(case.logits, case.pred, strict=True)
    ]
    targets = [
        {"class_labels": labels, "boxes": boxes}
        for labels, boxes in zip(
            case.labels.split(case.counts), case.target.split(case.counts), strict=True
        )
    ]
    module = sys.modules[type(matcher).__module__]

    def matches() -> list[list[Match]]:
        return [matcher(layer, targets, *groups) for layer in layers]

    def without_scipy() -> object:
        with replaced(module, "linear_sum_assignment", _no_assignment):
            return matches()

    def costs() -> list[Tensor]:
        found = []
        with replaced(Tensor, "cpu", _stop):
            for layer in layers:
                try:
                    matcher(layer, targets, *groups)
                except _CopyReachedError as reached:
                    found.append(reached.cost)
        return found

    if len(costs()) != len(layers):
        raise UnavailableError("this transformers copies no cost to the host")
    return Original(matches, without_scipy, costs)


def load_matcher(case: Case) -> Callable[..., Any]:
    weights = case.cost.class_weight, case.cost.l1_weight, case.cost.iou_weight
    if case.cost.class_mode == "softmax":
        return _matcher("loss_for_object_detection", "HungarianMatcher")(*weights)
    if case.shape.groups > 1:
        return _matcher("loss_lw_detr", "LwDetrHungarianMatcher")(*weights)
    names = ("matcher_class_cost", "matcher_bbox_cost", "matcher_giou_cost")
    config = dict(zip(names, weights, strict=True))
    return _matcher("loss_rt_detr", "RTDetrHungarianMatcher")(
        SimpleNamespace(**config, use_focal_loss=True, matcher_alpha=FOCAL_ALPHA, matcher_gamma=2.0)
    )


def _matcher(module: str, name: str) -> Callable[..., Callable[..., Any]]:
    return getattr(transformers_loss(module), name)  # type: ignore[no-any-return]


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """unittest.mock would take a good part of what is timed."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)  # it is inherited
        else:
            setattr(owner, name, own)


def _stop(cost: Tensor) -> Tensor:
    raise _CopyReachedError(cost)


_NOBODY = np.zeros(0, dtype=np.int64)


def _no_assignment(cost: Tensor) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return _NOBODY, _NOBODY
