# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""distribution_loss beside D-FINE's criterion in torch's operators.

Special logits, dtypes and sizes are for tests/conformance.
"""

from typing import Any

import pytest
import torch
from boxloss.torch import distribution_loss
from comparison import assert_within
from devices import Implementation
from distribution_losses import (
    IMAGES,
    LAYERS,
    QUERIES,
    distribution_problem,
    expected,
    moved,
)
from torch import Tensor

CPU = torch.device("cpu")
KINDS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def losses_of(given: dict[str, Any], device: torch.device = CPU, **options: Any) -> list[Tensor]:
    """The loss, and the gradient of its sum."""
    there = moved(given, device) | options
    there["logits"] = there["logits"].detach().requires_grad_()
    loss = distribution_loss(**there)
    return [loss.detach(), *torch.autograd.grad(loss.sum(), there["logits"])]


def error_of(dtype: torch.dtype) -> float:
    """Some 64 roundings of numbers up to 16: logits, and logarithms of their sums."""
    return 1024 * torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("mode", "reduction"), [("fgl", "sum"), ("ddf", "mean")])
def test_criterion(
    implementation: Implementation, mode: str, reduction: str, dtype: torch.dtype
) -> None:
    given = distribution_problem(mode, dtype)
    loss, gradient = losses_of(given, implementation.device, reduction=reduction)
    of_loss, of_logits = expected(given)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert gradient.dtype == dtype
    sides = 4 * IMAGES * QUERIES if mode == "fgl" else 25  # temperature squared
    assert_within(loss, of_loss, sides * error_of(dtype), "loss")
    assert_within(gradient, of_logits, error_of(dtype), "gradient")


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_reductions(implementation: Implementation, mode: str) -> None:
    given = distribution_problem(mode)
    device = implementation.device
    losses, gradient = losses_of(given, device, reduction="none")
    total, same = losses_of(given, device, reduction="sum")
    torch.testing.assert_close(total, losses.flatten(1).sum(1))
    assert torch.equal(gradient, same)
    if mode == "fgl":
        assert torch.all(losses.cpu()[given["target_index"] == -1] == 0)
        counts = (given["target_index"] >= 0).flatten(1).sum(1).clamp(min=1).to(device)
        for normalizer, divisor in ((None, counts), (counts + 0.5, counts + 0.5), (3.5, 3.5)):
            mean, _ = losses_of(given, device, normalizer=normalizer)
            torch.testing.assert_close(mean, total / divisor)


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_what_does_not_count_has_no_part(implementation_or_aten: Implementation, mode: str) -> None:
    """A query that is left out is as good as none, and the others' gradients are the same."""
    device = implementation_or_aten.device
    given = distribution_problem(mode)
    out = given["target_index"].clone()
    out[..., -1] = -2
    spoiled = given["logits"].clone()
    spoiled[..., -1, :] = torch.nan
    with_nan = given | {"target_index": out, "logits": spoiled}
    if mode == "fgl":
        with_nan["reference"] = given["reference"].clone()
        with_nan["reference"][..., -1, :] = torch.nan
    queries = {"logits": 2, "target_index": 2, "quality": 2, "reference": 2, "teacher": 1}
    queries["confidence"] = 1
    shorter = {
        k: v.narrow(queries[k], 0, QUERIES - 1) if k in queries else v for k, v in given.items()
    }
    loss, gradient = losses_of(with_nan, device)
    of_others, d_others = losses_of(shorter, device)
    torch.testing.assert_close(loss, of_others)
    torch.testing.assert_close(gradient[:, :, :-1], d_others)
    assert torch.all(gradient[:, :, -1] == 0)


