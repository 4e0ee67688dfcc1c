# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost and pairwise_iou against their definition, as torch's tensors reach core; what they
are to torch, and what they refuse. What a kernel makes of them tests/conformance proves."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from boxloss.torch import matching_cost, pairwise_iou, use_implementation
from combinations import pairwise_cases
from devices import Implementation
from formulas import LOSSES
from matching import Problem, check_cost, classes, cost_problem
from problems import FLOATING, FORMATS, TARGETS
from torch import Tensor

CPU = torch.device("cpu")
MODES = ("softmax", "sigmoid", "focal")


@pytest.fixture
def implementation(implementation_or_aten: Implementation) -> Implementation:
    return implementation_or_aten


def with_term(values: Problem, term: str | None, scores: torch.dtype = torch.float32) -> Problem:
    if term in MODES:
        return {**classes(values, dtype=scores), "class_mode": term}
    if term == "given":
        random = torch.Generator().manual_seed(8)
        given = torch.randn(3, 9, generator=random)
        return {**values, "class_cost": given.to(values["pred"].device, scores)}
    return values


# The same values, and where they lie.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "packed": lambda each: each,
    "queries first": lambda each: each.movedim(-2, 0).contiguous().movedim(0, -2),
    "wider rows": lambda each: torch.cat((each, each + 1), -1)[..., : each.shape[-1]],
    "every other row": lambda each: torch.stack((each, each + 1), -2)[..., 0, :],
    "columns": lambda each: each.transpose(-1, -2).contiguous().transpose(-1, -2),
}
# cost_problem's arguments, and others.
OPTIONS = {
    "pred_dtype": FLOATING,
    "target_dtype": TARGETS,
    "layers": ((), (1,), (2, 3)),
    "loss": LOSSES,
    "eps": (1e-7, 0.25),
    "eps_mode": ("add", "clamp"),
}
# A term that is left out would leave out what it depends on.
OTHERS: dict[str, Any] = {
    # Of pred and target, and the weight of l1, which wants one format.
    "formats": [(p, t, 0.0 if p != t else 5.0) for p in FORMATS for t in FORMATS],
    "weights": ((2.0, 1.0), (-1.5, -3.0)),
    "term": (*MODES, "given"),
    "scores": FLOATING,
    "scale_of_scores": (1, 30),  # logits of 180
    "integers": ((torch.int32, torch.int64), (torch.int64, torch.int32)),
    "layout": tuple(LAYOUTS),
}


@pytest.mark.asan
@pytest.mark.parametrize("case", pairwise_cases({**OPTIONS, **OTHERS}))
def test_values(implementation: Implementation, case: dict[str, Any]) -> None:
    options = {name: case[name] for name in OPTIONS}
    names = ("pred_format", "target_format", "l1_weight", "iou_weight", "class_weight")
    options |= dict(zip(names, (*case["formats"], *case["weights"]), strict=True))
    values = with_term(cost_problem(implementation.device, **options), case["term"], case["scores"])
    for name in {"pred", "target", "logits", "class_cost"} & values.keys():
        values[name] = LAYOUTS[case["layout"]](values[name])
    for name in {"logits", "class_cost"} & values.keys():
        values[name] = case["scale_of_scores"] * values[name]
    for name, dtype in zip(("offsets", "labels"), case["integers"], strict=True):
        if name in values:
            values[name] = values[name].to(dtype).repeat_interleave(2)[::2]
    check_cost(matching_cost(**values), values)
    check_pairwise(values)


def check_pairwise(values: Problem) -> None:
    names = inspect.signature(pairwise_iou).parameters
    options = {name: each for name, each in values.items() if name in names}
    weights = {"iou_weight": -1.0, "l1_weight": 0.0}
    check_cost(pairwise_iou(**options), {**options, **weights})


