# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The detectors: how to make one of its real size with random weights, and how to call it with
images and ground truth.

transformers (5.17 and 5.23) looks for `stage.1` where the names have `stages.1`, and so freezes all
of DETR's and Deformable DETR's ResNet. Here stages 2 to 4 are trained, as their authors do; stem,
stage 1 and the batch norms stay frozen. The other backbones are trainable as they are made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from boxloss.torch.compat import FixedTargets, collate_fixed, pad_batch, use_boxloss
from boxloss.torch.compat.replace import qualified_name
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from ...common.losses import isolate_ultralytics
from ...runner.run import UnavailableError
from ..detectors.criteria import compat_with, plain_operators

CLASSES = 80
MOST_BOXES, MOST_MASKS = 100, 60  # of an image, in fixed shapes
STAGES = tuple(f"stage{i}" for i in range(1, 5))  # of a backbone

Batch = Callable[[nn.Module], Tensor]  # the sum of a model's losses on it


@dataclass(frozen=True)
class Detector:
    make: Callable[[int], nn.Module]  # for images of this side
    batch: Callable[[list[Tensor], list[Tensor], list[Tensor]], Batch]  # images, boxes, labels
    size: tuple[int, int]  # images, and their side in pixels
    quick: tuple[int, int]
    use_boxloss: Callable[..., Any] = use_boxloss  # also with limits
    compile: Callable[[nn.Module], Any] = torch.compile
    fixed: Callable[..., Any] | None = None  # a batch in fixed shapes, of `batch`'s arguments
    crowd: int = 100  # the ground truth of a crowded image


def detr(
    kind: str, stages: tuple[str, ...] | None = None, task: str = "ObjectDetection"
) -> Callable[[int], nn.Module]:
    """Of the default size; stages are a ResNet-50's, where the default would load a backbone."""

    def make(side: int) -> nn.Module:
        import transformers

        options = {}
        if stages:
            resnet = transformers.ResNetConfig(out_features=[*stages])
            options = {"backbone_config": resnet, "auxiliary_loss": True}
        config = getattr(transformers, f"{kind}Config")(num_labels=CLASSES, **options)
        model = getattr(transformers, f"{kind}For{task}")(config)
        if stages:
            unfreeze(model)
        return model

    return make


def unfreeze(model: nn.Module) -> None:
    """A ResNet's stages 2 to 4, which are counted from 0."""
    for name, parameter in model.named_parameters():
        if any(f".stages.{stage}." in name for stage in (1, 2, 3)):
            parameter.requires_grad_(True)


def detr_batch(
    images: list[Tensor], boxes: list[Tensor], labels: list[Tensor], **more: list[Tensor]
) -> Batch:
    pixels = torch.stack(images)
    wanted = {"boxes": boxes, "class_labels": labels, **more}
    of_images = [
        dict(zip(wanted, each, strict=True)) for each in zip(*wanted.values(), strict=True)
    ]
    return lambda model: model(pixel_values=pixels, labels=of_images).loss


def fixed_batch(
    images: list[Tensor], boxes: list[Tensor], labels: list[Tensor], most: int = MOST_BOXES
) -> Batch:
    pixels = torch.stack(images)
    pairs = zip(boxes, labels, strict=True)
    lists = [{"boxes": box, "class_labels": label} for box, label in pairs]
    wanted = FixedTargets.of(lists, max_boxes=most)
    return lambda model: model(pixel_values=pixels, labels=wanted).loss


def yolo(kind: str, file: str, **options: Any) -> Callable[[int], nn.Module]:
    def make(side: int) -> nn.Module:
        isolate_ultralytics()
        from ultralytics.nn import tasks

        model: nn.Module = getattr(tasks, kind)(file, verbose=False, **options)
        model.args = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5, angle=1.0, epochs=100)
        return model

    return make


def yolo_batch(
    images: list[Tensor],
    boxes: list[Tensor],
    labels: list[Tensor],
    change: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Batch:
    counts = torch.tensor([len(each) for each in boxes], device=images[0].device)
    batch = {
        "img": torch.stack(images),
        "batch_idx": torch.arange(len(boxes), device=counts.device).repeat_interleave(counts),
        "cls": torch.cat(labels),
        "bboxes": torch.cat(boxes),
    }
    changed = change(batch)
    return lambda model: model(changed)[0].sum()


fixed_yolo_batch = partial(yolo_batch, change=partial(pad_batch, max_boxes=MOST_BOXES))


def oriented_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    """Turned by angles that depend on where a box is."""
    turned = [torch.cat((each, each[:, :1] * torch.pi / 2), 1) for each in boxes]
    return yolo_batch(images, turned, labels)


def faster_rcnn(side: int) -> nn.Module:
    from torchvision.models.detection import fasterrcnn_resnet50_fpn

    return fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=CLASSES + 1, min_size=side, max_size=side
    )


