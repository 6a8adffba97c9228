"""Nothing is found wrong with torch's own functions, declared as users declare theirs.

``--seed N`` draws other examples.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from autograd_conformance.harness.check.verdicts import verdict
from autograd_conformance.selftests.builtins import BUILTINS, EACH_KIND
from autograd_conformance.selftests.checking import accuses
from autograd_conformance.suites.declared import Checked

# Properties that hold at least, of any of them.
_LEAST = 20


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_few_calls_accuse_none_of_each_kind(name):
    assert accuses(BUILTINS[name]) == []


@pytest.mark.parametrize("name", BUILTINS)
def test_a_right_function_is_not_accused(name, request):
    lines = list(Checked(BUILTINS[name], seed=request.config.option.seed or 0).lines())
    judged = [(line, verdict(line)) for line in lines]
    assert [line for line, v in judged if v is not None and v.fault] == []
    assert sum(line["outcome"] == "pass" for line in lines) > _LEAST
