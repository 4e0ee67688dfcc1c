# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Every loss and its gradients against the formula, for every kind of boxes."""

import pytest
import torch
from bounds import check_bounded
from devices import Implementation
from formulas import LOSSES
from kinds import INVERTED, PAIRS, RANDOM_KINDS, WITHOUT_AREA, random_pairs, tensors
from torch import Tensor

pytestmark = pytest.mark.parametrize("loss", LOSSES)
EPS_MODES = ("add", "clamp")
DTYPES = (torch.float32, torch.float64)


def check_pairs(
    implementation: Implementation,
    loss: str,
    pairs: tuple[Tensor, Tensor],
    eps: float,
    modes: tuple[str, ...] = EPS_MODES,
) -> None:
    """A finite loss and gradients, near the formula's."""
    pred, target = (boxes.to(implementation.device) for boxes in pairs)
    for mode in modes:
        options = {"loss": loss, "eps": eps, "eps_mode": mode, "reduction": "none"}
        check_bounded({"pred": pred, "target": target, **options})


def joined(*pairs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    pred, target = zip(*pairs, strict=True)
    return torch.cat(pred), torch.cat(target)


@pytest.mark.parametrize(
    ("eps", "modes"),
    [
        (1e-7, EPS_MODES),
        (0.25, ("add",)),
        (4.0, ("clamp",)),  # the area, and the squared side, of some: there it has half its slope
    ],
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_kind(
    implementation: Implementation,
    loss: str,
    dtype: torch.dtype,
    eps: float,
    modes: tuple[str, ...],
) -> None:
    integers = (tensors(pairs, dtype) for pairs in (PAIRS, WITHOUT_AREA, INVERTED))
    check_pairs(
        implementation,
        loss,
        joined(*integers, *(random_pairs(kind, dtype) for kind in RANDOM_KINDS)),
        eps,
        modes,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_without_eps(implementation: Implementation, loss: str, dtype: torch.dtype) -> None:
    # Disjoint boxes have an infinite -log(iou) then.
    overlapping = [name for name in PAIRS if not name.startswith(("touching", "apart"))]
    pairs = PAIRS if loss != "iou_log" else {name: PAIRS[name] for name in overlapping}
    kinds = ("overlapping", "nearly equal", "equal", "nested", "sharing edges")
    check_pairs(
        implementation,
        loss,
        joined(tensors(pairs, dtype), *(random_pairs(kind, dtype) for kind in kinds)),
        0.0,
    )


@pytest.mark.parametrize("eps", [1e-7, 1e-12])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_up_to_1e9(
    implementation: Implementation, loss: str, dtype: torch.dtype, eps: float
) -> None:
    corners = torch.tensor([-1e9, -1e9, -3.0, 0.0, 0.0, 7.0, 1e9, 1e9], dtype=dtype)
    random = torch.Generator().manual_seed(3)
    boxes = corners[torch.randint(0, 8, (600, 2, 4), generator=random)]
    boxes[::10, 0] = boxes[::10, 1]
    upright = (boxes[..., :2] <= boxes[..., 2:]).all(-1).all(-1)
    assert 20 < upright.sum() < 580
    # GIoU's gradient is U' / C'^2 times a side. Where inverted boxes leave eps of C', and 1e18 of
    # U, that is no float32.
    kept = boxes[upright] if loss == "giou" and dtype == torch.float32 else boxes
    check_pairs(implementation, loss, (kept[:, 0].contiguous(), kept[:, 1].contiguous()), eps)
