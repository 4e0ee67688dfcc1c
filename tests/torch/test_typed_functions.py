# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of boxloss/torch.hpp beside Python's of the same names, bit by bit."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import boxloss
import pytest
import torch
from boxloss._options import LOSS_PARAMETERS, BoxFormat, EpsMode, Loss, LowQuality, Reduction
from boxloss.torch import (
    box_loss,
    box_losses,
    hungarian_match,
    matching_cost,
    max_iou_match,
    pairwise_iou,
    task_aligned_match,
)
from cmake_project import build, configure, output_of
from problems import boxes
from torch import Tensor

PROJECT = Path(__file__).parent / "typed_functions"
CPU = torch.device("cpu")
WORDS = {
    # A forgotten loss is 0; those with numbers of their own come last.
    "loss": ("unset", *(loss for loss in get_args(Loss) if loss not in LOSS_PARAMETERS)),
    "pred_format": get_args(BoxFormat),
    "target_format": get_args(BoxFormat),
    "reduction": get_args(Reduction),
    "eps_mode": get_args(EpsMode),
}
CLASS_MODES = {"softmax": 1, "sigmoid": 2, "focal": 3}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PROJECT, tmp_path_factory.mktemp("typed_functions"))


@pytest.fixture(scope="module")
def typed(built: Path) -> Any:
    torch.ops.load_library(built / "libtyped_functions.so")
    return torch.ops.boxloss_typed


def grid(seed: int) -> Tensor:
    return boxes((3, 5), CPU, seed=seed)


