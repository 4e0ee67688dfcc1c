# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What RF-DETR's criterion alone is given, and its trainings; the rest is a row of test_detr.py."""

import copy
import csv
import pickle
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from boxloss.torch.compat import has_boxloss, use_boxloss
from boxloss.torch.compat.families import rf_detr
from boxloss.torch.compat.families.rf_detr import Criterion
from criteria import Case, Modules, arguments_of, assert_close, made, run
from detr_cases import QUERIES
from rf_detr import GROUPS, RF_DETR, both
from rfdetr import RFDETRKeypointPreview, RFDETRNano, RFDETRSegNano
from rfdetr.detr import RFDETR
from rfdetr.utilities.tensors import pad_targets_to_fixed_count
from surroundings import assert_reads_nothing
from test_yolo_trainer import data_set
from torch import Tensor
from torch.utils._pytree import tree_leaves
from ultralytics.utils import YAML

from examples.training import Replace, keep

Given = dict[str, Any]


def assert_same(
    case: Case, change: Callable[[Given], Given] = lambda given: given, in_training: bool = True
) -> None:
    """With other arguments."""
    config = both(in_training, ia_bce_loss=True)

    def results(criterion: Any) -> Any:
        def changed(config: Any, **given: Any) -> Any:
            return criterion(config, **change(given))

        return run(RF_DETR, changed, case, config, torch.float64)

    for theirs, ours in zip(results(RF_DETR.theirs), results(RF_DETR.ours), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("number", [7, torch.tensor(2.5)], ids=str)
def test_a_number_of_boxes(number: Any) -> None:
    assert_same(made(RF_DETR), lambda given: {**given, "num_boxes": number})


def test_a_number_of_boxes_in_a_list() -> None:
    """With which the original's losses have a dimension."""
    given = arguments_of(RF_DETR, made(RF_DETR))
    config = both(ia_bce_loss=True)
    totals = [
        RF_DETR.ours(config, **given, num_boxes=number)[0] for number in (2.5, torch.tensor([2.5]))
    ]
    assert torch.equal(*totals)
    with pytest.raises(ValueError, match=r"num_boxes has shape \(2,\); it must have one element"):
        RF_DETR.ours(config, **given, num_boxes=torch.ones(2))


def padded(given: Given, rows: int = 6) -> Given:
    return {**given, "targets": [*pad_targets_to_fixed_count(given["targets"], rows)]}


@pytest.mark.parametrize("rows", [6, QUERIES + 5])
@pytest.mark.parametrize("counts", [(3, 0, 5), (0, 0)], ids=str)
@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
def test_padded_targets(in_training: bool, counts: tuple[int, ...], rows: int) -> None:
    assert_same(made(RF_DETR, counts), lambda given: padded(given, rows), in_training)


def test_padded_targets_are_not_read_on_the_host() -> None:
    given = padded(arguments_of(RF_DETR, made(RF_DETR)))
    assert_reads_nothing(RF_DETR.ours, config=both(ia_bce_loss=True), **given)


def test_an_encoder_with_fewer_places_than_queries() -> None:
    case = made(RF_DETR)
    for name in ("scores_enc", "boxes_enc"):
        case.values[name] = case.values[name][:, : GROUPS * 4].clone()
    assert_same(case)


def test_another_head_for_the_encoder() -> None:
    case = made(RF_DETR)
    case.values["scores_enc"] = torch.cat((case.values["scores_enc"],) * 2, -1)
    assert_same(case)


def test_classes_that_the_criterion_does_not_have() -> None:
    case, config = made(RF_DETR), both(use_varifocal_loss=True)
    config.ours.num_classes = 7
    with pytest.raises(ValueError, match=r"have 5 classes, criterion\.num_classes is 7"):
        RF_DETR.ours(config, **arguments_of(RF_DETR, case))


def test_points() -> None:
    case = made(RF_DETR)
    point = torch.tensor([0.5, 0.5, 0, 0])
    for name, values in case.values.items():
        if "boxes" in name:
            values[:] = point
    for each in case.labels:
        each["boxes"][:] = point
    assert_same(case)


# --- Masks ---


def masks_of(
    counts: tuple[int, ...], in_training: bool = True, of_encoder: int = 10
) -> tuple[Modules, Given]:
    """Both criteria, and what they are given; of the encoder so many of a group's ten queries."""
    modules = both(losses=(*rf_detr.LOSSES, "masks"), ia_bce_loss=True)
    given = rf_detr.made_up(modules.theirs, in_training, counts)
    encoder = given["outputs"]["enc_outputs"]
    masks = encoder["pred_masks"]
    owners = [(encoder, name) for name in rf_detr.OUTPUTS]
    owners.append((masks, "query_features") if in_training else (encoder, "pred_masks"))
    for owner, name in owners:
        own = owner[name].shape[1] // 10 * of_encoder
        owner[name] = owner[name][:, :own].detach().requires_grad_()
    return modules, given


@pytest.mark.parametrize("in_training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize(
    ("counts", "of_encoder"),
    [((2, 0, 5), 10), ((0, 0), 10), ((13, 1), 10), ((2, 0, 5), 4)],
    ids=str,
)
def test_masks(counts: tuple[int, ...], of_encoder: int, in_training: bool) -> None:
    """At the points of one seed, which both leave alike."""
    modules, given = masks_of(counts, in_training, of_encoder)
    leaves = [each for each in tree_leaves(given) if isinstance(each, Tensor)]
    leaves = [each for each in leaves if each.requires_grad]

    def results(criterion: Any) -> list[Any]:
        losses = rf_detr.losses_of(criterion, **given)
        gradients = torch.autograd.grad(sum(losses.values()), leaves, materialize_grads=True)
        return [losses, torch.rand(1), *(each / (each.norm() + 1e-30) for each in gradients)]

    theirs, ours = map(results, modules)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=2e-6)


