# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""max_iou_match against the matrix of IoUs and what matchers do with it, in torch's operators."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
import torch
from boxloss.torch import MaxIouMatch, box_loss, max_iou_match, use_implementation
from devices import Implementation, device_or_skip
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses import FakeTensorMode

CPU = torch.device("cpu")
RULES = ["none", "argmax", "overwrite", "force"]
OFFSETS = [0, 5, 5, 9]  # an image without boxes


@pytest.fixture
def implementation(implementation: Implementation) -> Implementation:
    """Each that serves it; the others say that they do not."""
    name = implementation.name
    if name.endswith("/kokkos"):
        anchors = grid_anchors(implementation.device)
        with pytest.raises(TypeError, match=f"^max_iou_match: {name} does not serve max_iou_match"):
            max_iou_match(anchors, anchors, torch.tensor([0, 1]), high=0.7, low=0.3)
        pytest.skip("it does not serve max_iou_match")
    return implementation


def iou_matrix(target: Tensor, anchors: Tensor) -> Tensor:
    """(n, A), in the order of operations of torchvision's box_iou."""
    areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (target, anchors)]
    first = torch.max(target[:, None, :2], anchors[:, :2])
    last = torch.min(target[:, None, 2:], anchors[:, 2:])
    sides = (last - first).clamp(min=0)
    intersection = sides[..., 0] * sides[..., 1]
    return intersection / (areas[0][:, None] + areas[1] - intersection)


def matched(iou: Tensor, high: float, low: float, rule: str, least: float) -> tuple[Tensor, Tensor]:
    """Of one image, which has boxes: each anchor's box, and its best IoU."""
    best, box = iou.max(dim=0)
    match = box.clone()
    match[best < low] = -1
    match[(best >= low) & (best < high)] = -2
    if rule == "none":
        return match, best
    best_of_box, anchor = iou.max(dim=1)
    for i in range(len(iou)):
        if not best_of_box[i] >= least:
            continue
        equal = iou[i] == best_of_box[i]
        if rule == "argmax":
            match[equal] = box[equal]
        elif rule == "overwrite":
            match[equal] = i
        else:
            match[anchor[i]] = i
    return match, best


def expected(
    anchors: Tensor, target: Tensor, offsets: list[int], *options: Any
) -> tuple[Tensor, Tensor]:
    is_double = torch.float64 in (anchors.dtype, target.dtype)
    dtype = torch.float64 if is_double else torch.float32
    anchors, target = anchors.detach().cpu().to(dtype), target.detach().cpu().to(dtype)
    indices, ious = [], []
    for b, (first, last) in enumerate(pairwise(offsets)):
        own = anchors if anchors.dim() == 2 else anchors[b]
        index, iou = torch.full((len(own),), -1), torch.zeros(len(own), dtype=dtype)
        if last > first and len(own) > 0:
            index, iou = matched(iou_matrix(target[first:last], own), *options)
            index = torch.where(index >= 0, index + first, index)
        indices.append(index)
        ious.append(iou)
    shape = (len(offsets) - 1, anchors.shape[-2])
    return torch.cat([*indices, torch.empty(0, dtype=torch.int64)]).view(shape), torch.cat(
        [*ious, torch.empty(0, dtype=dtype)]
    ).view(shape)


def check(
    anchors: Tensor,
    target: Tensor,
    offsets: list[int],
    high: float = 0.7,
    low: float = 0.3,
    rule: str = "argmax",
    least: float = 0.0,
    given: Tensor | None = None,
) -> MaxIouMatch:
    given = torch.tensor(offsets) if given is None else given
    result = max_iou_match(
        anchors, target, given, high=high, low=low, low_quality=rule, min_pos_iou=least
    )
    assert isinstance(result, MaxIouMatch)
    index, iou = expected(anchors, target, offsets, high, low, rule, least)
    assert result.target_index.dtype == torch.int64
    assert {each.device for each in result} == {anchors.device}
    assert not any(each.requires_grad for each in result)
    assert torch.equal(result.target_index.cpu(), index)
    assert result.iou.dtype == iou.dtype
    assert torch.equal(result.iou.cpu().nan_to_num(nan=-5), iou.nan_to_num(nan=-5))
    return result


