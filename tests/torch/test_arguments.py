# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What is refused: the type of the error and the beginning of its text, on meta tensors, too.

Each check of the bindings has its row. What core checks is for tests/core: of that, each operation
has a row here which shows that core's words arrive. JAX' functions say the same of the same calls:
tests/jax/test_refusals.py.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import boxloss.torch
import numpy
import pytest
import torch
from boxloss.torch import CIoULoss, box_loss, box_losses, giou_loss, use_implementation
from losses_of_logits import by_query, class_problem, distribution_problem, moved
from matching import classes, cost_problem
from problems import PAIRINGS, Problem, boxes, problem
from task_aligned import problem as task_aligned
from torch import Tensor

CPU, META = torch.device("cpu"), torch.device("meta")
NAN = math.nan


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def rows(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64)


# Grids are (3, 5), lists 12, indices 10, and sets (2, 7).
DENSE, ZERO_PADDED, LENGTHS, MASK, OFFSETS, INDICES, SETS = (
    problem(each, CPU) for each in PAIRINGS
)
ROTATED = {each: problem(each, CPU, loss="iou", angle_unit="radians") for each in PAIRINGS}
COST, NINE = torch.ones(6, 9), torch.tensor([0, 5, 5, 9])
PRED, TARGET = boxes((3, 6), CPU, seed=1), boxes((9,), CPU, seed=2)
RAGGED, PADDED = task_aligned(14, images=2), task_aligned(14, images=2, is_padded=True)
ROWS, LIMITS = len(RAGGED["target"]), {"high": 0.4, "low": 0.2}
CLASSES = class_problem("varifocal", CPU, normalizer=torch.tensor(3.0))
FGL = {**distribution_problem("fgl", torch.float32), "normalizer": torch.tensor(3.0)}
DDF = {**dict.fromkeys(FGL), **distribution_problem("ddf")}
VALID: dict[str, Problem] = {
    "box_loss": DENSE,
    "box_losses": DENSE,
    "rotated_box_loss": ROTATED["dense"],
    "matching_cost": classes(cost_problem(CPU)),
    "pairwise_iou": {"pred": PRED, "target": TARGET, "offsets": NINE},
    "hungarian_match": {"cost": COST, "offsets": NINE},
    "linear_sum_assignment": {"cost": COST, "lengths": torch.tensor([4, 9])},
    "max_iou_match": {"anchors": TARGET, "target": TARGET, "offsets": NINE, **LIMITS},
    "task_aligned_match": RAGGED,
    "class_loss": CLASSES,
    "distribution_loss": FGL,
}
SCORES = {**VALID["matching_cost"], "logits": None, "labels": None, "class_cost": zeros(3, 9)}
WITH_EVERY_TENSOR: list[tuple[str, Problem]] = [
    *(
        ("box_loss", problem(of, CPU, weight=torch.float32, normalizer=torch.tensor(2.0)))
        for of in ("lengths", "mask", "offsets", "sets")
    ),
    *((name, values) for name, values in VALID.items() if "box_loss" not in name),
    (
        "rotated_box_loss",
        problem("mask", CPU, weight=torch.float32, loss="iou", angle_unit="radians"),
    ),
    ("class_loss", by_query(CLASSES)),
    ("distribution_loss", DDF),
    ("matching_cost", SCORES),
]
EVERY_TENSOR = [
    (name, values, argument)
    for name, values in WITH_EVERY_TENSOR
    for argument, each in values.items()
    if isinstance(each, Tensor)
]


class Refused(NamedTuple):
    """How the error begins, behind the function's name, and what is changed in a valid call.

    A tuple stands for zeros of that shape. The valid call is another than that of VALID if it is
    given.
    """

    text: str
    changed: Problem
    of: Problem | None = None
    error: type[Exception] = ValueError

    def values(self, name: str) -> Problem:
        values = {**(self.of or VALID[name]), **self.changed}
        for argument, each in self.changed.items():
            if isinstance(each, tuple):
                was = (self.of or VALID[name]).get(argument)
                values[argument] = zeros(*each) if was is None else was.new_zeros(each)
        return values


