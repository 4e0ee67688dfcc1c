# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused, in words, while JAX traces."""

from typing import Any

import boxloss.jax
import jax
import jax.numpy as jnp
import pytest

BOXES = jnp.ones((3, 5, 4))
INDEX = jnp.zeros(7, int)


def refusals() -> dict[str, tuple[dict[str, Any], type[Exception], str]]:
    value, kind = ValueError, TypeError
    lists = {"pred_index": INDEX, "target_index": INDEX}
    return {
        "loss": ({"loss": "gio"}, value, "loss is 'gio'; allowed: 'iou', 'iou_squared'"),
        "format": ({"pred_format": "xy"}, value, "pred_format is 'xy'; allowed: 'xyxy', 'xywh'"),
        "a number for a word": ({"pred_format": 3}, kind, "pred_format is int; it must be a str"),
        "no word": ({"loss": None}, kind, "loss is NoneType; it must be a string"),
        "a word for a number": ({"eps": "a"}, kind, "eps is str; it must be a number"),
        "no flag": ({"zero_padded": 1}, kind, "zero_padded is int; it must be True or False"),
        "reduction": ({"reduction": "avg"}, value, "reduction is 'avg'; allowed: 'none', 'sum'"),
        "eps": ({"eps": -1}, value, "eps is -1; it must be finite and not negative"),
        "eps_mode": ({"eps_mode": "max"}, value, "eps_mode is 'max'; allowed: 'add', 'clamp'"),
        "a list": ({"pred": [[1.0] * 4]}, kind, "pred is list; it must be an array of JAX"),
        "integer pred": ({"pred": BOXES.astype(int)}, kind, "pred is int64; it must be float64"),
        "dtype": ({"target": BOXES.astype("int8")}, kind, "target is int8; it must be float64"),
        "bool": ({"target": BOXES.astype(bool)}, kind, "target is bool; it must be float64"),
        "shape": ({"pred": BOXES[..., :3]}, value, r"pred has shape \(3, 5, 3\); its last"),
        "scalar": ({"pred": jnp.ones(())}, value, r"pred has shape \(\); its last dimension"),
        "shapes": ({"target": BOXES[:2]}, value, r"target has shape \(2, 5, 4\); they must be eq"),
        "two pairings": (
            {"zero_padded": True, "mask": BOXES[..., 0] > 0},
            value,
            "give at most one of .*; got zero_padded mask",
        ),
        "index and offsets": (
            {**lists, "offsets": INDEX},
            value,
            "got offsets pred_index target_index",
        ),
        "lengths": ({"lengths": INDEX}, value, r"lengths has shape \(7,\); it must be \(3,\)"),
        "lengths' dtype": ({"lengths": jnp.ones(3)}, kind, "lengths is float64; it must be int32"),
        "lengths without images": (
            {"pred": BOXES[0], "target": BOXES[0], "lengths": INDEX},
            value,
            r"with zero_padded, lengths or offsets it must be \(images, slots, 4\)",
        ),
        "mask": ({"mask": jnp.ones((3, 5))}, kind, "mask is float64; it must be bool"),
        "offsets": ({"offsets": INDEX}, value, r"with offsets it must be \(boxes of all images, 4"),
        "index": ({**lists, "pred_index": BOXES}, kind, "pred_index is float64; it must be int32"),
        "index' shape": (
            {"pred_index": INDEX[None, None], "target_index": INDEX},
            value,
            r"pred_index has shape \(1, 1, 7\); it must be \(pairs\) or \(sets, pairs\)",
        ),
        "indices' shapes": (
            {"pred_index": INDEX[:2], "target_index": INDEX},
            value,
            r"target_index has shape \(7,\); it must be \(2,\), pred_index's shape",
        ),
        "boxes without index": ({"pred_index": INDEX}, value, r"target has .*\(7, 4\), the shape"),
        "weight": ({"weight": INDEX}, value, r"weight has shape \(7,\); it must be \(3, 5\)"),
        "weight's dtype": (
            {"weight": jnp.ones((3, 5), int)},
            kind,
            "weight is int64; it must be float64, float32",
        ),
        "normalizer": (
            {"normalizer": INDEX},
            value,
            r"normalizer has shape \(7,\); it must have no",
        ),
        "normalizer's dtype": (
            {"normalizer": jnp.array(2, jnp.uint8)},
            kind,
            "normalizer is uint8; it must be float64",
        ),
        "normalizer is True": ({"normalizer": True}, kind, "normalizer is bool; it must be an"),
        "normalizer beyond float32": (
            {
                "pred": BOXES.astype("float32"),
                "target": BOXES.astype("float32"),
                "normalizer": -1e39,
            },
            value,
            r"normalizer is -1e\+39; it must be less than 3.4028234663852886e\+38 in magnitude",
        ),
        "normalizer of a sum": (
            {"normalizer": 2, "reduction": "sum"},
            value,
            "normalizer needs reduction 'mean'",
        ),
    }


