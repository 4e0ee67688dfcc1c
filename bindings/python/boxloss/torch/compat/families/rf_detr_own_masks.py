# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Masks in the criterion of rfdetr's RF-DETR for segmentation."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..criterion import Layers, Learned
from ..faults import GroundTruth
from ..made_up import MadeUp
from ..mask_layers import made_up_masks
from ..mask_lists import check_one_size, masks_of
from ..mask_logits import Logits, Product, Sampling
from ..masks import draw, truth_of
from ..rf_detr_points import LayersOfMasks

FEATURES = "spatial_features", "query_features", "bias"


class Masks:
    """Of a step. The matcher's points of all layers are drawn first, then those of losses."""

    def __init__(
        self,
        criterion: Any,
        outputs: Mapping[str, Mapping[str, Any]],
        targets: Sequence[Mapping[str, Tensor]],
        classes: int,
        groups: int,
    ) -> None:
        if "valid" in targets[0]:
            raise ValueError('targets are padded ("valid"); rfdetr\'s masks are not, nor are these')
        masks = masks_of(targets)
        check_one_size(masks, "masks")
        labels = [each["labels"].flatten() for each in targets]
        truth, factor = truth_of(masks, labels, classes, "masks")
        self.logits = {name: as_logits(each["pred_masks"]) for name, each in outputs.items()}
        self.matcher = criterion.matcher
        maps = [
            each if isinstance(each, Tensor) else each.features for each in self.logits.values()
        ]
        sizes = [tuple(each.shape[2:]) for each in maps]
        if len({*sizes}) > 1:
            raise ValueError(
                f"pred_masks of layers have height and width {sizes}; all must be equal"
            )
        height, width = sizes[0]
        compared = height * width // self.matcher.mask_point_sample_ratio
        count = max(height, height * width // criterion.mask_point_sample_ratio)
        (points,) = draw(range(len(outputs)), [(1, compared)], truth.offsets.device)
        self.points = dict(zip(outputs, points, strict=True))
        self.given = truth, factor, groups, compared, count, Sampling("nearest", "border")

    def _of(self, layers: Layers) -> LayersOfMasks:
        return LayersOfMasks([self.logits[name] for name in layers.names], *self.given)

    def class_cost(self, layers: Layers, truth: GroundTruth) -> dict[str, Any]:
        """Arguments of `matching_cost`: the class term is that of masks, too."""
        matcher = self.matcher
        points = torch.stack([self.points[name] for name in layers.names])
        weights = matcher.cost_class, matcher.cost_mask_ce, matcher.cost_mask_dice
        cost = self._of(layers).cost(layers, truth, points, weights, matcher.focal_alpha)
        return {
            "class_cost": cost,
            "class_weight": 1.0,
            "nonfinite": torch.finfo(torch.float32).max,
        }

    def losses(self, learned: Learned) -> dict[str, Tensor]:
        masks = self._of(learned.layers)
        sizes = (0, 0), *masks.sizes(learned.layers.boxes.shape[2])
        _, *drawn = draw(range(len(masks.logits)), sizes, learned.layers.boxes.device)
        return masks.losses(learned, drawn)


def as_logits(masks: Tensor | Mapping[str, Tensor]) -> Logits:
    return masks if isinstance(masks, Tensor) else Product(*(masks[name] for name in FEATURES))


def add_masks(
    random: MadeUp,
    layers: Sequence[dict[str, Any]],
    targets: Sequence[dict[str, Tensor]],
    in_training: bool,
) -> None:
    """To outputs and ground truth; in training as features."""
    for each in targets:
        each["masks"] = made_up_masks(random, len(each["boxes"]), 40, 40)
    images, queries = layers[0]["pred_boxes"].shape[:2]
    shapes = (images, 4, 12, 12), (images, queries, 4), (1,)
    for layer in layers:
        made = [random.output(random.normal(*shape)) for shape in shapes]
        logits = random.output(2 * random.normal(images, queries, 12, 12))
        layer["pred_masks"] = dict(zip(FEATURES, made, strict=True)) if in_training else logits
