# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""matching_cost against its definition; what it leaves out, lets through and refuses."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from boxloss.torch import matching_cost
from devices import Implementation
from formulas import LOSSES
from matching import Problem, check_cost, classes, cost_problem, entries_of
from problems import FLOATING, FORMATS, TARGETS
from torch import Tensor

MODES = ("softmax", "sigmoid", "focal")
BOXES = {"class_weight": 0.0}
ONLY_CLASSES = {"iou_weight": 0.0, "l1_weight": 0.0}
OWN = slice(1, 7)  # cost_problem's columns of any image


def check(values: Problem) -> None:
    check_cost(matching_cost(**values), values)


# --- Values ---


def test_by_hand(implementation: Implementation) -> None:
    # Two unit squares that touch: giou's loss is 1 - 0 + (2 - 2) / 2; two equal ones: 0.
    device = implementation.device
    pred = torch.tensor([[[[0.5, 0.5, 1.0, 1.0], [1.5, 0.5, 1.0, 1.0]]]], device=device)
    cost = matching_cost(
        pred,
        torch.tensor([[0.5, 0.5, 1.0, 1.0]], device=device),
        torch.tensor([0, 1], device=device),
        logits=torch.tensor([[[[0.0, 0.0], [math.log(3.0), 0.0]]]], device=device),
        labels=torch.tensor([0], device=device),
        class_weight=4.0,
    )
    assert cost.shape == (1, 2, 1)
    assert cost.flatten().tolist() == pytest.approx([-2 - 4 * 0.5, 5.0 - 4 * 0.75], rel=1e-6)