def test_by_hand(implementation: Implementation) -> None:
    # Two unit squares that touch: giou's loss is 1 - 0 + (2 - 2) / 2; two equal ones: 0.
    device = implementation.device
    pred = torch.tensor([[[[0.5, 0.5, 1.0, 1.0], [1.5, 0.5, 1.0, 1.0]]]], device=device)
    target, offsets = pred[0, 0, :1], torch.tensor([0, 1], device=device)
    cost = matching_cost(
        pred,
        target,
        offsets,
        logits=torch.tensor([[[[0.0, 0.0], [math.log(3.0), 0.0]]]], device=device),
        labels=torch.tensor([0], device=device),
        class_weight=4.0,
    )
    assert cost.shape == (1, 2, 1)
    assert cost.flatten().tolist() == pytest.approx([-2 - 4 * 0.5, 5.0 - 4 * 0.75], rel=1e-6)
    iou = pairwise_iou(pred, target, offsets, pred_format="cxcywh", target_format="cxcywh")
    # ciou's: less the distance of the centres, 1, by the enclosure's diagonal, 5, both squared.
    assert iou.flatten().tolist() == pytest.approx([1.0, -1 / 5], rel=1e-6)


def test_defaults_are_detrs_and_torchvisions(device: torch.device) -> None:
    values = classes(cost_problem(device))
    check_cost(matching_cost(**values), values)
    formats = {"pred_format": "xyxy", "target_format": "xyxy"}
    boxes = cost_problem(device, **formats)
    given = {name: boxes[name] for name in ("pred", "target", "offsets")}
    named = {"loss": "ciou", "eps": 1e-7, "iou_weight": -1.0, "l1_weight": 0.0, **formats}
    check_cost(pairwise_iou(**given), {**given, **named})


@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 0.0), (0.6, 1.5), (0.0, 2.0), (1.0, 3.0)])
def test_focal_numbers(implementation: Implementation, alpha: float, gamma: float) -> None:
    options = {"class_mode": "focal", "focal_alpha": alpha, "focal_gamma": gamma}
    for dtype in (torch.float32, torch.float64):
        values = cost_problem(implementation.device, dtype, iou_weight=0.0, l1_weight=0.0)
        values = classes({**values, **options}, 91)
        check_cost(matching_cost(**values), values)


@pytest.mark.parametrize(
    "shape", [(2, 3, 3, 9), (3, 9), (3, 3, 9), (1, 3, 9), (2, 1, 3, 9), (1, 1, 3, 9)]
)
def test_class_cost(implementation: Implementation, shape: tuple[int, ...]) -> None:
    values = cost_problem(implementation.device, layers=(2, 3), class_weight=1.5)
    given = torch.randn(shape, generator=torch.Generator().manual_seed(8))
    values["class_cost"] = given.to(implementation.device)
    check_cost(matching_cost(**values), values)


@pytest.mark.parametrize("name", ["pred", "logits"])
@pytest.mark.parametrize("first", [(0, 0, 0), (0,), (Ellipsis, 0, slice(None))], ids=str)
def test_expanded(implementation: Implementation, name: str, first: tuple[Any, ...]) -> None:
    # Anchors are the same for all images; a query for all layers.
    values = classes(cost_problem(implementation.device, layers=(2, 3)))
    whole = values[name]
    part = whole[first].unsqueeze(-2) if first[0] is Ellipsis else whole[first]
    values[name] = part.expand(whole.shape)
    check_cost(matching_cost(**values), values)


@pytest.mark.parametrize("term", [*MODES, "given", None])
def test_a_weight_of_0_leaves_its_term_out(
    implementation: Implementation, term: str | None
) -> None:
    for name, left_out in (("pred", ("iou_weight", "l1_weight")), ("scores", ("class_weight",))):
        values = with_term(cost_problem(implementation.device), term)
        for each in ("logits", "class_cost") if name == "scores" else ("pred",):
            if each in values:
                values[each] = torch.full_like(values[each], math.nan)
        values |= dict.fromkeys(left_out, 0.0)
        check_cost(matching_cost(**values), values)


def test_an_infinite_loss_of_weight_0_is_left_out(implementation: Implementation) -> None:
    formats = {"pred_format": "xyxy", "target_format": "xyxy"}
    values = cost_problem(implementation.device, loss="iou_log", iou_weight=0.0, **formats)
    values["pred"] += 1000  # which overlaps nothing
    check_cost(matching_cost(**values), values)