def grid_anchors(device: torch.device = CPU, size: int = 96, scale: float = 1.0) -> Tensor:
    """Of an image's levels, three to a cell."""
    levels = []
    for stride in (8, 16, 32):
        x, y = torch.meshgrid(
            torch.arange(0, size, stride), torch.arange(0, size, stride), indexing="xy"
        )
        w = stride * torch.tensor([1.4, 2.0, 2.8])
        sides = torch.stack((w, w.flip(0)), 1) / 2
        centres = torch.stack((x, y), -1).view(-1, 1, 2)
        levels.append(torch.cat((centres - sides, centres + sides), -1).view(-1, 4))
    return (scale * torch.cat(levels)).to(device)


def random_boxes(count: int, seed: int, device: torch.device = CPU, size: float = 96) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    corner = size * torch.rand(count, 2, generator=random)
    sides = size * torch.rand(count, 2, generator=random) ** 3 + 1
    return torch.cat((corner, corner + sides), 1).to(device)


def test_by_hand(implementation: Implementation) -> None:
    anchors = torch.tensor([[0, 0, 2, 2], [0, 0, 2, 1], [1, 0, 3, 2], [9, 9, 10, 10.0]])
    target = torch.tensor([[0, 0, 2, 2], [1, 0, 3, 1], [4, 4, 5, 5.0]])
    device = implementation.device
    given = (anchors.to(device), target.to(device), torch.tensor([0, 2, 3], device=device))
    # IoUs with the first: 1, 1/2, 1/3, 0; with the second: 1/5, 1/3, 1/2, 0; the third meets none.
    wanted = {
        "none": [[0, -2, -2, -1], [-1, -1, -1, -1]],
        "argmax": [[0, -2, 1, -1], [2, 2, 2, 2]],
        "overwrite": [[0, -2, 1, -1], [2, 2, 2, 2]],
        "force": [[0, -2, 1, -1], [2, -1, -1, -1]],
    }
    for rule, index in wanted.items():
        result = max_iou_match(*given, high=0.6, low=0.2, low_quality=rule)
        assert result.target_index.tolist() == index
        assert torch.equal(result.iou.cpu(), torch.tensor([[1, 1 / 2, 1 / 2, 0], [0, 0, 0, 0.0]]))
        result = max_iou_match(*given, high=0.6, low=0.2, low_quality=rule, min_pos_iou=0.1)
        assert result.target_index[1].tolist() == [-1] * 4


def test_low_quality_by_hand(implementation: Implementation) -> None:
    """Two boxes with the same best anchor, which overlaps the first of them more."""
    anchors = torch.tensor([[0, 0, 10, 10], [50, 50, 60, 60.0]], device=implementation.device)
    target = torch.tensor([[0, 0, 10, 4], [0, 0, 10, 2.0]], device=implementation.device)
    for rule, index in {"none": -2, "argmax": 0, "overwrite": 1, "force": 1}.items():
        result = max_iou_match(
            anchors, target, torch.tensor([0, 2]), high=0.7, low=0.3, low_quality=rule
        )
        assert result.target_index.tolist() == [[index, -1]]


@pytest.mark.parametrize("rule", RULES)
def test_inverted_boxes_overlap_nothing(implementation: Implementation, rule: str) -> None:
    device = implementation.device
    target, anchors = random_boxes(20, 1, device), random_boxes(300, 2, device)
    inverted = [2, 1, 0, 3]
    for pair in ((anchors, target[:, inverted]), (anchors[:, inverted], target)):
        result = check(*pair, OFFSETS, rule=rule)
        assert not result.iou.signbit().any()  # though 0 / -3 is -0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(5))
