# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""use_boxloss compares both criteria before it replaces one, and leaves nothing behind."""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
import torch
from boxloss.torch.compat import proof, use_boxloss
from models import MODELS, Operators, calls, each_model, loss, made
from torch import Tensor, distributed, nn
from torchvision.models.detection._utils import Matcher
from torchvision.models.detection.ssd import SSD
from torchvision.ops import boxes as boxes_of_torchvision
from transformers.loss import loss_for_object_detection, loss_rt_detr
from ultralytics import YOLO
from ultralytics.cfg import get_cfg
from ultralytics.models.utils.ops import HungarianMatcher
from ultralytics.nn import tasks
from ultralytics.utils import loss as loss_of_ultralytics
from ultralytics.utils import tal

from examples import fcos


@each_model
def test_compares_both(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are ten times nearer to each other than is asked."""
    model = made(name)
    monkeypatch.setattr(proof, "CLOSE", proof.CLOSE / 10)
    with Operators() as operators:
        use_boxloss(model)
    assert operators.names


FAMILIES = {
    path.parent.name: path.name
    for path in sorted((Path(tasks.__file__).parents[1] / "cfg" / "models").glob("*/yolo*.yaml"))
    if re.fullmatch(r"yolov?\d+[a-z]?\.yaml", path.name)  # of boxes
}


@pytest.mark.parametrize("family", FAMILIES)
def test_compares_both_in_each_family_of_ultralytics(family: str) -> None:
    """All that docs/detectors.md lists, and those that come."""
    model = tasks.DetectionModel(FAMILIES[family], verbose=False)
    model.args = get_cfg()
    use_boxloss(model)


@each_model
def test_leaves_nothing_behind(name: str) -> None:
    model = made(name)
    if name == "YOLO26":
        model.criterion = model.init_criterion()
    state = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    before = len(gradient_holders(model))
    with patch.object(distributed, "all_reduce", lambda *_: pytest.fail("a collective")):
        use_boxloss(model)
    assert torch.equal(torch.get_rng_state(), random)
    assert len(gradient_holders(model)) == before == 0
    assert model.training
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])
    if name == "YOLO26":
        assert model.criterion.updates == 0


def gradient_holders(model: nn.Module) -> list[Tensor]:
    return [each for each in model.parameters() if each.grad is not None]


def test_gradients_are_compared_and_so_is_where_no_number_is() -> None:
    case = proof.Case("", {}, True)
    losses, gradients = {"loss": torch.ones(2)}, {"pred": torch.ones(3)}
    theirs = proof.Run(case, losses, gradients)
    assert proof.first_difference(theirs, theirs) is None
    ours = proof.Run(case, losses, {"pred": 1.01 * torch.ones(3)})
    assert proof.first_difference(theirs, ours) == "the gradient of pred is 1.0% off"
    ours = proof.Run(case, {"loss": torch.tensor([1.0, torch.nan])}, gradients)
    assert proof.first_difference(theirs, ours) == "loss is [1.0, 1.0], with boxloss [1.0, nan]"
    both = proof.Run(case, ours.losses, gradients)
    assert proof.first_difference(both, ours) is None


# --- What a user may have changed ---


def own(base: type, name: str) -> type:
    """A class that is derived from `base` and has this method of its own, which may do anything."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(base, name)(self, *arguments, **options)

    return type(f"Own{base.__name__}", (base,), {name: method})


OwnAssigner = own(tal.TaskAlignedAssigner, "get_box_metrics")
OwnCriterion = own(loss_of_ultralytics.v8DetectionLoss, "loss")
OwnMatcher = own(Matcher, "__call__")


def own_iou(theirs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *boxes, **options: theirs(*boxes, **{**options, "CIoU": False, "GIoU": True})


def twice(theirs: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: {k: 2 * each for k, each in theirs(*given, **named).items()}


def replaced(module: Any, name: str, value: Any) -> Callable[[], Any]:
    return lambda: patch.object(module, name, value)


iou, probiou = loss_of_ultralytics.bbox_iou, loss_of_ultralytics.probiou
giou = loss_for_object_detection.generalized_box_iou


PATCHES: dict[str, tuple[str, Callable[[], Any], str]] = {
    "Ultralytics' IoU": (
        "YOLO11",
        replaced(loss_of_ultralytics, "bbox_iou", own_iou(iou)),
        r"not the criterion of this DetectionModel \(ultralytics 8.*box_loss is .*, with boxloss",
    ),
    "its box loss": (
        "YOLO11",
        replaced(loss_of_ultralytics, "BboxLoss", own(loss_of_ultralytics.BboxLoss, "forward")),
        "OwnBboxLoss stands",
    ),
    "its assigner": (
        "YOLO26",
        replaced(loss_of_ultralytics, "TaskAlignedAssigner", OwnAssigner),
        "OwnTaskAlignedAssigner stands in the place of",
    ),
    "its criterion": (
        "YOLO11",
        replaced(tasks, "v8DetectionLoss", OwnCriterion),
        "Ownv8DetectionLoss has a loss of its own",
    ),
    "its padding": (
        "YOLO11",
        replaced(tasks, "v8DetectionLoss", own(tasks.v8DetectionLoss, "preprocess")),
        "has a preprocess of its own",
    ),
    "DETR's GIoU": (
        "DETR",
        replaced(loss_for_object_detection, "generalized_box_iou", lambda *pair: giou(*pair)),
        "generalized_box_iou is test_proof",
    ),
    "RT-DETR's IoU, inside": (
        "RT-DETR",
        replaced(loss_rt_detr.RTDetrLoss, "loss_boxes", lambda *_: {}),
        "only one of them has loss_bbox",
    ),
    **{
        f"torchvision's IoU in {name}": (
            name,
            replaced(boxes_of_torchvision, "box_iou", giou),
            f"boxloss is not the criterion of this {name}",
        )
        for name in ("RetinaNet", "SSD")
    },
    "FCOS' loss": (
        "FCOS",
        replaced(fcos.FCOSHead, "compute_loss", twice(fcos.FCOSHead.compute_loss)),
        "FCOS .*: classification is .*, with boxloss",
    ),
    "RT-DETR's losses": (
        "RT-DETR",
        replaced(loss_rt_detr, "RTDetrLoss", own(loss_rt_detr.RTDetrLoss, "forward")),
        "RTDetrLoss is test_proof",
    ),
    "SSD's own way": (
        "SSD",
        replaced(SSD, "forward", twice(SSD.forward)),
        "SSD .*: bbox_regression is .*, with boxloss",
    ),
}


if "YOLO11-obb" in MODELS:

    def of_oriented(name: str, part: type, method: str, told: str) -> tuple[str, Any, str]:
        module = tasks if name == "v8OBBLoss" else loss_of_ultralytics
        return "YOLO26-obb", replaced(module, name, own(part, method)), told

    PATCHES |= {
        "Ultralytics' ProbIoU": (
            "YOLO11-obb",
            replaced(loss_of_ultralytics, "probiou", lambda *boxes, floor: probiou(*boxes)),
            r"not the criterion of this OBBModel .*: loss is .*, with boxloss",
        ),
        "its assigner of oriented boxes": of_oriented(
            "RotatedTaskAlignedAssigner",
            tal.RotatedTaskAlignedAssigner,
            "select_candidates_in_gts",
            "OwnRotatedTaskAlignedAssigner stands in the place of",
        ),
        "its loss of oriented boxes": of_oriented(
            "RotatedBboxLoss",
            loss_of_ultralytics.RotatedBboxLoss,
            "forward",
            "OwnRotatedBboxLoss stands",
        ),
        "its angle loss": of_oriented(
            "v8OBBLoss",
            tasks.v8OBBLoss,
            "calculate_angle_loss",
            "has a calculate_angle_loss of its own",
        ),
    }


@pytest.mark.parametrize("changed", PATCHES)
def test_a_patched_part(changed: str) -> None:
    name, patched, told = PATCHES[changed]
    with patched():
        model = made(name)
        before = {**vars(model)}
        with pytest.raises(ValueError, match=told):
            use_boxloss(model)
        assert vars(model) == before
        assert not calls(model, name)


@pytest.mark.parametrize("changed", PATCHES)
def test_a_part_that_is_patched_afterwards(changed: str) -> None:
    name, patched, _ = PATCHES[changed]
    model = made(name)
    use_boxloss(model)
    words = "has been replaced by|of its own, not replaced|stands in the place of"
    with patched(), pytest.raises(ValueError, match=words):
        loss(name, model)
    assert calls(model, name)


def set_matcher(part: nn.Module) -> None:
    part.proposal_matcher = OwnMatcher(0.5, 0.4, part.proposal_matcher.allow_low_quality_matches)


def set_method(part: nn.Module, name: str) -> None:
    part.__class__ = own(type(part), name)


def set_in_criterion(model: nn.Module, name: str, value: Any) -> None:
    """Which the model makes at its first step, otherwise."""
    if getattr(model, "criterion", None) is None:
        model.criterion = model.init_criterion()
    setattr(model.criterion, name, value)


# A model, what of it is changed, and what use_boxloss says.
CHANGES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "RetinaNet's matcher": ("RetinaNet", set_matcher, "check=False"),
    "SSD's matcher": ("SSD", set_matcher, "check=False"),
    "Mask R-CNN's matcher": ("Mask R-CNN", lambda m: set_matcher(m.roi_heads), "check=False"),
    "Faster R-CNN's matcher": ("Faster R-CNN", lambda m: set_matcher(m.roi_heads), "check=False"),
    "Faster R-CNN's IoU": (
        "Faster R-CNN",
        lambda model: setattr(model.rpn, "box_similarity", giou),
        "labels of anchors",
    ),
    "Faster R-CNN's proposals": (
        "Faster R-CNN",
        lambda model: set_method(model.roi_heads, "assign_targets_to_proposals"),
        "OwnRoIHeads has a assign_targets_to_proposals",
    ),
    "FCOS' head": (
        "FCOS",
        lambda model: setattr(model.head, "compute_loss", model.head.compute_loss),
        "FCOSHead has a compute_loss of its own",
    ),
    "YOLO's criterion": (
        "YOLO11",
        lambda model: setattr(model, "criterion", OwnCriterion(model)),
        "Ownv8DetectionLoss has a loss of its own, not replaced",
    ),
    "YOLO's criterion, a function": (
        "YOLO11",
        lambda m: setattr(m, "criterion", lambda preds, batch: OwnCriterion(m)(preds, batch)),
        "no v8DetectionLoss",
    ),
    "Ultralytics' RT-DETR's matcher": (
        "Ultralytics' RT-DETR",
        lambda model: set_in_criterion(model, "matcher", own(HungarianMatcher, "forward")()),
        "OwnHungarianMatcher",
    ),
    "Ultralytics' RT-DETR's matching": (
        "Ultralytics' RT-DETR",
        lambda model: set_in_criterion(model, "use_uni_match", True),
        "use_uni_match",
    ),
    "RF-DETR's matcher": (
        "RF-DETR",
        lambda model: set_method(model.matcher, "forward"),
        "OwnHungarianMatcher",
    ),
    "RF-DETR's losses": (
        "RF-DETR",
        lambda model: set_method(model, "loss_boxes"),
        "OwnSetCriterion has a loss_boxes of its own",
    ),
    "RF-DETR's masks": ("RF-DETR", lambda model: model.losses.append("masks"), "not for masks"),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_a_changed_part(changed: str) -> None:
    """It is not dropped, and the model is as before."""
    name, change, told = CHANGES[changed]
    model = made(name)
    change(model)
    before, kinds = {**vars(model)}, [type(each) for each in model.modules()]
    with pytest.raises(ValueError, match=told):
        use_boxloss(model)
    assert vars(model) == before
    assert [type(each) for each in model.modules()] == kinds


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        (
            "YOLO11",
            lambda m: set_in_criterion(m, "assigner", OwnAssigner(10, 5)),
            "OwnTaskAlignedAssigner",
        ),
        ("RetinaNet", set_matcher, r"matcher is a test_proof\.OwnMatcher"),
        CHANGES["RF-DETR's matcher"],
    ],
)
def test_a_part_that_is_changed_afterwards(
    name: str, change: Callable[[Any], Any], told: str
) -> None:
    """boxloss has no call for it."""
    model = made(name)
    use_boxloss(model)
    loss(name, model)
    change(model)
    with pytest.raises(ValueError, match=told):
        loss(name, model)


def test_settings_of_a_criterion_that_exists_are_kept() -> None:
    model = made("YOLO11")
    model.criterion = model.init_criterion()
    model.criterion.assigner.beta = 2.0
    model.criterion.assigner.topk = 5
    model.criterion.bce = nn.BCEWithLogitsLoss(reduction="none", pos_weight=torch.full((5,), 3.0))
    before = loss("YOLO11", model)
    use_boxloss(model)
    assert loss("YOLO11", model) == pytest.approx(before, rel=1e-4)
    assert calls(model, "YOLO11")


def test_settings_of_a_configuration_are_kept() -> None:
    for name, changes in (
        ("DETR", {"giou_cost": 3, "eos_coefficient": 0.4, "bbox_loss_coefficient": 7}),
        ("RT-DETR", {"focal_loss_alpha": 0.4, "matcher_gamma": 1.0, "weight_loss_vfl": 3.0}),
        ("D-FINE", {"weight_loss_fgl": 0.7, "num_denoising": 0}),
        ("DEIMv2", {"mal_alpha": 0.4, "focal_loss_gamma": 1.5, "matcher_gamma": 1.0}),
        ("DEIMv2", {"use_dense_one_to_one": False}),
        ("Grounding DINO", {"giou_cost": 3.0, "focal_alpha": 0.4, "auxiliary_loss": False}),
        ("LW-DETR", {"class_loss_coefficient": 3, "focal_alpha": 0.4}),
    ):
        model = made(name)
        for option, value in changes.items():
            setattr(model.config, option, value)
        use_boxloss(model)
        assert calls(model, name)


if "YOLO11-obb" in MODELS:

    def test_settings_of_oriented_boxes_are_kept() -> None:
        model = made("YOLO11-obb")
        before = loss("YOLO11-obb", model)
        model.criterion.bbox_loss.floor = 0.5
        changed = loss("YOLO11-obb", model)
        assert changed < before * (1 - 1e-3)
        use_boxloss(model)
        assert loss("YOLO11-obb", model) == pytest.approx(changed, rel=1e-4)


if "YOLO11-seg" in MODELS:

    def test_masks_of_their_own_and_keypoints_without_visibility() -> None:
        for name in ("YOLO11-seg", "YOLO11-pose"):
            model = made(name)
            model.args.overlap_mask = False
            if name == "YOLO11-pose":
                model.model[-1].kpt_shape = [4, 2]
            with Operators() as operators:
                use_boxloss(model)
            assert operators.names

    @pytest.mark.parametrize("kind", ["Seg", "Pose"])
    def test_assigners_that_compare_masks_or_keypoints(kind: str) -> None:
        model = YOLO(f"yolo26n-{kind.lower()}.yaml")
        with pytest.raises(ValueError, match=rf"{kind}TaskAlignedAssigner stands in the place of"):
            use_boxloss(model)


# --- What the original, or boxloss, cannot do ---


def test_a_criterion_that_raises_where_there_are_boxes() -> None:
    def raises(self: Any, outputs: Any, targets: Any, *_: Any) -> Any:
        if any(len(each["boxes"]) for each in targets):
            raise RuntimeError("no such thing")
        return {}

    with patch.object(loss_for_object_detection.ImageLoss, "loss_cardinality", raises):
        model = made("DETR")
        with pytest.raises(
            ValueError, match=r"could not be compared.*gives RuntimeError: no such thing"
        ):
            use_boxloss(model)
        use_boxloss(model, check=False).restore()


def test_a_case_on_which_the_original_raises_is_left_out() -> None:
    theirs = loss_for_object_detection.ImageLoss.loss_cardinality

    def of_some(self: Any, outputs: Any, targets: Any, *others: Any) -> Any:
        if not any(len(each["boxes"]) for each in targets):
            raise RuntimeError("no boxes")
        return theirs(self, outputs, targets, *others)

    with patch.object(loss_for_object_detection.ImageLoss, "loss_cardinality", of_some):
        use_boxloss(made("DETR"))


def test_boxloss_that_raises() -> None:
    from boxloss.torch.compat import detr_criterion

    def raises(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such thing")

    model = made("DETR")
    with (
        patch.object(detr_criterion, "hungarian_match", raises),
        pytest.raises(ValueError, match="boxloss raises RuntimeError: no such thing where"),
    ):
        use_boxloss(model)
    assert not calls(model, "DETR")


def test_without_the_check() -> None:
    with PATCHES["Ultralytics' IoU"][1]():
        model = made("YOLO11")
        use_boxloss(model, check=False)
        assert calls(model, "YOLO11")


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("name", ["DETR", "Deformable DETR"])
def test_layers_that_the_configuration_does_not_count(name: str, layers: int) -> None:
    model = made(name)
    model.config.decoder_layers = layers  # of a model of three
    before = loss(name, model)
    use_boxloss(model)
    assert loss(name, model) == pytest.approx(before, rel=1e-5)


def test_classes_that_the_configuration_does_not_have() -> None:
    for name in ("DETR", "RT-DETR", "Deformable DETR"):
        model = made(name).eval()
        use_boxloss(model)
        model.config.num_labels = 7
        with pytest.raises(ValueError, match=r"logits have 5 classes, config.num_labels is 7"):
            loss(name, model)


@pytest.mark.parametrize("name", ["DETR", "RT-DETR", "Deformable DETR", "DAB-DETR", "YOLO11"])
def test_classes_that_the_head_does_not_have(name: str) -> None:
    """Two originals train other classes in silence, the others raise."""
    model = made(name)
    if name == "YOLO11":
        use_boxloss(model)
        loss(name, model)
        model.criterion.nc = 3
        with pytest.raises(ValueError, match="scores have 5 classes, the criterion's nc is 3"):
            loss(name, model)
        return
    model.config.num_labels = 3
    with pytest.raises(ValueError, match=r"5 classes, config\.num_labels is 3|could not be comp"):
        use_boxloss(model)


@pytest.mark.parametrize("name", ["LW-DETR", "RF-DETR of transformers"])
def test_a_head_with_other_classes(name: str) -> None:
    """Of which these ask the logits alone."""
    models = []
    for replace in (lambda _: None, use_boxloss):
        model = made(name)
        replace(model)
        heads = [model.class_embed, *model.model.enc_out_class_embed]
        torch.manual_seed(0)
        for head in heads:
            head.weight = nn.Parameter(torch.rand(7, head.in_features))
            head.bias = nn.Parameter(torch.rand(7))
        models.append(loss(name, model))
    assert models[1] == pytest.approx(models[0], rel=1e-5)


def test_more_groups_than_queries() -> None:
    model = made("LW-DETR").eval()
    use_boxloss(model)
    model.config.group_detr = 15
    with pytest.raises(ValueError, match="group_detr is 15; there are 14 queries, which is less"):
        loss("LW-DETR", model)


# --- Around it ---


def test_two_threads_at_once() -> None:
    before = distributed.is_initialized
    threads = [Thread(target=lambda: use_boxloss(made("DETR"))) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert distributed.is_initialized is before


def test_copies_of_a_users_part_are_made_its_own_way() -> None:
    class OwnHead(fcos.FCOSHead):
        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self

    model = made("FCOS")
    model.head.__class__ = OwnHead
    use_boxloss(model)
    assert copy.deepcopy(model).head is model.head


@contextmanager
def surroundings() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["DETR", "D-FINE", "YOLO26", "RetinaNet"])
def test_in_any_surroundings(name: str) -> None:
    model = made(name)
    with surroundings():
        use_boxloss(model)
    assert calls(model, name)
    for convert in (torch.float64, torch.bfloat16):
        use_boxloss(made(name).to(convert))


def test_a_matcher_that_comes_later() -> None:
    model = made("SSD")
    model.proposal_matcher = Matcher(0.5, 0.5)  # which forces no box on an anchor
    use_boxloss(model)
    model.proposal_matcher = OwnMatcher(0.5, 0.5)
    with pytest.raises(ValueError, match=r"matcher is a test_proof\.OwnMatcher"):
        loss("SSD", model)
