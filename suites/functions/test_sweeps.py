"""Every number of a 16-bit dtype in one call, for Functions that map single entries."""

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.harness.testing.observe import all_finite
from autograd_conformance.harness.testing.transforms import first_order
from autograd_conformance.strategies.sweeps import HALF


def _maps_entries(function):
    return facts_of(function).maps_entries


def _derives(function):
    return _maps_entries(function) and bool(function.soft or not function.surrogate)


@holds("VJP-FINITE", where=_maps_entries, dtypes=HALF, examples=0.04, variant="sweep", own=True)
def test_vjp_finite_sweep(subject, data):
    """The gradient is finite at every number of a 16-bit dtype."""
    for call in subject.recasts(data.draw(subject.sweeps(), label="call")):
        for example in subject.suspects(call, subject.policy.lost):
            outputs, gradients = example.run()
            subject.assert_finite(example, gradients, given=all_finite(subject.implementation, outputs))


@holds("VJP-REF", where=_derives, dtypes=HALF, examples=0.04, variant="sweep", own=True)
def test_vjp_ref_sweep(subject, data):
    """The gradient is right at every number of a 16-bit dtype."""
    for call in subject.recasts(data.draw(subject.sweeps(), label="call")):
        for example in subject.suspects(call, subject.policy.imprecise):
            expected = example.expected.gradients()
            subject.assert_close(example.call, example.names, got=example.run()[1], expected=expected)


@holds("VJP-FD", where=_derives, dtypes=("float64",), examples=0.005, variant="sweep", own=True)
def test_vjp_fd_sweep(subject, data):
    """The gradient is the slope at every number of float16, in double precision."""
    for example in subject.suspects(data.draw(subject.sweeps(), label="call"), subject.policy.steep):
        first = first_order(example)
        if first.estimate.reason is None:
            subject.assert_first_order(example.call, first)
