"""What a Function in C++ takes as inputs, and what its backward gets and has to return."""

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.cpp._probes import FACTORS, VECTORS, Product, probes


@keeps("CPP-FN-01")
def test_an_optional_tensor_is_an_input(subject, data):
    """A bias that is given has a gradient; without one the others have theirs."""
    call = Product(subject, data)
    y = call.outputs()[0]
    found = torch.autograd.grad(y, call.tensors, call.g, allow_unused=True)
    subject.assert_all_same("gradients", got=found, expected=call.gradients())


@keeps("CPP-FN-02")
def test_the_tensors_of_a_list_are_no_inputs(subject, data):
    """The tensor of the list counts in the output, and has no gradient."""
    call = Product(subject, data, bias=False)
    y, x, w = call.outputs()[0], *call.tensors
    subject.assert_same("output", got=y, expected=call.factor * x * w + call.listed)
    (found,) = torch.autograd.grad(y, call.listed, call.g, allow_unused=True)
    subject.assert_same("gradient of the tensor in the list", got=found, expected=None)


@keeps("CPP-FN-12")
def test_the_tensors_of_a_tensor_list_are_inputs(subject, data):
    """Of one to three tensors the n-th has n times the cotangent."""
    values = subject.draw(data, st.lists(VECTORS, min_size=1, max_size=3), "tensors")
    tensors = [tensor.requires_grad_() for tensor in subject.tensors(values)]
    g = subject.tensor(subject.draw(data, VECTORS, "cotangent"))
    y = probes().summed(tensors)
    subject.assert_same("output", got=y, expected=sum(t.detach() for t in tensors))
    found = torch.autograd.grad(y, tensors, g, allow_unused=True)
    subject.assert_all_same("gradients", got=found, expected=[(n + 1) * g for n in range(len(tensors))])


@keeps("CPP-FN-03")
def test_backward_gets_a_cotangent_for_each_output(subject, data):
    """There are two, whichever outputs are used."""
    call = Product(subject, data)
    used = subject.draw(data, st.sets(st.sampled_from((0, 1)), min_size=1), "outputs that are used")
    outputs = call.outputs()
    torch.autograd.grad([outputs[n] for n in sorted(used)], call.tensors[:2], [call.g] * len(used))
    subject.assert_equal("number of cotangents", got=len(probes().seen()[1]), expected=2)


def _counted(subject, data, count, defined):
    x, y = (t.requires_grad_() for t in subject.tensors(subject.draw(data, st.tuples(VECTORS, VECTORS), "x and y")))
    z = probes().counted(x, y, count, defined)
    return lambda: torch.autograd.grad(z.sum(), (x, y))


@keeps("CPP-FN-04")
def test_a_wrong_number_of_gradients_is_an_error(subject, data):
    """Of four arguments fewer gradients are refused, and more that are defined; four are taken."""
    count = subject.draw(data, st.integers(1, 6), "number of gradients")
    backward = _counted(subject, data, count, True)
    if count == 4:
        subject.assert_accepted(backward, "backward with a gradient for each argument")
        return
    subject.assert_raises(RuntimeError, backward, "backward with a wrong number of gradients", naming=["4", str(count)])


@keeps("CPP-FN-05")
def test_undefined_gradients_may_be_too_many(subject, data):
    """Undefined gradients beyond the arguments are left out."""
    backward = _counted(subject, data, subject.draw(data, st.integers(4, 6), "number of gradients"), False)
    found = subject.assert_accepted(backward, "backward with undefined gradients beyond the arguments")
    subject.assert_all_same("gradients", got=found, expected=[torch.ones(2)] * 2)


@keeps("CPP-FN-06")
def test_an_undefined_gradient_is_none(subject, data):
    """The input without a gradient gets None, and the other one its own."""
    x, y = (t.requires_grad_() for t in subject.tensors(subject.draw(data, st.tuples(VECTORS, VECTORS), "x and y")))
    found = torch.autograd.grad(probes().cut(x, y).sum(), (x, y), allow_unused=True)
    subject.assert_all_same("gradients", got=found, expected=[None, torch.ones(2)])


