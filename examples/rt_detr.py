# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""transformers' RT-DETR, trained with its own criterion and with boxloss in its place.

    python -m examples.rt_detr

The criterion is boxloss/torch/compat/families/rt_detr.py. The model is small and random. Needs
transformers, Pillow.
"""

from boxloss.torch.compat import use_boxloss
from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

from examples import training
from examples.training import STEPS, Replace, Run, keep


def small_model() -> RTDetrForObjectDetection:
    backbone = RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_in_channels=[16, 16, 16],
        encoder_hidden_dim=16,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        d_model=16,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16,
        decoder_attention_heads=2,
        decoder_layers=3,
        num_queries=30,
        num_denoising=10,
        num_labels=5,
    )
    model = RTDetrForObjectDetection(config)
    training.add_noise(model)
    return model


def train(replace: Replace = keep, seed: int = 0, steps: int = STEPS) -> Run:
    return training.train_transformers(small_model, replace, seed, steps)


if __name__ == "__main__":
    training.show("The loss", train(), boxloss=train(use_boxloss))
