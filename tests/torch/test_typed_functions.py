# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of boxloss/torch.hpp beside Python's of the same names, bit by bit."""

import inspect
import re
from pathlib import Path
from typing import Any

import boxloss
import boxloss.torch
import pytest
import torch
from boxloss.torch import box_loss, box_losses, rotated_box_loss
from cmake_project import build, configure, output_of
from comparison import differentiable
from losses_of_logits import by_query, class_problem
from problems import INDICES, Problem, boxes, problem
from task_aligned import problem as task_aligned
from torch import Tensor

PROJECT = Path(__file__).parent / "typed_functions"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROJECT, tmp_path_factory.mktemp("typed_functions"))


@pytest.fixture(scope="module")
def typed(built: Path) -> Any:
    torch.ops.load_library(built / "libtyped_functions.so")
    return torch.ops.boxloss_typed


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, Tensor):
        actual, expected = [actual], [expected]
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        assert torch.equal(a, e)


# What typed_functions.cpp has, in Python's words.
SIZE: dict[str, Any] = {"loss": "mpdiou", "image_width": 64, "image_height": 48}
CLAMPED = {**SIZE, "target_format": "xywh", "eps": 0.125, "eps_mode": "clamp"}
OF_LOGITS: dict[str, Any] = {
    **{"iou_weight": 0.5, "l1_weight": 0, "class_weight": 3, "class_mode": "focal"},
    **{"focal_alpha": 0.75, "focal_gamma": 1.5, "pred_format": "xyxy", **CLAMPED},
}
LIMITS = {"high": 0.7, "low": 0.3}
ALIGNED: dict[str, Any] = {
    **{"topk": 3, "topk2": 2, "alpha": 1.5, "beta": 0.5, "min_side": 64.0},
    **{"small_side": 16.0, "pred_format": "cxcywh"},
}
RANDOM = torch.Generator().manual_seed(6)
COST = {
    "pred": boxes((3, 5), CPU, seed=1),
    "target": boxes((6,), CPU, seed=2),
    "offsets": torch.tensor([0, 2, 2, 6]),
}
LOGITS = {
    "logits": torch.randn(3, 5, 7, generator=RANDOM),
    "labels": torch.tensor([0, 6, 2, 2, 5, 1]),
}
CLASS_COST = torch.randn(5, 6, generator=RANDOM)
CLASS_COST[2, 3] = torch.nan
MATCH = {"cost": torch.randn(2, 6, 5, generator=RANDOM), "offsets": torch.tensor([0, 4, 5])}
MATRICES = {"cost": MATCH["cost"], "lengths": torch.tensor([[6, 3], [2, 5]])}
MAX_IOU = {
    "anchors": boxes((25,), CPU, seed=1).repeat(2, 1),  # the best are two
    "target": boxes((40,), CPU, seed=2),
    "offsets": torch.tensor([0, 20, 40]),
    **LIMITS,
}
FOCAL = {**class_problem("focal", CPU), "weight": None}
VARIFOCAL = class_problem("varifocal", CPU, alpha=0.5, gamma=1.5, normalizer=torch.tensor([3, 2]))
MATCHED = {
    "logits": torch.randn(2, 3, 5, 4 * 7, generator=RANDOM),
    "target_index": torch.randint(-2, 6, (2, 3, 5), generator=RANDOM),
}
FGL: dict[str, Any] = {
    **{**MATCHED, "mode": "fgl", "reference": boxes((2, 3, 5), CPU, seed=3)},
    **{"target": boxes((6,), CPU, seed=4), "edges": torch.linspace(-3, 3, 7)},
}
OF_FGL = {
    **{"quality": torch.rand(2, 3, 5, generator=RANDOM), "normalizer": torch.tensor(3.0)},
    "reg_scale": 2.0,
}
DDF: dict[str, Any] = {
    **{**MATCHED, "mode": "ddf", "teacher": torch.randn(3, 5, 4 * 7, generator=RANDOM)},
    "confidence": torch.rand(3, 5, generator=RANDOM),
}
OF_KLD = {
    name: boxes((5,), CPU, box_format="radians", seed=len(name)) for name in ("pred", "target")
}
ROTATED_COST = {
    **{"pred": boxes((3, 5), CPU, box_format="degrees", seed=1), "angle_unit": "degrees"},
    **{"target": boxes((6,), CPU, box_format="degrees", seed=2), "offsets": COST["offsets"]},
    "loss": "kld",
}
ROTATED_MAX_IOU = {
    **MAX_IOU,
    **{"anchors": boxes((40,), CPU, box_format="degrees", seed=3), "angle_unit": "degrees"},
    **{name: ROTATED_COST[name] for name in ("target", "offsets")},
}
ROTATED_ALIGNED = {**task_aligned(6, is_rotated=True), "angle_unit": "degrees"}
# By default, and with other options, each of which has an effect; tensors in the order of C++.
CALLS: dict[str, tuple[str, Problem]] = {
    "rotated_defaults": ("rotated_box_loss", {**OF_KLD, "loss": "kld"}),
    "rotated_zero_padded": (
        "rotated_box_loss",
        problem("zero_padded", CPU, loss="gwd", angle_unit="radians", reduction="none"),
    ),
    "cost_defaults": ("matching_cost", COST),
    "cost_of_logits": ("matching_cost", {**COST, **LOGITS, **OF_LOGITS}),
    "cost_of_classes": ("matching_cost", {**COST, "class_cost": CLASS_COST, "nonfinite": 100}),
    "cost_rotated": ("matching_cost", {**ROTATED_COST, "angle_weight": 3.0}),
    "iou_rotated": ("pairwise_iou", ROTATED_COST),
    "iou_defaults": ("pairwise_iou", COST),
    "iou": ("pairwise_iou", {**COST, **CLAMPED, "pred_format": "cxcywh"}),
    "match_defaults": ("hungarian_match", MATCH),
    "match": ("hungarian_match", {**MATCH, "groups": 3}),
    "matrices_defaults": ("linear_sum_assignment", {"cost": MATCH["cost"]}),
    "matrices_of_lengths": ("linear_sum_assignment", {**MATRICES, "maximize": True}),
    "matrices_limited": ("linear_sum_assignment", {"cost": MATCH["cost"], "cost_limit": 0.0}),
    "max_iou_defaults": ("max_iou_match", MAX_IOU),
    "max_iou": ("max_iou_match", {**MAX_IOU, "low_quality": "force", "min_pos_iou": 0.4}),
    "task_aligned_defaults": ("task_aligned_match", task_aligned(6, is_padded=True)),
    "task_aligned": ("task_aligned_match", task_aligned(6, **ALIGNED)),
    "max_iou_rotated": ("max_iou_match", ROTATED_MAX_IOU),
    "task_aligned_rotated": ("task_aligned_match", ROTATED_ALIGNED),
    "classes_defaults": ("class_loss", FOCAL),
    "classes": ("class_loss", VARIFOCAL),
    "classes_by_query": ("class_loss", by_query(class_problem("mal", CPU, reduction="none"))),
    "classes_softmax": ("class_loss", class_problem("softmax", CPU)),
    "fgl_defaults": ("distribution_loss", FGL),
    "fgl": ("distribution_loss", {**FGL, **OF_FGL}),
    "ddf_defaults": ("distribution_loss", DDF),
    "ddf": ("distribution_loss", {**DDF, "temperature": 2, "reduction": "none"}),
}
ROTATED = {"loss": "giou", "angle_unit": "degrees", "eps": 0.125, "eps_mode": "clamp"}
OF_LOSSES = ("weight", "normalizer", "lengths", "mask", "offsets", *INDICES)