def bad(text: str, of: Problem | None = None, **changed: Any) -> Refused:
    return Refused(text, changed, of)


def bad_type(text: str, of: Problem | None = None, **changed: Any) -> Refused:
    return Refused(text, changed, of, TypeError)


def bad_shape(wanted: str, of: Problem | None = None, **changed: Any) -> Refused:
    """Of the first that is changed."""
    name, shape = next(iter(changed.items()))
    return Refused(f"{name} has shape {list(shape)}; {wanted}", changed, of)


FLOATING = "it must be float64, float32, float16 or bfloat16"
ANY_NUMBER = "it must be float64, float32, float16, bfloat16, uint8, int16, int32 or int64"
INTEGER = "it must be int32 or int64"
OF_DTYPES = {
    **dict.fromkeys(("target", "cost"), ANY_NUMBER),
    **dict.fromkeys(("lengths", "offsets", "labels", "pred_index", "target_index"), INTEGER),
    "mask": "it must be bool",
    "normalizer": "it must be float64, float32, int64 or int32",
}
OF_OPTIONS = {bool: "True or False", int: "an integer", float: "a number"}


def of_no_dtype(name: str) -> list[Refused]:
    """Each tensor, of a dtype that core does not have."""
    allowed = OF_DTYPES | ({"target": FLOATING} if name == "distribution_loss" else {})
    return [
        bad_type(
            f"{argument} is complex64; {allowed.get(argument, FLOATING)}",
            of,
            **{argument: of[argument].to(torch.complex64)},
        )
        for its_name, of, argument in EVERY_TENSOR
        if its_name == name
    ]


def of_options(name: str) -> list[Refused]:
    """Each word, flag and number of another type, and each word that is none of those allowed."""
    found = []
    for option, each in inspect.signature(getattr(boxloss.torch, name)).parameters.items():
        if each.kind is each.VAR_KEYWORD or "Tensor" in str(each.annotation):
            continue
        kind = (get_args(each.annotation) or (each.annotation,))[0]  # of those that it may be
        in_words = OF_OPTIONS.get(kind, "a string")
        found.append(
            bad_type(f"{option} is frozenset; it must be {in_words}", **{option: frozenset()})
        )
        if kind not in OF_OPTIONS:
            words = ", ".join(map(repr, get_args(kind) or get_args(each.annotation)))
            found.append(bad(f"{option} is 'yolo'; allowed: {words}", **{option: "yolo"}))
    return found


