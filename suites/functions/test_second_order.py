"""Derivatives of the derivative."""

from dataclasses import replace

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.scope import SMOOTH

DOUBLE = ("float64", "complex128")


@holds(
    "DBL-CORRECT",
    where=lambda f: f.double == "supported" and not f.surrogate,
    needs="double_backward",
)
def test_dbl_correct(subject, data):
    """Second derivatives match finite differences in double precision, and exist in lower precision."""
    calls = subject.calls(replace(SMOOTH, specials="none", cotangent_layouts=False))
    example = subject.example(data.draw(calls, label="call"))
    loss = subject.draw(data, transforms.LOSSES, "loss")
    engine = subject.draw(data, subject.engines, "through")
    second = transforms.second_order(example, loss, engine)
    subject.assert_second_order(example.call, second)


@holds(
    "DBL-ONCE",
    where=lambda f: f.double == "once",
    dtypes=DOUBLE,
    needs="double_backward once_differentiable accumulate",
)
def test_dbl_once(subject, data):
    """First derivatives are right under create_graph, and a second derivative raises."""
    calls = subject.calls(replace(SMOOTH, mask="full", layouts="contiguous", cotangent_layouts=False))
    example = subject.example(data.draw(calls, label="call"))
    _, pullback = subject.implementation.vjp(example.f, example.primals, track=example.track)
    got, expected = pullback(example.cotangents, differentiable=True), example.expected.gradients()
    subject.assert_close(example.call, example.names, got=got, expected=expected, hint="under create_graph")
    loss = subject.draw(data, transforms.LOSSES, "loss")
    second = transforms.second_order(example, loss, "backward")
    what = "the second derivative"
    subject.assert_that(second.refusal is not None, example.call, what, got="a result", expected="an exception")
