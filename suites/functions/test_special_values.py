"""NaN, infinities and the largest numbers in single elements: they do not spoil the results of the others."""

from dataclasses import replace

import numpy as np

from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.reference.definitions import REAL
from autograd_conformance.reference.rounding import PRECISION
from autograd_conformance.strategies.scope import PLAIN
from autograd_conformance.strategies.values import admits_specials

ANY_NUMBER = replace(PLAIN, specials="any number")


def _takes_any_number(function):
    # A window that reaches beyond a tensor multiplies with zeros, and 0 times NaN is NaN.
    windows = any("+" in argument.dims or "-" in argument.dims for argument in function.arrays)
    return any(admits_specials(argument.values) for argument in function.arrays) and not windows


def _claimed(example, results):
    """The results of the reference, with no claim where engines may differ.

    That is where they are not finite, where they are 0, which may be a product with 0, and where it matters whether
    subnormal numbers are flushed to 0.
    """
    normal = PRECISION[example.call.dtype].normal
    flushed = {
        n: np.where(np.abs(example.values[slot]) < normal, np.copysign(0.0, example.values[slot]), example.values[slot])
        for n, slot in enumerate(example.slots)
        if example.call.tensors[n].dtype in REAL
    }
    with np.errstate(all="ignore"):
        expected, others = results(example.expected), results(example.given(flushed).expected)
        rows = zip(expected, others, strict=True)
        return [e if e is None else e.widened(_freedom(e.value, o.value, normal)) for e, o in rows]


def _freedom(value, other, normal):
    claimed = np.isfinite(value) & np.isfinite(other) & (value != 0)
    return np.where(claimed, np.abs(value - other) + normal, np.inf)


@holds("FWD-VALUE", where=_takes_any_number, dtypes=REAL, examples=0.3, variant="specials")
def test_fwd_value_specials(subject, data):
    """Where the reference is finite, the outputs match it, whatever numbers the other elements are."""
    example = subject.example(data.draw(subject.calls(ANY_NUMBER), label="call"))
    expected = _claimed(example, lambda expected: expected.outputs)
    subject.assert_close(example.call, example.output_names, got=example.outputs(), expected=expected)


@holds("VJP-REF", where=_takes_any_number, dtypes=REAL, examples=0.3, variant="specials")
def test_vjp_ref_specials(subject, data):
    """Where the reference is finite, the gradients match it, whatever numbers the other elements are."""
    example = subject.example(data.draw(subject.calls(ANY_NUMBER), label="call"))
    expected = _claimed(example, lambda expected: expected.gradients())
    subject.assert_close(example.call, example.names, got=example.run()[1], expected=expected)
