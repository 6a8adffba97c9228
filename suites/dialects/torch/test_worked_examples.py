"""Worked examples of backward and grad from the documentation, with the numbers that are printed there."""

import numpy as np
import torch

from autograd_conformance.harness.testing.marks import keeps

# What tutorials print for the first call and every call after zeroing, and for the second call.
FIRST_CALL = [
    [4.0, 2.0, 2.0, 2.0, 2.0],
    [2.0, 4.0, 2.0, 2.0, 2.0],
    [2.0, 2.0, 4.0, 2.0, 2.0],
    [2.0, 2.0, 2.0, 4.0, 2.0],
]
SECOND_CALL = [
    [8.0, 4.0, 4.0, 4.0, 4.0],
    [4.0, 8.0, 4.0, 4.0, 4.0],
    [4.0, 4.0, 8.0, 4.0, 4.0],
    [4.0, 4.0, 4.0, 8.0, 4.0],
]
# The inputs double until their norm reaches 1000: nine or ten times.
DOUBLED = {(1.0, 2.0, 2.0): [51.2, 512.0, 0.0512], (1.0, 0.0, 0.0): [102.4, 1024.0, 0.1024]}


def _leaf(subject, values):
    return subject.tensor(values, "float32").requires_grad_()


def _float32(values):
    return np.asarray(values, np.float32).astype(np.float64)


def _assert_printed(subject, what, got, expected):
    subject.assert_all_same(what, got=got, expected=[e if e is None else np.asarray(e, np.float64) for e in expected])


# https://docs.pytorch.org/tutorials/beginner/blitz/autograd_tutorial.html
@keeps("ENG-01", variant="printed-q")
def test_q_of_a_and_b(subject, data):
    """The tutorial's Q has the printed values and gradients, in each way to call backward."""
    a, b = _leaf(subject, [2.0, 3.0]), _leaf(subject, [6.0, 4.0])
    q = 3 * a**3 - b**2
    external_grad = subject.tensor([1.0, 1.0], "float32")
    ways = {
        "Q.backward(gradient=external_grad)": lambda: q.backward(gradient=external_grad),
        "Q.sum().backward()": lambda: q.sum().backward(),
        "autograd.backward(Q, external_grad)": lambda: torch.autograd.backward(q, external_grad),
    }
    ways[subject.draw(data, ways, "call")]()
    _assert_printed(subject, "Q, a.grad and b.grad", [q, a.grad, b.grad], [[-12, 65], [36, 81], [-12, -8]])
    equal = [(9 * a**2 == a.grad).tolist(), (-2 * b == b.grad).tolist()]
    subject.assert_equal("9*a**2 == a.grad and -2*b == b.grad", got=equal, expected=[[True, True], [True, True]])


@keeps("ENG-03", variant="printed-q")
def test_q_of_a_and_b_by_grad(subject, data):
    """autograd.grad of the tutorial's Q returns the printed gradients and leaves .grad None."""
    a, b = _leaf(subject, [2.0, 3.0]), _leaf(subject, [6.0, 4.0])
    external_grad = subject.tensor([1.0, 1.0], "float32")
    got = torch.autograd.grad(3 * a**3 - b**2, (a, b), grad_outputs=external_grad)
    _assert_printed(subject, "gradients of Q", got, [[36, 81], [-12, -8]])
    subject.assert_equal("a.grad and b.grad", got=(a.grad, b.grad), expected=(None, None))


# https://docs.pytorch.org/tutorials/beginner/basics/autogradqs_tutorial.html
@keeps("ENG-03", variant="printed-calls")
def test_first_call_second_call_call_after_zeroing(subject, data):
    """.grad has the printed values after the first call, the second, and one after zeroing."""
    inp = subject.tensor(np.eye(4, 5), "float32").requires_grad_()
    out = (inp + 1).pow(2).t()
    calls = {
        "out.backward": lambda: out.backward(torch.ones_like(out), retain_graph=True),
        "autograd.backward": lambda: torch.autograd.backward(out, torch.ones_like(out), retain_graph=True),
        "autograd.backward of lists": lambda: torch.autograd.backward([out], [torch.ones_like(out)], retain_graph=True),
    }
    call = calls[subject.draw(data, calls, "call")]
    call()
    _assert_printed(subject, "inp.grad, first call", [inp.grad], [FIRST_CALL])
    call()
    _assert_printed(subject, "inp.grad, second call", [inp.grad], [SECOND_CALL])
    inp.grad.zero_()
    call()
    _assert_printed(subject, "inp.grad, call after zeroing gradients", [inp.grad], [FIRST_CALL])


