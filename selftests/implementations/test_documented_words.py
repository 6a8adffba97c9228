"""torch is called by the keywords that it documents, and not by those that it happens to take as well."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from autograd_conformance.implementations.torch import TorchImplementation
from autograd_conformance.implementations.torch.script import KEYWORDS
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.reference.uses import POINTS, USES

NUMPYS = frozenset(KEYWORDS)


class Listening(TorchFunctionMode):
    """A context that keeps the keywords of each call of torch."""

    def __init__(self):
        super().__init__()
        self.heard = {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.heard.setdefault(function.__name__, set()).update(kwargs or ())
        return function(*args, **(kwargs or {}))


def heard(action):
    with Listening() as listening:
        action()
    return {name: words for name, words in listening.heard.items() if words & NUMPYS}


@pytest.mark.parametrize("use", [use for use in USES if any(f"{word}=" in use.text for word in NUMPYS)], ids=str)
def test_each_use_is_documented(use):
    tensors = [torch.from_numpy(POINTS[name]) for name in use.given]
    found = []
    assert heard(lambda: found.append(use.apply(TorchImplementation.xp, *tensors))) == {}
    assert np.ndim(found[0]) >= 0


def test_another_word_is_heard():
    assert heard(lambda: torch.sum(torch.ones(2, 3), axis=0, keepdims=True)) == {"sum": {"axis", "keepdims"}}


def test_bodies_are_documented():
    sort = next(f for f in FUNCTIONS.values() if f.name == "Sort")
    cls = sort.body(TorchImplementation.xp, TorchImplementation.ag)
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert heard(lambda: cls.apply(x, 1)[0].sum().backward()) == {}
