"""Forward-mode rules of custom Functions."""

from dataclasses import replace

from autograd_conformance.harness.testing import transforms
from autograd_conformance.harness.testing.marks import holds
from autograd_conformance.strategies.scope import UNEXPANDED


@holds("JVP-REF", where=lambda f: f.jvp is not None, needs="jvp")
def test_jvp_ref(subject, data):
    """The tangents of forward mode match the reference."""
    example = subject.example(data.draw(subject.calls(UNEXPANDED), label="call"))
    got, expected = transforms.forward_mode(example)
    names = [f"tangent of {name}" for name in example.output_names]
    subject.assert_close(example.call, names, got=got, expected=expected)


@holds("JVP-ADJOINT", where=lambda f: f.jvp is not None and not f.surrogate, needs="jvp")
def test_jvp_adjoint(subject, data):
    """<cotangent, JVP(tangent)> equals <VJP(cotangent), tangent>."""
    example = subject.example(
        data.draw(subject.calls(replace(UNEXPANDED, mask="full", unused_outputs=False)), label="call")
    )
    forward, reverse = transforms.adjoint(example)
    what = ("<cotangent, JVP(tangent)> against <VJP(cotangent), tangent>",)
    subject.assert_close(example.call, what, got=(forward,), expected=(reverse,), slack=1.0)