def test_every_option_is_tried() -> None:
    given = {name: set[str]() for name, _ in CALLS.values()}
    for name, values in CALLS.values():
        given[name] |= values.keys()
    given["rotated_box_loss"] |= {*ROTATED, *OF_LOSSES}
    given["box_losses"] = {*CLAMPED, *OF_LOSSES, "pred_format", "zero_padded", "reduction"}
    for name, tried in given.items():
        parameters = inspect.signature(getattr(boxloss.torch, name)).parameters.values()
        options = {each.name for each in parameters if each.default is not each.empty}
        assert options - {"parameters"} <= tried


@pytest.mark.parametrize("function", CALLS)
def test_the_others(typed: Any, function: str) -> None:
    name, values = CALLS[function]
    tensors = [each for each in values.values() if isinstance(each, Tensor)]
    assert_same(getattr(typed, function)(*tensors), getattr(boxloss.torch, name)(**values))


@pytest.mark.parametrize("function", ["classes", "fgl", "ddf"])
def test_gradients_of_the_others(typed: Any, function: str) -> None:
    name, values = CALLS[function]
    logits = values["logits"].detach().requires_grad_()
    given = {**values, "logits": logits}
    tensors = [each for each in given.values() if isinstance(each, Tensor)]
    losses = getattr(typed, function)(*tensors), getattr(boxloss.torch, name)(**given)
    assert_same(*(torch.autograd.grad(loss.sum(), logits) for loss in losses))


