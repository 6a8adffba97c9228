"""Long tensors of users' Functions: more elements than a block of a kernel has."""

from dataclasses import replace

from autograd_conformance.harness.check.declaration.facts import facts_of
from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.calls import contiguous
from autograd_conformance.strategies.lengths import LONG
from autograd_conformance.strategies.scope import PLAIN, SMOOTH

DOUBLE = ("float64", "complex128")
# In lower precision the bound of a long sum admits nearly anything.
PRECISE = (*DOUBLE, "float32", "complex64")


def _is_long(function):
    return bool(facts_of(function).long_shapes)


def _derives(function):
    return _is_long(function) and bool(function.soft or not function.surrogate)


def _is_surrogate(function):
    return _is_long(function) and not _derives(function)


def _refers(function):
    return _is_long(function) and function.declaration.reference is not None


def _drawn(subject, data, scope):
    """A call of each length."""
    for length in dict.fromkeys(max(map(max, filter(None, shapes))) for shapes in subject.function.facts.long_shapes):
        shapes = tuple(s for s in subject.function.facts.long_shapes if max(map(max, filter(None, s))) == length)
        scope = replace(scope, layouts="contiguous", specials="none")
        yield contiguous(data.draw(subject.calls(scope, shapes=shapes), label="call"))


@holds("FWD-VALUE", where=_refers, dtypes=DOUBLE, examples=0.08, variant=LONG, own=True)
def test_fwd_value_long(subject, data):
    """The outputs of long tensors match the reference that the user gave."""
    for call in _drawn(subject, data, PLAIN):
        subject.example(call)
        subject.verify_reference(call)


@holds("VJP-FD", where=_derives, dtypes=DOUBLE, examples=0.015, variant=LONG, own=True)
def test_vjp_fd_long(subject, data):
    """The gradients of long tensors match finite differences."""
    for call in _drawn(subject, data, SMOOTH):
        example = subject.example(call)
        subject.assert_first_order(example.call, transforms.first_order(example))


@holds("VJP-REF", where=_is_surrogate, dtypes=PRECISE, examples=0.08, variant=LONG, own=True)
def test_vjp_ref_long(subject, data):
    """The gradients of long tensors, where no slope is declared, are those of the plain call in double precision."""
    for call in _drawn(subject, data, PLAIN):
        example = subject.example(call)
        subject.assert_close(call, example.names, got=example.run()[1], expected=example.expected.gradients())