@pytest.mark.parametrize("mode", ["fgl", "ddf"])
def test_layouts(implementation: Implementation, mode: str) -> None:
    """Images before layers, as models stack them; and logits that are no neighbours."""
    given = distribution_problem(mode)
    right = losses_of(given, implementation.device)
    names = ("logits", "target_index", "quality", "reference")
    for first, second in ((0, 1), (0, 2), (-1, 2)):
        other = {
            k: v.transpose(first, second).contiguous().transpose(first, second)
            if k in names and (first >= 0 or k == "logits")
            else v
            for k, v in given.items()
        }
        assert not other["logits"].is_contiguous()
        for got, wanted in zip(losses_of(other, implementation.device), right, strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def test_shapes_without_layers_and_images(implementation: Implementation) -> None:
    for mode in ("fgl", "ddf"):
        given = distribution_problem(mode)
        right = losses_of(given, implementation.device, reduction="none")
        by_layer = ("logits", "target_index", "quality", "reference")
        layer = {k: v[1] if k in by_layer else v for k, v in given.items()}
        image = {
            k: v[1] if k in (*by_layer, "teacher", "confidence") else v for k, v in layer.items()
        }
        for smaller, at in ((layer, (1,)), (image, (1, 1))):
            for got, wanted in zip(
                losses_of(smaller, implementation.device, reduction="none"), right, strict=True
            ):
                torch.testing.assert_close(got, wanted[at])
            assert distribution_loss(**moved(smaller, implementation.device)).shape == ()
    every = given | {"teacher": given["teacher"].expand(LAYERS, -1, -1, -1)}
    got = losses_of(every, implementation.device, reduction="none")
    assert all(torch.equal(a, b) for a, b in zip(got, right, strict=True))


def test_compiled_and_not_differentiated() -> None:
    given = distribution_problem("ddf", torch.float32)
    right = losses_of(given)
    compiled = torch.compile(distribution_loss, fullgraph=True, backend="aot_eager")
    logits = given.pop("logits").requires_grad_()
    loss = compiled(logits, **given)
    assert torch.equal(loss, right[0])
    assert torch.equal(torch.autograd.grad(loss.sum(), logits)[0], right[1])
    with torch.no_grad():
        assert not distribution_loss(logits, **given).requires_grad
    assert distribution_loss(logits.to("meta"), **moved(given, torch.device("meta"))).shape == (3,)
    mapped = torch.vmap(lambda x: distribution_loss(x, **given))(logits[None])
    assert_within(mapped[0], right[0], 25 * error_of(torch.float32), "vmap")


@pytest.mark.parametrize(
    ("mode", "changes", "error", "text"),
    [
        ("fgl", {"mode": "dfl"}, ValueError, "mode is 'dfl'; allowed: 'fgl', 'ddf'"),
        ("fgl", {"edges": None}, ValueError, "mode 'fgl' needs edges"),
        ("ddf", {"normalizer": 2.0}, ValueError, "mode 'ddf' has a mean of its own"),
        ("ddf", {"temperature": 0.0}, ValueError, "temperature is 0; it must be positive"),
        ("fgl", {"logits": torch.zeros(3, 2, 9, 130)}, ValueError, "logits has shape"),
        (
            "fgl",
            {"edges": torch.zeros(32)},
            ValueError,
            "edges has shape \\[32\\]; it must be \\[33\\]",
        ),
        ("fgl", {"target": torch.zeros(5, 3)}, ValueError, "target has shape"),
        ("fgl", {"reference": torch.zeros(3, 2, 9, 5)}, ValueError, "reference has shape"),
        ("fgl", {"quality": torch.zeros(3, 2, 8)}, ValueError, "quality has shape"),
        ("fgl", {"target_index": torch.zeros(2, 9).long()}, ValueError, "target_index has shape"),
        ("fgl", {"normalizer": torch.ones(2)}, ValueError, "normalizer has shape"),
        ("ddf", {"teacher": torch.zeros(2, 9, 128)}, ValueError, "teacher has shape"),
        ("ddf", {"confidence": torch.zeros(3, 2, 9)}, ValueError, "confidence has shape"),
        ("ddf", {"teacher": torch.zeros(2, 9, 132).int()}, TypeError, "teacher is int32"),
        ("ddf", {"logits": [1.0]}, TypeError, "logits is list; it must be a tensor"),
    ],
)
def test_refusals(mode: str, changes: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        distribution_loss(**(distribution_problem(mode) | changes))
