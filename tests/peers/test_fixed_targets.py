# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth in fixed shapes: the same losses, in one graph for all numbers of boxes."""

from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from boxloss.torch.compat import FixedTargets, collate_fixed, has_boxloss, pad_batch, use_boxloss
from boxloss.torch.compat.denoising import NAME, denoising_pairs
from boxloss.torch.compat.faults import GroundTruth
from criteria import arguments_of, assert_close, made, run
from models import MODELS, batch_of, project_of
from models import made as made_model
from small_detrs import SMALL
from small_masks import SMALL as WITH_MASKS
from small_yolos import KINDS
from surroundings import assert_reads_nothing
from test_detr import CRITERIA, REPLACED
from torch._dynamo.testing import CompileCounter
from torch.utils.data import DataLoader
from transformers.models.rt_detr import modeling_rt_detr

from examples import detr, rt_detr, training

ROWS = 20
COUNTS = (3, 0, 5)
# Of transformers. Grounding DINO's labels are read image by image, and these refused.
NAMES = [n for n in REPLACED if CRITERIA[n].arguments is None and n != "Grounding DINO"]
each_criterion = pytest.mark.parametrize("name", NAMES)


@each_criterion
@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("counts", [COUNTS, (0, 0), (8, 12)])
def test_losses_and_gradients(name: str, groups: int, counts: tuple[int, ...]) -> None:
    of = CRITERIA[name]
    groups = min(groups, of.groups[-1])
    case, config = made(of, counts, groups), of.config(**of.options[0])
    wanted = run(of, of.ours, case, config, torch.float64)

    def criterion(labels: Any, **options: Any) -> Any:
        return of.ours(labels=FixedTargets.of(labels, ROWS), **options)

    ours = run(of, criterion, case, config, torch.float64)
    for one, other in zip(ours, wanted, strict=True):
        assert_close(one, other)


@each_criterion
def test_reads_nothing_on_the_host(name: str) -> None:
    of = CRITERIA[name]
    arguments = arguments_of(of, made(of))
    labels = [*FixedTargets.of(arguments.pop("labels"), ROWS)]

    def criterion(labels: Any, **options: Any) -> Any:
        return of.ours(labels=FixedTargets(*labels), **options)

    assert_reads_nothing(criterion, config=of.config(**of.options[0]), labels=labels, **arguments)


def compile_counter() -> CompileCounter:
    torch.compiler.reset()
    return CompileCounter()


@each_criterion
def test_compiles_once_for_all_counts(name: str) -> None:
    of = CRITERIA[name]
    config = of.config(**of.options[0])
    graphs = compile_counter()
    compiled = torch.compile(of.ours, backend=graphs, fullgraph=True)
    for counts in (COUNTS, (5, 2, 1), (0, 0, 0)):
        arguments = arguments_of(of, made(of, counts, groups=0))
        arguments["labels"] = FixedTargets.of(arguments["labels"], ROWS)
        wanted, _, _ = of.ours(config=config, **arguments)
        total, _, _ = compiled(config=config, **arguments)
        assert_close({"total": total}, {"total": wanted})
    assert graphs.frame_count == 1


FIXED = [name for name in SMALL if "Grounding" not in name]
PADDED = [f"YOLO{kind}" for kind in KINDS if kind in ("11", "26") or "obb" in kind]
IN_LISTS = [name for name in MODELS if name not in (*FIXED, *PADDED, *WITH_MASKS, "RF-DETR")]
OPTIONS = [{"num_denoising": 10}, {"label_noise_ratio": 0.0}, {"box_noise_scale": 0.0}]


@pytest.mark.parametrize(
    ("name", "options"), [(name, {}) for name in FIXED] + [("RT-DETR", each) for each in OPTIONS]
)
def test_a_model_gives_the_same(name: str, options: dict[str, float]) -> None:
    """Where an image has as many boxes as the limit: so do denoising queries and their order of
    random numbers."""
    model, batch, most = made_model(name), batch_of(name), max(COUNTS)
    for option, value in options.items():
        setattr(model.config, option, value)

    def losses(labels: Any) -> dict[str, float]:
        torch.manual_seed(0)
        found = model(**{**batch, "labels": labels}).loss_dict
        return {name: each.item() for name, each in found.items()}

    expected = pytest.approx(losses(batch["labels"]), rel=1e-5, abs=1e-6)
    replaced = use_boxloss(model, max_boxes=most)
    fixed = FixedTargets.of(batch["labels"], max_boxes=most)
    wide = FixedTargets(fixed.boxes.double(), fixed.class_labels, fixed.offsets)
    for given in (fixed, wide, batch["labels"]):
        assert losses(given) == expected
    replaced.restore()
    if getattr(model.config, "num_denoising", 0):
        with pytest.raises(ValueError, match="takes them by use_boxloss"):
            losses(fixed)


