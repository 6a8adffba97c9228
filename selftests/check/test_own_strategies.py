"""Hypothesis strategies as arguments of a declaration."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from autograd_conformance import Declaration, implementations
from autograd_conformance.harness.check.declaration.described import described
from autograd_conformance.harness.outcomes import UsageProblem
from autograd_conformance.selftests.check.checking import accuses, faults_of
from autograd_conformance.selftests.check.test_own_command import check
from autograd_conformance.strategies.calls import Tensor, calls, parse, tensor_values
from autograd_conformance.strategies.scope import PLAIN, SMOOTH

TORCH = implementations.load("torch")
HALVES = st.floats(-3, 3)


class Picked(torch.autograd.Function):
    """Rows of a tensor, masked and scaled; indices may be equal."""

    accumulates = True

    @staticmethod
    def forward(ctx, x, index, scale, mask):
        ctx.save_for_backward(index, mask)
        ctx.scale, ctx.shape = scale or 1.0, x.shape
        return x[index] * mask * ctx.scale

    @staticmethod
    def backward(ctx, g):
        index, mask = ctx.saved_tensors
        return g.new_zeros(ctx.shape).index_add(0, index, g * mask * ctx.scale), None, None, None


class LastOnly(Picked):
    """The same, whose backward forgets that indices may be equal."""

    @staticmethod
    def backward(ctx, g):
        index, mask = ctx.saved_tensors
        found = g.new_zeros(ctx.shape)
        found[index] = g * mask * ctx.scale
        return found, None, None, None


def declared(function, **options):
    return Declaration(
        function, arrays(np.float32, (4,), elements=st.floats(-2, 2, width=32)),
        arrays(np.int64, (3,), elements=st.integers(0, 3)), st.none() | st.floats(0.5, 2), arrays(bool, (3,)),
        **options,
    )  # fmt: skip


def powers(x, k, flags, pair):
    return x**k if flags[0] else x * (k + pair[0])


STATICS = (
    st.integers(0, 3),
    st.lists(st.booleans(), min_size=1, max_size=2),
    st.tuples(st.sampled_from([1, 2]), st.text(max_size=2)),
)


def test_right_functions_are_accepted():
    assert accuses(declared(Picked), "VJP-FD", "VJP-REF", "FWD-DTYPE") == []
    shapes = array_shapes(max_dims=3, max_side=3)
    assert accuses(Declaration(powers, arrays(float, shapes, elements=HALVES), *STATICS), "VJP-FD", "VJP-REF") == []
    assert accuses(Declaration(torch.relu, arrays(float, (3, 2), elements=HALVES)), "VJP-FD") == []
    assert accuses(Declaration(torch.conj, arrays(complex, (3,), elements=st.complex_numbers(max_magnitude=2))),
                   "VJP-FD") == []  # fmt: skip


def test_a_fault_that_depends_on_drawn_values_is_found_and_printed():
    line, _ = faults_of(declared(LastOnly), "VJP-FD")[0]
    call = parse(line["failure"]["call"])
    indices = [value for _, value in call.args[1].specials]
    assert len(set(indices)) < len(indices)
    assert repr(call) == line["failure"]["call"].replace("\n", "")


def test_the_script_has_the_drawn_values(tmp_path):
    (tmp_path / "drawn.py").write_text(
        "from hypothesis import strategies as st\n"
        "from autograd_conformance import Declaration\n"
        "from autograd_conformance.selftests.check.test_own_strategies import LastOnly, declared\n"
        "wrong = declared(LastOnly, where=__file__ + ':1')\n"
    )
    words = ("--properties", "VJP-FD", "--profile", "quick", "--seed", 1)
    status, out, err = check("drawn.py", *words, folder=tmp_path)
    assert (status, err) == (1, ""), out
    script = tmp_path / "autograd-conformance-scripts" / "drawn" / "LastOnly-VJP-FD.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "wrong.arguments" not in script.read_text()


@given(st.data())
@settings(max_examples=30, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_calls_are_read_back_with_their_values(data):
    function = declared(Picked).sketch(TORCH)
    call = data.draw(calls(function, data.draw(st.sampled_from((PLAIN, SMOOTH)))))
    assert parse(repr(call)) == call
    values, index, scale, mask = tensor_values(call, function)
    assert values.tolist() == pytest.approx([value for _, value in call.args[0].specials], rel=0.01)
    assert index.dtype == np.int64
    assert set(index.tolist()) <= {0, 1, 2, 3}
    assert scale is None or 0.5 <= scale <= 2
    assert mask.dtype == bool


def test_calls_shrink_to_the_simplest_value():
    function = Declaration(powers, arrays(float, (2,), elements=HALVES), *STATICS).sketch(TORCH)
    quick = settings(max_examples=300, database=None, derandomize=True, phases=(Phase.generate, Phase.shrink))
    call = find(calls(function, PLAIN), lambda call: call.args[1] >= 2, settings=quick)
    assert call.args[1:] == (2, [False], (1, ""))
    assert hash(call) == hash(parse(repr(call)))


def test_what_is_drawn_does_not_change_and_is_described():
    ours = [declared(Picked).parsed.found[0].drawn((4,), False) for _ in range(2)]
    assert np.array_equal(*ours)
    first, *rest = ours[0]
    assert first.tolist() == [0.0] * 4
    assert len(rest) > 100
    text = described(declared(Picked))
    assert text.startswith("arrays(dtype=float32, shape=(4,),..., arrays(dtype=int64")
    assert "one_of(none(), floats(min_value=0.5, max_value=2))" in text


def test_a_list_that_a_function_changes_is_drawn_whole_again():
    def emptied(x, listed):
        return x * listed.pop()

    assert (
        accuses(Declaration(emptied, "float[n]", st.lists(st.integers(1, 3), min_size=2, max_size=2)), "VJP-FD") == []
    )


def test_tensors_of_this_suite_and_numbers_too_large_for_a_dtype():
    drawn = st.builds(Tensor, st.sampled_from([(2,), (1, 3)]), fill=st.sampled_from(["ramp", "dense"]))
    assert accuses(Declaration(torch.sin, drawn), "VJP-FD") == []
    large = Declaration(torch.neg, arrays(float, (2,), elements=st.floats(-1e5, 1e5)))
    assert large.candidates == ("float64", "float32", "bfloat16")


def test_infinity_is_an_argument_and_optional_arrays_are_none():
    (norm,) = Declaration(torch.norm, "float[n]", st.sampled_from([2.0, math.inf])).parsed.found[1:]
    assert norm.choices(()) == (2.0, math.inf)
    optional = Declaration(torch.add, "float[2]", st.none() | arrays(float, (2,), elements=HALVES)).parsed.found[1]
    assert (optional.optional, optional.dims) == (("none",), "2")


class Odd:
    pass


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (st.builds(Odd), "draws Odd <.*, which cannot be read from what is printed; draw arrays, numbers, texts, None"),
        (st.builds(lambda: {"a": Odd()}), "draws dict .*, which cannot be read from what is printed"),
        (st.builds(torch.ones, st.just(2)), r"draws Tensor tensor\(\[1., 1.\]\), which cannot be read"),
        (st.floats(), "draws nan, which equals nothing; add allow_nan=False"),
        (st.tuples(st.just(math.nan)), "draws nan, which equals nothing; add allow_nan=False"),
        (st.nothing(), "draws nothing: "),
        (st.integers().filter(lambda _: False), "draws nothing: "),
        (st.integers(3, 1), "draws nothing: .*Cannot have max_value=1 < min_value=3"),
        (arrays(float, (2,)), r"draws nan or infinity; .*elements=floats\(-4, 4\)"),
        (arrays(np.uint16, (2,)), "draws arrays of uint16; draw one of: float64"),
        (arrays("U3", (2,)), "draws arrays of <U3; draw one of: float64"),
        (arrays(float, (600,), elements=st.just(1.0)), "draws arrays of more than 512 elements; draw smaller ones"),
        (
            st.integers(0, 1) | arrays(float, (2,), elements=HALVES),
            "draws arrays and also [01]; draw arrays, or arrays",
        ),
    ],
)
def test_strategies_that_cannot_be_arguments(strategy, said):
    with pytest.raises(UsageProblem, match=rf"test_own_strategies.py:\d+: mul: .*{said}"):
        Declaration(torch.mul, "float[2]", strategy)
