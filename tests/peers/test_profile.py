# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""What ``python -m boxloss.profile`` leaves out to measure what a criterion takes."""

from pathlib import Path
from typing import Any

import pytest
from boxloss.profile import main
from boxloss.torch.compat import use_boxloss
from boxloss.torch.compat.stand_in import ImpossibleError, put_stand_ins
from models import batch_of, loss_of, made, mostly_long
from torch import Tensor, nn

OF_MATCHERS = "Faster R-CNN", "Mask R-CNN", "Keypoint R-CNN", "SSD", "SSDlite"


@mostly_long
def test_the_criterion_is_left_out_and_the_network_learns(name: str) -> None:
    batch = batch_of(name)

    def loss(model: nn.Module) -> Tensor:
        return loss_of(name, model, batch)

    def learned() -> set[str]:
        model.zero_grad()
        loss(model).backward()
        names = {name for name, each in model.named_parameters() if each.grad is not None}
        return names - {"criterion.logit_scale"}  # OneFormer's criterion learns itself

    model = made(name)
    use_boxloss(model)
    before = learned()
    if name in OF_MATCHERS:
        with pytest.raises(ImpossibleError, match="boxloss replaces no loss that the step calls"):
            put_stand_ins(model, loss)
        return
    for each in put_stand_ins(model, loss):
        each.criterion = None  # it cannot be called
    assert learned() == before


FILE = """
from models import batch_of, loss_of, made

name = {name!r}
batch = batch_of(name)

def make():
    return made(name), lambda model: loss_of(name, model, batch)
"""


@pytest.mark.parametrize("name", ["RT-DETR", "YOLO11", "FCOS"])
def test_fixed_shapes_are_tried(name: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "mine.py").write_text(FILE.format(name=name))
    options = ["--steps", "2", "--warmup", "1", "--max-boxes", "5"]
    assert main([f"{tmp_path}/mine.py:make", *options]) == 0
    *_, row, last = capsys.readouterr().out.splitlines()
    assert row.startswith("boxloss, fixed shapes")
    assert ("not possible: " in row) == (name == "FCOS") == ("in fixed shapes" not in last)
