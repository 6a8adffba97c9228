"""What is declared of the Functions: that it is coherent, and that the bodies do it."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autograd_conformance.implementations.model import ModelImplementation
from autograd_conformance.implementations.protocol import CAPABILITIES
from autograd_conformance.reference.definitions import FLOATING, Array, Function, Static
from autograd_conformance.reference.functions import EXHIBITS, FUNCTIONS
from autograd_conformance.reference.namespace import ARRAY_NAMES, EXTRA_NAMES
from autograd_conformance.reference.properties import PROPERTIES
from autograd_conformance.selftests.oracles.reference_cases import Case, doubles, for_calls
from autograd_conformance.selftests.support.declared import DECLARED, every
from autograd_conformance.strategies.calls import Call, Tensor
from autograd_conformance.strategies.scope import ALL_USED
from autograd_conformance.strategies.shapes import shape_tuples


def test_keys_are_the_names() -> None:
    assert all(name == function.name for name, function in DECLARED.items())
    assert not set(FUNCTIONS) & set(EXHIBITS)
    assert len(DECLARED) == len(FUNCTIONS) + len(EXHIBITS)


def test_each_documented_function_says_what_only_it_exercises() -> None:
    texts = [function.exercises for function in FUNCTIONS.values()]
    assert len(set(texts)) == len(texts)


@every
def test_declaration_is_coherent(function: Function) -> None:
    for text in (function.document, function.exercises):
        assert text.strip() == text != ""
        assert "\n" not in text
        assert len(text) <= 120
        assert not text.endswith(".")
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", function.name)
    assert function.dtypes
    assert list(function.dtypes) == [d for d in FLOATING if d in function.dtypes]
    assert doubles(function), "the ladder and the strategies need a double-precision dtype"
    assert function.needs <= set(CAPABILITIES)
    names = [argument.name for argument in function.arguments]
    assert len(set(names)) == len(names)
    assert any(argument.differentiable for argument in function.arrays)
    assert any(output.differentiable for output in function.outputs)
    assert all(isinstance(function.arguments[i], Array) for i in function.inplace)
    assert ("inplace" in function.needs) == bool(function.inplace)
    for argument in function.arrays:
        assert (argument.dtype is None) == (argument.make is None)
    for name in function.sizes:
        tokens = " ".join(argument.dims for argument in function.arrays)
        assert name in re.findall(r"\*?[a-z_]+", tokens), f"{name} sizes nothing"
    optional = [bool(a.optional) if isinstance(a, Array) else a.default is not ... for a in function.arguments]
    omitted = ["omitted" in a.optional if isinstance(a, Array) else a.default is not ... for a in function.arguments]
    assert omitted == sorted(omitted), "only trailing arguments can be omitted"
    assert sum(optional) <= len(function.arguments)
    for static in function.statics:
        for shapes in shape_tuples(function)[:20]:
            assert len(static.choices(shapes)) > 0
            if static.default is not ...:
                assert static.default in static.choices(shapes)


@pytest.mark.parametrize("exhibit", EXHIBITS.values(), ids=EXHIBITS)
def test_exhibit_names_its_fault(exhibit: Any) -> None:
    assert exhibit.caught_by
    assert set(exhibit.caught_by) <= set(PROPERTIES)
    assert exhibit.fault
    assert "\n" not in exhibit.fault


class Recording:
    """A namespace that notes which of its names are used."""

    def __init__(self, namespace: Any) -> None:
        self.namespace, self.used = namespace, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return getattr(self.namespace, name)


@every
def test_body_does_what_is_declared(function: Function) -> None:
    """Observed while the body runs on the model: names, once-differentiability, marks and rules."""
    implementation = ModelImplementation()
    xp, declared = Recording(implementation.xp), []

    def once_differentiable(backward: Any) -> Any:
        declared.append(backward)
        return implementation.ag.once_differentiable(backward)

    ag = SimpleNamespace(Function=implementation.ag.Function, once_differentiable=once_differentiable)
    try:
        cls = function.body(xp, ag)
    except ModuleNotFoundError as missing:
        pytest.skip(f"it is written with {missing.name}, which is not installed")
    custom = [kind for kind in cls.__mro__ if issubclass(kind, ag.Function) and kind is not ag.Function]
    own = {name for kind in custom for name in vars(kind)}
    assert ("jvp" in own) == (function.jvp is not None)
    assert ("vmap" in own or "generate_vmap_rule" in own) == function.batching

    def check(call: Call) -> None:
        case = Case(function, call)
        tensors = [
            implementation.array(np.array(v), t.dtype, "cpu") if isinstance(t, Tensor) else t
            for v, t in zip(case.args, call.args, strict=False)
        ]
        slots = [i for i, t in enumerate(call.args) if isinstance(t, Tensor)]

        def f(*primals: Any) -> Any:
            args = list(tensors)
            for slot, x in zip(slots, primals, strict=True):
                args[slot] = implementation.xp.copy(x) if slot in function.inplace else x
            return implementation.function(cls)(*args)

        track = [t.requires_grad for t in call.tensors]
        outputs, pull = implementation.vjp(f, [tensors[i] for i in slots], track=track)
        dtypes = [implementation.describe(y).dtype for y in outputs]
        seeds = zip(case.cotangents, dtypes, strict=True)
        pull([None if g is None else implementation.array(g, dtype, "cpu") for g, dtype in seeds])
        floating = [y for y, o in zip(outputs, function.outputs, strict=True) if o.differentiable]
        marked = [y for y, o in zip(outputs, function.outputs, strict=True) if not o.differentiable]
        assert all(implementation.requires_grad(y) for y in floating)
        assert not any(implementation.requires_grad(y) for y in marked)

    if function.name in FUNCTIONS:
        for_calls(function, check, examples=10, dtypes=doubles(function), scope=replace(ALL_USED, mask="full"))
        assert bool(declared) == (function.double == "once")
    assert xp.used <= {*ARRAY_NAMES, *EXTRA_NAMES, "float64"}
    assert not xp.used & {"to_numpy", "from_numpy"} or "numpy" in function.needs
    assert "sparse_matmul" not in xp.used or "sparse" in function.needs


def test_statics_are_the_arguments_that_are_no_tensors() -> None:
    for function in DECLARED.values():
        assert all(isinstance(argument, Array | Static) for argument in function.arguments)
        assert len(function.arrays) + len(function.statics) == len(function.arguments)
