"""What an AutogradContext keeps for backward, what it marks, and what it says."""

import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.cpp._probes import VECTORS, Product, probes


@keeps("CPP-CTX-01")
def test_saved_tensors_come_back_in_their_order(subject, data):
    """The gradients are those of the tensors that forward saved."""
    call = Product(subject, data)
    call.assert_gradients(call.outputs()[0])


@keeps("CPP-CTX-01", variant="graph")
def test_saved_tensors_keep_their_graph(subject, data):
    """The gradients can be differentiated again with respect to what was saved."""
    call = Product(subject, data, bias=False)
    x, w = call.tensors
    (gx,) = torch.autograd.grad(call.outputs()[0], x, call.g, create_graph=True)
    subject.assert_that(
        gx.requires_grad, "whether a gradient can be differentiated", got=gx.requires_grad, expected=True
    )
    (second,) = torch.autograd.grad(gx.sum(), w)
    subject.assert_same("second derivative", got=second, expected=call.factor * call.g)


@keeps("CPP-CTX-02")
def test_a_saved_tensor_must_not_change(subject, data):
    """backward raises after a saved tensor was changed in place, and works if another one was."""
    call = Product(subject, data, bias=False)
    number = subject.draw(data, (0, 1, None), "which tensor changes")
    leaves = call.tensors
    call.tensors = [leaf * 1 for leaf in leaves]
    y = call.outputs()[0]
    with torch.no_grad():
        (call.listed if number is None else call.tensors[number]).mul_(2)
    if number is None:
        subject.assert_accepted(
            lambda: torch.autograd.grad(y, leaves, call.g), "backward of tensors that did not change"
        )
        return
    what = "backward after a saved tensor was changed in place"
    subject.assert_raises(RuntimeError, lambda: torch.autograd.grad(y, leaves, call.g), what, naming=["inplace"])


@keeps("CPP-CTX-03")
def test_saved_data_is_that_of_the_call(subject, data):
    """Of two calls each has its own number."""
    first, second = Product(subject, data), Product(subject, data)
    outputs = [first.outputs()[0], second.outputs()[0]]
    first.assert_gradients(outputs[0])
    second.assert_gradients(outputs[1])


@keeps("CPP-CTX-04")
def test_a_dirty_input_is_the_output(subject, data):
    """The output is the input itself, changed, with a higher version and the Function as its node."""
    leaf = subject.tensor(subject.draw(data, VECTORS, "x")).requires_grad_()
    x = leaf * 1
    version, before = x._version, x.detach().clone()
    y = probes().doubled(x)
    subject.assert_that(y is x, "whether the output is the input", got=y is x, expected=True)
    subject.assert_that(x._version > version, "version of the input", got=x._version, expected=f"more than {version}")
    subject.assert_same("values of the input", got=x, expected=2 * before)
    (found,) = torch.autograd.grad(x.sum(), leaf)
    subject.assert_same("gradient", got=found, expected=torch.full_like(leaf, 2))


@keeps("CPP-CTX-05")
def test_a_marked_output_requires_no_grad(subject, data):
    """The marked output requires no grad, and the other one does if the input does."""
    tracked = subject.draw(data, st.booleans(), "the input requires grad")
    x = subject.tensor(subject.draw(data, VECTORS, "x")).requires_grad_(tracked)
    outputs = probes().rounded(x)
    subject.assert_equal(
        "requires_grad of the outputs", got=[y.requires_grad for y in outputs], expected=[tracked, False]
    )
    if tracked:
        subject.assert_same(
            "gradient", got=torch.autograd.grad(outputs[0].sum(), x)[0], expected=torch.full_like(x, 2)
        )  # fmt: skip


def _backward_of_one(subject, data, *, materialize):
    """Whether backward got a tensor for each output, of which one is used."""
    call = Product(subject, data, bias=False, materialize=materialize)
    used = subject.draw(data, (0, 1), "the output that is used")
    found = torch.autograd.grad(call.outputs()[used], call.tensors, call.g)
    expected = call.gradients() if used == 0 else [call.g, call.g]
    subject.assert_all_same("gradients", got=found, expected=expected)
    return used, probes().seen()[1]


@keeps("CPP-CTX-06")
def test_an_unused_output_has_zeros(subject, data):
    """Both cotangents are defined."""
    _, defined = _backward_of_one(subject, data, materialize=True)
    subject.assert_equal("whether the cotangents are defined", got=defined, expected=[True, True])


@keeps("CPP-CTX-07")
def test_an_unused_output_is_undefined(subject, data):
    """The cotangent of the output that is not used is undefined."""
    used, defined = _backward_of_one(subject, data, materialize=False)
    subject.assert_equal("whether the cotangents are defined", got=defined, expected=[used == 0, used == 1])


@keeps("CPP-CTX-08")
def test_needs_input_grad_is_of_this_pass(subject, data):
    """The flags are those of the gradients that this pass computes, by the number of the tensor."""
    call = Product(subject, data)
    wanted = subject.draw(data, st.sets(st.sampled_from(range(len(call.tensors))), min_size=1), "wanted gradients")
    y = call.outputs()[0]
    found = torch.autograd.grad(y, [call.tensors[n] for n in sorted(wanted)], call.g)
    subject.assert_all_same("gradients", got=found, expected=[call.gradients()[n] for n in sorted(wanted)])
    expected = [n in wanted for n in range(len(call.tensors))]
    subject.assert_equal("needs_input_grad of each tensor", got=probes().seen()[0], expected=expected)


@keeps("CPP-CTX-09")
def test_saved_tensors_are_freed(subject, data):
    """A second backward raises, unless the first one retained the graph."""
    retained = subject.draw(data, st.booleans(), "the first backward retains the graph")
    call = Product(subject, data)
    y = call.outputs()[0]
    torch.autograd.grad(y, call.tensors, call.g, retain_graph=retained)
    if retained:
        call.assert_gradients(y)
        return
    again = lambda: torch.autograd.grad(y, call.tensors, call.g)  # noqa: E731
    subject.assert_raises(RuntimeError, again, "second backward without retain_graph", naming=["second time"])
