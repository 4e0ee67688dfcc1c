# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers that learn masks, and a batch for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import transformers
from small_detrs import like_detr, like_rf_detr, resnet
from torch import nn

from examples import training

CLASSES = 5
HEADS = {"encoder_layers": 1, "decoder_layers": 3, "num_attention_heads": 2, "num_queries": 12}
TEXT = {"width": 64, "num_layers": 1, "context_length": 8, "n_ctx": 4, "vocab_size": 50}


def swin() -> Any:
    stages = [f"stage{i}" for i in range(1, 5)]
    sizes = {"embed_dim": 12, "depths": [1] * 4, "num_heads": [1] * 4}
    return transformers.SwinConfig(**sizes, out_features=stages)


def small(name: str, make_config: Callable[[], dict[str, Any]]) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(**{"num_labels": CLASSES, **make_config()})
    config.train_num_points = 300
    model: nn.Module = getattr(transformers, CLASS[name])(config)
    if name in WITH_BOXES:
        training.add_noise(model)
    return model


def mask2former() -> dict[str, Any]:
    sizes = ("hidden_dim", "mask_feature_size", "feature_size", "dim_feedforward")
    return {"backbone_config": swin(), **HEADS, **dict.fromkeys(sizes, 32)}


def eomt() -> dict[str, Any]:
    layers = {"num_hidden_layers": 3, "num_attention_heads": 2, "num_blocks": 2}
    image = {"image_size": 64, "patch_size": 16, "num_upscale_blocks": 1}
    return {"hidden_size": 32, "num_queries": 12, **layers, **image}


def oneformer() -> dict[str, Any]:
    sizes = dict.fromkeys(("hidden_dim", "conv_dim", "mask_dim"), 64)
    text = {f"text_encoder_{name}": value for name, value in TEXT.items()}
    text |= {"task_seq_len": 8, "max_seq_len": 8, "is_training": True}
    return {"backbone_config": swin(), **HEADS, **sizes, **text}


def maskformer() -> dict[str, Any]:
    sizes = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 32)
    heads = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    layers = {"encoder_layers": 1, "decoder_layers": 3, "num_queries": 12}
    detr = transformers.DetrConfig(**sizes, **heads, **layers)
    features = dict.fromkeys(("fpn_feature_size", "mask_feature_size"), 32)
    return {"backbone_config": swin(), "decoder_config": detr, **features}


def detr() -> dict[str, Any]:
    stages = [f"stage{i}" for i in range(1, 5)]
    heads = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 8)
    return like_detr(backbone_config=resnet(4, *stages, layer_type="basic"), d_model=64, **heads)


CONFIGS = {
    "Mask2Former": mask2former,
    "Eomt": eomt,
    "EomtDinov3": eomt,
    "OneFormer": oneformer,
    "MaskFormer": maskformer,
    "Detr": detr,
    "ConditionalDetr": detr,
    "RfDetr": like_rf_detr,
}
KINDS = {"MaskFormer": "Instance", "Detr": "", "ConditionalDetr": "", "RfDetr": "Instance"}
CLASS = {name: f"{name}For{KINDS.get(name, 'Universal')}Segmentation" for name in CONFIGS}
WITH_BOXES = "Detr", "ConditionalDetr", "RfDetr"
SMALL = {
    name: partial(small, name, make_config)
    for name, make_config in CONFIGS.items()
    if hasattr(transformers, CLASS[name])
}


def batch(name: str, counts: tuple[int, ...]) -> dict[str, Any]:
    """Images of noise, with `counts` masks each."""
    masks = [(torch.rand(n, 64, 64) > 0.6).to(torch.get_default_dtype()) for n in counts]
    if name in WITH_BOXES:
        images, labels = training.transformers_batch(counts)
        labels = [{**each, "masks": own} for each, own in zip(labels, masks, strict=True)]
        return {"pixel_values": images, "labels": labels}
    made: dict[str, Any] = {
        "pixel_values": torch.rand(len(counts), 3, 64, 64),
        "mask_labels": masks,
        "class_labels": [torch.randint(CLASSES, (n,)) for n in counts],
    }
    if name == "OneFormer":
        made["task_inputs"] = torch.randint(50, (len(counts), 8)).to(torch.get_default_dtype())
        made["text_inputs"] = torch.randint(50, (len(counts), 8, 8))
    return made