def test_on_a_grid(implementation: Implementation, rule: str, seed: int) -> None:
    device = implementation.device
    anchors, target = grid_anchors(device), random_boxes(9, seed, device)
    check(anchors, target, OFFSETS, rule=rule)
    check(anchors, target, OFFSETS, 0.5, 0.4, rule, 0.2)
    check(anchors.double(), target, OFFSETS, 0.5, 0.5, rule)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    low, high = sorted(draw(st.lists(st.sampled_from([-1, 0, 0.3, 0.4, 0.5, 0.7, 2]), min_size=2)))[
        :2
    ]
    return {
        "offsets": sorted(draw(st.lists(st.integers(0, 20), min_size=1, max_size=5))),
        "high": high,
        "low": low,
        "rule": draw(st.sampled_from(RULES)),
        "least": draw(st.sampled_from([0.0, 0.3, 0.5, -1.0])),
    }


@given(
    settings=settings(),
    anchors=st.integers(0, 300),
    seed=st.integers(0, 999),
    steps=st.sampled_from([4, 12, None]),
)
@example({"offsets": [0, 0], "high": 0, "low": 0, "rule": "argmax", "least": 0}, 20, 0, None)
@example({"offsets": [0], "high": 0.7, "low": 0.3, "rule": "argmax", "least": 0}, 20, 0, None)
@example({"offsets": [3, 20], "high": 0.7, "low": 0.3, "rule": "force", "least": 0}, 0, 0, None)
def test_any_boxes(settings: dict[str, Any], anchors: int, seed: int, steps: int | None) -> None:
    """Also with few coordinates: equal, touching and empty boxes."""
    images = len(settings["offsets"]) - 1
    target = random_boxes(20, seed)
    boxes = random_boxes(images * anchors, seed + 1000).view(images, anchors, 4)
    if steps is not None:
        target, boxes = ((each / 192 * steps).round() for each in (target, boxes))
    check(boxes, target, **settings)
    check(boxes.double(), target, **settings)
    if images > 0:
        check(boxes[0], target, **settings)


@given(
    seed=st.integers(0, 999),
    rule=st.sampled_from(RULES),
    number=st.sampled_from([math.nan, math.inf, -math.inf]),
    where=st.sampled_from(["anchors", "target", "both"]),
)
def test_what_is_not_finite(seed: int, rule: str, number: float, where: str) -> None:
    anchors, target = random_boxes(200, seed), random_boxes(9, seed + 1)
    random = torch.Generator().manual_seed(seed)
    for boxes in (anchors,) * (where != "target") + (target,) * (where != "anchors"):
        boxes.view(-1)[torch.randint(boxes.numel(), (3,), generator=random)] = number
    check(anchors, target, OFFSETS, rule=rule)


@pytest.mark.parametrize("rule", RULES)
def test_a_box_of_nan_is_every_anchors_best(implementation: Implementation, rule: str) -> None:
    anchors, target = grid_anchors(implementation.device), random_boxes(5, 0)
    target[2, 1] = math.nan
    result = check(anchors, target.to(anchors.device), [0, 5], rule=rule)
    assert result.iou.isnan().all()
    if rule in ("none", "argmax"):  # the others give anchors to other boxes
        assert (result.target_index == 2).all()


