# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A branch over invalid slots: its cases and agreement with kernels that torch plays, and what the
compiler made of the real ones."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")

from benchmarks.common.losses import giou
from benchmarks.common.nvcc import compile_library
from benchmarks.runner import run as runner
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.clocks import Calls, Effort
from benchmarks.runner.results import Results
from benchmarks.studies import conditional
from benchmarks.studies.conditional import (
    AROUND_FORMULA,
    LAYOUTS,
    NO_BRANCH,
    SLOTS,
    SOURCE,
    STEP,
    VARIANTS,
    WARP,
    Kernels,
    Launch,
    check,
    make_batch,
    make_case,
    repeated,
)

CPU = torch.device("cpu")


def played(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    """What the kernels do, in float32."""
    p, t = pred[: len(losses)].clone(), target[: len(losses)].clone()
    counts = (t != 0).any(dim=1)
    for _ in range(times):
        result = 1 - giou(p, t)
        for boxes, side in ((p, 0), (p, 3), (t, 1), (t, 2)):
            boxes[:, side] += STEP * result
    losses.copy_(torch.where(counts, result, 0.0))


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
def test_layouts_differ_only_in_where_their_valid_slots_lie(share: float) -> None:
    batch = make_batch(64, CPU)
    front, scattered = (make_case(batch, layout, share) for layout in LAYOUTS)
    per_image = [case.valid.view(-1, SLOTS).sum(dim=1) for case in (front, scattered)]
    assert torch.equal(*per_image)
    assert per_image[0].sum() == round(share * 64 * SLOTS)
    rows = front.valid.view(-1, SLOTS).int()
    assert bool((rows[:, 1:] <= rows[:, :-1]).all())  # no valid slot behind an invalid one
    for case in (front, scattered):
        assert torch.equal((case.target != 0).any(dim=1), case.valid)
        assert torch.equal(case.target[case.valid], batch.truths[case.valid])
    # 512 warps are enough for three standard deviations of at most 0.07.
    assert scattered.active_warps == pytest.approx(1 - (1 - share) ** WARP, abs=0.07)
    warps = sum((each + WARP - 1) // WARP for each in per_image[0].tolist())
    assert front.active_warps == warps / 512
    most = 2 * 256 * STEP  # of the most repetitions, and a loss of at most 2
    for boxes in (batch.pred, batch.truths):  # none turns over
        assert bool(((boxes[:, 2:] - boxes[:, :2]) > most).all())


def test_the_reference_on_boxes_computed_by_hand() -> None:
    pred, target = torch.tensor([[0.0, 0, 4, 4]]), torch.tensor([[8.0, 0, 12, 4]])
    (first, allowed), (second, allowed_then) = islice(repeated(pred, target), 2)
    assert first.item() == pytest.approx(1 + 16 / 48, abs=1e-15)
    s = STEP * 4 / 3
    union, enclosing = 2 * (4 - s) * (4 + s), 12 * (4 + s)
    assert second.item() == pytest.approx(2 - union / enclosing, abs=1e-15)
    assert 0 < allowed.item() < allowed_then.item() < 1e-4


def one_repetition_short(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, max(times - 1, 1))


def leaky(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses += (target == 0).all(dim=1) * 1e-30


def not_a_number(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses[target.any(dim=1).nonzero()[0]] = torch.nan


def in_other_bits(pred: Tensor, target: Tensor, losses: Tensor, times: int) -> None:
    played(pred, target, losses, times)
    losses *= 1 + 2.0**-23


@pytest.mark.parametrize(
    ("wrong", "repetitions", "complaint"),
    [
        (one_repetition_short, [1, 2], "beyond what float32 explains; .*, 2 times"),
        (one_repetition_short, [16], "beyond what float32 explains; .*, 16 times"),
        (leaky, [1], "not 0 in a slot without a true box"),
        (not_a_number, [1], "wrong: up to inf"),
        (in_other_bits, [4], "not the same bits as 'right'"),
    ],
)
def test_a_wrong_variant_is_refused(wrong: Launch, repetitions: list[int], complaint: str) -> None:
    batch = make_batch(2, CPU)
    case = make_case(batch, "scattered", 0.3)
    with pytest.raises(DisagreementError, match=complaint):
        check({"right": played, "wrong": wrong}, batch, case, repetitions)


class PlayedKernels:
    def __init__(self, device: torch.device) -> None:
        pass

    def launch(self, variant: str) -> Launch:
        return played

    def describe(self, variant: str) -> dict[str, int]:
        return {"registers": 24, "threads at once": 2048}


def test_it_measures_each_number_of_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    def sampled(calls: Calls, effort: Effort) -> tuple[dict[str, list[float]], dict[str, str]]:
        return {name: [1e-5 - 1e-6 * place] for place, name in enumerate(calls)}, {}

    monkeypatch.setattr(runner, "gpu_samples", sampled)
    monkeypatch.setattr(conditional, "Kernels", PlayedKernels)
    monkeypatch.setattr(conditional, "QUICK_IMAGES", (2,))
    options = argparse.Namespace(device=CPU, quick=True, json=None, resume=False)
    run = runner.Run(options, Results("conditional"), {"commit": "", "machine": {}})
    conditional.measure(run)
    times = list(run.results.having({"quantity": "gpu", "images": 2, "variant": NO_BRANCH}))
    assert [(row["layout"], row["valid"], row["repetitions"]) for row in times] == [
        (layout, valid, repetitions)
        for layout in LAYOUTS
        for valid in ("0 %", "12.5 %", "100 %")
        for repetitions in conditional.QUICK_REPETITIONS
    ]
    figure = conditional.draw(run.results.frame(), {"cpu": "a CPU", "torch": "2"})
    words = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert words.count("0 to 100 %") == 2  # lines that end together have one label


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) is None:
        pytest.skip("needs nvcc")
    return compile_library(SOURCE, "sm_90", tmp_path_factory.mktemp("library"))


def test_the_compiler_kept_the_branches_and_the_loop(library: Path) -> None:
    """As the study says."""
    if shutil.which("cuobjdump") is None or shutil.which("nvdisasm") is None:
        pytest.skip("needs cuobjdump and nvdisasm")
    dumped = subprocess.run(
        ["cuobjdump", "-sass", str(library)], capture_output=True, text=True, check=True
    ).stdout
    kernels = {}
    for text in dumped.split("Function : ")[1:]:
        (skip,), (warps,) = (re.findall(rf"{word}E(\d)E", text) for word in ("Skip", "Warps"))
        found = re.findall(r"/\*([0-9a-f]{4})\*/ +(.*?) ;", text)
        kernels[VARIANTS[int(skip) + int(warps)]] = {
            int(place, 16): words for place, words in found
        }
    loops = set()
    for name, code in kernels.items():
        (reads,) = (at for at, words in code.items() if "LDG" in words and "STRONG" in words)
        parts = [at for at, words in code.items() if words.startswith("BSSY")]
        assert len(parts) == (0 if name == NO_BRANCH else 1)
        if parts:
            skips = min(at for at, words in code.items() if "BRA" in words and at > parts[0])
            assert (reads < skips) == (name == AROUND_FORMULA)
        (back,) = (
            (at, int(words.split("0x")[1], 16))
            for at, words in code.items()
            if "BRA 0x" in words and words.startswith("@") and int(words.split("0x")[1], 16) < at
        )
        end, begin = back
        loop = [words.split()[0] for at, words in code.items() if begin <= at < end]
        assert sum("MUFU.RCP" in words for words in loop) == 2
        loops.add(len(loop) + 1)
    assert kernels.keys() == set(VARIANTS)
    assert len(loops) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.usefixtures("library")
def test_the_kernels_agree_on_a_gpu() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    kernels = Kernels(device)
    batch = make_batch(5, device)
    launches = {name: kernels.launch(name) for name in VARIANTS}
    for layout in LAYOUTS:
        for share in (0.0, 0.3, 1.0):
            check(launches, batch, make_case(batch, layout, share), [1, 2, 3, 64])
    for name in VARIANTS:
        assert 0 < kernels.describe(name)["registers"] <= 64
        assert kernels.describe(name)["threads at once"] >= 256
