# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of boxes whose sides are distributions over bins, by what a matcher has found."""

from numbers import Real

import torch
from torch import Tensor

from .._options import DistributionLossMode, Reduction
from .arguments import as_normalizer, call, check_tensors

_DISTRIBUTION_LOSS = torch.ops.boxloss.distribution_loss.default


def distribution_loss(
    logits: Tensor,
    target_index: Tensor,
    *,
    mode: DistributionLossMode,
    quality: Tensor | None = None,
    reference: Tensor | None = None,
    target: Tensor | None = None,
    edges: Tensor | None = None,
    reg_scale: float = 4.0,
    teacher: Tensor | None = None,
    confidence: Tensor | None = None,
    temperature: float = 5.0,
    reduction: Reduction = "mean",
    normalizer: Tensor | Real | None = None,
) -> Tensor:
    """The loss of sides that are distributions over bins, as D-FINE and DEIM have them.

    In one pass over the logits forward and one backward. Dtypes and memory are as for `class_loss`.
    D-FINE: Peng et al. 2024.

    - "fgl", fine-grained localization (4.2; transformers' unimodal_distribution_focal_loss): the
      cross-entropy of each side towards the two bins that the true side lies between, weighed by
      how near it is to each. Of matched queries: the logits of others are not read.
    - "ddf", decoupled distillation focal (4.3; loss_ddf): temperature**2 * KL(teacher, own) of each
      side, of softmax(logits / temperature). Of all queries.

    A query's loss is the sum of its four sides', times its weight.

    Args:
        logits: (queries, 4 * bins), (images, queries, 4 * bins) or (layers, images, queries,
            4 * bins), any floating dtype and strides; copied if a query's are not neighbours:
            `bins` for each of left, top, right, bottom.
        target_index: logits' shape without its last dimension: each query's row of target, as for
            `class_loss`. For "fgl" any other number that is no row is none; "ddf" has no target,
            and every number from 0 on is a match.
        mode: "fgl" or "ddf".
        quality: target_index' shape, floating: a matched query's weight, such as its IoU; 1 if not
            given. It gets no gradient, and nor does any tensor below.
        reference: for "fgl", target_index' shape and 4, floating: the boxes that sides are offsets
            from, cxcywh.
        target: for "fgl", (T, 4), floating, cxcywh.
        edges: for "fgl", (bins), at least 2, floating, increasing: the offset that each bin stands
            for, in units of the reference's size / reg_scale. Sides beyond the ends are taken for
            these. transformers' weighting_function gives them.
        reg_scale: for "fgl": the absolute value of the model's.
        teacher: for "ddf", logits of one layer, for all layers, or of logits' shape, floating: the
            last layer's.
        confidence: for "ddf", one layer's target_index' shape, floating: the weight of queries
            without a match, such as the teacher's highest score.
        temperature: for "ddf".
        reduction: "mean" divides the sum of "fgl" by the number of matched queries, at least 1. Of
            "ddf" it is D-FINE's: the means over sides of matched and of other queries, weighed by
            the roots of how many there are. "sum"; or "none": a loss for each query.
        normalizer: the "mean" of "fgl" divides by this, as for `class_loss`.

    Returns:
        What `class_loss` gives.

    Raises:
        ValueError, TypeError, RuntimeError: what `class_loss` raises.
    """
    check_tensors("distribution_loss", logits=logits, target_index=target_index)
    of_fgl, of_ddf = (reference, target, edges, reg_scale), (teacher, confidence, temperature)
    normalizer = as_normalizer("distribution_loss", normalizer, logits, logits)
    arguments = (logits, target_index, mode, quality, *of_fgl, *of_ddf, reduction, normalizer)
    return call("distribution_loss", _DISTRIBUTION_LOSS, arguments)  # type: ignore[no-any-return]