@pytest.mark.parametrize("eps", [(1e-7, "add"), (0.25, "clamp")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(
    implementation: Implementation, loss: str, dtype: torch.dtype, eps: tuple[float, str]
) -> None:
    options = {"loss": loss, "eps": eps[0], "eps_mode": eps[1], "l1_weight": 0.0}
    check(cost_problem(implementation.device, dtype, dtype, **options))


@pytest.mark.parametrize("count", [1, 5, 91])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_class_modes(
    implementation: Implementation, mode: str, dtype: torch.dtype, count: int
) -> None:
    values = cost_problem(implementation.device, dtype, class_mode=mode)
    for logits in FLOATING:
        check(classes({**values, **ONLY_CLASSES, "class_weight": 2.0}, count, logits))
    check(classes({**values, "class_weight": 2.0}, count))


@pytest.mark.parametrize(("alpha", "gamma"), [(0.25, 0.0), (0.6, 1.5), (0.0, 2.0), (1.0, 3.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_focal_numbers(
    implementation: Implementation, dtype: torch.dtype, alpha: float, gamma: float
) -> None:
    options = {"class_mode": "focal", "focal_alpha": alpha, "focal_gamma": gamma, **ONLY_CLASSES}
    check(classes(cost_problem(implementation.device, dtype, **options)))


@pytest.mark.parametrize(
    ("mode", "wanted_of_1", "wanted_of_0"),
    [
        ("softmax", -1.0, 0.0),
        ("sigmoid", -1.0, 0.0),
        ("focal", 0.75 * math.log(1e-8), -0.25 * math.log(1e-8)),
    ],
)
def test_large_logits_are_finite(
    implementation: Implementation, mode: str, wanted_of_1: float, wanted_of_0: float
) -> None:
    values = classes(cost_problem(implementation.device, class_mode=mode, **ONLY_CLASSES))
    values["logits"] = torch.full_like(values["logits"], -200.0)
    values["logits"][..., 0] = 200.0
    for label, wanted in ((0, wanted_of_1), (3, wanted_of_0)):
        values["labels"] = torch.full_like(values["labels"], label)
        entries = own_entries(values, matching_cost(**values))
        assert entries.tolist() == pytest.approx([wanted] * len(entries), rel=1e-5, abs=1e-30)


@pytest.mark.parametrize("pred", FLOATING, ids=str)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_dtypes(implementation: Implementation, pred: torch.dtype, target: torch.dtype) -> None:
    check(classes(cost_problem(implementation.device, pred, target)))


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("label", [torch.int32, torch.int64], ids=str)
def test_integers(implementation: Implementation, index: torch.dtype, label: torch.dtype) -> None:
    values = classes(cost_problem(implementation.device))
    values["offsets"] = values["offsets"].to(index)
    values["labels"] = values["labels"].to(label)
    check(values)


@pytest.mark.parametrize("target_format", FORMATS)
@pytest.mark.parametrize("pred_format", FORMATS)
def test_formats(implementation: Implementation, pred_format: str, target_format: str) -> None:
    options = {"pred_format": pred_format, "target_format": target_format}
    check(cost_problem(implementation.device, **options, l1_weight=0.0))
    if pred_format == target_format:
        check(cost_problem(implementation.device, **options))


@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.5, 0.25, -3.0)])
def test_weights(implementation: Implementation, weights: tuple[float, float, float]) -> None:
    names = ("iou_weight", "l1_weight", "class_weight")
    values = cost_problem(implementation.device, **dict(zip(names, weights, strict=True)))
    check(classes(values))
    check(values)


@pytest.mark.parametrize("layers", [(), (1,), (3,), (2, 3), (2, 1, 2)])
def test_layers(implementation: Implementation, layers: tuple[int, ...]) -> None:
    values = cost_problem(implementation.device, layers=layers)
    check(values)
    check(classes(values))
    # Each layer as if it were alone.
    whole = matching_cost(**classes(values))
    if layers:
        apart = classes(values)
        for name in ("pred", "logits"):
            apart[name] = apart[name][-1]
        assert torch.equal(matching_cost(**apart), whole[-1])


# --- Memory ---


def test_strides(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device, layers=(2, 3)))
    wanted = matching_cost(**values)
    wide = {name: torch.full_like(values[name], math.nan) for name in ("pred", "logits", "target")}
    variants = [
        # Leading dimensions in another order in memory, as of stacked outputs.
        {
            name: values[name].permute(3, 0, 2, 1, 4).contiguous().permute(1, 3, 2, 0, 4)
            for name in ("pred", "logits")
        },
        # A slice of something wider.
        {
            name: torch.cat((wide[name], values[name], wide[name]), -1).narrow(
                -1, size := values[name].shape[-1], size
            )
            for name in ("pred", "logits", "target")
        },
        {name: torch.stack((values[name], wide[name]), -2)[..., 0, :] for name in wide},
        # Classes that are not neighbours.
        {"logits": values["logits"].transpose(-1, -2).contiguous().transpose(-1, -2)},
        {"labels": values["labels"].repeat_interleave(2)[::2]},
        {"offsets": values["offsets"].repeat_interleave(2)[::2]},
    ]
    for variant in variants:
        for name, tensor in variant.items():
            assert torch.equal(tensor, values[name])
        assert torch.equal(matching_cost(**{**values, **variant}), wanted)


@pytest.mark.parametrize("name", ["pred", "logits"])
def test_expanded(implementation: Implementation, name: str) -> None:
    # Anchors are the same for all images; a query for all layers.
    values = classes(cost_problem(implementation.device, layers=(2, 3)))
    whole = values[name]
    for first in (whole[:1, :1, :1], whole[:1], whole[..., :1, :]):
        values[name] = first.expand(whole.shape)
        check(values)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_class_cost(implementation: Implementation, dtype: torch.dtype) -> None:
    values = cost_problem(implementation.device, layers=(2, 3), class_weight=1.5)
    random = torch.Generator().manual_seed(8)
    for shape in (
        (2, 3, 3, 9),
        (3, 9),
        (3, 3, 9),
        (1, 3, 9),
        (2, 1, 3, 9),
        (1, 1, 3, 9),
    ):
        given = torch.randn(shape, generator=random).to(implementation.device, dtype)
        check({**values, "class_cost": given})
        check({**values, "class_cost": given.transpose(-1, -2).contiguous().transpose(-1, -2)})


# --- Columns ---


def test_columns_of_no_image_are_0(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device))
    for name in ("target", "logits", "pred"):
        values[name] = values[name].clone()
    values["target"][[0, 7, 8]] = math.nan
    cost = matching_cost(**values)
    assert not cost[..., [0, 7, 8]].any()
    check(values)
    # Also where everything of the image is NaN, and with a number for NaN.
    values["pred"][:] = math.nan
    cost = matching_cost(**values, nonfinite=7.0)
    assert not cost[..., [0, 7, 8]].any()
    assert bool((cost[..., OWN] == 7).all())


def test_an_image_without_boxes_is_read_by_nobody(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device))
    wanted = matching_cost(**values)
    for name in ("pred", "logits"):
        values[name] = values[name].clone()
        values[name][:, 1] = math.nan
    assert torch.equal(matching_cost(**values), wanted)


