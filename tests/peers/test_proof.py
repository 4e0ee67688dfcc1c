# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""use_boxloss compares both criteria before it replaces one, and leaves nothing behind."""

import copy
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
import torch
from boxloss.torch.compat import proof, use_boxloss
from called import Called
from combinations import long_but
from models import MODELS, calls, each_model, loss, made, mostly_long
from torch import Tensor, distributed, nn
from torchvision.models.detection._utils import Matcher
from torchvision.models.detection.fcos import FCOSHead
from torchvision.models.detection.ssd import SSD
from torchvision.ops import boxes
from transformers.loss import loss_for_object_detection as detr
from transformers.loss import loss_rt_detr as rt_detr
from ultralytics import YOLO
from ultralytics.cfg import get_cfg
from ultralytics.models.utils.ops import HungarianMatcher
from ultralytics.nn import tasks
from ultralytics.utils import loss as yolo
from ultralytics.utils import tal

from examples import fcos


@each_model
def test_compares_both(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are ten times nearer to each other than is asked."""
    model = made(name)
    monkeypatch.setattr(proof, "CLOSE", proof.CLOSE / 10)
    with Called() as called:
        use_boxloss(model)
    assert called.ours


FAMILIES = {
    path.parent.name: path.name
    for path in sorted((Path(tasks.__file__).parents[1] / "cfg" / "models").glob("*/yolo*.yaml"))
    if re.fullmatch(r"yolov?\d+[a-z]?\.yaml", path.name)  # of boxes
}


@pytest.mark.parametrize("family", long_but(FAMILIES, [*FAMILIES][-1:]))
def test_compares_both_in_each_family_of_ultralytics(family: str) -> None:
    """All that docs/detectors.md lists, and those that come."""
    model = tasks.DetectionModel(FAMILIES[family], verbose=False)
    model.args = get_cfg()
    use_boxloss(model)


@mostly_long
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
OwnCriterion = own(yolo.v8DetectionLoss, "loss")
OwnMatcher = own(Matcher, "__call__")
OwnAssignment = own(HungarianMatcher, "forward")


def own_iou(theirs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *boxes, **options: theirs(*boxes, **{**options, "CIoU": False, "GIoU": True})


def twice(theirs: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: {k: 2 * each for k, each in theirs(*given, **named).items()}


ANGLES, PROPOSALS = "calculate_angle_loss", "assign_targets_to_proposals"
iou, probiou, giou = yolo.bbox_iou, yolo.probiou, detr.generalized_box_iou
# A model; what is patched, of which module or class; by what: for a name the class with this method
# of its own; and what use_boxloss says.
PATCHES: list[tuple[str, Any, str, Any, str]] = [
    ("YOLO11", yolo, "bbox_iou", own_iou(iou), r"\(ultralytics 8.*box_loss is .*, with boxloss"),
    ("YOLO11", yolo, "BboxLoss", "forward", "OwnBboxLoss stands"),
    ("YOLO26", yolo, "TaskAlignedAssigner", "get_box_metrics", "OwnTaskAlignedAssigner stands in"),
    ("YOLO11", tasks, "v8DetectionLoss", "loss", "Ownv8DetectionLoss has a loss of its own"),
    ("YOLO11", tasks, "v8DetectionLoss", "preprocess", "has a preprocess of its own"),
    ("YOLO11-obb", yolo, "probiou", lambda *pair, floor: probiou(*pair), "OBBModel .*: loss is "),
    ("YOLO26-obb", yolo, "RotatedTaskAlignedAssigner", "select_candidates_in_gts", "OwnRotated"),
    ("YOLO26-obb", yolo, "RotatedBboxLoss", "forward", "OwnRotatedBboxLoss stands"),
    ("YOLO26-obb", tasks, "v8OBBLoss", ANGLES, f"has a {ANGLES} of its own"),
    ("DETR", detr, "generalized_box_iou", lambda *pair: giou(*pair), "_box_iou is test_proof"),
    ("RT-DETR", rt_detr, "RTDetrLoss", "forward", "RTDetrLoss is test_proof"),
    ("RT-DETR", rt_detr.RTDetrLoss, "loss_boxes", lambda *_: {}, "only one of them has loss_bbox"),
    ("RetinaNet", boxes, "box_iou", giou, "boxloss is not the criterion of this RetinaNet"),
    ("SSD", boxes, "box_iou", giou, "boxloss is not the criterion of this SSD"),
    ("SSD", SSD, "forward", twice(SSD.forward), "SSD .*: bbox_regression is .*, with boxloss"),
    ("FCOS", FCOSHead, "compute_loss", twice(FCOSHead.compute_loss), "FCOS .*: classification is"),
]
each_patch = pytest.mark.parametrize(
    ("name", "module", "part", "value", "told"), [each for each in PATCHES if each[0] in MODELS]
)


def patched(module: Any, part: str, value: Any) -> Any:
    value = own(getattr(module, part), value) if isinstance(value, str) else value
    return patch.object(module, part, value)


@each_patch
def test_a_patched_part(name: str, module: Any, part: str, value: Any, told: str) -> None:
    with patched(module, part, value):
        model = made(name)
        before = {**vars(model)}
        with pytest.raises(ValueError, match=told):
            use_boxloss(model)
        assert vars(model) == before
        assert not calls(model, name)


@each_patch
def test_a_part_that_is_patched_afterwards(
    name: str, module: Any, part: str, value: Any, told: str
) -> None:
    model = made(name)
    use_boxloss(model)
    words = "has been replaced by|of its own, not replaced|stands in the place of"
    with patched(module, part, value), pytest.raises(ValueError, match=words):
        loss(name, model)
    assert calls(model, name)


def test_what_their_module_imports_from_the_standard_library_is_nobodys_part() -> None:
    with patch.object(rt_detr, "OrderedDict", OrderedDict, create=True):
        use_boxloss(made("RT-DETR"))


def set_matcher(part: nn.Module) -> None:
    part.proposal_matcher = OwnMatcher(0.5, 0.4, part.proposal_matcher.allow_low_quality_matches)


def set_method(part: nn.Module, name: str) -> None:
    part.__class__ = own(type(part), name)


def criterion_of(model: nn.Module) -> Any:
    """Which the model makes at its first step, otherwise."""
    if getattr(model, "criterion", None) is None:
        model.criterion = model.init_criterion()
    return model.criterion


def in_criterion(name: str, value: Any, model: nn.Module) -> None:
    setattr(criterion_of(model), name, value)


def with_method(name: str, model: nn.Module) -> None:
    set_method(criterion_of(model), name)


OWN_MATCHER = ("RF-DETR", lambda model: set_method(model.matcher, "forward"), "OwnHungarianMatcher")
# A model, what of it is changed, and what use_boxloss says.
CHANGES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("RetinaNet", set_matcher, "check=False"),
    ("SSD", set_matcher, "check=False"),
    ("Mask R-CNN", lambda model: set_matcher(model.roi_heads), "check=False"),
    ("Faster R-CNN", lambda model: set_matcher(model.roi_heads), "check=False"),
    ("Faster R-CNN", lambda m: setattr(m.rpn, "box_similarity", giou), "labels of anchors"),
    ("Faster R-CNN", lambda m: set_method(m.roi_heads, PROPOSALS), f"RoIHeads has a {PROPOSALS}"),
    ("FCOS", lambda m: setattr(m.head, "compute_loss", m.head.compute_loss), "compute_loss of its"),
    ("YOLO11", lambda m: setattr(m, "criterion", OwnCriterion(m)), "has a loss of its own, not"),
    ("YOLO11", lambda m: setattr(m, "criterion", partial(OwnCriterion(m))), "no v8DetectionLoss"),
    ("YOLO11", lambda m: set_method(criterion_of(m).bbox_loss.dfl_loss, "__call__"), "OwnDFLoss"),
    ("YOLO11", partial(with_method, "bbox_decode"), "has a bbox_decode of its own"),
    *(
        ("YOLO11-obb", partial(with_method, name), f"has a {name} of its own")
        for name in ("bbox_decode", "preprocess", ANGLES, "loss")
    ),
    ("Ultralytics' RT-DETR", partial(in_criterion, "matcher", OwnAssignment()), "OwnHungarian"),
    ("Ultralytics' RT-DETR", partial(in_criterion, "use_uni_match", True), "use_uni_match"),
    OWN_MATCHER,
    ("RF-DETR", lambda model: set_method(model, "loss_boxes"), "OwnSetCriterion has a loss_boxes"),
    ("RF-DETR", lambda model: model.losses.append("keypoints"), "not for keypoints"),
    ("Mask2Former", lambda model: set_method(model.criterion.matcher, "forward"), "stands in the"),
]


@pytest.mark.parametrize(("name", "change", "told"), CHANGES)
def test_a_changed_part(name: str, change: Callable[[Any], Any], told: str) -> None:
    """It is not dropped, and the model is as before."""
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
        ("YOLO11", partial(in_criterion, "assigner", OwnAssigner(10, 5)), "OwnTaskAlignedAssigner"),
        ("RetinaNet", set_matcher, r"matcher is a test_proof\.OwnMatcher"),
        ("SSD", set_matcher, r"matcher is a test_proof\.OwnMatcher"),
        OWN_MATCHER,
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
            with Called() as called:
                use_boxloss(model)
            assert called.ours

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

    with patch.object(detr.ImageLoss, "loss_cardinality", raises):
        model = made("DETR")
        with pytest.raises(
            ValueError, match=r"could not be compared.*gives RuntimeError: no such thing"
        ):
            use_boxloss(model)
        use_boxloss(model, check=False)
        assert calls(model, "DETR")


def test_a_case_on_which_the_original_raises_is_left_out() -> None:
    theirs = detr.ImageLoss.loss_cardinality

    def of_some(self: Any, outputs: Any, targets: Any, *others: Any) -> Any:
        if not any(len(each["boxes"]) for each in targets):
            raise RuntimeError("no boxes")
        return theirs(self, outputs, targets, *others)

    with patch.object(detr.ImageLoss, "loss_cardinality", of_some):
        use_boxloss(made("DETR"))


def test_boxloss_that_raises() -> None:
    from boxloss.torch.compat import criterion

    def raises(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such thing")

    model = made("DETR")
    with (
        patch.object(criterion, "hungarian_match", raises),
        pytest.raises(ValueError, match="boxloss raises RuntimeError: no such thing where"),
    ):
        use_boxloss(model)
    assert not calls(model, "DETR")


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("name", ["DETR", "Deformable DETR"])
def test_layers_that_the_configuration_does_not_count(name: str, layers: int) -> None:
    model = made(name)
    model.config.decoder_layers = layers  # of a model of three
    before = loss(name, model)
    use_boxloss(model)
    assert loss(name, model) == pytest.approx(before, rel=1e-5)


@pytest.mark.parametrize("name", ["DETR", "RT-DETR", "Deformable DETR", "DAB-DETR"])
def test_classes_that_the_configuration_does_not_have(name: str) -> None:
    """Two originals train other classes in silence, the others raise."""
    model = made(name).eval()
    replaced = use_boxloss(model)
    model.config.num_labels = 3
    with pytest.raises(ValueError, match=r"logits have 5 classes, config\.num_labels is 3"):
        loss(name, model)
    replaced.restore()
    with pytest.raises(ValueError, match=r"5 classes, config\.num_labels is 3|could not be comp"):
        use_boxloss(model)


def test_classes_that_the_criterion_does_not_have() -> None:
    model = made("YOLO11")
    use_boxloss(model)
    loss("YOLO11", model)
    model.criterion.nc = 3
    with pytest.raises(ValueError, match="scores have 5 classes, the criterion's nc is 3"):
        loss("YOLO11", model)


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