# The first example of the autograd tutorial until release 1.6: "You should have got a matrix of 4.5".
@keeps("ENG-01", variant="printed-mean")
def test_a_matrix_of_four_and_a_half(subject, data):
    """The first example of the old tutorial gives a matrix of 4.5."""
    x = _leaf(subject, np.ones((2, 2)))
    y = x + 2
    z = y * y * 3
    out = z.mean()
    one = subject.tensor(1.0, "float32")
    ways = {
        "out.backward()": lambda: out.backward(),
        "out.backward(torch.tensor(1.))": lambda: out.backward(one),
        "autograd.backward(out)": lambda: torch.autograd.backward(out),
    }
    ways[subject.draw(data, ways, "call")]()
    _assert_printed(subject, "z, out and x.grad", [z, out, x.grad], [np.full((2, 2), 27), 27, np.full((2, 2), 4.5)])


# The second example of that tutorial: prints [5.1200e+01, 5.1200e+02, 5.1200e-02], or twice that.
@keeps("ENG-01", variant="printed-v")
def test_a_vector_instead_of_a_jacobian(subject, data):
    """The vector-Jacobian product of the old tutorial has the printed values."""
    start = subject.draw(data, DOUBLED, "x")
    by_grad = subject.draw(data, (False, True), "by autograd.grad")
    x = _leaf(subject, start)
    y = x * 2
    while y.detach().norm() < 1000:
        y = y * 2
    v = subject.tensor([0.1, 1.0, 0.0001], "float32")
    (got,) = torch.autograd.grad(y, x, v) if by_grad else (y.backward(v), x.grad)[1:]
    subject.assert_same("gradient of x", got=got, expected=_float32(DOUBLED[start]))


# https://docs.pytorch.org/tutorials/beginner/former_torchies/autograd_tutorial.html
@keeps("ENG-03", variant="printed-part")
def test_backward_on_some_part_of_the_graph_twice(subject, data):
    """Two backward calls on one graph add up to the printed .grad."""
    gradient = subject.draw(data, ([[1.0, -2.0], [0.5, 3.0]], [[0.0, 0.0], [0.0, 0.0]]), "gradient")
    x = _leaf(subject, np.ones((2, 2)))
    y = x + 2
    y.backward(subject.tensor(np.ones((2, 2)), "float32"), retain_graph=True)
    _assert_printed(subject, "x.grad after the first call", [x.grad], [np.ones((2, 2))])
    y.backward(subject.tensor(gradient, "float32"))
    _assert_printed(subject, "x.grad after the second call", [x.grad], [1 + np.asarray(gradient)])


# https://docs.pytorch.org/tutorials/beginner/understanding_leaf_vs_nonleaf_tutorial.html
@keeps("ENG-03", variant="printed-leaves")
def test_only_leaves_that_require_grad_keep_their_gradient(subject, data):
    """Leaves have the printed gradients; other tensors have None unless they retain theirs."""
    retained = subject.draw(data, (False, True), "retain_grad")
    x, y = subject.tensor(np.ones((1, 3)), "float32"), subject.tensor(np.ones((1, 2)), "float32")
    w, b = _leaf(subject, np.ones((3, 2))), _leaf(subject, np.ones((1, 2)))
    z = (x @ w) + b
    y_pred = torch.nn.functional.relu(z)
    loss = torch.nn.functional.mse_loss(y_pred, y)
    between = (z, y_pred, loss)
    for tensor in between if retained else ():
        tensor.retain_grad()
    loss.backward()
    _assert_printed(subject, "W.grad and b.grad", [w.grad, b.grad], [np.full((3, 2), 3), [[3, 3]]])
    subject.assert_equal("x.grad and y.grad", got=(x.grad, y.grad), expected=(None, None))
    expected = [[[3, 3]], [[3, 3]], 1] if retained else [None] * 3
    _assert_printed(subject, "z.grad, y_pred.grad and loss.grad", [t.grad for t in between], expected)


