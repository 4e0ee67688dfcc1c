# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""OneFormer as transformers has it: its masks, as of Mask2Former; its contrastive loss stays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor
from transformers.models.oneformer.modeling_oneformer import OneFormerLoss

from ..made_up import MadeUp, cases_of
from ..mask_layers import all_layers, family, losses, made_up, named
from ..proof import Case
from ..targets import FixedTargets
from .mask2former import at_points


class Criterion(OneFormerLoss):
    def forward(
        self,
        masks_queries_logits: Tensor,
        class_queries_logits: Tensor,
        contrastive_queries_logits: Tensor | None,
        mask_labels: Sequence[Tensor] | Tensor,
        class_labels: Sequence[Tensor] | FixedTargets,
        text_queries: Tensor | None,
        auxiliary_predictions: Sequence[Mapping[str, Tensor]] | None = None,
        calculate_contrastive_loss: bool = True,
    ) -> dict[str, Tensor]:
        layers = all_layers(masks_queries_logits, class_queries_logits, auxiliary_predictions)
        found = losses(self, layers, mask_labels, class_labels, at_points)
        for each in found:  # theirs have a dimension
            each |= {name: each[name].view(1) for name in ("loss_mask", "loss_dice")}
        if calculate_contrastive_loss:
            found[0] |= self.loss_contrastive(contrastive_queries_logits, text_queries)
        return named(found)


def cases(model: Any) -> Iterator[Case]:
    """Without the contrastive loss, which stays theirs."""
    random = MadeUp.of(model)
    others = {"contrastive_queries_logits": None, "text_queries": None}

    def make(counts: tuple[int, ...]) -> dict[str, Any]:
        made = made_up(random, model.criterion, counts)
        return {**made, **others, "calculate_contrastive_loss": False}

    yield from cases_of(make, (13, 1))


FAMILY = family(at_points, Criterion, cases)
