# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""A family from outside of boxloss is compared, replaced and given back as boxloss' own are."""

import copy
import pickle
from typing import Any
from unittest.mock import patch

import pytest
import torch

pytest.importorskip("scipy.optimize")
from boxloss.torch.compat import Family, has_boxloss, register_family, swap, use_boxloss

from examples import own_family
from examples.own_family import Criterion, Matcher, SetCriterion, cases


class Derived(SetCriterion):
    """A user's own, which keeps what is replaced."""


@pytest.mark.parametrize("kind", [SetCriterion, Derived])
def test_is_put_in_and_taken_out(kind: type[SetCriterion]) -> None:
    made = kind(Matcher(1.0, 2.0, 3.0), alpha=0.4)
    given = next(cases(made)).arguments
    before = made(**given)
    replaced = use_boxloss(made)
    assert replaced.names == {f"{kind.__module__}.{kind.__name__}": "examples.own_family.Criterion"}
    assert isinstance(made, Criterion)
    assert has_boxloss(copy.deepcopy(made))
    assert type(pickle.loads(pickle.dumps(made))) is kind
    after = made(**given)
    assert after.keys() == before.keys()
    assert all(torch.allclose(after[name], before[name], rtol=1e-5) for name in before)
    with pytest.raises(ValueError, match="has boxloss already"):
        use_boxloss(made)
    replaced.restore()
    assert type(made) is kind


def test_another_formula_is_refused() -> None:
    made = SetCriterion(Matcher())
    with (
        patch.object(own_family, "set_criterion", Wrong(own_family.set_criterion)),
        pytest.raises(
            ValueError, match=r"this SetCriterion \(examples of unknown version\): loss_ce_0 is "
        ),
    ):
        use_boxloss(made)
    assert type(made) is SetCriterion


class Wrong:
    def __init__(self, theirs: Any) -> None:
        self.theirs = theirs

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self.theirs(*given, **{**options, "alpha": 0.5})


def test_parts_of_its_own() -> None:
    made = SetCriterion(Matcher())
    use_boxloss(made)
    giou = own_family.giou
    with (
        patch.object(own_family, "giou", lambda *pair: giou(*pair)),
        pytest.raises(ValueError, match=r"own_family\.giou has been replaced by"),
    ):
        made(**next(cases(made)).arguments)


def test_what_is_not_registered() -> None:
    family = Family(own_family.replace, cases, own_family.PARTS)
    with pytest.raises(ValueError, match="SetCriterion, which use_boxloss knows already"):
        register_family(SetCriterion, family)
    with pytest.raises(TypeError, match="kind is 'SetCriterion'; it must be a class"):
        register_family("SetCriterion", family)  # type: ignore[arg-type]


def test_a_replace_that_yields_nothing() -> None:
    def replace(model: Any) -> Any:
        return [swap(model, Criterion)]

    with pytest.raises(TypeError, match=r"replace is <function .* must be a generator function"):
        Family(replace, cases, own_family.PARTS)