@pytest.mark.parametrize("rule", RULES)
def test_empty_boxes_and_anchors(implementation: Implementation, rule: str) -> None:
    """0 / 0 is NaN, as torch has it; an empty box alone has the IoU 0."""
    device = implementation.device
    anchors = grid_anchors(device)
    target = torch.tensor([[8, 8, 8, 8], [20, 20, 40, 40], [30, 9, 12, 30.0]], device=device)
    check(anchors, target, [0, 3], rule=rule)
    empty = torch.cat((anchors[:20], target[:1] + 100, anchors[20:]))
    result = check(empty, target, [0, 3], rule=rule)
    assert result.iou[0].isnan().nonzero().tolist() == [[20]]


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("target_dtype", [*DTYPES, torch.uint8, torch.int64], ids=str)
def test_dtypes(device: torch.device, dtype: torch.dtype, target_dtype: torch.dtype) -> None:
    anchors, target = grid_anchors(device).to(dtype), random_boxes(9, 3, device).to(target_dtype)
    check(anchors, target, OFFSETS)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_offsets(device: torch.device, dtype: torch.dtype) -> None:
    anchors, target = grid_anchors(device), random_boxes(9, 3, device)
    offsets = torch.tensor([[each, 99] for each in OFFSETS], dtype=dtype)[:, 0]  # not neighbours
    for each in (offsets, offsets.to(device)):
        check(anchors, target, OFFSETS, given=each)


def test_boxes_are_read_where_they_lie_and_stay_as_they_are(implementation: Implementation) -> None:
    device = implementation.device
    anchors, target = grid_anchors(device), random_boxes(9, 3, device)
    wide = torch.full((2 * len(anchors), 7), math.nan, device=device)
    wide[::2, 1:5] = anchors
    for each in (
        wide[::2, 1:5],
        anchors.T.contiguous().T,
        anchors.expand(3, -1, -1),
        torch.stack((anchors, anchors + 1, anchors + 2), 1).transpose(0, 1),
        anchors.clone().requires_grad_(),
    ):
        before = each.detach().clone()
        check(each, target, OFFSETS)
        check(each, target.T.contiguous().T, OFFSETS, rule="overwrite")
        assert torch.equal(each.detach(), before)


def test_boxes_of_no_image_are_not_read(implementation: Implementation) -> None:
    anchors, target = grid_anchors(implementation.device), random_boxes(9, 3)
    target[:2] = target[7:] = math.nan
    result = check(anchors, target.to(anchors.device), [2, 5, 7])
    assert not result.iou.isnan().any()


def test_the_losses_take_them(device: torch.device) -> None:
    anchors, target = grid_anchors(device), random_boxes(9, 3, device)
    index = max_iou_match(
        anchors, target, torch.tensor(OFFSETS), high=0.5, low=0.4, low_quality="argmax"
    ).target_index
    pred = anchors + torch.rand_like(anchors)
    pred = pred.expand(3, -1, -1).reshape(-1, 4)
    loss = box_loss(pred, target, target_index=index.view(-1))
    own = index.view(-1) >= 0
    torch.testing.assert_close(loss, box_loss(pred[own], target[index.view(-1)[own]]))


def test_many_anchors_and_boxes(implementation: Implementation) -> None:
    anchors = grid_anchors(implementation.device, size=400)
    target = random_boxes(700, 3, implementation.device, size=400)
    for rule in RULES:
        check(anchors, target, [0, 300, 650], rule=rule)


# --- Without a device's time, and with all of its threads ---


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_whole(device: torch.device, dynamic: bool) -> None:
    def step(anchors: Tensor, target: Tensor, offsets: Tensor) -> MaxIouMatch:
        return max_iou_match(2 * anchors, target, offsets, high=0.7, low=0.3, low_quality="argmax")

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for boxes in (9, 11):
        anchors = grid_anchors(device).requires_grad_()
        target = random_boxes(boxes, 3, device)
        for offsets in (torch.tensor(OFFSETS), torch.tensor(OFFSETS, device=device)):
            result = compiled(anchors, target, offsets)
            index, iou = expected(2 * anchors, target, OFFSETS, 0.7, 0.3, "argmax", 0.0)
            assert isinstance(result, MaxIouMatch)
            assert not any(each.requires_grad for each in result)
            assert torch.equal(result.target_index.cpu(), index)
            assert torch.equal(result.iou.cpu(), iou)


class Assigner(torch.nn.Module):
    def forward(self, anchors: Tensor, target: Tensor, offsets: Tensor) -> MaxIouMatch:
        return max_iou_match(anchors, target, offsets, high=0.5, low=0.4, low_quality="force")