def faster_rcnn_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    side = images[0].shape[-1]
    targets = []
    for box, label in zip(boxes, labels, strict=True):
        centres, sides = (side * box).split(2, 1)
        corners = torch.cat((centres - sides / 2, centres + sides / 2), 1)
        targets.append({"boxes": corners, "labels": label + 1})

    def loss(model: nn.Module) -> Tensor:
        torch.manual_seed(0)  # proposals are sampled
        return sum(model(images, targets).values())

    return loss


def segmenter(kind: str) -> Callable[[int], nn.Module]:
    """Of the default size; those that take a backbone, with a Swin-T."""

    def make(side: int) -> nn.Module:
        import transformers

        options: dict[str, Any] = {"image_size": side}
        if kind != "Eomt":
            swin = transformers.SwinConfig(out_features=[*STAGES], **options)
            options = {"backbone_config": swin}
        config = getattr(transformers, f"{kind}Config")(num_labels=CLASSES, **options)
        task = "Instance" if kind == "MaskFormer" else "Universal"
        model: nn.Module = getattr(transformers, f"{kind}For{task}Segmentation")(config)
        return model

    return make


def rf_detr_segmenter(side: int) -> nn.Module:
    """transformers', of the size of RF-DETR-Seg-M."""
    import transformers

    backbone = transformers.RfDetrDinov2Config(
        hidden_size=384,
        num_attention_heads=6,
        image_size=side,
        patch_size=12,
        num_windows=2,
        out_features=[f"stage{i}" for i in (3, 6, 9, 12)],
    )
    sizes = {"num_queries": 200, "decoder_layers": 5}
    config = transformers.RfDetrConfig(backbone_config=backbone, num_labels=CLASSES, **sizes)
    return transformers.RfDetrForInstanceSegmentation(config)


def ellipses(images: list[Tensor], boxes: list[Tensor]) -> list[Tensor]:
    """A mask in each box."""
    side = images[0].shape[-1]
    middles = (torch.arange(side, device=images[0].device) + 0.5) / side

    def squares(centres: Tensor, sides: Tensor) -> Tensor:
        return ((middles - centres[:, None]) / (sides[:, None] / 2)).square()

    return [
        (squares(y, h)[:, :, None] + squares(x, w)[:, None] < 1).float()
        for x, y, w, h in (each.unbind(1) for each in boxes)
    ]


def mask_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    given = {"pixel_values": torch.stack(images), "class_labels": labels}
    masks = ellipses(images, boxes)
    return lambda model: model(**given, mask_labels=masks).loss


