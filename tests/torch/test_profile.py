# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m boxloss.profile``: what it says of a model, and of what it cannot measure."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("scipy.optimize")
from boxloss.profile import main, sentence, variants

FILE = """
import torch
from examples.own_family import Matcher, SetCriterion
from torch import nn

def detector(device="cpu", loss=lambda model: model()):
    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.logits, self.boxes = (nn.Parameter(torch.rand(2, 8, n)) for n in (5, 4))
            self.criterion = SetCriterion(Matcher())

        def forward(self):
            outputs = {"pred_logits": self.logits, "pred_boxes": 0.1 + self.boxes}
            targets = {"labels": torch.arange(3), "boxes": 0.1 + torch.rand(3, 4)}
            targets = 2 * [{name: each.to(device) for name, each in targets.items()}]
            return sum(self.criterion(outputs, targets).values())

    return Detector().to(device), loss

on_cpu = detector
on_cuda = lambda: detector("cuda")
no_tuple = lambda: detector()[0]
unknown = lambda: (nn.Linear(2, 1), sum)
asleep = lambda: (detector()[0].eval(), sum)
frozen = lambda: (detector()[0].requires_grad_(False), sum)
of_python = lambda: detector(loss=lambda model: model().item())
of_all = lambda: detector(loss=lambda model: model().expand(3))
detached = lambda: detector(loss=lambda model: model().detach())
the_same = detector()
again = lambda: the_same
"""


def said(path: Path, name: str, capsys: Any) -> tuple[int, str, str]:
    (path / "mine.py").write_text(FILE)
    code = main([f"{path}/{name}", "--steps", "2", "--warmup", "1"])
    return code, *capsys.readouterr()


def test_says_whether_it_pays(tmp_path: Path, capsys: Any, device: torch.device) -> None:
    code, out, err = said(tmp_path, f"mine.py:on_{device.type}", capsys)
    _, columns, *rows, last = out.splitlines()
    assert (code, [row[:24].rstrip() for row in rows]) == (0, [*variants(None)])
    assert ("launches" in columns) == (device.type == "cuda")
    assert re.fullmatch(r"boxloss makes .* takes \d+ % of a step\.", last)
    assert "own criterion: warming up, 1 steps" in err.splitlines()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine.py", "mine.py' given; it must be FILE.py:FUNCTION"),
        ("other.py:make", "there is no file '.*other.py'"),
        ("mine.py:make", "mine.py' has no function 'make'"),
        ("mine.py:no_tuple", "function returned Detector; it must return a torch.nn.Module and"),
        ("mine.py:asleep", "evaluation mode"),
        ("mine.py:frozen", "no parameter of the model requires a gradient"),
        ("mine.py:of_python", "the loss is a float; it must be a tensor"),
        ("mine.py:of_all", r"the loss has shape \(3,\) and a gradient; it must have shape \(\)"),
        ("mine.py:detached", r"the loss has shape \(\) and no gradient"),
        ("mine.py:again", "has boxloss already"),
    ],
)
def test_what_is_wrong(tmp_path: Path, capsys: Any, name: str, words: str) -> None:
    code, out, err = said(tmp_path, name, capsys)
    assert (code, out) == (2, "")
    assert re.search(words, err.splitlines()[-1])


def test_a_model_that_boxloss_does_not_know(tmp_path: Path, capsys: Any) -> None:
    code, out, _ = said(tmp_path, "mine.py:unknown", capsys)
    assert code == 1
    assert out.startswith("boxloss cannot serve this model: model is a torch.nn.modules.linear.Li")


@pytest.mark.parametrize(
    ("ours", "without", "words", "share"),
    [
        (50, [25, 25], "a step 2.00 times as fast here: 50.0 ms", 75),
        (98, [101, 101], "no clear difference to a step here: 98.0 ms", 0),
        (200, "not possible", "a step 2.00 times as slow here: 200 ms", None),
    ],
)  # fmt: skip
def test_the_sentence(ours: int, without: Any, words: str, share: int | None) -> None:
    own = [98, 100, 102]
    found = {"boxloss": [ours - 2, ours, ours + 2], "own criterion": own, "no criterion": without}
    end = "." if share is None else f"; what it replaces takes {share} % of a step."
    assert sentence(found) == f"boxloss makes {words} in place of 100{end}"