@pytest.mark.parametrize("mode", MODES)
def test_no_class_at_all(implementation: Implementation, mode: str) -> None:
    values = classes(cost_problem(implementation.device, class_mode=mode))
    values["labels"].fill_(-1)
    wanted = matching_cost(**values)
    check_cost(wanted, values)
    values["logits"] = values["logits"][..., :0]
    assert torch.equal(matching_cost(**values), wanted)


@pytest.mark.asan
@pytest.mark.parametrize("offsets", [[-(2**63), 2, 2, 12, 2**63 - 1], [10, 11, 12, 13, 14]])
def test_offsets_are_clamped(implementation: Implementation, offsets: list[int]) -> None:
    values = classes(cost_problem(implementation.device))
    values["offsets"] = torch.tensor(offsets, device=implementation.device)
    check_cost(matching_cost(**values), values)


@pytest.mark.parametrize("layers", [(), (0,), (2, 0)])
@pytest.mark.parametrize(
    ("images", "queries", "columns"), [(0, 3, 5), (0, 3, 0), (2, 0, 5), (2, 3, 0)]
)
def test_empty(
    implementation: Implementation,
    images: int,
    queries: int,
    columns: int,
    layers: tuple[int, ...],
) -> None:
    device = implementation.device
    values: Problem = {
        "pred": torch.rand(*layers, images, queries, 4, device=device),
        "target": torch.rand(columns, 4, device=device),
        "offsets": torch.tensor([0, *[columns] * images], device=device),
    }
    check_pairwise(values)
    for mode in MODES:
        every = {**classes(values, 1), "class_mode": mode}
        check_cost(matching_cost(**every), every)
    every = {**values, "class_cost": torch.rand(queries, columns, device=device)}
    check_cost(matching_cost(**every), every)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["pred", "target", "logits", "class_cost"])
def test_nan_stays_visible_and_may_be_replaced(
    implementation: Implementation, name: str, number: float
) -> None:
    values = cost_problem(implementation.device)
    values = with_term(values, "given" if name == "class_cost" else "softmax")
    # What is nobody's, and queries of an image without boxes, are not read.
    values["target"][[0, 7, 8]], values["pred"][:, 1] = math.nan, math.nan
    wanted = matching_cost(**values)
    check_cost(wanted, values)
    values[name] = values[name].clone()
    # Of one query, one column, or one entry of all layers: which entries it reaches.
    reached = torch.zeros(2, 3, 9, dtype=torch.bool, device=implementation.device)
    where, entries = {
        "pred": ((1, 2, 1, 2), (1, 1, slice(3, 6))),
        "target": ((4, 2), (..., 4)),
        "logits": ((1, 2, 1, 1), (1, 1, slice(3, 6))),
        "class_cost": ((1, 4), (..., 1, 4)),
    }[name]
    values[name][where], reached[entries] = number, True
    cost = matching_cost(**values)
    assert torch.equal(cost[~reached], wanted[~reached])
    if name != "logits":  # of which one label is no class, and others have a softmax of 0
        assert not cost[reached].isfinite().any()
    for replacement in (1e5, -2.5, 0.0, torch.finfo(torch.float32).max):
        replaced = matching_cost(**values, nonfinite=replacement)
        assert torch.equal(replaced, cost.where(cost.isfinite(), replacement))


# --- What it is to torch ---


def test_has_no_gradient(implementation: Implementation) -> None:
    device = implementation.device
    values = classes(cost_problem(device))
    for name in ("pred", "target", "logits"):
        values[name] = values[name].clone().requires_grad_()
    given = torch.zeros(3, 9, device=device, requires_grad=True)
    boxes = {name: values[name] for name in ("pred", "target", "offsets")}
    for cost in (
        matching_cost(**values),
        matching_cost(**cost_problem(device), class_cost=given),
        pairwise_iou(**boxes),
    ):
        assert not cost.requires_grad
        assert cost.grad_fn is None