TOO_MANY = "give at most one of zero_padded, lengths, mask, offsets and indices; got "
BY_IMAGE = "with zero_padded, lengths or offsets it must be (images, slots, "
MANY_NUMBER = {"loss": "alpha_iou", "alpha": 10**400}
NO_ANGLES = "it is for rotated boxes, (..., 5), but "
OF_EPS = bad("eps is -1; it must be finite and not negative, as a float32", eps=-1.0)  # core's
L1_OF_TWO_FORMATS = "l1 is of values in one format, but pred is cxcywh and target xywh"
TWO_FORMATS = {"pred_format": "cxcywh", "target_format": "xywh"}
BY_CHECK: dict[str, list[Refused]] = {
    "box_loss": [
        OF_EPS,
        bad_type(f"pred is int64; {FLOATING}", pred=rows(3, 5, 4)),  # core's, too
        bad("eps is 1000000", eps=10**400),
        bad("alpha is 1000", **MANY_NUMBER),
        bad_type("alpha is str; it must be a number", **{**MANY_NUMBER, "alpha": "3"}),
        bad("constant is missing; 'nwd' needs constant", loss="nwd"),
        bad("image_height is missing; 'mpdiou' needs image_w", loss="mpdiou", image_width=8),
        bad(f"{TOO_MANY}zero_padded mask", MASK, zero_padded=True),
        bad(f"{TOO_MANY}lengths offsets", LENGTHS, offsets=rows(4)),
        bad(f"{TOO_MANY}mask pred_index target_index", INDICES, mask=zeros(3, 5).bool()),
        bad_shape("its last dimension must be 4", pred=(3, 5, 5)),
        bad("pred has shape [3, 5, 4], target has shape [1, 5, 4]; they must", target=(1, 5, 4)),
        bad_shape(f"{BY_IMAGE}4)", ZERO_PADDED, pred=(15, 4)),
        bad_shape("with offsets it must be (boxes of all images, 4)", OFFSETS, target=(3, 5, 4)),
        bad_shape("it must be [4], one more than pred has images", OFFSETS, offsets=(3,)),
        bad_shape("it must be [3], one for each image of pred", LENGTHS, lengths=(3, 1)),
        bad_shape("it must be [3, 5], pred's without the 4", MASK, mask=(5,)),
        bad_shape("it must be [3, 5], the shape of the unreduced loss", weight=(3, 1)),
        bad_shape("it must be [12], the shape of the unreduced loss", OFFSETS, weight=(3, 5)),
        bad_shape("it must have no dimension or, with indices (sets, pairs), be", normalizer=(1,)),
        bad_shape("it must have no dimension or, with indices", SETS, normalizer=(7,)),
        bad_shape("it must be (pairs) or (sets, pairs)", INDICES, pred_index=(1, 2, 5)),
        bad_shape("it must be [2, 7], pred_index's shape", SETS, target_index=(14,)),
        bad("pred has shape [3, 5, 4]; it must be [2, 7, 4], the", SETS, pred_index=None),
        bad("target has shape [12, 4]; it must be [10, 4], the", INDICES, target_index=None),
        bad_type("mask is uint8; it must be bool", MASK, mask=rows(3, 5).byte()),
        bad_type(f"target_index is int16; {INTEGER}", INDICES, target_index=rows(10).short()),
    ],
    "box_losses": [
        OF_EPS._replace(of=SETS),
        *(bad(L1_OF_TWO_FORMATS, of, **TWO_FORMATS) for of in (DENSE, OFFSETS, SETS)),
    ],
    "rotated_box_loss": [  # whose other checks are box_loss'
        OF_EPS,
        bad("tau is 0.5; it must be from 1 to 1e6", loss="kld", tau=0.5),
        bad_type("floor is str; it must be a number", loss="gwd", floor="0"),
        bad_shape("its last dimension must be 5", pred=(3, 5, 4)),
        bad_shape("its last dimension must be 5", target=(3, 5, 4)),
        bad_shape("it must be [3, 5], pred's without the 5", ROTATED["mask"], mask=(5,)),
    ],
    "matching_cost": [
        bad("focal_gamma is -0.5; it must be >= 0", focal_gamma=-0.5),  # core's
        # Nothing is read of an empty problem's arguments, but they are checked.
        bad("class_mode is 'hinge'", target=(0, 4), labels=(0,), class_mode="hinge"),
        bad(f"angle_weight is 1; {NO_ANGLES}pred has shape [2, 4, 3, 4]", angle_weight=1.0),
        bad("loss is 'ciou'; allowed: 'iou', 'g", loss="ciou", pred=(2, 3, 6, 5), target=(9, 5)),
        bad("logits is given without labels", labels=None),
        bad("labels is given without logits", logits=None),
        bad("give logits or class_cost, not both", class_cost=(3, 9)),
        bad_type(f"logits is int32; {FLOATING}", logits=rows(2, 4, 3, 5).int()),
        bad_type(f"class_cost is int64; {FLOATING}", SCORES, class_cost=rows(3, 9)),
        bad_shape("its last dimension must be 4, or 5 for rotated boxes", pred=(2, 4, 3, 3)),
        bad("target has shape [9, 4]; its last dimension must be 5, as that of", pred=(2, 3, 6, 5)),
        bad_shape("it must be (..., images, queries, 4)", pred=(4, 4)),
        bad_shape("it must be (boxes of all images, 4)", target=(1, 9, 4)),
        bad_shape("it must be [5], one more than pred has images", offsets=(4,)),
        bad_shape("it must be (..., classes), with pred's shape [2, 4, 3, 4] in", logits=(4, 3, 5)),
        bad_shape("it must be [2, 4, 3, 5], pred's with classes in pl", logits=(2, 4, 2, 5)),
        bad_shape("it must be [9], one for each target", labels=(8,)),
        *(
            bad_shape("it must be [2, 3, 9], the result's; but leading", SCORES, class_cost=shape)
            for shape in ((9,), (1, 9), (3, 1), (3, 3, 9), (1, 2, 3, 9))
        ),
    ],
    "pairwise_iou": [  # whose checks are matching_cost's
        OF_EPS,
    ],
    "hungarian_match": [
        bad_type(f"offsets is int16; {INTEGER}", offsets=NINE.short()),  # core's
        bad_shape("it must be (queries, T) or (layers, queries, T)", cost=(1, 1, 6, 9)),
        bad_shape("it must be (images + 1)", offsets=(1, 4)),
        bad("groups is 4; it must be at least 1, and divide the 6 queries", groups=4),
    ],
    "linear_sum_assignment": [
        bad("cost_limit is nan; it must be a number, or +inf for none", cost_limit=NAN),  # core's
        bad_shape("it must be (N, M) or (B, N, M)", cost=(9,)),
        bad_shape("it must be [2], of each matrix its rows and columns in use", lengths=(1, 2)),
        bad("lengths has shape [2]; it must be [1, 2], of each matrix", cost=COST[None]),
    ],
    "max_iou_match": [
        bad("low is 0.8 and high 0.4; low must not be more than high, a", low=0.8),  # core's
        bad("high is 1000", high=10**400),
        bad_type("high is NoneType; it must be a number", high=None),
        bad(f"angle_unit is degrees; {NO_ANGLES}anchors has", angle_unit="degrees"),
        bad_shape("its last dimension must be 4, or 5", anchors=(9, 3)),
        bad("target has shape [9, 4]; its last dimension must be 5, as that of", anchors=(9, 5)),
        bad_shape("it must be (A, 4) or (images, A, 4)", anchors=(1, 1, 9, 4)),
        bad_shape("it must be (boxes of all images, 4)", target=(1, 9, 4)),
        bad_shape("it must be (images + 1)", offsets=(1, 4)),
        bad("offsets has shape [4]; it must be [3], one more than anchors has", anchors=(2, 6, 4)),
    ],
    "task_aligned_match": [
        bad("topk is 0; it must be at least 1", topk=0),  # core's
        bad_type("topk is float; it must be an integer", topk=1.5),
        bad(f"angle_unit is degrees; {NO_ANGLES}pred has", angle_unit="degrees"),
        bad_shape("it must be (images, anchors, classes)", scores=(336, 4)),
        bad_shape("it must be [2, 336, 4], a box for each anchor of scores", pred=(1, 336, 4)),
        bad_shape("it must be [336, 2], or [2, 336, 2]: a point for each", points=(335, 2)),
        bad_shape("its last dimension must be 4, as that of pred", target=(ROWS, 3)),
        bad(f"target has shape [{ROWS}, 4]; its last dimension must be 5", pred=(2, 336, 5)),
        bad_shape("with offsets it must be (boxes of all images, 4)", target=(2, 12, 4)),
        bad(f"target has shape [{ROWS}, 4]; without offsets it must be (im", offsets=None),
        bad_shape("it must be [3], one more than scores has images", offsets=(2,)),
        bad_shape(f"it must be [{ROWS}], ", labels=(ROWS - 1,)),
        bad_shape("it must be [2, 12], ", PADDED, labels=(1, 12)),
    ],
    "class_loss": [
        bad("mode 'focal' has no quality", mode="focal"),  # core's
        bad_type("no_object_weight is NoneType; it must be a number", no_object_weight=None),
        bad_type(f"logits is int64; {FLOATING}", logits=rows(2, 3, 5, 7)),
        bad_shape("it must be (queries, classes), (images, queries, classes) or (", logits=(7,)),
        bad_shape("it must be (queries, classes), (images, que", logits=(1, 2, 3, 5, 7)),
        bad_shape("it must be [2, 3, 5], logits' without classes", target_index=(3, 5)),
        bad_shape("it must be (T)", labels=(6, 1)),
        bad_shape("it must be [6], one for each label", quality=(5,)),
        bad_shape("it must be [2, 3, 5], that of", by_query(CLASSES), query_quality=(3, 5)),
        bad_shape("it must be [7], one for each class", weight=(6,)),
        bad_shape("it must be [2], () or one for each layer", normalizer=(3,)),
        bad_shape("it must be [], () or one", normalizer=(2,), logits=(5, 7), target_index=(5,)),
    ],
    "distribution_loss": [
        bad("mode 'fgl' needs edges", edges=None),  # core's
        bad_type(f"logits is int64; {FLOATING}", logits=rows(3, 2, 9, 132)),
        bad_type(f"teacher is int32; {FLOATING}", DDF, teacher=rows(2, 9, 132).int()),
        *(
            bad_shape("it must be (queries, 4 * bins), (images, queries, 4 * b", logits=shape)
            for shape in ((132,), (1, 3, 2, 9, 132), (3, 2, 9, 130), (3, 2, 9, 0))
        ),
        bad_shape("it must be [3, 2, 9], logits' without its last di", target_index=(2, 9)),
        bad_shape("it must be [3, 2, 9], that of target_index", quality=(2, 9)),
        bad_shape("it must be [3, 2, 9, 4], a box for each query", reference=(2, 9, 4)),
        bad_shape("it must be (T, 4)", target=(5, 3)),
        bad_shape("it must be [33], one for each bin", edges=(32,)),
        bad_shape("it must be [2, 9, 132], one layer's logits, or all", DDF, teacher=(9, 132)),
        bad_shape("it must be [2, 9], one for each query of a", DDF, confidence=(3, 2, 9)),
        bad_shape("it must be [3], () or one for each layer", normalizer=(2,)),
    ],
}
REFUSED = {
    name: [*refused, *of_no_dtype(name), *of_options(name)] for name, refused in BY_CHECK.items()
}