@pytest.mark.parametrize("mode", MODES)
def test_labels_that_are_no_class(implementation: Implementation, mode: str) -> None:
    values = classes(cost_problem(implementation.device, class_mode=mode, **ONLY_CLASSES))
    assert bool((matching_cost(**values)[..., [1, 3, 5, 6]] != 0).any(0).all())
    for label in (-1, 5, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)):
        values["labels"][[2, 4]] = label
        cost = matching_cost(**values)
        assert not cost[..., [2, 4]].any()
    values["logits"] = values["logits"][..., :0]
    assert not matching_cost(**values).any()


@pytest.mark.asan
@pytest.mark.parametrize(
    "offsets",
    [
        [0, 2, 9, 9, 9],
        [-5, 2, 2, 12, 99],
        [-(2**63), 1, 5, 2**63 - 1, 2**63 - 1],
        [10, 11, 12, 13, 14],
        [0, 0, 0, 0, 0],
        [4, 4, 5, 5, 8],
    ],
)
def test_offsets_are_clamped(implementation: Implementation, offsets: list[int]) -> None:
    values = classes(cost_problem(implementation.device))
    values["offsets"] = torch.tensor(offsets, device=implementation.device)
    check(values)


@pytest.mark.asan
@pytest.mark.parametrize(
    "offsets",
    [[9, 6, 4, 2, 0], [0, 9, 0, 9, 0], [2**63 - 1, -(2**63)] * 2 + [3], [3, 3, 2, 9, -9]],
)
def test_offsets_that_decrease_touch_nothing_out_of_bounds(
    implementation: Implementation, offsets: list[int]
) -> None:
    # Values are unspecified. An access out of bounds is seen by a sanitizer, or as a crash.
    values = classes(cost_problem(implementation.device))
    values["offsets"] = torch.tensor(offsets, device=implementation.device)
    assert matching_cost(**values).shape == (2, 3, 9)
    if implementation.device.type == "cuda":
        torch.cuda.synchronize()


@pytest.mark.parametrize("layers", [(), (0,), (2,), (2, 0)])
@pytest.mark.parametrize(
    ("images", "queries", "columns"), [(0, 3, 5), (0, 3, 0), (2, 0, 5), (2, 3, 0), (0, 0, 0)]
)
def test_empty(
    implementation: Implementation,
    images: int,
    queries: int,
    columns: int,
    layers: tuple[int, ...],
) -> None:
    device = implementation.device
    owned = [0, *[columns] * images]
    values: Problem = {
        "pred": torch.rand(*layers, images, queries, 4, device=device),
        "target": torch.rand(columns, 4, device=device),
        "offsets": torch.tensor(owned, device=device),
    }
    check(values)
    for count in (1, 4):
        for mode in MODES:
            check({**classes(values, count), "class_mode": mode})
    given = torch.rand(queries, columns, device=device)
    check({**values, "class_cost": given})


# --- NaN ---


def test_a_weight_of_0_leaves_its_term_out(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device))
    values["logits"] = torch.full_like(values["logits"], math.nan)
    assert own_entries(values, matching_cost(**values)).isnan().sum() > 0
    values.update(class_weight=0.0)
    check(values)
    bad = cost_problem(implementation.device)
    bad["pred"] = torch.full_like(bad["pred"], math.nan)
    assert own_entries(bad, matching_cost(**bad)).isnan().all()
    check({**classes(bad), **ONLY_CLASSES})
    given = torch.full((3, 9), math.nan, device=implementation.device)
    check({**cost_problem(implementation.device), "class_cost": given, "class_weight": 0.0})
    check({**bad, **ONLY_CLASSES, **BOXES})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["pred", "target", "logits", "class_cost"])
def test_nan_stays_visible_and_may_be_replaced(
    implementation: Implementation, name: str, number: float
) -> None:
    values = cost_problem(implementation.device)
    if name == "class_cost":
        values["class_cost"] = torch.zeros(2, 3, 9, device=implementation.device)
    else:
        values = classes(values)
        values["labels"][:] = 1
    wanted = matching_cost(**values)
    values[name] = values[name].clone()
    # Of one entry, one column, or one query's one logit: which entries it reaches.
    where: tuple[Any, ...] = {
        "pred": (1, 2, 1, 2),
        "target": (4, 2),
        "logits": (1, 2, 1, 1),
        "class_cost": (1, 1, 4),
    }[name]
    values[name][where] = number
    reached = torch.zeros(2, 3, 9, dtype=torch.bool, device=implementation.device)
    if name == "target":
        reached[..., 4] = True
    elif name == "class_cost":
        reached[1, 1, 4] = True
    else:
        reached[1, 1, 3:6] = True
    cost = matching_cost(**values)
    assert torch.equal(cost[~reached], wanted[~reached])
    if name != "logits" or math.isnan(number):
        assert not cost[reached].isfinite().any()
    for replacement in (1e5, -2.5, 0.0):
        replaced = matching_cost(**values, nonfinite=replacement)
        assert torch.equal(replaced, cost.where(cost.isfinite(), replacement))