@pytest.mark.parametrize("function", [matching_cost, pairwise_iou])
def test_a_transform_that_differentiates_it_is_refused(
    device: torch.device, function: Callable[..., torch.Tensor]
) -> None:
    values = cost_problem(device)
    pred, others = values["pred"], {name: values[name] for name in ("target", "offsets")}

    def of(pred: torch.Tensor) -> torch.Tensor:
        return function(pred, **others)

    def in_forward_mode() -> torch.Tensor:
        with torch.autograd.forward_ad.dual_level():
            return of(torch.autograd.forward_ad.make_dual(pred, pred))

    for differentiated in (
        lambda: torch.func.grad(lambda pred: of(pred).sum())(pred),
        lambda: torch.func.jvp(of, (pred,), (pred,)),
        lambda: torch.vmap(torch.func.grad(lambda pred: of(pred).sum()))(pred[None]),
        in_forward_mode,
    ):
        with pytest.raises(RuntimeError, match=f"^{function.__name__}: it has no derivative; give"):
            differentiated()
    scaled = torch.func.grad(lambda pred: (pred * of(pred.detach()).sum()).sum())(pred)
    assert torch.equal(scaled, of(pred).sum().expand_as(pred))
    assert torch.equal(torch.vmap(of)(pred[None])[0], of(pred))


def test_autocast_changes_nothing(implementation: Implementation) -> None:
    device = implementation.device
    values = classes(cost_problem(device))
    wanted = matching_cost(**values)
    with torch.autocast(device.type, torch.bfloat16):
        cost = matching_cost(**values)
    assert cost.dtype == torch.float32
    assert torch.equal(cost, wanted)


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    ("function", "term", "dynamic"),
    [(matching_cost, "softmax", True), (matching_cost, "given", False), (pairwise_iou, None, True)],
)
def test_compiles_whole(
    device: torch.device, function: Callable[..., Tensor], term: str | None, dynamic: bool
) -> None:
    def step(raw: Tensor, values: Problem) -> Tensor:
        return 2 * function(**{**values, "pred": 2 * raw})

    values = with_term(cost_problem(device), term)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    raw = (values.pop("pred") / 2).requires_grad_()
    result = compiled(raw, values)
    assert not result.requires_grad
    assert torch.equal(result, step(raw, values))


@pytest.mark.parametrize("term", [*MODES, "given", None])
def test_opcheck(device: torch.device, term: str | None) -> None:
    # Computed in double, and float32 nevertheless.
    values = with_term(cost_problem(device, torch.bfloat16, torch.float64, layers=(2, 3)), term)
    arguments = tuple(values.pop(name) for name in ("pred", "target", "offsets"))
    operator = torch.ops.boxloss.matching_cost if term else torch.ops.boxloss.pairwise_iou
    torch.library.opcheck(operator.default, arguments, values)


# --- Errors ---


GOOD = classes(cost_problem(CPU))
PRED, TARGET, OFFSETS = (GOOD[name] for name in ("pred", "target", "offsets"))
LOGITS, LABELS = GOOD["logits"], GOOD["labels"]
NO_LOGITS = {"logits": None, "labels": None}
# What is changed, and what the error says of it.
TYPE_ERRORS: list[tuple[Problem, str]] = [
    ({"pred": PRED.int()}, "pred is int32"),
    ({"target": TARGET.bool()}, "target is bool"),
    ({"offsets": OFFSETS.short()}, "offsets is int16"),
    ({"labels": LABELS.float()}, "labels is float32"),
    ({"logits": LOGITS.int()}, "logits is int32"),
    ({**NO_LOGITS, "class_cost": torch.zeros(3, 9).int()}, "class_cost is int32"),
]
DEVICE_ERRORS = [
    ({name: GOOD[name].to("meta")}, f"{name} is on meta")
    for name in ("target", "offsets", "logits", "labels")
]
VALUE_ERRORS: list[tuple[Problem, str]] = [
    ({"pred": PRED[0, 0]}, "pred has shape "),
    ({"pred": PRED[..., :3]}, "pred has shape "),
    ({"target": TARGET[None]}, "target has shape "),
    ({"target": TARGET[:, :3]}, "target has shape "),
    ({"offsets": OFFSETS[1:]}, "offsets has shape "),
    ({"logits": LOGITS[:, 1:]}, "logits has shape "),
    ({"logits": LOGITS[0]}, "logits has shape "),
    ({"labels": LABELS[1:]}, "labels has shape "),
    ({"labels": None}, "logits is given without labels"),
    ({"logits": None}, "labels is given without logits"),
    ({"class_cost": torch.zeros(3, 9)}, "give logits or class_cost, not both"),
    ({"loss": "l2"}, "loss is 'l2'"),
    ({"class_mode": "hinge"}, "class_mode is 'hinge'"),
    ({"pred_format": "yolo"}, "pred_format is 'yolo'"),
    ({"target_format": "yolo"}, "target_format is 'yolo'"),
    ({"target_format": "xyxy"}, "l1_weight is 5, and l1 is of values in one format, but pred is"),
    ({"eps_mode": "max"}, "eps_mode is 'max'"),
    ({"eps": -1.0}, "eps is -1"),
    ({"iou_weight": math.nan}, "iou_weight is nan"),
    ({"l1_weight": 1e39}, r"l1_weight is 1e\+39; it must be finite, as a float32"),
    ({"class_weight": -math.inf}, "class_weight is -inf"),
    ({"focal_alpha": math.nan}, "focal_alpha is nan"),
    ({"focal_gamma": math.inf}, "focal_gamma is inf"),
    ({"focal_gamma": -0.5}, "focal_gamma is -0.5"),
    ({"nonfinite": math.nan}, "nonfinite is nan; it must be finite, as a float32"),
    ({"nonfinite": math.inf}, "nonfinite is inf"),
    ({"nonfinite": -1e300}, r"nonfinite is -1e\+300"),
    *(
        ({**NO_LOGITS, "class_cost": torch.zeros(shape)}, "class_cost has shape ")
        for shape in ((9,), (3, 8), (2, 9), (1, 9), (3, 1), (3, 3, 9), (1, 2, 3, 9))
    ),
]


