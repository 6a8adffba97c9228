"""The draws that the docstrings of the strategies show."""

from __future__ import annotations

import doctest

import pytest

from autograd_conformance import strategies
from autograd_conformance.reference.functions import FUNCTIONS
from autograd_conformance.selftests.strategies.drawn_examples import reaches
from autograd_conformance.strategies import calls as calls_module
from autograd_conformance.strategies import generated_functions, scope

SHOWN = [
    pytest.param(example, id=example.source.strip())
    for module in (strategies, calls_module, generated_functions)
    for found in doctest.DocTestFinder().find(module)
    for example in found.examples
]


@pytest.mark.parametrize("example", SHOWN)
def test_a_draw_in_a_docstring_can_be_drawn(example: doctest.Example) -> None:
    """It prints as it is shown, and the strategy draws its like."""
    names = {**vars(calls_module), **vars(generated_functions), **vars(scope), "FUNCTIONS": FUNCTIONS}
    shown = eval(example.want, names)
    assert "".join(repr(shown).split()) == "".join(example.want.split())
    strategy = eval(example.source.removesuffix(".example()\n"), names)
    reaches(strategy, lambda value: type(value) is type(shown))


def test_there_are_draws_in_docstrings() -> None:
    assert len(SHOWN) >= 8
