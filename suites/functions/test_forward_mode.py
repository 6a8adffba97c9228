"""Forward-mode rules of custom Functions."""

from autograd_conformance.harness import transforms
from autograd_conformance.harness.marks import holds


@holds("JVP-REF", where=lambda f: f.jvp is not None, needs="jvp")
def test_jvp_ref(subject, data):
    example = subject.example(data.draw(subject.calls(expanded=False), label="call"))
    got, expected = transforms.forward_mode(example)
    names = [f"tangent of {name}" for name in example.output_names]
    subject.assert_close(example.call, names, got=got, expected=expected)


@holds("JVP-ADJOINT", where=lambda f: f.jvp is not None and not f.surrogate, needs="jvp")
def test_jvp_adjoint(subject, data):
    example = subject.example(data.draw(subject.calls(unused=False, full=True, expanded=False), label="call"))
    forward, reverse = transforms.adjoint(example)
    what = ("<cotangent, JVP(tangent)> against <VJP(cotangent), tangent>",)
    subject.assert_close(example.call, what, got=(forward,), expected=(reverse,), slack=1.0)
