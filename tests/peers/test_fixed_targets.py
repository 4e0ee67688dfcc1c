# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth in fixed shapes: the same losses, in one graph for all numbers of boxes."""

from typing import Any

import pytest
import torch
from boxloss.torch.compat import FixedTargets
from boxloss.torch.compat.denoising import denoising_pairs
from boxloss.torch.compat.faults import GroundTruth
from criteria import arguments_of, assert_close, made, run
from detr_cases import CLASSES, QUERIES
from surroundings import assert_reads_nothing
from test_detr import CRITERIA, REPLACED
from torch import nn
from transformers.models.rt_detr.modeling_rt_detr import get_contrastive_denoising_training_group

from examples.rt_detr_compiled import denoising_queries

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
    labels = FixedTargets.of(arguments.pop("labels"), ROWS)
    assert_reads_nothing(of.ours, config=of.config(**of.options[0]), labels=labels, **arguments)


@each_criterion
def test_compiles_once_for_all_counts(name: str) -> None:
    of = CRITERIA[name]
    config = of.config(**of.options[0])
    compilations = 0

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        nonlocal compilations
        compilations += 1
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(of.ours, backend=backend, fullgraph=True)
    for counts in (COUNTS, (5, 2, 1), (0, 0, 0)):
        arguments = arguments_of(of, made(of, counts, groups=0))
        arguments["labels"] = FixedTargets.of(arguments["labels"], ROWS)
        wanted, _, _ = of.ours(config=config, **arguments)
        total, _, _ = compiled(config=config, **arguments)
        assert_close({"total": total}, {"total": wanted})
    assert compilations == 1


def test_denoising_queries_are_the_originals() -> None:
    labels = made(CRITERIA["RT-DETR"], COUNTS).labels
    for each in labels:
        each["boxes"] = each["boxes"].float()
    embed = nn.Embedding(CLASSES + 1, 4)
    options = CLASSES, QUERIES, embed, 20, 0.5, 1.0
    torch.manual_seed(0)
    *wanted, about = get_contrastive_denoising_training_group(labels, *options)
    torch.manual_seed(0)
    *ours, same = denoising_queries(FixedTargets.of(labels, ROWS), *options, most=max(COUNTS))
    for one, other in zip(ours, wanted, strict=True):
        assert torch.equal(one, other)
    assert all(about[name] == value for name, value in same.items())


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


def test_those_made_by_hand() -> None:
    of = CRITERIA["DETR"]
    config, arguments = of.config(**of.options[0]), arguments_of(of, made(of, COUNTS))
    fixed = FixedTargets.of(arguments.pop("labels"), ROWS)

    def total(labels: FixedTargets) -> Any:
        return of.ours(config=config, labels=labels, **arguments)[0]

    with pytest.raises(ValueError, match=f"targets has {ROWS - 1} class_labels, {ROWS} boxes"):
        total(fixed._replace(class_labels=fixed.class_labels[1:]))
    fixed.class_labels[8:] = -1
    with pytest.raises(ValueError, match=r"class_labels: row 8, padding, which must be 0 .* is -1"):
        total(fixed)
    fixed.class_labels[8:] = 0
    behind = [each.roll(ROWS - 8, 0) for each in fixed[:2]]
    moved = total(FixedTargets(*behind, fixed.offsets + ROWS - 8))
    assert moved == pytest.approx(total(fixed).item(), rel=1e-6)


def test_grounding_dino_wants_each_image() -> None:
    of = CRITERIA["Grounding DINO"]
    arguments = arguments_of(of, made(of))
    arguments["labels"] = FixedTargets.of(arguments["labels"], ROWS)
    with pytest.raises(ValueError, match="must be a dictionary for each image"):
        of.ours(config=of.config(), **arguments)