@pytest.mark.parametrize(
    ("error", "changed", "text"),
    [
        *((TypeError, *each) for each in TYPE_ERRORS),
        *((ValueError, *each) for each in VALUE_ERRORS),
        *((RuntimeError, *each) for each in DEVICE_ERRORS),
    ],
)
@pytest.mark.parametrize("name", ["cpu", "aten"])
def test_errors(name: str, error: type[Exception], changed: Problem, text: str) -> None:
    values = {**GOOD, **changed}
    on_meta = {k: v.to("meta") if isinstance(v, Tensor) else v for k, v in values.items()}
    for given in (values, on_meta)[: 1 if error is RuntimeError else 2]:
        with use_implementation(name), pytest.raises(error, match=f"^matching_cost: {text}"):
            matching_cost(**given)


def test_errors_of_pairwise_iou_name_it() -> None:
    with pytest.raises(ValueError, match=r"^pairwise_iou: eps is -1"):
        pairwise_iou(PRED, TARGET, OFFSETS, eps=-1.0)


@pytest.mark.parametrize("name", ["cpu", "aten"])
def test_nothing_is_read_of_bad_arguments_on_an_empty_problem(name: str) -> None:
    with use_implementation(name), pytest.raises(ValueError, match="class_mode"):
        matching_cost(PRED, TARGET[:0], OFFSETS, class_mode="hinge")  # type: ignore[arg-type]


def test_the_stride_of_one_image_means_nothing(implementation: Implementation) -> None:
    """Such a tensor is contiguous to torch, whatever that stride is."""
    device, generator = implementation.device, torch.Generator().manual_seed(0)

    def layers(last: int, size: int = 5) -> Tensor:
        values = torch.rand(3 * size * last, generator=generator).to(device)
        return values.as_strided((3, 1, size, last), (size * last, 7, last, 1))

    pred, logits, given = layers(4), layers(6), layers(4)[:, 0]
    assert pred.is_contiguous()
    target = torch.rand(4, 4, generator=generator).to(device)
    offsets = torch.tensor([0, 4], device=device)
    labels = torch.arange(4, device=device)
    for scores in ({"logits": logits, "labels": labels}, {"class_cost": given}):
        plain = {name: each.clone() for name, each in scores.items()}
        cost = matching_cost(pred, target, offsets, **scores)
        by_layer = [
            matching_cost(
                each.clone(),
                target,
                offsets,
                **{
                    name: value[i].clone() if name != "labels" else value
                    for name, value in plain.items()
                },
            )
            for i, each in enumerate(pred)
        ]
        assert torch.equal(cost, torch.stack(by_layer))