def options_of(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters
    return {name for name, each in parameters.items() if each.default is not each.empty}


def assert_same(actual: Tensor, expected: Tensor) -> None:
    assert actual.dtype == expected.dtype
    assert torch.equal(actual, expected)


# --- box_loss ---


def test_defaults(typed: Any) -> None:
    assert_same(typed.defaults(grid(1), grid(2)), box_loss(grid(1), grid(2)))


WEIGHT = torch.linspace(0, 2, 15).view(3, 5)
OPTIONS: list[tuple[str, Any]] = [
    *((option, word) for option, words in WORDS.items() for word in words[option == "loss" :]),
    ("weight", WEIGHT),
    ("normalizer", torch.tensor(4.0)),
    ("lengths", torch.tensor([5, 2, 0])),
    ("mask", torch.arange(15).view(3, 5) % 3 == 0),
    ("offsets", torch.tensor([1, 3, 10, 10])),
    ("zero_padded", True),
    ("eps", 0.25),
]
INDICES = ("pred_index", "target_index")


def test_every_option_is_tried() -> None:
    assert {*INDICES, *(option for option, _ in OPTIONS)} == options_of(box_loss)


@pytest.mark.parametrize(("option", "value"), OPTIONS)
def test_options(typed: Any, option: str, value: Any) -> None:
    # eps is small, so boxes are tiny where words tell: one mode is not the other.
    scale = 2.0**-18 if option in WORDS else 1.0
    pred, target = scale * grid(1), scale * grid(2)
    default = box_loss(pred, target)
    if option == "offsets":
        target = boxes((12,), CPU, seed=2)
    if option == "zero_padded":
        target[1, 2] = 0
    expected = box_loss(pred, target, **{option: value})
    is_default = option in WORDS and value in ("giou", "xyxy", "mean", "add")
    assert torch.equal(expected, default) == is_default
    given = WORDS[option].index(value) if option in WORDS else value
    assert_same(getattr(typed, option)(pred, target, given), expected)


def test_numbers_of_a_loss(typed: Any) -> None:
    expected = box_loss(grid(1), grid(2), "mpdiou", image_width=8, image_height=6)
    assert_same(typed.parameters(grid(1), grid(2), [8.0, 6.0]), expected)


@pytest.mark.parametrize("option", INDICES)
def test_indices(typed: Any, option: str) -> None:
    index = torch.tensor([3, -1, 11, 0, 3])
    pairs, rows = boxes((5,), CPU, seed=1), boxes((12,), CPU, seed=2)
    pred, target = (rows, pairs) if option == "pred_index" else (pairs, rows)
    expected = box_loss(pred, target, **{option: index})
    assert_same(getattr(typed, option)(pred, target, index), expected)


def test_gradients_of_first_and_second_order(typed: Any) -> None:
    gradients = []
    for function in (typed.weight, lambda *given: box_loss(*given[:2], weight=given[2])):
        pred, weight = grid(1).requires_grad_(), WEIGHT.clone().requires_grad_()
        (first,) = torch.autograd.grad(function(pred, grid(2), weight), pred, create_graph=True)
        gradients.append([first, *torch.autograd.grad(first.square().sum(), (pred, weight))])
    for actual, expected in zip(*gradients, strict=True):
        assert expected.any()
        assert_same(actual, expected)


def test_errors_are_the_operators(typed: Any) -> None:
    with pytest.raises(ValueError, match="box_loss: loss is 'unset'; allowed: 'iou', "):
        typed.loss(grid(1), grid(2), 0)
    with pytest.raises(ValueError, match="box_loss: eps is -1; it must be finite"):
        typed.eps(grid(1), grid(2), -1.0)
    with pytest.raises(TypeError, match="box_loss: mask is float32; it must be bool"):
        typed.mask(grid(1), grid(2), torch.ones(3, 5))


# --- The others ---


def test_box_losses(typed: Any) -> None:
    expected = box_losses(grid(1), grid(2), "siou", weight=WEIGHT, eps=0.25)
    for a, e in zip(typed.box_losses(grid(1), grid(2), WEIGHT), expected, strict=True):
        assert_same(a, e)


PLACED: dict[str, Any] = {
    "pred_format": "xyxy",
    "target_format": "xywh",
    "eps": 0.125,
    "eps_mode": "clamp",
}


def cost_arguments() -> tuple[Tensor, Tensor, Tensor]:
    return grid(1), boxes((6,), CPU, seed=2), torch.tensor([0, 2, 2, 6])


def test_cost_defaults(typed: Any) -> None:
    assert_same(typed.cost_defaults(*cost_arguments()), matching_cost(*cost_arguments()))


@pytest.mark.parametrize("class_mode", CLASS_MODES)
def test_cost_of_logits(typed: Any, class_mode: str) -> None:
    random = torch.Generator().manual_seed(3)
    logits = torch.randn(3, 5, 7, generator=random)
    labels = torch.tensor([0, 6, 2, 2, 5, 1])
    options: dict[str, Any] = {"loss": "diou", "iou_weight": 0.5, "l1_weight": 0, "class_weight": 3}
    options |= {"class_mode": class_mode, "focal_alpha": 0.75, "focal_gamma": 1.5, **PLACED}
    options |= {"logits": logits, "labels": labels}
    assert {*options, "class_cost", "nonfinite"} == options_of(matching_cost)
    expected = matching_cost(*cost_arguments(), **options)
    mode = CLASS_MODES[class_mode]
    assert_same(typed.cost_of_logits(*cost_arguments(), logits, labels, mode), expected)


def test_cost_of_classes(typed: Any) -> None:
    class_cost = torch.arange(30.0).view(5, 6)
    class_cost[2, 3] = float("nan")
    expected = matching_cost(*cost_arguments(), class_cost=class_cost, nonfinite=100)
    assert (expected == 100).any()
    assert_same(typed.cost_of_classes(*cost_arguments(), class_cost), expected)


def test_hungarian_match(typed: Any) -> None:
    cost = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(4))
    offsets = torch.tensor([0, 4, 5])
    assert options_of(hungarian_match) == {"groups"}
    default, grouped = hungarian_match(cost, offsets), hungarian_match(cost, offsets, groups=3)
    assert default.target_of_query.tolist() != grouped.target_of_query.tolist()
    for actual, expected in (
        (typed.match_defaults(cost, offsets), default),
        (typed.match_groups(cost, offsets, 3), grouped),
    ):
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    with pytest.raises(ValueError, match="hungarian_match: groups is 4; it must be at least 1"):
        typed.match_groups(cost, offsets, 4)