# --- What torch's binding alone can be given ---

# Of nine columns or boxes in three images, whose offsets the host looks at: what it says of them.
BAD_OFFSETS = {
    "offsets[3] is 10; it must lie in [0, 9]": [1, 3, 3, 10],
    "offsets[0] is -1; it must lie in [0, 9]": [-1, 1, 1, 8],
    "offsets[1] is 4294967296; it must lie in [0, 9]": [0, 2**32, 2**32, 2**32 + 1],
    "offsets[2] is 3, less than offsets[1], which is 4; offsets must not decrease": [0, 4, 3, 9],
}
# And of a matrix of six rows and nine columns.
BAD_LENGTHS = {
    "lengths[0] is -1; it must lie in [0, 6], the rows of cost": [-1, 9],
    "lengths[1] is 10; it must lie in [0, 9], the columns of cost": [6, 10],
    "lengths[1] is 4294967297; it must lie in [0, 9], the columns": [6, 2**32 + 1],
}
NO_OFFSETS = [bad(text, offsets=torch.tensor(given)) for text, given in BAD_OFFSETS.items()]
MANY_COSTS = {"cost": COST.expand(2, 6, 9)}
NO_NORMALIZERS = [
    bad_type("normalizer is str; it must be a tensor or a number", normalizer="3"),
    bad_type("normalizer is bool; it must be a tensor or a number", normalizer=True),
    bad("normalizer is 1e+39; it must be less than", normalizer=1e39),
    bad("normalizer is 1000000", normalizer=10**400),
]
OF_TORCH_ALONE: dict[str, list[Refused]] = {
    **dict.fromkeys(("class_loss", "distribution_loss"), NO_NORMALIZERS),
    "box_loss": [
        *NO_NORMALIZERS,
        bad(r"loss is 'giou\ud800', which UTF-8 does not have", loss="giou\ud800"),
        bad(r"loss is 'giou\0'; allowed: 'iou'", loss="giou\0"),
    ],
    "matching_cost": [bad_type("nonfinite is Tensor; it must be a number", nonfinite=(2,))],
    "box_losses": [bad_type("normalizer is list; it must be a tensor", normalizer=[3])],
    "hungarian_match": [
        *NO_OFFSETS,
        bad(f"groups is {2**63}; it must be less than 2^63 in magnitude", groups=2**63),
        bad_type("groups is Tensor; it must be an integer", groups=(2,)),
    ],
    "max_iou_match": NO_OFFSETS,
    "linear_sum_assignment": [
        *(bad(text, lengths=torch.tensor(given)) for text, given in BAD_LENGTHS.items()),
        bad("lengths[1, 0] is 7; it must", lengths=torch.tensor([[6, 9], [7, -1]]), **MANY_COSTS),
        bad_type("cost_limit is ndarray; it must be a number", cost_limit=numpy.array([0.5])),
        bad(f"cost has {2**40} rows and 0 columns; it", cost=zeros(1, 0).expand(2**40, 0)),
    ],
    "task_aligned_match": [
        bad("the label of row 0 of target is ", labels=RAGGED["labels"] + 4),
        bad("the label of row ", PADDED, labels=PADDED["labels"] - 9),
        bad("offsets[0] is -1; it must lie in [0, ", offsets=RAGGED["offsets"] - 1),
        bad(f"offsets[2] is {ROWS + 1}; it must lie in [0", offsets=RAGGED["offsets"] + 1),
        bad("offsets[1] is 1, less than offsets[0], ", offsets=torch.tensor([2, 1, 3])),
    ],
}
FIRST = {name: next(iter(values)) for name, values in VALID.items()}


