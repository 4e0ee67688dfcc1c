# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""RT-DETR and RT-DETRv2 as transformers has them, and what their kin shares with them.

Layers of as many queries are one group: the decoder's, and the encoder's queries as one layer more;
then the denoising queries, whose pairs are known. Nothing here waits for the device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..cache import weighted
from ..criterion import Layers, Learned, by_name, cost_of, learn, of_scores
from ..denoising import denoising_pairs, fix_denoising
from ..faults import GroundTruth
from ..targets import check_classes, ground_truth_of
from ..transformers_batches import denoising_cases
from ..transformers_models import Given, Losses, criterion, family
from ..versions import is_before

# Until 5.18 the main loss had the denoising queries in it (transformers#48528).
MAIN_LOSS_KEEPS_NOISE = is_before("transformers", 5, 18)


def varifocal(learned: Learned, config: Any) -> dict[str, Tensor]:
    """For loss_labels_vfl: a pair's score is to be its IoU, all others are to be 0."""
    options = {"alpha": config.focal_loss_alpha, "gamma": config.focal_loss_gamma}
    return {"loss_vfl": of_scores(learned, "varifocal", **options)}


@dataclass(frozen=True)  # torch 2.11, at a break of a graph, empties what NamedTuple._replace gave
class Kind:
    """What one of the kin has of its own.

    Losses are without their weight, config.weight_{name}. `more_losses` are of layers, not of the
    outputs alone; `layers` is how many of the outputs have losses, if there are more: see
    `layers_of`.
    """

    class_loss: Callable[[Learned, Any], dict[str, Tensor]] = varifocal
    more_losses: Callable[[Learned], dict[str, Tensor]] = lambda learned: {}
    pairs_of_boxes: Callable[[Tensor, GroundTruth], tuple[Tensor, Tensor]] | None = None
    keeps_noise: bool = MAIN_LOSS_KEEPS_NOISE
    layers: int | None = None


@criterion("outputs_class", "outputs_coord")
def rt_detr_loss(given: Given) -> Losses:
    """model.loss_function = rt_detr_loss; gives what RTDetrForObjectDetectionLoss gives."""
    return losses_of(given, Kind())


def losses_of(given: Given, kind: Kind) -> Losses:
    """What a criterion gives."""
    config, noise = given["config"], given.get("denoising_meta_values")
    last = given["logits"], given["pred_boxes"]
    is_layered = config.auxiliary_loss and given.get("outputs_class") is not None
    keeps_noise = noise is not None and kind.keeps_noise
    parts: list[Layers] = []
    if keeps_noise or not is_layered:
        own = [each[None] for each in last]
        if noise is not None and not keeps_noise:
            own = [each.split(noise["dn_num_split"], dim=2)[1] for each in own]
        parts.append(Layers([""], *own))
    if is_layered:
        outputs = [given[f"outputs_{name}"].transpose(0, 1) for name in ("class", "coord")]
        if noise is not None:
            halves = [each.split(noise["dn_num_split"], dim=2) for each in outputs]
            noisy, outputs = (list(its) for its in zip(*halves, strict=True))
        of_layers = [layers_of(each, kind.layers) for each in outputs]
        count = sum(map(len, of_layers[0]))
        names = [f"_aux_{layer}" for layer in range(count)]
        if keeps_noise:
            of_layers = [[*each[:-1], each[-1][:-1]] for each in of_layers]
        else:
            names.insert(count - 1, "")
        encoder = given["enc_topk_logits"], given["enc_topk_bboxes"]
        whole = [torch.cat([*its, x[None]]) for its, x in zip(of_layers, encoder, strict=True)]
        parts.append(Layers(names, *whole))

    check_classes(config, last[0].shape[-1])
    truth = ground_truth_of(given["labels"], "class_labels", config.num_labels, has_sizes=True)
    number = truth.divisor()  # of this rank alone, as there

    def own_losses(learned: Learned) -> dict[str, Tensor]:
        more = kind.more_losses(learned) if learned.layers.names != [""] else {}
        return kind.class_loss(learned, config) | more

    numbered = [(each, number) for each in parts]
    if is_layered and noise is not None:
        layers = kind.layers or len(noisy[0])
        names = [f"_dn_{layer}" for layer in range(layers)]
        scores, boxes = (each[:layers] for each in noisy)
        known = Layers(names, scores, boxes, denoising_pairs(noise, truth, layers))
        numbered.append((known, number * noise["dn_num_group"]))
    cost = cost_of(
        config.matcher_giou_cost,
        config.matcher_bbox_cost,
        config.matcher_class_cost,
        "focal" if config.use_focal_loss else "softmax",
        config.matcher_alpha,
        config.matcher_gamma,
    )
    others = kind.pairs_of_boxes
    found = [
        (each.names, learn(each, truth, divisor, cost, own_losses, pairs_of_boxes=others))
        for each, divisor in numbered
    ]
    losses = weighted(
        [
            (getattr(config, f"weight_{name}"), values)
            for _, named in found
            for name, values in named.items()
        ]
    )
    auxiliary = None
    if is_layered:
        auxiliary = [
            {"logits": each, "pred_boxes": its}
            for name, each, its in zip(*parts[-1][:3], strict=True)
            if name
        ]
    return losses.sum(), by_name(found, losses), auxiliary


def layers_of(outputs: Tensor, layers: int | None) -> list[Tensor]:
    """Parts of a model's outputs, layers first: all, or so many, of which the last is the last.

    D-FINE's outputs begin with a box before its first layer's corners. The original goes through
    all of them together, as far as there are corners; last come the model's own outputs.
    """
    if layers is None or len(outputs) == layers:
        return [outputs]
    first, _, last = outputs.split([layers - 1, len(outputs) - layers, 1])
    return [first, last]


FAMILY = family(rt_detr_loss, denoising_cases, fix=fix_denoising)
