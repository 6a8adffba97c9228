"""Anomaly mode: which call an error in backward comes from, and NaN gradients."""

import warnings

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.torch._nodes import metadata_of

MODES = {
    "detect_anomaly": lambda **options: torch.autograd.detect_anomaly(**options),
    "set_detect_anomaly": lambda **options: torch.autograd.set_detect_anomaly(True, **options),
}


class Scale(torch.autograd.Function):
    """The sum of its arguments; gradients are the cotangent times factors. An exception as a factor is raised."""

    @staticmethod
    def forward(ctx, factors, *tensors):
        ctx.factors = factors
        return sum(tensors)

    @staticmethod
    def backward(ctx, g):
        raised = [f for f in ctx.factors if isinstance(f, Exception)]
        if raised:
            raise raised[0]
        return (None, *(g * factor for factor in ctx.factors))


def _called_first(*args):
    return Scale.apply(*args)


def _called_second(*args):
    return Scale.apply(*args)


def _called_within(*args):
    return _called_first(*args)


ERRORS = {error.__name__: error for error in (RuntimeError, ValueError, KeyError)}
PLACES = {f.__name__: f for f in (_called_first, _called_second, _called_within)}


def _leaves(subject, count, shape=(3,), dtype="float64"):
    return [subject.tensor(np.ones(shape), dtype).requires_grad_() for _ in range(count)]


@keeps("ANOM-01", variant="traceback")
def test_errors_in_backward_are_shown_with_the_call(subject, data):
    """A warning shows where the failing call was made; without anomaly mode there is none."""
    mode = subject.draw(data, MODES, "mode")
    check_nan = subject.draw(data, st.booleans(), "check_nan")
    place = subject.draw(data, PLACES, "called from")
    error = ERRORS[subject.draw(data, ERRORS, "error in backward")]
    (x,) = _leaves(subject, 1)

    def backward():
        with MODES[mode](check_nan=check_nan):
            loss = PLACES[place]([error("a reason")], x).sum()
            _called_second([1], x).sum().backward()
            subject.assert_raises(error, loss.backward, "an error in backward", naming=["a reason"])

    facts = [place, "ScaleBackward", "Traceback"]
    subject.assert_warns(UserWarning, backward, "the warning for an error in backward", naming=facts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        usual = PLACES[place]([error("a reason")], x).sum()
        subject.assert_raises(error, usual.backward, "an error in backward without anomaly mode")
    subject.assert_equal("warnings without anomaly mode", got=[str(w.message) for w in caught], expected=[])


@keeps("ANOM-01", variant="nan")
def test_nan_gradients_raise_unless_they_are_not_checked(subject, data):
    """NaN in one gradient raises and names its position; with check_nan=False it does not."""
    mode = subject.draw(data, MODES, "mode")
    count = subject.draw(data, st.integers(1, 3), "arguments")
    position = subject.draw(data, range(count), "argument with NaN in its gradient")
    shape, dtype = subject.draw(data, ((), (1,), (3,)), "shape"), subject.draw(data, subject.dtypes, "dtype")
    element = subject.draw(data, range(*shape or (1,)), "NaN element")
    create = subject.draw(data, st.booleans(), "create_graph")
    leaves = _leaves(subject, count, shape, dtype)
    numbers = np.where(np.arange(np.prod(shape, dtype=int)) == element, np.nan, 1.0)
    factor = subject.tensor(numbers.reshape(shape), dtype)
    factors = [factor if i == position else 2 for i in range(count)]

    def backward(check_nan, factors):
        with MODES[mode](check_nan=check_nan):
            return torch.autograd.grad(Scale.apply(factors, *leaves).sum(), leaves, create_graph=create)

    facts = ["nan", "ScaleBackward", (f"{position}th", position)]
    subject.assert_raises(RuntimeError, lambda: backward(True, factors), "a NaN gradient", naming=facts)
    got = subject.assert_accepted(lambda: backward(False, factors), "a NaN gradient with check_nan=False")
    expected = [factor if i == position else torch.full_like(factor, 2) for i in range(count)]
    subject.assert_all_same("gradients", got=got, expected=expected)
    subject.assert_accepted(lambda: backward(True, [2] * count), "gradients without NaN")


@keeps("ANOM-01", variant="nested")
def test_leaving_anomaly_mode_restores_what_was(subject, data):
    """Leaving a nested anomaly mode, which may be off, restores the check_nan of the outer one."""
    modes = {**MODES, "off": lambda check_nan: torch.autograd.set_detect_anomaly(False, check_nan)}
    levels = st.lists(st.tuples(st.sampled_from(tuple(modes)), st.booleans()), min_size=1, max_size=3)
    nested = subject.draw(data, levels, "modes and their check_nan, the outermost first")
    (x,) = _leaves(subject, 1)

    def check(check_nan):
        backward = Scale.apply([float("nan")], x).sum().backward
        if check_nan:
            subject.assert_raises(RuntimeError, backward, "a NaN gradient", naming=["nan"])
        else:
            subject.assert_accepted(backward, "a NaN gradient that is not checked")

    def enter(level, *others):
        mode, check_nan = level
        with modes[mode](check_nan=check_nan):
            check(check_nan and mode != "off")
            if others:
                enter(*others)
                check(check_nan and mode != "off")

    enter(*nested)
    check(check_nan=False)


@keeps("ANOM-02")
def test_metadata_holds_the_traceback_of_the_call(subject, data):
    """A node's metadata names the function that made the call; without anomaly mode it is empty."""
    mode = subject.draw(data, MODES, "mode")
    places = subject.draw(data, st.lists(st.sampled_from(tuple(PLACES)), min_size=1, max_size=3), "called from")
    (x,) = _leaves(subject, 1)
    usual = _called_first([2], x)
    with MODES[mode]():
        outputs = [PLACES[place]([2], x) for place in places]

    def places_in(output):
        text = "".join(metadata_of(output.grad_fn).get("traceback_", ()))
        return {place for place in PLACES if f"in {place}\n" in text}

    through = {"_called_within": {"_called_within", "_called_first"}}
    expected = [through.get(place, {place}) for place in places]
    subject.assert_equal("functions in metadata's traceback", got=[places_in(y) for y in outputs], expected=expected)
    subject.assert_equal("metadata of a call without anomaly mode", got=metadata_of(usual.grad_fn), expected={})
