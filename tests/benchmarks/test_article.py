# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The article's losses are what they say: right on float boxes, wrapped on uint8 ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("skimage")

from benchmarks.common.nvcc import compile_library
from benchmarks.runner.agreement import DisagreementError
from benchmarks.runner.counts import operators
from benchmarks.runner.results import Results
from benchmarks.studies import article
from benchmarks.studies.article import check_mean, check_wrapped
from benchmarks.studies.article import losses as its
from benchmarks.studies.face_detector import VARIANTS, padded, probe, rows_of, truth
from benchmarks.studies.face_detector.data import RandomPictures

SLOTS = 32
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(scope="module")
def boxes() -> list[Tensor]:
    pictures = RandomPictures("train", 0, SLOTS)
    return [pictures[index][1] for index in range(64)]


def finite(boxes: list[Tensor], dtype: torch.dtype) -> Tensor:
    return probe(boxes, SLOTS, dtype).nan_to_num(nan=7.0)


def values(pred: Tensor, boxes: list[Tensor]) -> dict[str, Tensor]:
    return {
        "loop": its.loop(pred, *boxes),
        "concat": its.concat(pred, *boxes),
        "mask": its.mask(pred, *padded(boxes, SLOTS)),
    }


def test_on_float_boxes_they_are_right(boxes: list[Tensor]) -> None:
    boxes = [each.float() for each in boxes]
    pred = finite(boxes, torch.float32)
    expected = truth(pred, boxes)
    for name, value in values(pred, boxes).items():
        check_mean(name, value.item(), expected, "float32")
    leaking = its.mask(probe(boxes, SLOTS, torch.float32), *padded(boxes, SLOTS)).item()
    with pytest.raises(DisagreementError, match=r"^mask: a mean GIoU of nan, but .* gives 0\.\d"):
        check_mean("mask", leaking, expected, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_areas_of_uint8_boxes_wrap(dtype: torch.dtype, boxes: list[Tensor]) -> None:
    pred, target = finite(boxes, dtype).view(-1, 4)[rows_of(boxes, SLOTS)], torch.cat(boxes)
    check_wrapped(pred, target)
    areas = (target[:, 2:].int() - target[:, :2].int()).prod(dim=1)
    assert (areas > 255).any()
    with pytest.raises(DisagreementError, match="wrapped"):
        check_wrapped(pred, target.to(dtype))


def test_small_uint8_boxes_do_not_wrap() -> None:
    pred = torch.tensor([[0.0, 0, 15, 17], [3, 3, 8, 9]])
    target = torch.tensor([[0, 0, 15, 17], [20, 20, 25, 29]], dtype=torch.uint8)
    expected = its.printed_giou(target.float(), pred)
    assert torch.equal(its.printed_giou(target, pred), expected)
    assert torch.equal(its.wrapped_giou(pred, target), expected)
    assert expected[0] == 1
    assert expected[1] < 0


def test_the_printed_code_has_as_many_operators_as_it_says(boxes: list[Tensor]) -> None:
    pred, (target,) = finite(boxes, torch.bfloat16), padded(boxes, SLOTS)
    assert operators(lambda: its.printed_giou(target, pred)) == 24
    assert operators(lambda: its.mask(pred, target)) == 31


def test_a_batch_without_boxes_is_zero() -> None:
    none = [torch.empty(0, 4, dtype=torch.uint8)] * 3
    for value in values(finite(none, torch.bfloat16), none).values():
        assert value.item() == 0


def test_every_loss_of_the_page_exists() -> None:
    assert set(article.PEERS) <= VARIANTS.keys()
    assert set(article.TRACED) <= {*article.ITS, *article.PEERS}


def test_its_kernel_compiles(tmp_path: Path) -> None:
    if shutil.which(os.environ.get("CUDACXX", "nvcc")) is None:
        pytest.skip("needs nvcc")
    library = compile_library(its.SOURCE, "sm_90", tmp_path)
    assert b"giou_kernel" in library.read_bytes()


def test_a_trace_is_counted_and_drawn() -> None:
    pytest.importorskip("matplotlib")

    def event(name: str, category: str, start: float, length: float) -> article.Event:
        return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, "tid": 1}

    events = [
        event(name, category, start + at, length)
        for at in (0, 1000)
        for name, category, start, length in (
            *((part, "user_annotation", 100 * n, 90) for n, part in enumerate(article.PARTS)),
            ("aten::sub", "cpu_op", 210, 20),
            ("cudaLaunchKernel", "cuda_runtime", 215, 5),
            ("cudaMemcpy", "cuda_runtime", 240, 5),
            ("cudaDeviceSynchronize", "cuda_runtime", 250, 30),
            ("sub", "kernel", 225, 10),
            ("copied", "gpu_memcpy", 242, 2),
        )
    ]
    (whole,) = article.ranges(events, article.LOSS)[1:]
    assert article.described(whole) == {
        "traced": 90, "busy": 12, "kernels": 2, "launches": 2, "waits": 1
    }  # fmt: skip

    class Recorder:
        results = Results("article")

        def record(
            self, columns: dict[str, object], quantity: str, unit: str, value: float
        ) -> None:
            self.results.add(columns | {"quantity": quantity, "unit": unit, "median": value})

    run = Recorder()
    for name in article.TRACED:
        article.record_trace(run, name, events)  # type: ignore[arg-type]
    figure = article.draw(run.results.frame(), {"cpu": "a CPU", "torch": "2"})
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles[0].startswith("its loop: 0.090 ms, 2 kernels and copies")
    assert len(titles) == len(article.TRACED)