def call(name: str, values: Problem) -> Any:
    return getattr(boxloss.torch, name)(**values)


def assert_refused(name: str, values: Problem, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call(name, values)
    assert str(raised.value).startswith(f"{name}: {text}")


@pytest.mark.parametrize(("name", "values"), [*VALID.items(), *WITH_EVERY_TENSOR])
def test_what_is_changed_was_valid(name: str, values: Problem) -> None:
    call(name, values)


def of_each(table: dict[str, list[Refused]]) -> list[Any]:
    return [
        pytest.param(name, each, id=f"{name}-{each.text}")
        for name, refused in table.items()
        for each in refused
    ]


@pytest.mark.parametrize(("name", "refused"), of_each(REFUSED))
def test_refused(device: torch.device, name: str, refused: Refused) -> None:
    """With and without gradients, which take different ways; on meta tensors; and by aten."""
    for where in (device, META):
        values = moved(refused.values(name), where)
        assert_refused(name, values, refused.error, refused.text)
        first = FIRST[name]
        if values.get(first) is not None and values[first].is_floating_point():
            values[first] = values[first].detach().requires_grad_()
            assert_refused(name, values, refused.error, refused.text)
    if not name.endswith(("match", "assignment")):
        with use_implementation("aten"):
            assert_refused(name, refused.values(name), refused.error, refused.text)


@pytest.mark.parametrize(("name", "refused"), of_each(OF_TORCH_ALONE))
def test_what_torch_alone_is_given_is_refused(name: str, refused: Refused) -> None:
    assert_refused(name, refused.values(name), refused.error, refused.text)


@pytest.mark.parametrize(("name", "values", "argument"), EVERY_TENSOR)
def test_tensors_of_another_kind(name: str, values: Problem, argument: str) -> None:
    """On another device, of another layout, and none."""
    first, each = FIRST[name], values[argument]
    if argument != first:
        for where, there in ((CPU, META), (META, CPU)):
            mixed = {**moved(values, where), argument: each.to(there)}
            text = f"{argument} is on {there}, {first} is on {where}; all must be on one device"
            may_be_there = name.endswith("match") and argument == "offsets"
            may_be_there |= name == "linear_sum_assignment"
            if there != CPU or not may_be_there:
                assert_refused(name, mixed, RuntimeError, text)
    if each.dim() > 0:
        assert_refused(
            name,
            {**values, argument: each.to_sparse()},
            ValueError,
            f"{argument} is Sparse; it must be dense",
        )
    for given in ([0.0], each.numpy()):
        if argument != "normalizer":  # which may be a number
            text = f"{argument} is {type(given).__name__}; it must be a tensor"
            assert_refused(name, {**values, argument: given}, TypeError, text)


def test_a_module_of_a_wrong_type() -> None:
    text = r"^box_loss: weight is str; it must be a tensor$"
    with pytest.raises(TypeError, match=text) as raised:
        CIoULoss()(zeros(3, 4), zeros(3, 4), weight="sum")  # type: ignore[arg-type]
    assert raised.value.__suppress_context__  # or else it would have all of the operator's schema
    with pytest.raises(TypeError, match=r"^use_implementation: name is int; it must be a string$"):
        use_implementation(5)  # type: ignore[arg-type]


def test_a_right_type_is_not_blamed_for_another_error() -> None:
    """What torch takes besides, as numpy's scalars."""
    values: Problem = {"eps": torch.tensor(1.0), "zero_padded": None, "target": zeros(1, 3, 4)}
    for eps in (torch.tensor(1.0), numpy.float32(1), numpy.int64(1), True):
        values["eps"] = eps
        box_loss(zeros(1, 3, 4), **values)
        with pytest.raises(RuntimeError, match="target is on cpu, pred is on meta"):
            box_loss(zeros(1, 3, 4).to("meta"), **values)


def test_what_stands_for_a_tensor_is_no_error() -> None:
    """Nor where several results have names."""

    def losses(pred: Tensor, target: Tensor) -> Tensor:
        matched = boxloss.torch.max_iou_match(pred, target, NINE[::3], high=0.5, low=0.4)
        return giou_loss(pred, target) + box_loss(pred, target, "ciou") + matched.iou.sum()

    given = boxes((9,), CPU, seed=1), boxes((9,), CPU, seed=2)
    assert torch.equal(torch.fx.symbolic_trace(losses)(*given), losses(*given))


@pytest.mark.parametrize("function", [box_loss, box_losses])
def test_errors_under_a_transform_name_the_function_that_was_called(
    device: torch.device, function: Callable[..., Any]
) -> None:
    bad = {**problem("sets", device), "eps": -1.0}
    pred, target = bad.pop("pred")[None], bad.pop("target")
    with pytest.raises(ValueError, match=f"^{function.__name__}: eps is -1"):
        torch.func.vmap(lambda pred: function(pred, target, **bad))(pred)
    mixed = {**problem("dense", device), "pred_format": "cxcywh", "target_format": "xywh"}
    pred = mixed.pop("pred")
    with pytest.raises(ValueError, match=f"^box_losses: {L1_OF_TWO_FORMATS}"):
        torch.func.grad(lambda pred: box_losses(pred, **mixed).l1.sum())(pred)