def test_nonfinite_is_for_overflow_too(implementation: Implementation) -> None:
    values = cost_problem(implementation.device, torch.float64, l1_weight=1e300)
    assert own_entries(values, matching_cost(**values)).isinf().all()
    replaced = own_entries(values, matching_cost(**values, nonfinite=3.4e38))
    assert replaced.tolist() == pytest.approx([3.4e38] * len(replaced))


# --- What it is to torch ---


def test_has_no_gradient(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device))
    for name in ("pred", "target", "logits"):
        values[name] = values[name].clone().requires_grad_()
    cost = matching_cost(**values)
    assert not cost.requires_grad
    assert cost.grad_fn is None
    given = torch.zeros(3, 9, device=implementation.device, requires_grad=True)
    assert not matching_cost(**cost_problem(implementation.device), class_cost=given).requires_grad


def test_same_bits_twice(implementation: Implementation) -> None:
    values = classes(cost_problem(implementation.device, layers=(5, 40)), 91)
    first = matching_cost(**values)
    for _ in range(3):
        assert torch.equal(matching_cost(**values), first)


def test_same_bits_for_any_number_of_threads(threads: None) -> None:
    values = classes(cost_problem(torch.device("cpu"), layers=(5, 400)), 91)
    torch.set_num_threads(1)
    first = matching_cost(**values)
    for number in (2, 5):
        torch.set_num_threads(number)
        assert torch.equal(matching_cost(**values), first)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_changes_nothing(device: torch.device, dtype: torch.dtype) -> None:
    values = classes(cost_problem(device))
    wanted = matching_cost(**values)
    with torch.autocast(device.type, dtype):
        cost = matching_cost(**values)
    assert cost.dtype == torch.float32
    assert torch.equal(cost, wanted)


@pytest.mark.parametrize("mode", [*MODES, None])
def test_meta(mode: str | None) -> None:
    values = cost_problem(torch.device("cpu"), torch.bfloat16, torch.float64, layers=(2, 3))
    if mode:
        values = {**classes(values), "class_mode": mode}
    on_meta = {k: v.to("meta") if isinstance(v, Tensor) else v for k, v in values.items()}
    cost = matching_cost(**on_meta)
    assert cost.is_meta
    assert cost.shape == (2, 3, 3, 9)
    assert cost.dtype == torch.float32
    assert cost.is_contiguous()
    with pytest.raises(ValueError, match="offsets has shape"):
        matching_cost(**{**on_meta, "offsets": on_meta["offsets"][1:]})


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("mode", ["softmax", "focal", "given"])
def test_compiles_whole(device: torch.device, mode: str, dynamic: bool) -> None:
    def step(raw: Tensor, values: Problem) -> Tensor:
        return 2 * matching_cost(**{**values, "pred": 2 * raw})

    values = cost_problem(device)
    if mode in MODES:
        values = {**classes(values), "class_mode": mode}
    if mode == "given":
        values["class_cost"] = torch.ones(3, 9, device=device)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    raw = values.pop("pred") / 2
    assert torch.equal(compiled(raw, values), step(raw, values))
    raw = raw.requires_grad_()
    result = compiled(raw, values)
    assert not result.requires_grad
    assert torch.equal(result, step(raw, values))


@pytest.mark.parametrize("mode", [*MODES, "given"])
def test_opcheck(device: torch.device, mode: str) -> None:
    values = cost_problem(device)
    if mode == "given":
        values["class_cost"] = torch.ones(3, 9, device=device)
    else:
        values = {**classes(values), "class_mode": mode}
    arguments = tuple(values.pop(name) for name in ("pred", "target", "offsets"))
    torch.library.opcheck(torch.ops.boxloss.matching_cost.default, arguments, values)


# --- Errors ---