# https://d2l.ai/chapter_preliminaries/autograd.html
@keeps("ENG-03", variant="printed-zeroed")
def test_gradients_are_reset_before_another_function(subject, data):
    """The book's three functions have the printed gradients if .grad is zeroed in between."""
    x = _leaf(subject, np.arange(4.0))
    (2 * torch.dot(x, x)).backward()
    _assert_printed(subject, "x.grad of 2 * dot(x, x)", [x.grad], [[0, 4, 8, 12]])
    x.grad.zero_()
    x.sum().backward()
    _assert_printed(subject, "x.grad of x.sum()", [x.grad], [[1, 1, 1, 1]])
    x.grad.zero_()
    y = x * x
    summed = subject.draw(data, (False, True), "y.sum().backward()")
    torch.autograd.backward(y.sum() if summed else y, None if summed else torch.ones_like(y))
    _assert_printed(subject, "x.grad of x * x", [x.grad], [[0, 2, 4, 6]])


# https://github.com/qAp/python_examples (Autograd example): grad next to backward, and both differentiated again.
@keeps("ENG-03", variant="printed-mixed")
def test_gradients_from_grad_in_a_later_backward(subject, data):
    """Gradients from grad can be part of a later loss, and .grad has the printed sum."""
    x = _leaf(subject, 3.0)
    m = x**2
    y = m + x
    p = 4 * y
    p.backward(retain_graph=True)
    _assert_printed(subject, "x.grad after p.backward()", [x.grad], [28])
    together = subject.draw(data, (False, True), "both outputs in one call of backward")
    (dydx,) = torch.autograd.grad(y, x, create_graph=True)
    (dmdx,) = torch.autograd.grad(m, x, create_graph=True)
    _assert_printed(subject, "dy/dx and dm/dx", [dydx, dmdx], [7, 6])
    _assert_printed(subject, "x.grad after grad", [x.grad], [28])
    parts = [dydx**2, dmdx**2]
    torch.autograd.backward(parts if together else sum(parts))
    _assert_printed(subject, "the parts of z, and x.grad after z.backward()", [*parts, x.grad], [49, 36, 80])


# https://yang-zhang.github.io (pytorch_grad_accum): accumulated from y.backward() then z.backward().
@keeps("ENG-05", variant="printed")
def test_two_outputs_one_after_another_or_together(subject, data):
    """Two outputs give the printed gradient, one after the other or together."""
    x = _leaf(subject, [1.0])
    y, z = x**2, x**3
    ways = {
        "y.backward(); z.backward()": lambda: (y.backward(), z.backward(), x.grad)[2:],
        "autograd.backward([y, z])": lambda: (torch.autograd.backward([y, z]), x.grad)[1:],
        "autograd.grad([y, z], x)": lambda: torch.autograd.grad([y, z], x),
        "(y + z).backward()": lambda: ((y + z).backward(), x.grad)[1:],
    }
    got = ways[subject.draw(data, ways, "call")]()
    _assert_printed(subject, "gradient of x", got, [[5]])


# A question on autograd.grad prints 6.0, 2.0 and 0.0.
@keeps("ENG-03", variant="printed-orders")
def test_derivatives_of_a_square(subject, data):
    """The first three derivatives of a square are the printed numbers."""
    sequence = {"tuples": lambda *tensors: tensors, "tensors": lambda tensor: tensor}
    given = sequence[subject.draw(data, sequence, "outputs and inputs are given as")]
    x = _leaf(subject, 3.0)
    first = torch.autograd.grad(outputs=given(x**2), inputs=given(x), create_graph=True)
    second = torch.autograd.grad(outputs=given(*first), inputs=given(x), create_graph=True)
    third = torch.autograd.grad(outputs=given(*second), inputs=given(x))
    _assert_printed(subject, "the first three derivatives", [*first, *second, *third], [6, 2, 0])
    subject.assert_equal("x.grad", got=x.grad, expected=None)