def fixed_mask_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    parts = {
        "pixel_values": images,
        "mask_labels": ellipses(images, boxes),
        "class_labels": labels,
    }
    samples = [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    given = collate_fixed(samples, max_boxes=MOST_MASKS)
    return lambda model: model(**given).loss


def box_and_mask_batch(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    return detr_batch(images, boxes, labels, masks=ellipses(images, boxes))


class RfDetr(nn.Module):
    """A model of rfdetr, and its criterion, as its trainer makes them."""

    def __init__(self, side: int, size: str = "Medium", training: str = "TrainConfig") -> None:
        super().__init__()
        from rfdetr import config as configs
        from rfdetr.models import lwdetr

        make = getattr(configs, f"RFDETR{size}Config")
        config = make(pretrain_weights=None, num_classes=CLASSES, resolution=side)
        training = getattr(configs, training)(dataset_dir=".", output_dir=".")
        self.model: Any = lwdetr.build_model_from_config(config, training)
        self.criterion: Any = lwdetr.build_criterion_from_config(config, training)[0]

    def forward(self, images: Any, targets: list[dict[str, Tensor]]) -> Tensor:
        losses = self.criterion(self.model(images), targets)
        return sum(weight * losses[name] for name, weight in self.criterion.weight_dict.items())


def rf_detr_batch(
    images: list[Tensor],
    boxes: list[Tensor],
    labels: list[Tensor],
    most: int | None = None,
    **more: list[Tensor],
) -> Batch:
    from rfdetr.utilities.tensors import nested_tensor_from_tensor_list, pad_targets_to_fixed_count

    samples = nested_tensor_from_tensor_list(images)
    wanted = {"boxes": boxes, "labels": labels, **more}
    targets = [dict(zip(wanted, each, strict=True)) for each in zip(*wanted.values(), strict=True)]
    if most is not None:
        device = images[0].device
        padded = pad_targets_to_fixed_count(targets, most)  # which says on the host what is valid
        targets = [{name: part.to(device) for name, part in each.items()} for each in padded]
    return lambda model: model(samples, targets)


def rf_detr_masks(images: list[Tensor], boxes: list[Tensor], labels: list[Tensor]) -> Batch:
    masks = [each.bool() for each in ellipses(images, boxes)]
    return rf_detr_batch(images, boxes, labels, masks=masks)


def use_boxloss_in_rf_detr(model: Any, **limits: int) -> None:
    """Padding, as its trainer has it, says itself which rows are valid."""
    use_boxloss(model.criterion)


def compiled_rf_detr(model: Any) -> Any:
    model.model = torch.compile(model.model)
    model.criterion.matcher.enable_compiled_l1_cost()
    model.criterion.enable_compiled_detection_losses()
    return model


# --- What a good engineer does without boxloss: a model's criterion in vectorized plain torch ---
# It is boxloss.torch.compat's, for all layers at once, with the plain operators of the study
# `detectors`; in float32, whatever autocast made of the outputs. RF-DETR has none: with SciPy in
# place of its own solver on the GPU it would be slower than the original.

# By the name of the model's class; boxloss' module, and what in it is the criterion.
OF_TRANSFORMERS = {
    "DetrForObjectDetection": ("detr", "detr_loss"),
    "DeformableDetrForObjectDetection": ("deformable_detr", "deformable_detr_loss"),
    "RTDetrForObjectDetection": ("rt_detr", "rt_detr_loss"),
}


def use_plain_torch(model: Any, counts: tuple[int, ...]) -> None:
    """For images that have `counts` ground-truth boxes. UnavailableError for other detectors."""
    operators, name = plain_operators(counts), type(model).__name__
    if name in OF_TRANSFORMERS:
        module, criterion = OF_TRANSFORMERS[name]
        model.loss_function = in_float32(getattr(compat_with(module, operators), criterion))
    elif name == "DetectionModel":
        made = compat_with("yolo", operators).DetectionLoss(model)
        made.loss = in_float32(made.loss)
        model.criterion = made
    else:
        raise UnavailableError(
            f"there is no vectorized criterion for {qualified_name(type(model))}"
        )


def in_float32(criterion: Callable[..., Any]) -> Callable[..., Any]:
    def widened(value: Any) -> Any:
        is_narrow = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
        return value.float() if is_narrow else value

    def wide(*arguments: Any, **options: Any) -> Any:
        return criterion(*tree_map(widened, arguments), **tree_map(widened, options))

    return wide


# --- All of them ---

DETECTORS = {
    **{
        name: Detector(make, detr_batch, (16, 640), (2, 256), fixed=fixed_batch)
        for name, make in (
            ("DETR-R50", detr("Detr", STAGES[3:])),
            ("Deformable-DETR-R50", detr("DeformableDetr", STAGES[1:])),
            ("RT-DETR-R50", detr("RTDetr")),
            ("D-FINE-L", detr("DFine")),
        )
    },
    "RF-DETR-M": Detector(
        RfDetr,
        rf_detr_batch,
        (16, 576),
        (2, 128),
        use_boxloss=use_boxloss_in_rf_detr,
        compile=compiled_rf_detr,
        fixed=partial(rf_detr_batch, most=MOST_BOXES),
    ),
    "RF-DETR-Seg-M of rfdetr": Detector(
        partial(RfDetr, size="SegMedium", training="SegmentationTrainConfig"),
        rf_detr_masks,
        (8, 432),
        (2, 192),
        use_boxloss=use_boxloss_in_rf_detr,
        compile=compiled_rf_detr,
        crowd=60,
    ),
    **{
        name: Detector(make, batch, (16, 640), (2, 128), fixed=fixed)
        for name, make, batch, fixed in (
            ("YOLO11m", yolo("DetectionModel", "yolo11m.yaml"), yolo_batch, fixed_yolo_batch),
            ("YOLO11m-obb", yolo("OBBModel", "yolo11m-obb.yaml"), oriented_batch, None),
        )
    },
    **{
        name: Detector(segmenter(kind), mask_batch, (16, 640), (2, 64), fixed=fixed, crowd=60)
        for name, kind, fixed in (
            ("Mask2Former Swin-T", "Mask2Former", fixed_mask_batch),
            ("MaskFormer Swin-T", "MaskFormer", None),
            ("EoMT-L", "Eomt", None),
        )
    },
    **{
        name: Detector(make, box_and_mask_batch, size, quick, crowd=60)
        for name, make, size, quick in (
            ("DETR-R50 with masks", detr("Detr", STAGES, "Segmentation"), (4, 640), (2, 64)),
            ("RF-DETR-Seg-M", rf_detr_segmenter, (8, 432), (2, 192)),
        )
    },
    "Faster R-CNN R50": Detector(faster_rcnn, faster_rcnn_batch, (4, 800), (2, 128)),
}
