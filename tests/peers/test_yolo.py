# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""boxloss.torch.compat.yolo beside Ultralytics' own criterion, of YOLO11's kind and of YOLO26's.

In double, but that a score is stored as a float32, and all of them are added up in one. The study
of detectors has the same criteria in float32, and holds both to one truth.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from combinations import long_but
from small_yolos import KINDS, random_batch, small_model
from surroundings import DEVICES, assert_reads_nothing, default_dtype, moved, waits
from torch import Tensor
from torch.utils._pytree import keystr, tree_leaves_with_path, tree_map_only

from benchmarks.common.losses import isolate_ultralytics
from benchmarks.studies.detectors.criteria import compat_with

isolate_ultralytics()
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat import yolo as ours
from boxloss.torch.compat.ultralytics_models import heads as heads_of
from ultralytics.utils import loss as theirs
from ultralytics.utils import tal

from examples import yolo
from examples.training import Replace, keep

# A pair's share of all scores: of two scores one rounding each, and of their sum 11, for torch adds
# up at most 320 numbers of an image, and images, by halves. A product and a quotient have one each.
ROUNDING = 2.0**-24
SHARE = 15 * ROUNDING
# The losses of masks and keypoints wait.
DETECTORS = [kind for kind in KINDS if "seg" not in kind and "pose" not in kind]
# Images without boxes among others, all of them, and so many boxes that anchors have several.
COUNTS = ((3, 0, 5), (0, 0), (1,), (0, 40, 2))

Named = dict[str, Tensor]


@pytest.fixture
def without_eps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs has boxes in cells, and adds eps to heights as well. With 1e-14 on both sides that
    drowns in ROUNDING. Their assigner keeps its own. Only theirs has one in ProbIoU, also in the
    assigner; beside the square of a loss above 1e-3 it drowns, too."""
    monkeypatch.setattr(theirs, "bbox_iou", partial(theirs.bbox_iou, eps=1e-14))
    monkeypatch.setattr(ours, "ciou_loss", partial(ours.ciou_loss, eps=1e-14))
    for each in (theirs, tal):
        monkeypatch.setattr(each, "probiou", partial(each.probiou, eps=1e-14))


def run(
    replace: Replace,
    kind: str,
    counts: tuple[int, ...],
    seed: int,
    device: str,
    dtype: torch.dtype | None = None,
    **settings: Any,
) -> tuple[Named, Named]:
    """Losses, and their sum's gradients by what heads predict: of that dtype, as float16 has it.
    Settings are the assigners'."""
    torch.manual_seed(seed)
    model = small_model(kind).train()
    replace(model)
    batch = random_batch(counts, kind)
    batch["img"] = batch["img"][..., :96]  # not as wide as high
    preds = tree_map_only(Tensor, lambda each: each.detach(), model(batch["img"]))
    if dtype is not None:
        preds = tree_map_only(Tensor, lambda each: each.half().to(dtype), preds)
    preds, batch = moved(preds, device), moved(batch, device)
    named = {keystr(path): each for path, each in tree_leaves_with_path(preds)}
    leaves = {name: each for name, each in named.items() if "feats" not in name}
    for leaf in leaves.values():
        leaf.requires_grad_()
    criterion = model.to(device).init_criterion()
    for head in heads_of(criterion, theirs.v8DetectionLoss):
        vars(head.assigner).update(settings)
    losses, items = criterion(preds, batch)
    losses.sum().backward()
    if isinstance(items, Tensor):  # until 8.4.104
        items = dict(zip(("box_loss", "cls_loss", "dfl_loss"), items, strict=True))
    gradients = {
        name: torch.zeros_like(each) if each.grad is None else each.grad  # older ones had none
        for name, each in leaves.items()
    }
    return {"losses": losses.detach(), **items}, gradients


def assert_same(
    original: tuple[Named, Named], replaced: tuple[Named, Named], counts: tuple[int, ...]
) -> None:
    assert original[0].keys() == replaced[0].keys()
    assert (original[0]["box_loss"] > 0) == any(counts)
    for name, wanted in original[0].items():
        torch.testing.assert_close(replaced[0][name], wanted, rtol=SHARE, atol=0)
    for name, wanted in original[1].items():
        # A class' gradient is sigmoid - score, over the sum of scores: of the score, 1 at most.
        has_no_class = "boxes" in name or "angle" in name
        over = 0 if has_no_class else 0.5 * len(counts) * ROUNDING
        torch.testing.assert_close(replaced[1][name], wanted, rtol=SHARE, atol=over)
    assert any(each.any() for each in original[1].values())


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", long_but(range(3), [0]))
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients(kind: str, counts: tuple[int, ...], seed: int, device: str) -> None:
    with default_dtype(torch.float64):
        ways = (run(each, kind, counts, seed, device) for each in (keep, use_boxloss))
        assert_same(*ways, counts)


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("kind", DETECTORS)
def test_weights_of_classes(kind: str) -> None:
    def weighted(replace: Replace, model: Any) -> None:
        model.class_weights = torch.linspace(0.5, 2, model.model[-1].nc)
        replace(model)

    with default_dtype(torch.float64):
        plain, *ways = (
            run(each, kind, COUNTS[0], 0, "cpu")
            for each in (keep, partial(weighted, keep), partial(weighted, use_boxloss))
        )
        assert plain[0]["cls_loss"] != ways[0][0]["cls_loss"]
        assert_same(*ways, COUNTS[0])