def test_masks_that_are_refused() -> None:
    modules, given = masks_of((2, 0, 5))
    targets = given["targets"]
    for changed, told in (
        ([{**each, "valid": each["labels"] >= 0} for each in targets], "targets are padded"),
        ([{**targets[0], "masks": torch.zeros(2, 8, 8)}, *targets[1:]], "must be the same"),
        ([*targets[:2], {**targets[2], "masks": torch.full((5, 40, 40), torch.nan)}], "not finite"),
    ):
        with pytest.raises(ValueError, match=told):
            rf_detr.losses_of(modules.ours, **{**given, "targets": changed})


# --- RFDETRNano() and its relatives ---


def detector(kind: type[RFDETR] = RFDETRNano) -> RFDETR:
    """Without its network."""
    model = kind.__new__(kind)
    model.model_config = model.get_model_config(pretrain_weights=None)
    return model


@pytest.mark.parametrize("kind", [RFDETRNano, RFDETRSegNano])
def test_a_detector(kind: type[RFDETR]) -> None:
    model = detector(kind)
    replaced = use_boxloss(model)
    assert list(replaced.names) == [f"rfdetr.variants.{kind.__name__}.train"]
    assert has_boxloss(model)
    assert has_boxloss(copy.deepcopy(model))
    assert not has_boxloss(pickle.loads(pickle.dumps(model)))
    with pytest.raises(ValueError, match="boxloss already"):
        use_boxloss(model)
    replaced.restore()
    assert type(model) is kind


def test_a_detector_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = detector()
    monkeypatch.setattr(Criterion, "forward", lambda *_, **__: {})
    with pytest.raises(ValueError, match="boxloss is not the criterion of this RFDETRNano"):
        use_boxloss(model)
    assert not has_boxloss(model)


@pytest.mark.parametrize("check", [True, False])
def test_keypoints(check: bool) -> None:
    with pytest.raises(ValueError, match="not for keypoints"):
        use_boxloss(detector(RFDETRKeypointPreview), check=check)


def test_a_train_of_the_users_own() -> None:
    with pytest.raises(ValueError, match="has a train of its own"):
        use_boxloss(detector(type("Own", (RFDETRNano,), {"train": keep})))


def test_a_train_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RFDETR, "train", lambda self: None)
    with pytest.raises(ValueError, match=r"train\(\) does not import build_trainer"):
        use_boxloss(detector())


PROCESSES = {"auto": 1, "ddp_spawn": 2}
RESOLUTIONS: dict[type[RFDETR], int] = {RFDETRNano: 64, RFDETRSegNano: 96}
TRAININGS = [(RFDETRNano, "auto"), (RFDETRNano, "ddp_spawn"), (RFDETRSegNano, "auto")]
# Losses are within 4e-7 (proof.py); each of five steps at most doubles what is apart.
APART = 2**5 * 4e-7


if find_spec("pytorch_lightning") is not None:  # which tools/test_older_peers alone has

    @pytest.mark.long
    @pytest.mark.parametrize(("kind", "strategy"), TRAININGS)
    def test_trains(
        kind: type[RFDETR], strategy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """An epoch of RF-DETR's own trainer; each of its processes says what it replaces."""
        for split in ("train", "valid"):
            (tmp_path / split).mkdir()
            data_set(tmp_path / split, "seg" if kind is RFDETRSegNano else "")
        YAML.save(tmp_path / "data.yaml", {"names": [*"abcde"]})
        options = {
            "dataset_dir": str(tmp_path),
            "dataset_file": "yolo",
            "epochs": 1,
            "batch_size": 2,
        }
        options |= {"device": "cpu", "strategy": strategy, "devices": PROCESSES[strategy]}
        options |= {"num_workers": 0, "multi_scale": False, "tensorboard": False, "seed": 0}
        options |= {
            "compute_val_loss": True,
            "eval_backend": "faster_coco_eval",
            "optimizer": "sgd",
        }

        def losses(replace: Replace) -> dict[str, float]:
            torch.manual_seed(0)
            folder = tmp_path / replace.__name__
            model = kind(
                pretrain_weights=None, resolution=RESOLUTIONS[kind], num_queries=20, num_select=20
            )
            replaced = replace(model)
            model.train(output_dir=str(folder), **options)
            count = PROCESSES[strategy] if replaced else 0
            assert capfd.readouterr().out.count("rf_detr.Criterion for rfdetr") == count
            cells = (row.items() for row in csv.DictReader((folder / "metrics.csv").open()))
            return {
                name: float(each) for row in cells for name, each in row if "loss" in name and each
            }

        theirs, ours = losses(keep), losses(use_boxloss)
        assert len({name.partition("/")[0] for name in theirs}) == 2  # of training and validation
        assert ours == pytest.approx(theirs, rel=APART)