def test_max_iou_match(typed: Any) -> None:
    anchors = boxes((25,), CPU, seed=1).repeat(2, 1)  # the best are two
    arguments = anchors, boxes((40,), CPU, seed=2), torch.tensor([0, 20, 40])
    assert options_of(max_iou_match) == {"low_quality", "min_pos_iou"}

    def check(actual: tuple[Tensor, Tensor], **options: Any) -> Tensor:
        expected = max_iou_match(*arguments, **options)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
        return expected.target_index

    check(typed.max_iou_defaults(*arguments), high=0.5, low=0.4)
    found = set()
    for i, word in enumerate(get_args(LowQuality)):
        for least in (0.0, 0.4):
            index = check(
                typed.max_iou_options(*arguments, i, least),
                high=0.7,
                low=0.3,
                low_quality=word,
                min_pos_iou=least,
            )
            found.add(str(index.tolist()))
    assert len(found) >= 4  # the options have an effect
    with pytest.raises(ValueError, match="max_iou_match: low is nan and high nan"):
        typed.max_iou_unset(*arguments)


def test_task_aligned_match(typed: Any) -> None:
    generator = torch.Generator().manual_seed(6)
    scores = torch.rand(2, 60, 4, generator=generator)
    points = 64 * torch.rand(60, 2, generator=generator)
    sizes = 8 + 32 * torch.rand(60, 2, generator=generator)
    pred = torch.cat((points, sizes), -1).repeat(2, 1, 1)
    as_corners = torch.cat((points - sizes / 2, points + sizes / 2), -1).repeat(2, 1, 1)
    corners = 48 * torch.rand(8, 2, generator=generator)
    sides = torch.tensor([[40.0, 6.0], [40.0, 3.0]]).repeat(4, 1)
    target = torch.cat((corners, corners + sides), -1)
    labels = torch.arange(8) % 4
    padded = scores, as_corners, points, target.view(2, 4, 4), labels.view(2, 4)
    ragged = scores, pred, points, target, torch.tensor([0, 3, 8]), labels
    options = {"topk": 3, "topk2": 2, "alpha": 1.5, "beta": 0.5, "min_side": 8.0}
    options |= {"small_side": 5.5, "pred_format": "cxcywh"}
    assert options.keys() == options_of(task_aligned_match)
    by_default = task_aligned_match(*padded[:4], None, padded[4])
    chosen = task_aligned_match(*ragged, **options)
    for actual, expected in (
        (typed.task_aligned_defaults(*padded), by_default),
        (typed.task_aligned_options(*ragged), chosen),
    ):
        assert (expected.target_index >= 0).any()
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    for name in options:  # each has an effect
        others = {key: each for key, each in options.items() if key != name}
        other = task_aligned_match(*ragged, **others)
        assert not all(map(torch.equal, other, chosen)), name


def test_pairwise_iou(typed: Any) -> None:
    arguments = cost_arguments()
    assert_same(typed.pairwise_defaults(*arguments), pairwise_iou(*arguments))
    options = {**PLACED, "loss": "eiou", "pred_format": "cxcywh"}
    assert options.keys() == options_of(pairwise_iou)
    expected = pairwise_iou(*arguments, **options)
    assert_same(typed.pairwise_iou(*arguments), expected)


# --- The CMake package ---


def test_linking_is_enough_to_have_the_operators(built: Path) -> None:
    libraries = output_of("ldd", built / "calls_nothing")
    assert re.search(r"libboxloss_torch-\S+ => /", libraries), libraries


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