SETTINGS: tuple[dict[str, Any], ...] = (
    {"topk": 13, "alpha": 1.0},
    {"topk": 1},
    {"topk": 10, "topk2": 1, "beta": 4.0},
)


@pytest.mark.usefixtures("without_eps")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("counts", long_but(COUNTS, COUNTS[:1]), ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", DETECTORS)
def test_settings_that_no_yolo_has(
    kind: str, settings: dict[str, Any], counts: tuple[int, ...], device: str
) -> None:
    """Losses and gradients are others where one anchor has another box."""
    with default_dtype(torch.float64):
        ways = (run(each, kind, counts, 0, device, **settings) for each in (keep, use_boxloss))
        assert_same(*ways, counts)


@pytest.mark.parametrize("kind", DETECTORS)
def test_halves_lose_no_more_than_the_originals(kind: str) -> None:
    half = torch.float16
    exact, *ways = (
        run(replace, kind, COUNTS[0], 1, "cpu", dtype)[1]
        for replace, dtype in ((keep, torch.float64), (keep, half), (use_boxloss, half))
    )
    theirs, ours = (
        sum(((each[name] - wanted) / wanted.norm()).norm() for name, wanted in exact.items())
        for each in ways
    )
    assert ours <= theirs


def lossmaker(kind: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """boxloss' criterion as a function of all tensors that it has or is given, and these."""
    model = small_model(kind)
    use_boxloss(model)
    batch = random_batch((3, 0, 5), kind)
    criterion = model.init_criterion()
    heads = heads_of(criterion, theirs.v8DetectionLoss)

    def step(preds: Any, batch: Named, state: list[Named]) -> Tensor:
        for head, its in zip(heads, state, strict=True):
            vars(head).update(its, device=batch["cls"].device)
        return criterion(preds, batch)[0].sum()

    state = [
        {name: each for name, each in vars(head).items() if isinstance(each, Tensor)}
        for head in heads
    ]
    return step, {"preds": model(batch["img"]), "batch": batch, "state": state}


@pytest.mark.parametrize("kind", DETECTORS)
def test_reads_nothing_on_the_host(kind: str) -> None:
    step, arguments = lossmaker(kind)
    assert_reads_nothing(step, on="cuda", **arguments)


@pytest.mark.parametrize("kind", [kind for kind in DETECTORS if "11" in kind])
def test_anchors_without_a_box_may_predict_anything(kind: str) -> None:
    step, arguments = lossmaker(kind)
    right = step(**arguments)
    preds = tree_map_only(Tensor, Tensor.detach, arguments["preds"])
    boxes = preds["boxes"] if isinstance(preds, dict) else preds[0]
    boxes[1, : 4 * yolo.SMALL["reg_max"]] = torch.nan
    if "obb" in kind:
        preds["angle"][1] = torch.nan
    assert step(**{**arguments, "preds": preds}) == right


def test_a_grid_is_kept_until_maps_or_strides_change() -> None:
    maps = [torch.zeros(1, 1, 4, 6), torch.zeros(1, 1, 2, 3)]
    stride = torch.tensor([8.0, 16.0])
    with torch.inference_mode():  # as in a validation
        first = ours.grid(maps, stride)
    assert not first.table.is_inference()
    assert ours.grid(maps, stride) is first
    for changed in ([maps[0].mT, maps[1].mT], [each.half() for each in maps]):
        assert_same_grid(ours.grid(changed, stride), ours.make_grid(changed, stride))
    ours.grid(maps, stride)
    stride *= 2
    assert_same_grid(ours.grid(maps, stride), ours.make_grid(maps, stride))


def assert_same_grid(one: ours.Grid, other: ours.Grid) -> None:
    assert all(torch.equal(*each) for each in zip(one, other, strict=True))
    assert one.cells.dtype == other.cells.dtype


def test_sides_as_long_as_no_bin() -> None:
    criterion = small_model("11").init_criterion()
    bins = criterion.reg_max
    sides = torch.randn(4 * bins, 6, dtype=torch.float64)
    wanted = torch.tensor([-0.5, 0.0, bins - 1.995, bins - 1.0, bins, 99.0]).double().expand(4, 6)
    weight = torch.rand(6, dtype=torch.float64)
    packed = sides.T.reshape(-1, bins)
    each = criterion.bbox_loss.dfl_loss(packed, wanted.T.clone()).squeeze(-1)
    own = ours.focal_loss(criterion, sides, wanted, weight / 4)
    torch.testing.assert_close(own, each @ weight)


def test_each_copy_calls_its_own_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study's, where the criterion was not imported before."""
    monkeypatch.delitem(sys.modules, ours.__name__)
    monkeypatch.delattr(ours.__name__)
    copies = (compat_with("yolo", {"class_loss": name}).yolo for name in ("one", "other"))
    assert [each.class_loss for each in copies] == ["one", "other"]


if torch.cuda.is_available():

    @pytest.mark.parametrize("kind", DETECTORS)
    def test_never_waits(kind: str) -> None:
        step, arguments = lossmaker(kind)
        arguments = {name: moved(each, "cuda") for name, each in arguments.items()}
        assert waits(lambda: step(**arguments).backward()) == 0