def test_exports() -> None:
    dynamic = (None, {0: torch.export.Dim("boxes")}, None)
    given = (grid_anchors(), random_boxes(9, 3), torch.tensor(OFFSETS))
    program = torch.export.export(Assigner(), given, dynamic_shapes=dynamic)
    target = random_boxes(11, 4)
    result = program.module()(grid_anchors(), target, torch.tensor([0, 1, 7, 11]))
    index, _ = expected(grid_anchors(), target, [0, 1, 7, 11], 0.5, 0.4, "force", 0.0)
    assert torch.equal(result.target_index, index)


def test_fake_and_meta(device: torch.device) -> None:
    def shapes(anchors: Tensor, offsets: Tensor) -> None:
        target = torch.empty(9, 4, device=anchors.device)
        result = max_iou_match(anchors, target, offsets, high=0.7, low=0.3)
        assert [tuple(each.shape) for each in result] == [(3, 50)] * 2
        assert [each.dtype for each in result] == [torch.int64, torch.float64]
        assert {each.device.type for each in result} == {anchors.device.type}

    with FakeTensorMode():
        shapes(torch.empty(50, 4, device=device).double(), torch.empty(4, dtype=torch.int64))
    shapes(torch.empty(3, 50, 4, device="meta").double(), torch.empty(4, dtype=torch.int64))


@pytest.mark.parametrize("rule", RULES)
def test_opcheck(device: torch.device, rule: str) -> None:
    offsets = torch.tensor(OFFSETS, device=device)
    for anchors in (grid_anchors(device), grid_anchors(device).expand(3, -1, -1)):
        arguments = (anchors.clone().requires_grad_(), random_boxes(9, 3, device), offsets)
        torch.library.opcheck(
            torch.ops.boxloss.max_iou_match.default, (*arguments, 0.7, 0.3, rule, 0.1)
        )


def test_any_number_of_threads_gives_the_same() -> None:
    anchors, target = grid_anchors(size=300), random_boxes(40, 3, size=300)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            for rule in RULES:
                check(anchors, target, [0, 20, 31, 40], rule=rule)
    finally:
        torch.set_num_threads(before)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(check, anchors, target, [0, 20, 31, 40]) for _ in range(20)]
        for each in calls:
            each.result()


def test_aten_changes_nothing(device: torch.device) -> None:
    with use_implementation("aten"):
        check(grid_anchors(device), random_boxes(9, 3, device), OFFSETS)


def call(**changed: Any) -> MaxIouMatch:
    given = {"anchors": ANCHORS, "target": TARGET, "offsets": GOOD, "high": 0.7, "low": 0.3}
    return max_iou_match(**{**given, **changed})