@pytest.mark.parametrize("name", PADDED)
def test_a_yolo_gives_the_same(name: str) -> None:
    model, batch = made_model(name), batch_of(name)
    use_boxloss(model, max_boxes=max(COUNTS))
    wanted, _ = model(batch)
    for most in (max(COUNTS), 3 * max(COUNTS)):
        ours, _ = model(pad_batch(batch, max_boxes=most))
        torch.testing.assert_close(ours, wanted)
    for changed, error in (
        ({"batch_idx": batch["batch_idx"] + 1}, r"batch_idx\[3\] is 3.*; it must lie in \[0, 3\)"),
        ({"cls": batch["cls"][1:]}, "batch_idx, cls and bboxes have 8, 7 and 8 rows"),
        ({"offsets": torch.zeros(4)}, "it has fixed shapes already"),
        ({}, "image 2 has 5 boxes; max_boxes is 4"),
    ):
        with pytest.raises(ValueError, match=error):
            pad_batch({**batch, **changed}, max_boxes=4)
    largest = batch["bboxes"][3:, 2:4].prod(1).topk(2).indices.sort().values + 3
    kept = pad_batch(batch, max_boxes=2, drop_smallest=True)
    assert torch.equal(kept["bboxes"][2:4], batch["bboxes"][largest])
    assert kept["offsets"].tolist() == [0, 2, 2, 4]
    with pytest.raises(ValueError, match="a label must lie in"):
        pad_batch({**batch, "cls": batch["cls"] + 9}, max_boxes=9, num_classes=9)


def test_rfdetr_pads_targets_itself() -> None:
    """With "valid", which is compared before the criterion is replaced."""
    model = made_model("RF-DETR")
    use_boxloss(model, max_boxes=9)
    assert has_boxloss(model)


@pytest.mark.parametrize("name", IN_LISTS)
def test_lists_alone(name: str) -> None:
    model = made_model(name)
    with pytest.raises(ValueError, match=r"max_boxes is 9; .* takes ground truth as lists alone"):
        use_boxloss(model, max_boxes=9)
    assert not has_boxloss(model)


@pytest.mark.long
@pytest.mark.parametrize("name", ["DETR", "RT-DETR", "YOLO11"])
def test_a_model_is_compiled_once(name: str) -> None:
    """For twenty batches of other counts, images without boxes among them. A YOLO has its criterion
    from the second step on."""
    graphs, counted = compile_counter(), []
    model, project = made_model(name), project_of(name)
    use_boxloss(model, max_boxes=4, denoising_boxes=2)
    compiled = torch.compile(model, backend=graphs)
    for step in range(20):
        batch = project.batch((step % 5, step % 3, 0))
        if "labels" in batch:
            batch["labels"] = FixedTargets.of(batch["labels"], max_boxes=4)
        else:
            batch = pad_batch(batch, max_boxes=4)
        project.loss(compiled, batch).backward()
        counted.append(graphs.frame_count)
    assert counted[1:] == [counted[1]] * 19
    assert counted[0] > 0