REFUSALS = refusals()


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_loss_names_the_argument(name: str, jitted: bool) -> None:
    changed, error, words = REFUSALS[name]
    values = {"pred": BOXES, "target": BOXES, **changed}
    static = {key: each for key, each in values.items() if not isinstance(each, jax.Array)}
    arrays = {key: each for key, each in values.items() if isinstance(each, jax.Array)}

    def loss(arrays: dict[str, jax.Array]) -> jax.Array:
        return boxloss.jax.box_loss(**arrays, **static)

    with pytest.raises(error, match=f"^box_loss: .*{words}"):
        (jax.jit(loss) if jitted else loss)(arrays)


def test_l1_of_two_formats() -> None:
    with pytest.raises(ValueError, match=r"^box_losses: l1 is of values in one format"):
        boxloss.jax.box_losses(BOXES, BOXES, pred_format="xywh")


def test_an_unknown_option() -> None:
    with pytest.raises(TypeError, match=r"box_losses\(\) got an unexpected keyword argument 'a'"):
        boxloss.jax.box_losses(BOXES, BOXES, a=1)


OFFSETS = jnp.array([0, 2, 2, 7])


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"pred": BOXES[0]}, ValueError, r"pred has .*it must be \(\.\.\., images, queries, 4\)"),
        ({"target": BOXES}, ValueError, r"target has .*it must be \(boxes of all images, 4\)"),
        ({"offsets": INDEX}, ValueError, r"offsets has shape \(7,\); it must be \(4,\)"),
        ({"offsets": jnp.ones(4)}, TypeError, "offsets is float64; it must be int32 or int64"),
        ({"labels": INDEX}, ValueError, "labels is given without logits"),
        ({"logits": BOXES}, ValueError, "logits is given without labels"),
        (
            {"logits": BOXES, "labels": INDEX, "class_cost": jnp.ones((5, 7))},
            ValueError,
            "give logits or class_cost, not both",
        ),
        ({"logits": BOXES[0], "labels": INDEX}, ValueError, "logits has shape"),
        ({"logits": BOXES, "labels": INDEX[:2]}, ValueError, r"labels .* \(7,\), one for each"),
        ({"class_cost": jnp.ones((5, 6))}, ValueError, r"class_cost .* it must be \(5, 7\)"),
        ({"class_cost": jnp.ones((5, 7), int)}, TypeError, "class_cost is int64"),
        ({"class_mode": "max"}, ValueError, "class_mode is 'max'; allowed: 'softmax', 'sigmoid'"),
        ({"focal_gamma": -1}, ValueError, "focal_gamma is -1; it must be >= 0"),
        ({"iou_weight": "a"}, TypeError, "iou_weight is str; it must be a number"),
        ({"class_weight": None}, TypeError, "class_weight is NoneType; it must be a number"),
        ({"nonfinite": jnp.inf}, ValueError, "nonfinite is inf; it must be finite"),
        ({"pred_format": "xyxy"}, ValueError, "l1_weight is 5, and l1 is of values in one"),
    ],
)
def test_a_cost_names_the_argument(
    changed: dict[str, Any], error: type[Exception], words: str
) -> None:
    values = {"pred": BOXES, "target": BOXES.reshape(-1, 4)[:7], "offsets": OFFSETS, **changed}
    with pytest.raises(error, match=f"^matching_cost: {words}"):
        boxloss.jax.matching_cost(**values)


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"cost": INDEX}, TypeError, "cost is int64; it must be float32 or float64"),
        ({"cost": jnp.ones(7)}, ValueError, r"cost has shape \(7,\); it must be \(queries, T\)"),
        ({"offsets": OFFSETS[None]}, ValueError, r"offsets has shape \(1, 4\); it must be"),
        ({"groups": 4}, ValueError, "groups is 4; it must be at least 1, and divide the 6"),
        ({"groups": 0}, ValueError, "groups is 0; it must be at least 1"),
        ({"groups": 2**53}, ValueError, r"groups is 9007199254740992; it must be less than 2\^53"),
    ],
)
def test_an_assignment_names_the_argument(
    changed: dict[str, Any], error: type[Exception], words: str
) -> None:
    values = {"cost": jnp.ones((6, 7)), "offsets": OFFSETS, **changed}
    with pytest.raises(error, match=f"^hungarian_match: {words}"):
        boxloss.jax.hungarian_match(**values)


def test_what_is_traced_is_no_option() -> None:
    with pytest.raises(TypeError, match=r"^box_loss: eps is \w*Tracer; it must be a number"):
        jax.jit(lambda eps: boxloss.jax.box_loss(BOXES, BOXES, eps=eps))(1e-7)


@pytest.mark.parametrize("groups", ["a", 1.5, None])
def test_groups_is_an_integer(groups: Any) -> None:
    with pytest.raises(TypeError, match=r"^hungarian_match: groups is \w+; it must be an integer"):
        boxloss.jax.hungarian_match(jnp.ones((6, 7)), OFFSETS, groups=groups)


def test_large_numbers() -> None:
    with pytest.raises(ValueError, match=r"^box_loss: eps is 1000.*; it must be less than 2\^1024"):
        boxloss.jax.box_loss(BOXES, BOXES, eps=10**400)