@pytest.mark.parametrize(
    "transformed",
    [
        lambda boxes: torch.vmap(lambda each: call(anchors=each)[0])(boxes[None]),
        lambda boxes: torch.func.grad(lambda x: x.sum() + call(anchors=x)[1].sum())(boxes),
        lambda boxes: torch.func.jvp(lambda x: call(anchors=x)[1], (boxes,), (boxes,)),
    ],
    ids=["vmap", "grad", "jvp"],
)
def test_function_transforms_are_refused(transformed: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^max_iou_match: the transforms of torch\.func "):
        transformed(ANCHORS)


# --- Errors ---


ANCHORS, TARGET, GOOD = random_boxes(6, 1), random_boxes(9, 2), torch.tensor(OFFSETS)
BAD_OFFSETS = {
    r"offsets\[3\] is 10; it must lie in \[0, 9\]": [1, 3, 3, 10],
    r"offsets\[0\] is -1; it must lie in \[0, 9\]": [-1, 1, 1, 8],
    r"offsets\[1\] is 4294967296; it must lie in \[0, 9\]": [0, 2**32, 2**32, 2**32 + 1],
    r"offsets\[2\] is 3, less than offsets\[1\], which is 4; offsets must not d": [0, 4, 3, 9],
}
NO_THRESHOLDS = "; low must not be more than high, and neither NaN"
# What is changed, and what the error says.
ERRORS: list[tuple[type[Exception], dict[str, Any], str]] = [
    (TypeError, {"anchors": ANCHORS.long()}, "anchors is int64; it must be float64, float32, "),
    (TypeError, {"anchors": ANCHORS.tolist()}, "anchors is list; it must be a tensor"),
    (TypeError, {"target": [TARGET]}, "target is list; it must be a tensor"),
    (TypeError, {"target": TARGET.bool()}, "target is bool; it must be float64, float32, "),
    (TypeError, {"offsets": OFFSETS}, "offsets is list; it must be a tensor"),
    (TypeError, {"offsets": GOOD.short()}, "offsets is int16; it must be int32 or int64"),
    (ValueError, {"anchors": ANCHORS[0]}, r"anchors has shape \[4\]; it must be \(A, 4\) or \(im"),
    (
        ValueError,
        {"anchors": ANCHORS[None, None]},
        r"anchors has shape \[1, 1, 6, 4\]; it must be ",
    ),
    (ValueError, {"anchors": ANCHORS[:, :3]}, r"anchors has shape \[6, 3\]; its last dimension m"),
    (ValueError, {"target": TARGET[None]}, r"target has shape \[1, 9, 4\]; it must be \(boxes of "),
    (ValueError, {"target": TARGET.T}, r"target has shape \[4, 9\]; its last dimension must be 4"),
    (ValueError, {"offsets": GOOD[None]}, r"offsets has shape \[1, 4\]; it must be \(images \+ 1"),
    (ValueError, {"offsets": GOOD[:0]}, r"offsets has shape \[0\]; it must be \(images \+ 1\)"),
    (
        ValueError,
        {"anchors": ANCHORS.expand(4, 6, 4)},
        r"offsets has shape \[4\]; it must be \[5\], one more than anchors has images",
    ),
    (ValueError, {"low": 0.8}, f"low is 0.8 and high 0.7{NO_THRESHOLDS}"),
    (ValueError, {"high": math.nan}, f"low is 0.3 and high nan{NO_THRESHOLDS}"),
    (ValueError, {"min_pos_iou": math.nan}, "min_pos_iou is NaN; it must be a number"),
    (
        ValueError,
        {"low_quality": "all"},
        "low_quality is 'all'; allowed: 'none', 'argmax', 'overwrite', 'force'",
    ),
    (RuntimeError, {"target": TARGET.to("meta")}, "target is on meta, anchors is on cpu; all must"),
    (RuntimeError, {"offsets": GOOD.to("meta")}, "offsets is on meta, anchors is on cpu; all mu"),
    (ValueError, {"anchors": ANCHORS.to_sparse()}, "anchors is Sparse; it must be dense"),
    (ValueError, {"target": TARGET.to_sparse()}, "target is Sparse; it must be dense"),
    *((ValueError, {"offsets": torch.tensor(bad)}, text) for text, bad in BAD_OFFSETS.items()),
]


@pytest.mark.parametrize(("error", "changed", "text"), ERRORS)
def test_errors(error: type[Exception], changed: dict[str, Any], text: str) -> None:
    with pytest.raises(error, match=f"^max_iou_match: {text}"):
        call(**changed)


@pytest.mark.parametrize("offsets", BAD_OFFSETS.values())
def test_bad_offsets_give_nothing_on_a_gpu(offsets: list[int]) -> None:
    gpu = device_or_skip("cuda")
    for each in (torch.tensor(offsets), torch.tensor(offsets, device=gpu)):
        result = call(
            anchors=ANCHORS.to(gpu), target=TARGET.to(gpu), offsets=each, low_quality="argmax"
        )
        assert (result.target_index == -1).all()
        assert (result.iou == 0).all()