@keeps("CPP-FN-07")
def test_a_number_has_no_gradient(subject, data):
    """A gradient for a number is refused; an undefined one is taken."""
    given = subject.draw(data, st.booleans(), "backward returns a gradient for the number")
    factor = subject.draw(data, FACTORS, "factor")
    x = subject.tensor(subject.draw(data, VECTORS, "x")).requires_grad_()
    y = probes().overfull(x, factor, given)
    backward = lambda: torch.autograd.grad(y.sum(), x)  # noqa: E731
    if given:
        subject.assert_raises(RuntimeError, backward, "backward with a gradient for a number", naming=["position 2"])
        return
    subject.assert_same("gradient", got=backward()[0], expected=torch.full_like(x, factor))


TRANSFORMS = {
    "torch.func.grad": lambda x, y: torch.func.grad(lambda x: probes().cut(x, y).sum())(x),
    "torch.func.vjp": lambda x, y: torch.func.vjp(probes().cut, x, y),
    "torch.func.vmap": lambda x, y: torch.func.vmap(probes().cut)(x, y),
    "torch.func.jvp": lambda x, y: torch.func.jvp(probes().cut, (x, y), (x, y)),
    "torch.func.jacrev": lambda x, y: torch.func.jacrev(probes().cut)(x, y),
}


@keeps("CPP-FN-08")
def test_a_transform_is_an_error(subject, data):
    """Each transform of torch.func raises; the same call outside has its value."""
    name = subject.draw(data, TRANSFORMS, "transform")
    x, y = subject.tensors(subject.draw(data, st.tuples(VECTORS, VECTORS), "x and y"))
    call, what = lambda: TRANSFORMS[name](x, y), f"{name} of a Function in C++"
    subject.assert_raises(RuntimeError, call, what, naming=["autograd::Function"])
    subject.assert_same("output", got=probes().cut(x, y), expected=x + y)


@keeps("CPP-FN-08", variant="forward-mode")
def test_forward_mode_is_an_error(subject, data):
    """A dual tensor raises."""
    x, y, t = subject.tensors(subject.draw(data, st.tuples(VECTORS, VECTORS, VECTORS), "x, y and tangent"))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        call = lambda: probes().cut(dual, y)  # noqa: E731
        subject.assert_raises(
            RuntimeError, call, "a Function in C++ of a dual tensor", naming=["jvp is not implemented"]
        )


@keeps("CPP-FN-09")
def test_forward_records_no_graph(subject, data):
    """Grad mode is off in forward, whether inputs require grad or not, and what it was before afterwards."""
    call = Product(subject, data)
    enabled = subject.draw(data, st.booleans(), "grad mode is on around the call")
    with torch.set_grad_enabled(enabled):
        outputs = call.outputs()
        subject.assert_equal("grad mode after the call", got=torch.is_grad_enabled(), expected=enabled)
    subject.assert_equal("grad mode in forward", got=probes().seen()[2], expected=False)
    subject.assert_equal("requires_grad of the outputs", got=[y.requires_grad for y in outputs], expected=[enabled] * 2)


@keeps("CPP-FN-10")
def test_compiled_autograd_gives_the_same_gradients(subject, data):
    """Two calls with numbers and tensors of their own have the gradients of the engine, by compiled autograd."""
    traceable = subject.draw(data, st.booleans(), "is_traceable")
    for _ in range(2):
        factor, values = subject.draw(data, st.tuples(FACTORS, VECTORS), "factor and x")
        x = subject.tensor(values).requires_grad_()
        loss = probes().traced(x, factor, traceable).sum()
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            loss.backward()
        subject.assert_same("gradient", got=x.grad, expected=2 * factor * x.detach())


@keeps("CPP-FN-11")
def test_the_printed_example_has_a_gradient(subject, data):
    """Its output is the input, multiplied; the gradient is the number."""
    n = subject.draw(data, st.integers(1, 6), "n")
    leaf = subject.tensor(subject.draw(data, VECTORS, "x")).requires_grad_()
    y = probes().printed(n, leaf * 1)
    subject.assert_same("output", got=y, expected=n * leaf.detach())
    found = subject.assert_accepted(lambda: torch.autograd.grad(y.sum(), leaf), "backward of the printed example")
    subject.assert_same("gradient", got=found[0], expected=torch.full_like(leaf, n))
