# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Losses of DTensors. Importing this module makes `box_loss`, `box_losses` and `rotated_box_loss`
accept them.

Each rank computes its own pairs, forward and backward, without communication. pred and target are
replicated, or sharded by image, Shard(0), independently for each dimension of the mesh. weight,
lengths and mask are placed as pred is. The normalizer is replicated, or a number.

For sharded boxes reduction "none" gives sharded losses; "sum", and "mean" with a normalizer, give a
Partial, which full_tensor() adds up. "mean" without a normalizer is a ValueError, since no rank
knows the number of valid pairs on the others; so are offsets and indices, which reach across
shards. There are no second derivatives of DTensors.

    import boxloss.torch.dtensor

    loss = box_loss(pred, target, lengths=lengths, normalizer=boxes_in_all).full_tensor()
"""

from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.library import register_torch_dispatch

_BY_IMAGE = ("target", "weight", "lengths", "mask")
_ACROSS_IMAGES = ("offsets", "pred_index", "target_index")


def _named_arguments(operator: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    parameters = operator._schema.arguments
    values = {each.name: each.default_value for each in parameters if each.has_default_value()}
    values.update(zip((each.name for each in parameters), args, strict=False))
    return {**values, **kwargs}


def _check(function: str, values: dict[str, Any]) -> None:
    """Checks that each rank has exactly the tensors' parts that its pairs need."""
    for name in ("pred", *_BY_IMAGE, *_ACROSS_IMAGES, "normalizer"):
        if isinstance(values[name], Tensor) and not isinstance(values[name], DTensor):
            raise TypeError(f"{function}: {name} is no DTensor, but others are; all must be")
    pred = values["pred"]
    replicated = (Replicate(),) * pred.device_mesh.ndim
    for placement in pred.placements:
        if placement not in (Shard(0), Replicate()):
            raise ValueError(
                f"{function}: pred is placed {pred.placements}; allowed are Shard(0) and "
                "Replicate()"
            )
    if pred.placements != replicated:
        for name in _ACROSS_IMAGES:
            if values[name] is not None:
                raise ValueError(f"{function}: {name} cannot be given with sharded boxes")
        if values["reduction"] == "mean" and values["normalizer"] is None:
            raise ValueError(
                f"{function}: reduction 'mean' of sharded boxes needs a normalizer, such as the "
                "number of pairs that count on all ranks"
            )
    wanted = dict.fromkeys((*_BY_IMAGE, *_ACROSS_IMAGES), pred.placements)
    for name, placements in {**wanted, "normalizer": replicated}.items():
        each = values[name]
        if each is not None and (each.device_mesh, each.placements) != (
            pred.device_mesh,
            placements,
        ):
            raise ValueError(
                f"{function}: {name} is placed {each.placements} on {each.device_mesh}; it must be "
                f"{placements} on {pred.device_mesh}"
            )


@torch.no_grad()
def _on_own_images(_: Any, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The operator on this rank's part of the tensors."""
    values = _named_arguments(operator, args, kwargs or {})
    name = operator._schema.name
    _check("rotated_box_loss" if "rotated" in name else "box_loss", values)
    pred = values["pred"]
    mesh, by_image, images = pred.device_mesh, pred.placements, pred.shape[0]
    replicated = tuple(Replicate() for _ in by_image)
    shares = tuple(Partial() if each == Shard(0) else each for each in by_image)
    is_reduced = values["reduction"] != "none"
    for name in ("grad_loss", "grad_l1"):  # placed as the caller's own operations did
        if values.get(name) is not None:
            values[name] = values[name].redistribute(mesh, replicated if is_reduced else by_image)

    def placed(name: str, result: Tensor) -> DTensor:
        placements = by_image
        if name == "scale":
            placements = replicated
        elif name in ("", "loss", "l1") and is_reduced:
            placements = shares
        shape = result.shape
        if Shard(0) in placements:
            shape = torch.Size((images, *shape[1:]))
        return DTensor.from_local(
            result, mesh, placements, run_check=False, shape=shape, stride=result.stride()
        )

    local = {
        name: value.to_local() if isinstance(value, DTensor) else value
        for name, value in values.items()
    }
    results = operator(**local)
    names = [each.name for each in operator._schema.returns]
    if isinstance(results, Tensor):
        return placed(names[0], results)
    return tuple(map(placed, names, results))


for _name in (
    *("box_loss", "_box_loss_forward", "_box_loss_backward"),
    *("box_losses", "_box_losses_forward", "_box_losses_backward"),
    *("rotated_box_loss", "_rotated_box_loss_forward", "_rotated_box_loss_backward"),
):
    register_torch_dispatch(f"boxloss::{_name}", DTensor, _on_own_images)
