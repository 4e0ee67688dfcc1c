# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth as one list, the operator and who asks it; tests/peers has the criteria."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from boxloss.torch import use_implementation
from boxloss.torch.compat import check_targets, faults
from devices import GPU_NAMES, Implementation
from torch import Tensor

CPU = torch.device("cpu")
COLLATE = torch.ops.boxloss._collate_targets
CLASSES = 5
FAULTS = [
    ("labels", (0,), -1),
    ("labels", (699,), CLASSES),
    ("boxes", (300, 2), float("nan")),
    ("boxes", (300, 3), -1.0),
    ("image", (300,), -1.0),
]


@pytest.fixture
def device(implementation: Implementation) -> torch.device:
    return implementation.device


def ground_truth(device: torch.device, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """700 rows of seven images."""
    boxes = torch.tensor([1, 2, 3, 4], dtype=dtype).repeat(700, 1)
    image = torch.arange(7.0).repeat_interleave(100)
    rows = {"boxes": boxes, "labels": torch.arange(700) % CLASSES, "image": image}
    return {name: each.to(device) for name, each in rows.items()}


def answer_for(device: torch.device) -> Tensor:
    return torch.zeros((), pin_memory=device.type != "cpu")


def factor_of(rows: dict[str, Any], classes: int = CLASSES, has_sizes: bool = False) -> float:
    """1 or NaN, as the device and the host see it."""
    device = rows["boxes"].device
    answer = answer_for(device)
    lists = [rows["boxes"]], [rows["labels"]]
    images = 1 if rows["image"] is None else 7
    boxes, labels, offsets, factor, number = COLLATE(
        *lists, rows["image"], classes, images, has_sizes, answer
    )
    for each in (factor, number):
        assert (each.shape, each.dtype, each.device) == ((), torch.float32, device)
        assert not each.requires_grad
    assert torch.equal(boxes.nan_to_num(), rows["boxes"].nan_to_num())
    assert torch.equal(labels, rows["labels"].long().clamp(0, classes - 1 if classes else None))
    assert offsets.shape == (images + 1,)
    assert torch.equal(number, 700 * factor) or factor.isnan() & number.isnan()
    if device.type != "cpu":
        torch.cuda.synchronize()
    assert answer.item() in (1, pytest.approx(float("nan"), nan_ok=True))
    assert torch.equal(factor.cpu().isnan(), answer.isnan())
    return factor.item()


@pytest.mark.parametrize(("name", "place", "value"), FAULTS)
def test_a_fault_is_nan(device: torch.device, name: str, place: Any, value: float) -> None:
    rows = ground_truth(device)
    assert factor_of(rows) == 1
    rows[name][place] = value
    factor = factor_of(rows)
    assert factor != factor
    rows["image"] = None
    assert (factor_of(rows) == 1) == (name == "image")


def test_what_is_a_fault_is_an_option(device: torch.device) -> None:
    rows = ground_truth(device)
    rows["labels"][5] = 1000
    assert factor_of(rows) != 1
    assert factor_of(rows, classes=0) == 1
    rows = ground_truth(device)
    rows["boxes"][5] = torch.tensor([9.0, 9, 1, 1])
    assert factor_of(rows) != 1
    assert factor_of(rows, has_sizes=True) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.uint8])
def test_any_dtype_and_layout(device: torch.device, dtype: torch.dtype) -> None:
    rows = ground_truth(device, dtype)
    rows["labels"] = rows["labels"].int()
    rows = {name: each.repeat_interleave(2, 0)[::2] for name, each in rows.items()}
    assert factor_of(rows) == 1
    rows["boxes"][699, 0] = 4
    assert factor_of(rows) != 1


@pytest.mark.parametrize("counts", [(0,), (3, 0, 5), (1, 2) * 80])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_list_of_each_image(
    device: torch.device, counts: tuple[int, ...], dtype: torch.dtype
) -> None:
    """More images than one launch takes, and none without rows is forgotten."""
    boxes = torch.rand(sum(counts), 8, dtype=dtype, device=device)[:, ::2].split(counts)
    labels = torch.randint(CLASSES, (sum(counts),), dtype=torch.int32, device=device).split(counts)
    found = COLLATE(boxes, labels, None, CLASSES, len(counts), True, None)
    assert torch.equal(found[0], torch.cat(boxes))
    assert torch.equal(found[1], torch.cat(labels).long())
    assert found[2].tolist() == [0, *torch.tensor(counts).cumsum(0).tolist()]
    assert (found[3].item(), found[4].item()) == (1, max(sum(counts), 1))


def test_opcheck(device: torch.device) -> None:
    boxes, labels, image = ground_truth(device).values()
    arguments = ([boxes], [labels], image, CLASSES, 7, False)
    torch.library.opcheck(COLLATE.default, (*arguments, None))
    if device == CPU:
        checks = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(COLLATE.default, (*arguments, answer_for(device)), test_utils=checks)