CPU = torch.device("cpu")
GIVEN = torch.zeros(3, 9)
WITH_CLASSES = classes(cost_problem(CPU))
PRED, TARGET, OFFSETS = (WITH_CLASSES[name] for name in ("pred", "target", "offsets"))
LOGITS, LABELS = WITH_CLASSES["logits"], WITH_CLASSES["labels"]


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"pred": PRED.int()}, TypeError, "pred is "),
        ({"target": TARGET.bool()}, TypeError, "target is "),
        ({"offsets": OFFSETS.short()}, TypeError, "offsets is "),
        ({"offsets": OFFSETS.double()}, TypeError, "offsets is "),
        ({"labels": LABELS.float()}, TypeError, "labels is "),
        ({"logits": LOGITS.int()}, TypeError, "logits is "),
        ({"logits": None, "labels": None, "class_cost": GIVEN.int()}, TypeError, "class_cost is "),
        ({"pred": PRED[0, 0]}, ValueError, "pred has shape "),
        ({"pred": PRED[..., :3]}, ValueError, "pred has shape "),
        ({"target": TARGET[None]}, ValueError, "target has shape "),
        ({"target": TARGET[0]}, ValueError, "target has shape "),
        ({"target": TARGET[:, :3]}, ValueError, "target has shape "),
        ({"pred": PRED.expand(2, 2, 4, 3, 4)}, ValueError, "logits has shape "),
        ({"offsets": OFFSETS[1:]}, ValueError, "offsets has shape "),
        ({"offsets": OFFSETS[None]}, ValueError, "offsets has shape "),
        ({"logits": LOGITS[:, 1:]}, ValueError, "logits has shape "),
        ({"logits": LOGITS[0]}, ValueError, "logits has shape "),
        ({"logits": LOGITS[:, :, :2]}, ValueError, "logits has shape "),
        ({"labels": LABELS[1:]}, ValueError, "labels has shape "),
        ({"labels": LABELS[None]}, ValueError, "labels has shape "),
        ({"labels": None}, ValueError, "logits is given without labels"),
        ({"logits": None}, ValueError, "labels is given without logits"),
        ({"class_cost": GIVEN}, ValueError, "logits or class_cost"),
        ({"loss": "l2"}, ValueError, "l2"),
        ({"class_mode": "hinge"}, ValueError, "class_mode is 'hinge'"),
        ({"pred_format": "yolo"}, ValueError, "pred_format is 'yolo'"),
        ({"target_format": "yolo"}, ValueError, "target_format is 'yolo'"),
        ({"target_format": "xyxy"}, ValueError, "l1_weight"),
        ({"eps_mode": "max"}, ValueError, "eps_mode is 'max'"),
        ({"eps": -1.0}, ValueError, "eps is -1"),
        ({"eps": math.nan}, ValueError, "eps is nan"),
        ({"eps": 1e300}, ValueError, "eps is "),
        ({"iou_weight": math.nan}, ValueError, "iou_weight is nan"),
        ({"l1_weight": math.inf}, ValueError, "l1_weight is inf"),
        ({"class_weight": -math.inf}, ValueError, "class_weight is -inf"),
        ({"focal_alpha": math.nan}, ValueError, "focal_alpha is nan"),
        ({"focal_gamma": -0.5}, ValueError, "focal_gamma is -0.5"),
        ({"focal_gamma": math.inf}, ValueError, "focal_gamma is inf"),
        ({"target": TARGET.to("meta")}, RuntimeError, "target is on meta"),
        ({"offsets": OFFSETS.to("meta")}, RuntimeError, "offsets is on meta"),
        ({"logits": LOGITS.to("meta")}, RuntimeError, "logits is on meta"),
        ({"labels": LABELS.to("meta")}, RuntimeError, "labels is on meta"),
    ],
)
def test_errors(changed: Problem, error: type[Exception], text: str) -> None:
    values = {**WITH_CLASSES, **changed}
    on_meta = {k: v.to("meta") if isinstance(v, Tensor) else v for k, v in values.items()}
    for given in (values, on_meta)[: 1 if error is RuntimeError else 2]:
        with pytest.raises(error, match=f"^matching_cost: .*{text}"):
            matching_cost(**given)


@pytest.mark.parametrize("shape", [(9,), (3, 8), (2, 9), (1, 9), (3, 1), (3, 3, 9), (1, 2, 3, 9)])
def test_class_cost_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^matching_cost: class_cost has shape "):
        matching_cost(**cost_problem(CPU), class_cost=torch.zeros(shape))


def test_nothing_is_read_of_bad_arguments_on_an_empty_problem() -> None:
    with pytest.raises(ValueError, match="class_mode"):
        matching_cost(PRED, TARGET[:0], OFFSETS, class_mode="hinge")  # type: ignore[arg-type]


def own_entries(values: Problem, cost: Tensor) -> Tensor:
    """The entries of a query with its own image's columns."""
    return cost.reshape(-1)[entries_of(values).places.to(cost.device)]
