# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""The study of detectors: all variants compute one criterion, and one that does not is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

pytest.importorskip("boxloss.torch")
pytest.importorskip("rich")
pytest.importorskip("scipy")

from benchmarks.runner.agreement import DisagreementError, Truth
from benchmarks.runner.run import UnavailableError
from benchmarks.studies import detectors
from benchmarks.studies.detectors import cases, check, criteria
from benchmarks.studies.detectors.cases import CRITERION, PARTS, Case, make_case

CASES = {
    (kind, part): make_case(kind, part, cases.QUICK_SHAPES[kind])
    for kind, parts in PARTS.items()
    for part in parts
}


def truths(case: Case) -> dict[str, Truth]:
    try:
        return detectors.truths(case)
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("operators", [criteria.plain_operators, criteria.fused_operators])
def test_compiled_code_agrees(
    operators: Callable[..., criteria.Operators], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced and made graphs, which then run as they are: no compiler is needed."""
    case = CASES["detr", CRITERION]
    expected = truths(case)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    check("torch.compile", detectors.load_compiled(case, operators), case, expected)
    torch.compiler.reset()


@pytest.mark.parametrize("place", CASES)
def test_a_wrong_variant_is_refused(place: tuple[str, str]) -> None:
    """A thousandth more of all, or of one leaf's gradient."""
    case = CASES[place]
    expected = truths(case)
    right = detectors.load_vectorized(case)
    with pytest.raises(DisagreementError, match="more: loss "):
        check("more", lambda: 1.001 * right(), case, expected)

    def steeper(leaf: str) -> Tensor:
        """Right in value."""
        loss = right()
        (gradient,) = torch.autograd.grad(loss, case.leaves[leaf], retain_graph=True)
        more = (case.leaves[leaf] * gradient).sum()
        return loss + 0.001 * (more - more.detach())

    for leaf in case.wanted:
        with pytest.raises(DisagreementError, match=f"steeper: gradient .* {leaf} of "):
            check("steeper", partial(steeper, leaf), case, expected)
