# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers, of each class that has one of the criteria."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import transformers
from torch import nn

from examples import detr, rt_detr, training

SIZES = {
    "d_model": 16,
    "encoder_layers": 1,
    "encoder_ffn_dim": 16,
    "encoder_attention_heads": 2,
    "decoder_layers": 3,
    "decoder_ffn_dim": 16,
    "decoder_attention_heads": 2,
    "num_queries": 20,
}
RT_DETR_SIZES = (
    "backbone_config",
    "encoder_in_channels",
    "encoder_hidden_dim",
    "encoder_ffn_dim",
    "encoder_attention_heads",
    "d_model",
    "decoder_in_channels",
    "decoder_ffn_dim",
    "decoder_attention_heads",
    "decoder_layers",
    "num_queries",
    "num_denoising",
)
LABELS = {"auxiliary_loss": True, "num_labels": 5}
# In older versions a backbone was timm's, by name, unless one said otherwise.
OURS = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
if not OURS.keys() <= signature(transformers.DetrConfig.__init__).parameters.keys():
    OURS = {}


def with_noise(model: nn.Module) -> nn.Module:
    training.add_noise(model)
    return model


def resnet(**options: Any) -> Any:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    return transformers.ResNetConfig(**sizes, **options)


def like_detr(name: str, **options: Any) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(
        backbone_config=resnet(layer_type="basic", out_features=["stage2"]),
        **OURS,
        **SIZES,
        **LABELS,
        **options,
    )
    return with_noise(getattr(transformers, f"{name}ForObjectDetection")(config))


def deformable_detr(**options: Any) -> nn.Module:
    config = transformers.DeformableDetrConfig(
        backbone_config=resnet(out_features=["stage1", "stage2"]),
        **OURS,
        num_feature_levels=2,
        **{**SIZES, "d_model": 32},
        **LABELS,
        **options,
    )
    return with_noise(transformers.DeformableDetrForObjectDetection(config))


def dab_detr() -> nn.Module:
    sizes = {name.replace("d_model", "hidden_size"): size for name, size in SIZES.items()}
    config = transformers.DabDetrConfig(
        backbone_config=resnet(layer_type="basic", out_features=["stage2"]),
        **OURS,
        **sizes,
        **LABELS,
    )
    return with_noise(transformers.DabDetrForObjectDetection(config))


def yolos() -> nn.Module:
    config = transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[64, 64],
        num_detection_tokens=20,
        num_labels=5,
    )
    return with_noise(transformers.YolosForObjectDetection(config))


def rt_detr_v2() -> nn.Module:
    like = rt_detr.small_model().config
    sizes = {name: getattr(like, name) for name in RT_DETR_SIZES}
    config = transformers.RTDetrV2Config(num_labels=5, **sizes)
    return with_noise(transformers.RTDetrV2ForObjectDetection(config))


def d_fine() -> nn.Module:
    like = rt_detr.small_model().config
    sizes = {name: getattr(like, name) for name in RT_DETR_SIZES if name != "backbone_config"}
    backbone = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = transformers.DFineConfig(
        backbone_config=backbone, hidden_expansion=1.0, num_labels=5, **sizes
    )
    return with_noise(transformers.DFineForObjectDetection(config))


SMALL: dict[str, Callable[[], nn.Module]] = {
    "DETR": detr.small_model,
    "Table Transformer": lambda: like_detr("TableTransformer"),
    "YOLOS": yolos,
    "Deformable DETR": deformable_detr,
    "Deformable DETR, two stages": lambda: deformable_detr(two_stage=True, with_box_refine=True),
    "Conditional DETR": lambda: like_detr("ConditionalDetr"),
    "DAB-DETR": dab_detr,
    "RT-DETR": rt_detr.small_model,
    "RT-DETRv2": rt_detr_v2,
    "D-FINE": d_fine,
}
