# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers, of each class that has one of the criteria."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from examples import rt_detr, training

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
# Those of examples/rt_detr.py are its kin's, too.
RT_DETR_SIZES = (
    *("backbone_config", "encoder_in_channels", "encoder_hidden_dim", "encoder_ffn_dim"),
    *("encoder_attention_heads", "d_model", "decoder_in_channels", "decoder_ffn_dim"),
    *("decoder_attention_heads", "decoder_layers", "num_queries", "num_denoising"),
)
LABELS = {"auxiliary_loss": True, "num_labels": 5}
# In older versions a backbone was timm's, by name, unless one said otherwise.
OURS = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
if not OURS.keys() <= signature(transformers.DetrConfig.__init__).parameters.keys():
    OURS = {}


def resnet(stages: int, *out_features: str, **options: Any) -> Any:
    sizes = {"hidden_sizes": [8, *[16] * (stages - 1)], "depths": [1] * stages}
    return transformers.ResNetConfig(
        embedding_size=8, out_features=list(out_features), **sizes, **options
    )


def like_detr(**options: Any) -> dict[str, Any]:
    backbone = resnet(2, "stage2", layer_type="basic")
    return {"backbone_config": backbone, **OURS, **SIZES, **LABELS, **options}


def like_deformable_detr(**options: Any) -> dict[str, Any]:
    backbone = resnet(2, "stage1", "stage2")
    return like_detr(backbone_config=backbone, num_feature_levels=2, **{"d_model": 32, **options})


def like_dab_detr() -> dict[str, Any]:
    return {name.replace("d_model", "hidden_size"): each for name, each in like_detr().items()}


def like_yolos() -> dict[str, Any]:
    return {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": [64, 64],
        "num_detection_tokens": 20,
        "num_labels": 5,
    }


def like_rt_detr(**options: Any) -> dict[str, Any]:
    like = rt_detr.small_model().config
    sizes = {name: getattr(like, name) for name in RT_DETR_SIZES}
    return {**sizes, "num_labels": 5, **options}


def like_d_fine() -> dict[str, Any]:
    backbone = resnet(4, "stage2", "stage3", "stage4", layer_type="basic")
    return like_rt_detr(backbone_config=backbone, hidden_expansion=1.0)


def in_groups(backbone: Any, **options: Any) -> dict[str, Any]:
    """Few queries in many groups: in evaluation some belong to no group."""
    return {
        "backbone_config": backbone,
        "d_model": 32,
        "decoder_layers": 3,
        "decoder_ffn_dim": 16,
        "decoder_self_attention_heads": 2,
        "decoder_cross_attention_heads": 2,
        "decoder_n_points": 2,
        "num_queries": 14,
        "group_detr": 3,
        "num_labels": 5,
        **options,
    }


VIT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 16,
    "image_size": 64,
    "out_indices": [1, 2],
}


def like_lw_detr() -> dict[str, Any]:
    backbone = transformers.LwDetrViTConfig(**VIT, pretrain_image_size=64, num_windows=4)
    return in_groups(backbone, projector_scale_factors=[1.0, 0.5])


def like_rf_detr() -> dict[str, Any]:
    return in_groups(transformers.RfDetrDinov2Config(**VIT, num_windows=2), dropout=0.0)


# Five classes, between [CLS], [SEP] and full stops.
PROMPT = [101, 5, 1012, 6, 7, 1012, 8, 1012, 9, 1012, 10, 11, 1012, 102]


def like_grounding_dino() -> dict[str, Any]:
    text = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 1030,
    }
    return {
        **like_deformable_detr(),
        "text_config": transformers.BertConfig(**text),
        "two_stage": True,
        "max_text_len": 16,
        "fusion_droppath": 0.0,
    }


def prompted(kind: Any) -> Any:
    """With the prompt for all images, so that it is called as the others are."""

    def forward(self: Any, pixel_values: Tensor, labels: Any) -> Any:
        text = torch.tensor([PROMPT] * len(pixel_values), device=pixel_values.device)
        return kind.forward(self, pixel_values, input_ids=text, labels=labels)

    return type(kind.__name__, (kind,), {"forward": forward})


# A class of transformers by its name, and the options of its configuration.
KINDS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "DETR": ("Detr", like_detr),
    "Table Transformer": ("TableTransformer", like_detr),
    "YOLOS": ("Yolos", like_yolos),
    "Deformable DETR": ("DeformableDetr", like_deformable_detr),
    "Deformable DETR, two stages": (
        "DeformableDetr",
        partial(like_deformable_detr, two_stage=True, with_box_refine=True),
    ),
    "Conditional DETR": ("ConditionalDetr", like_detr),
    "DAB-DETR": ("DabDetr", like_dab_detr),
    "RT-DETRv2": ("RTDetrV2", like_rt_detr),
    "D-FINE": ("DFine", like_d_fine),
    "DEIMv2": ("Deimv2", like_d_fine),
    "Grounding DINO": ("GroundingDino", like_grounding_dino),
    "MM Grounding DINO": ("MMGroundingDino", like_grounding_dino),
    "LW-DETR": ("LwDetr", like_lw_detr),
    "RF-DETR of transformers": ("RfDetr", like_rf_detr),
}


def made(name: str, options: Callable[[], dict[str, Any]]) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(**options())
    kind = getattr(transformers, f"{name}ForObjectDetection")
    model = (prompted(kind) if "GroundingDino" in name else kind)(config)
    training.add_noise(model)
    return model


SMALL: dict[str, Callable[[], nn.Module]] = {
    "RT-DETR": rt_detr.small_model,
    **{
        kind: partial(made, *each)
        for kind, each in KINDS.items()
        if hasattr(transformers, f"{each[0]}Config")  # which older versions may lack
    },
}