def test_fewer_boxes_with_denoising_queries() -> None:
    """A limit of 2: five groups of 4 queries; the third box of the first image has none."""
    model = rt_detr.small_model().train()
    use_boxloss(model, max_boxes=4, denoising_boxes=2)
    images, labels = training.transformers_batch((3, 1))
    found = model(pixel_values=images, labels=FixedTargets.of(labels, max_boxes=4))
    about = found.denoising_meta_values
    assert about == {"dn_num_group": 5, "dn_num_split": [20, 30]}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_boxes": 0}, "max_boxes is 0; it must be at least 1"),
        ({"denoising_boxes": 3}, "denoising_boxes is 3; max_boxes must be given, too"),
    ],
)
def test_options_that_are_refused(options: dict[str, int], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        use_boxloss(detr.small_model(), **options)


def test_other_denoising_queries_are_refused() -> None:
    theirs = modeling_rt_detr.get_contrastive_denoising_training_group

    def other(*arguments: Any) -> Any:
        queries, *others = theirs(*arguments)
        return queries * 2, *others

    other.__globals__["inverse_sigmoid"] = modeling_rt_detr.inverse_sigmoid
    model = rt_detr.small_model()
    criterion = model.loss_function
    with (
        patch.object(modeling_rt_detr, NAME, other),
        pytest.raises(ValueError, match=r"other denoising queries than .*test_fixed"),
    ):
        use_boxloss(model, max_boxes=3)
    assert model.loss_function is criterion


def test_batches_of_a_loader() -> None:
    """All boxes fit, or the largest are kept in their order; one tensor holds them."""
    images, labels = training.transformers_batch((3, 0))
    labels[0]["boxes"][:, 2:] = torch.tensor([[0.3, 0.3], [0.1, 0.1], [0.2, 0.2]])
    for each in labels:
        each["masks"] = torch.rand(len(each["boxes"]), 4, 6)
    samples: Any = [
        {"pixel_values": image, "labels": each} for image, each in zip(images, labels, strict=True)
    ]

    def batch(**options: Any) -> Any:
        return next(iter(DataLoader(samples, 2, collate_fn=partial(collate_fixed, **options))))

    with pytest.raises(ValueError, match=r"labels\[0\] has 3 boxes; max_boxes is 2"):
        batch(max_boxes=2)
    found = batch(max_boxes=2, drop_smallest=True)
    assert torch.equal(found["pixel_values"], images)
    moved = found["labels"].to("cpu", non_blocking=True)
    assert torch.equal(moved.masks, torch.cat((labels[0]["masks"][::2], torch.zeros(2, 4, 6))))
    boxes, classes, offsets = moved
    assert torch.equal(boxes, torch.cat((labels[0]["boxes"][::2], torch.zeros(2, 4))))
    assert torch.equal(classes[:2], labels[0]["class_labels"][::2])
    assert offsets.tolist() == [0, 2, 2]
    labels[0]["masks"][2, 1, 1] = torch.inf
    with pytest.raises(ValueError, match="masks: image 0, row 2 has a value that is not finite"):
        batch(max_boxes=3)
    labels[0]["class_labels"][1] = 4
    with pytest.raises(ValueError, match="image 0, row 1 is 4; a label must lie in"):
        batch(max_boxes=3, num_labels=4)


def test_boxes_without_denoising_queries() -> None:
    """In two groups of four queries, two of which have a box; labels of images must be so many."""
    offsets = torch.tensor([0, 3, 4])
    truth = GroundTruth(torch.rand(4, 4), offsets, torch.zeros(4).long(), [], None)
    noise = {"dn_num_split": [8, 9], "dn_num_group": 2, "dn_positive_idx": [torch.arange(4)] * 2}
    target = denoising_pairs(noise, truth, 1)[0]
    assert target.tolist() == [[0, 1, -1, -1] * 2, [3, -1, -1, -1] * 2]
    with pytest.raises(ValueError, match=r"has \[4, 4\] queries .* 2 groups; .* \[3, 1\] boxes"):
        denoising_pairs(noise, truth._replace(counts=[3, 1]), 1)


def test_more_boxes_than_rows() -> None:
    labels = made(CRITERIA["DETR"], COUNTS).labels
    with pytest.raises(ValueError, match="labels has 8 boxes; rows is 7"):
        FixedTargets.of(labels, 7)
    with pytest.raises(TypeError, match=r"^rows is 8\.0; it must be an integer$"):
        FixedTargets.of(labels, 8.0)
    with pytest.raises(TypeError, match="one of rows and max_boxes must be given"):
        FixedTargets.of(labels)


def test_those_made_by_hand() -> None:
    of = CRITERIA["DETR"]
    config, arguments = of.config(**of.options[0]), arguments_of(of, made(of, COUNTS))
    fixed = FixedTargets.of(arguments.pop("labels"), ROWS)

    def total(labels: FixedTargets) -> Any:
        return of.ours(config=config, labels=labels, **arguments)[0]

    with pytest.raises(ValueError, match=r"shapes \(20, 4\), \(19,\) and \(4,\); they must have"):
        FixedTargets(fixed.boxes, fixed.class_labels[1:], fixed.offsets)
    with pytest.raises(TypeError, match=r"boxes is torch\.int64; it must be a float"):
        FixedTargets(fixed.boxes.long(), fixed.class_labels, fixed.offsets)
    fixed.class_labels[8:] = -1
    with pytest.raises(ValueError, match=r"class_labels: row 8, padding, which must be 0 .* is -1"):
        total(fixed)
    fixed.class_labels[8:] = 0
    behind = [each.roll(ROWS - 8, 0) for each in (fixed.boxes, fixed.class_labels)]
    moved = total(FixedTargets(*behind, fixed.offsets + ROWS - 8))
    assert moved == pytest.approx(total(fixed).item(), rel=1e-6)


def test_grounding_dino_wants_each_image() -> None:
    of = CRITERIA["Grounding DINO"]
    arguments = arguments_of(of, made(of))
    arguments["labels"] = FixedTargets.of(arguments["labels"], ROWS)
    with pytest.raises(ValueError, match="must be a dictionary for each image"):
        of.ours(config=of.config(), **arguments)