@pytest.mark.parametrize("is_rotated", [False, True])
@pytest.mark.parametrize("pairing", ["dense", "lengths", "mask", "offsets", "sets"])
def test_box_losses(typed: Any, pairing: str, is_rotated: bool) -> None:
    """And gradients of both orders."""
    options = ROTATED if is_rotated else {**CLAMPED, "pred_format": "xywh"}
    values = problem(pairing, CPU, weight=torch.float32, normalizer=torch.tensor(4.0), **options)

    def of_cpp(**given: Any) -> Any:
        function = typed.rotated if is_rotated else typed.losses
        return function(*(given.get(name) for name in ("pred", "target", *OF_LOSSES)))

    results = []
    for function in (of_cpp, rotated_box_loss if is_rotated else box_losses):
        leaves = differentiable(values)
        inputs = tuple(leaves.values())
        outputs = function(**{**values, **leaves})
        outputs = [outputs] if is_rotated else list(outputs)
        first = torch.autograd.grad(sum(outputs[:2]).sum(), inputs, create_graph=True)
        second = torch.autograd.grad(first[0].square().sum(), inputs)
        results.append([*outputs, *first, *second])
    assert_same(*results)


def test_box_loss(typed: Any) -> None:
    values = problem("zero_padded", CPU)
    pred, target = values["pred"], values["target"]
    assert_same(typed.loss_defaults(pred, target), box_loss(pred, target))
    assert_same(typed.zero_padded(pred, target), box_loss(**values, reduction="none"))


def test_errors_are_the_operators(typed: Any) -> None:
    pred, target = boxes((3, 5), CPU), boxes((3, 5), CPU)
    with pytest.raises(ValueError, match="box_loss: loss is 'unset'; allowed: 'iou', "):
        typed.loss_unset(pred, target)
    with pytest.raises(ValueError, match="rotated_box_loss: loss is 'unset'; allowed: 'iou', "):
        typed.rotated_unset(*OF_KLD.values())
    with pytest.raises(TypeError, match="box_losses: mask is float32; it must be bool"):
        typed.losses(pred, target, None, None, None, torch.ones(3, 5), None, None, None)
    with pytest.raises(ValueError, match="max_iou_match: low is nan and high nan"):
        typed.max_iou_unset(pred[0], target[0], torch.tensor([0, 5]))
    logits, index = MATCHED.values()
    with pytest.raises(ValueError, match="class_loss: mode is 'unset'; allowed: 'focal', "):
        typed.classes_unset(logits, index, torch.arange(6))
    with pytest.raises(ValueError, match="distribution_loss: mode is 'unset'; allowed: 'fgl', "):
        typed.distribution_unset(logits, index)


# --- The CMake package ---


def test_linking_is_enough_to_have_the_operators(built: Path) -> None:
    libraries = output_of("ldd", built / "calls_nothing")
    assert re.search(r"libboxloss_torch-\S+ => /", libraries), libraries


def test_a_component_that_there_is_not_is_named(tmp_path: Path) -> None:
    lines = "project(bare LANGUAGES CXX)\nfind_package(boxloss REQUIRED COMPONENTS Torch)\n"
    (tmp_path / "CMakeLists.txt").write_text(lines)
    result = configure(tmp_path, tmp_path / "build")
    assert result.returncode != 0
    message = "boxloss has no component 'Torch'; its components: backend, torch"
    assert message in " ".join(result.stderr.split())


def test_no_torch_says_how_to_find_it(tmp_path: Path) -> None:
    result = configure(PROJECT, tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
    assert result.returncode != 0
    assert "torch was not found. Add to CMAKE_PREFIX_PATH what" in " ".join(result.stderr.split())


def test_another_torch_says_for_which_there_are_operators(tmp_path: Path) -> None:
    package = tmp_path / "torch/share/cmake/Torch"
    package.mkdir(parents=True)
    (package / "TorchConfigVersion.cmake").write_text('set(PACKAGE_VERSION "99.1.0")\n')
    prefixes = (boxloss.cmake_prefix_path, f"{tmp_path}/torch")
    result = configure(PROJECT, tmp_path / "build", prefixes=prefixes)
    assert result.returncode != 0
    message = " ".join(result.stderr.split())
    assert f"boxloss was not built for torch 99.1, which is in {tmp_path}/torch." in message
    minor = ".".join(torch.__version__.split(".")[:2])
    assert minor in message.partition("there are operators for torch: ")[2]
