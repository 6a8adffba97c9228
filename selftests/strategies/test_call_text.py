"""The text of a call: the call can be rebuilt from it, and other text is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograd_conformance.harness.testing.compare import same_bits
from autograd_conformance.reference.definitions import Function
from autograd_conformance.selftests.strategies.drawn_examples import SQUARE, always
from autograd_conformance.selftests.support.declared import every
from autograd_conformance.strategies.calls import Call, Cotangent, Tensor, calls, parse, tensor_values
from autograd_conformance.strategies.scope import ANY_MASK


def same_values(a: Call, b: Call, function: Function) -> bool:
    pairs = zip(tensor_values(a, function), tensor_values(b, function), strict=True)
    return all(same_bits(x, y) if isinstance(x, np.ndarray) else x == y for x, y in pairs)


@every
def test_calls_are_rebuilt_from_their_text(function: Function) -> None:
    def holds(call: Call) -> bool:
        again = parse(repr(call))
        return again == call and repr(again) == repr(call) and same_values(call, again, function)

    always(calls(function), holds, examples=30)
    always(calls(function, replace(ANY_MASK, specials="extreme")), holds, examples=15)


@pytest.mark.parametrize(
    "argument",
    [
        2, -3, 0.5, -1.5, -0.0, 1e-300, 1e300, None, True, False, "text", 'quo"te\'s', "Call('Exp')", (), (1,),
        ((1, -2), ()),
        ((2,), (("a", None), -0.0)), 1j, 1 + 0.5j, -2.5 - 1j, math.inf, -math.inf,
    ],
    ids=repr,
)  # fmt: skip
def test_odd_arguments_are_rebuilt(argument: Any) -> None:
    call = Call("F", (argument,))
    again = parse(repr(call)).args[0]
    assert repr(again) == repr(argument)
    assert type(again) is type(argument)
    assert again == argument


def test_odd_specials_are_rebuilt() -> None:
    specials = ((0, math.nan), (1, math.inf), (2, -math.inf), (3, -0.0), (4, 5e-324), (5, -1.0))
    call = Call("Square", (Tensor((2, 3), specials=specials),), device="lazy", seed=65535, smooth=True)
    again = parse(f"  {call!r}\n")
    assert repr(again) == repr(call)
    assert same_values(call, again, SQUARE)
    assert again.device == "lazy"


def test_the_text_leaves_defaults_out() -> None:
    assert repr(Tensor((2,))) == "Tensor((2,))"
    assert repr(Tensor((), "float32", requires_grad=True)) == "Tensor((), dtype='float32', requires_grad=True)"
    assert repr(Cotangent()) == "Cotangent()"
    assert repr(Cotangent("ramp")) == "Cotangent('ramp')"
    assert repr(Call("Exp", (Tensor(()),), (None,))) == "Call('Exp', args=(Tensor(()),), cotangents=(None,))"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Call",
        "Tensor((2,))",
        "(Call('Exp'),)",
        "Call('Exp'); Call('Exp')",
        "Call('Exp') or 1",
        "Call('Exp').dtype",
        "Call('Exp', __import__('os').getcwd())",
        "Call('Exp', (open('x'),))",
        "Call('Exp', (print,))",
        "Call('Exp', args=(Call.__class__,))",
        "Call('Exp', args=[x for x in (1,)])",
        "Call('Exp', args=(lambda: 1,))",
        "Call(*('Exp',))",
        "Call(**{'function': 'Exp'})",
        "Call('Exp', nonsense=1)",
        "Call('Exp', seed=2**100)",
        "Call('Exp', args=(f'{1}',))",
        "Call('Exp', args=('a'.upper(),))",
        "Call('Exp', args=((1, 2)[0],))",
        "Call('Exp', args=(-'a',))",
        "Call('Exp', args=(x := 1,))",
        "Call('Exp', seed=np.int64(3))",
        "Call()",
        "call('Exp')",
        "eval('1')",
        "Call('Exp'\x00)",
        "Call('Exp', seed=" + "9" * 5000 + ")",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - also what ast says of null bytes
        parse(text)


@pytest.mark.parametrize("text", ["(" * 300 + ")" * 300, "-" * 100_000 + "1", "Call(" * 3000 + ")" * 3000])
def test_deeply_nested_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a printed call"):
        parse(f"Call('Exp', args=({text},))")


def test_specials_that_do_not_count_are_left_out() -> None:
    assert Tensor((2,), specials=((4, 1.0), (3, 2.0), (10, 3.0))).specials == ((0, 3.0), (1, 2.0))
    assert Tensor((0,), specials=((0, 1.0),)) == Tensor((0,))