def test_refusals() -> None:
    boxes, labels, image = ground_truth(CPU).values()
    answer = answer_for(CPU)

    def refused(error: type[Exception], words: str, **changes: Any) -> None:
        given = {"boxes": [boxes], "labels": [labels], "image": image, "answer": answer}
        with pytest.raises(error, match=f"^_collate_targets: {words}"):
            COLLATE(**given | {"classes": 5, "images": 7, "has_sizes": False} | changes)
        assert answer == 0

    refused(ValueError, "boxes has shape", boxes=[boxes[0]])
    refused(ValueError, "boxes has shape", boxes=[boxes[:, :3]])
    refused(ValueError, "boxes are 1 tensors, labels 2", labels=[labels, labels])
    refused(TypeError, "boxes differ in dtype", boxes=[boxes, boxes.double()], labels=[labels] * 2)
    refused(ValueError, "labels has shape", labels=[labels[1:]])
    refused(ValueError, "labels has shape", labels=[labels[:, None]])
    refused(ValueError, "image has shape", image=image[1:])
    refused(TypeError, "boxes is complex64", boxes=[boxes.cfloat()])
    refused(TypeError, "answer is float64", answer=answer.double())
    refused(ValueError, "answer has shape", answer=torch.zeros(2))
    refused(RuntimeError, "labels is on meta", labels=[labels.to("meta")])
    refused(RuntimeError, "answer is on meta", answer=answer.to("meta"))
    with pytest.raises(RuntimeError, match=r"transforms of torch\.func"):
        torch.func.vmap(lambda each: COLLATE([each], [labels], None, 0, 1, False, None))(
            boxes[None]
        )


@pytest.fixture
def nothing_asked() -> Iterator[None]:
    faults._asked.clear()
    yield
    faults._asked.clear()


def rows_of(values: dict[str, Tensor], has_sizes: bool = False) -> faults.Rows:
    offsets = torch.arange(0, 701, 100, device=values["boxes"].device)
    boxes, labels, image = values.values()
    return faults.Rows(boxes, labels, offsets, "labels", CLASSES, has_sizes, image)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
def test_the_cpu_raises_at_once(dtype: torch.dtype) -> None:
    values = ground_truth(CPU, dtype)
    assert faults.check(rows_of(values))[1] is None
    values["boxes"][302, 0] = 4
    told = r"^boxes: image 3, row 2 is .* \(corners\); its sizes must not be negative"
    with pytest.raises(ValueError, match=told):
        faults.check(rows_of(values))


@pytest.mark.usefixtures("nothing_asked")
def test_an_answer_of_0_is_none_yet() -> None:
    """As a GPU would write them, by hand."""
    values = ground_truth(CPU)
    values["labels"][302] = -1
    first, second = (faults._new_answer(is_pinned=False) for _ in range(2))
    faults._asked.extend(
        faults._Step(each, None, CPU, lambda: rows_of(values)) for each in (first, second)
    )
    second.tensor.fill_(torch.nan)
    faults._raise_answers(waits=False)  # in the steps' order
    assert len(faults._asked) == 2
    first.tensor.fill_(1)
    with pytest.raises(ValueError, match="in a step before: labels: image 3, row 2 is -1"):
        faults._raise_answers(waits=False)
    check_targets()
    assert not faults._asked


if torch.cuda.is_available():
    GPU = torch.device("cuda", 0)
    FINDING = [name for name in GPU_NAMES if name.endswith("/native")]

    def launches(rows: faults.Rows) -> tuple[Tensor, int, int]:
        """The factor, and how many kernels and copies were launched for it."""
        faults.check(rows)
        check_targets()
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            _, factor = faults.check(rows)
            torch.cuda.synchronize()
        assert factor is not None
        names = [
            each.name
            for each in profile.events()
            if each.device_type == torch.autograd.DeviceType.CUDA
        ]
        copies = sum("memcpy" in each.lower() or "memset" in each.lower() for each in names)
        return factor, len(names) - copies, copies

    @pytest.mark.usefixtures("nothing_asked")
    @pytest.mark.parametrize("name", FINDING)
    def test_a_gpu_is_asked_by_one_launch(name: str) -> None:
        with use_implementation(name):
            factor, kernels, copies = launches(rows_of(ground_truth(GPU)))
        assert (factor.item(), kernels, copies) == (1, 1, 0)
        check_targets()

    @pytest.mark.usefixtures("nothing_asked")
    @pytest.mark.parametrize("name", GPU_NAMES or ["boxloss"])
    def test_a_gpu_answers_later(name: str) -> None:
        """Also where an implementation does not serve it."""
        values = ground_truth(GPU)
        values["labels"][302] = -1
        with use_implementation(name):
            labels, factor = faults.check(rows_of(values))
            assert factor is not None
            assert labels[302] == 0
            assert factor.isnan()
            with pytest.raises(ValueError, match="in a step before: labels: image 3, row 2 is -1"):
                check_targets()
            torch.cuda._sleep(50_000_000)  # cycles, some 30 ms
            faults.check(rows_of(values))
            faults._raise_answers(waits=False)
            torch.cuda.synchronize()
            with pytest.raises(ValueError, match="row 2 is -1"):
                faults.check(rows_of(values))
        check_targets()

    @pytest.mark.parametrize("name", FINDING)
    def test_a_gpu_needs_a_pinned_answer(name: str) -> None:
        boxes, labels, _ = ground_truth(GPU).values()
        with use_implementation(name):
            with pytest.raises(ValueError, match="answer is not in pinned memory"):
                COLLATE([boxes], [labels], None, 0, 1, False, torch.zeros(()))
            with pytest.raises(RuntimeError, match="answer is on cuda:0"):
                COLLATE([boxes], [labels], None, 0, 1, False, torch.zeros((), device=GPU))
