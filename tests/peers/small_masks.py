# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Small random models of transformers that learn masks, and a batch for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import transformers
from torch import nn

CLASSES = 5
HEADS = {"encoder_layers": 1, "decoder_layers": 3, "num_attention_heads": 2, "num_queries": 12}
TEXT = {"width": 64, "num_layers": 1, "context_length": 8, "n_ctx": 4, "vocab_size": 50}


def swin() -> Any:
    stages = [f"stage{i}" for i in range(1, 5)]
    sizes = {"embed_dim": 12, "depths": [1] * 4, "num_heads": [1] * 4}
    return transformers.SwinConfig(**sizes, out_features=stages)


def small(name: str, make_config: Callable[[], dict[str, Any]]) -> nn.Module:
    config = getattr(transformers, f"{name}Config")(num_labels=CLASSES, **make_config())
    config.train_num_points = 300
    kind = "Instance" if name == "MaskFormer" else "Universal"
    model: nn.Module = getattr(transformers, f"{name}For{kind}Segmentation")(config)
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


CONFIGS = {
    "Mask2Former": mask2former,
    "Eomt": eomt,
    "EomtDinov3": eomt,
    "OneFormer": oneformer,
    "MaskFormer": maskformer,
}
SMALL = {
    name: partial(small, name, make_config)
    for name, make_config in CONFIGS.items()
    if hasattr(transformers, f"{name}Config")
}


def batch(counts: tuple[int, ...], has_text: bool = False) -> dict[str, Any]:
    """Images of noise, with `counts` masks each."""
    made: dict[str, Any] = {
        "pixel_values": torch.rand(len(counts), 3, 64, 64),
        "mask_labels": [
            (torch.rand(n, 64, 64) > 0.6).to(torch.get_default_dtype()) for n in counts
        ],
        "class_labels": [torch.randint(CLASSES, (n,)) for n in counts],
    }
    if has_text:
        made["task_inputs"] = torch.randint(50, (len(counts), 8)).to(torch.get_default_dtype())
        made["text_inputs"] = torch.randint(50, (len(counts), 8, 8))
    return made
