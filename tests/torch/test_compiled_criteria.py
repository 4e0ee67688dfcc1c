# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RT-DETR's criterion and its kin compiled, with lists of ground truth. tests/peers has the models,
with the newest torch alone."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from boxloss.torch.compat import criterion as shared
from boxloss.torch.compat.families import d_fine, rt_detr
from boxloss.torch.compat.families.deimv2 import deimv2_loss
from boxloss.torch.compat.families.rt_detr import Kind

COUNTS, LAYERS, CLASSES, BINS = (3, 0), 3, 5, 8
NOISY, QUERIES = 6, 10  # three positive queries for denoising, three negative ones
WEIGHTS = {f"weight_loss_{name}": 1.0 for name in ("vfl", "mal", "bbox", "giou", "fgl", "ddf")}
CONFIG = SimpleNamespace(
    **WEIGHTS,
    auxiliary_loss=True,
    num_labels=CLASSES,
    max_num_bins=BINS,
    up=0.5,
    reg_scale=4.0,
    use_focal_loss=True,
    use_dense_one_to_one=True,
    focal_loss_alpha=0.75,
    focal_loss_gamma=2.0,
    mal_alpha=None,
    matcher_alpha=0.25,
    matcher_gamma=2.0,
    matcher_class_cost=2.0,
    matcher_bbox_cost=5.0,
    matcher_giou_cost=2.0,
)


def arguments() -> dict[str, Any]:
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=random)

    labels = [{"class_labels": torch.arange(n), "boxes": 0.1 + 0.4 * draw(n, 4)} for n in COUNTS]
    shape = len(COUNTS), LAYERS, NOISY + QUERIES
    scores, boxes = draw(*shape, CLASSES), draw(*shape, 4)
    noise = {
        "dn_num_split": [NOISY, QUERIES],
        "dn_num_group": 1,
        "dn_positive_idx": tuple(torch.arange(n) for n in COUNTS),
    }
    return {
        "logits": scores[:, -1],
        "labels": labels,
        "device": scores.device,
        "pred_boxes": boxes[:, -1],
        "config": CONFIG,
        "outputs_class": scores,
        "outputs_coord": boxes,
        "enc_topk_logits": scores[:, 0, NOISY:],
        "enc_topk_bboxes": boxes[:, 0, NOISY:],
        "denoising_meta_values": noise,
        "predicted_corners": draw(*shape, 4 * (BINS + 1)),
        "initial_reference_points": boxes,
    }


# transformers until 5.17 has the denoising queries in the main loss.
CRITERIA = {
    "RT-DETR": lambda **given: rt_detr.losses_of(given, Kind(keeps_noise=True)),
    "D-FINE": lambda **given: d_fine.losses_of(given, Kind(keeps_noise=True)),
    "DEIMv2": deimv2_loss,
}


# In one graph what is RT-DETR's is in D-FINE's, too.
@pytest.mark.parametrize(
    ("name", "breaks"),
    [
        *(("D-FINE", False), ("RT-DETR", True)),
        *(pytest.param(name, False, marks=pytest.mark.long) for name in ("RT-DETR", "DEIMv2")),
        *(pytest.param(name, True, marks=pytest.mark.long) for name in ("D-FINE", "DEIMv2")),
    ],
)
def test_the_same_losses_compiled(name: str, breaks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    criterion = CRITERIA[name]
    wanted, wanted_by_name, _ = criterion(**arguments())
    if breaks:
        match = shared.match

        def broken(*given: Any) -> Any:
            torch._dynamo.graph_break()
            return match(*given)

        monkeypatch.setattr(shared, "match", broken)
    torch.compiler.reset()
    compiled = torch.compile(criterion, backend="eager", fullgraph=not breaks)
    total, by_name, _ = compiled(**arguments())
    assert total == wanted
    assert by_name == wanted_by_name
