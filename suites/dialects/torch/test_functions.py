"""The class Function: how it is defined, what its forward and setup_context get, and the names of its nodes."""

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

WEIGHTS = st.integers(-3, 3)
X = np.array([1.0, 2.0])
G = np.array([3.0, -1.0])
OBJECTS = st.none() | st.integers(-9, 9) | st.sampled_from(("text", 0.5)) | st.lists(st.integers(0, 9), max_size=2)


class Oops(Exception):
    """An exception that a test raises inside a Function."""


def _leaf(subject, values=X):
    return subject.tensor(values).requires_grad_()


@keeps("FN-02", variant="positions")
def test_output_nr_is_the_position_of_the_output(subject, data):
    """output_nr counts every output, also those that are not differentiable."""
    polynomial = subject.polynomial(data, separate=None, max_outputs=6)
    outputs = subject.run(polynomial).outputs
    got = tuple(outputs[i].output_nr for i in polynomial.float_outputs)
    subject.assert_equal("output_nr of the differentiable outputs", got=got, expected=polynomial.float_outputs)


@keeps("FN-05")
def test_forward_gets_tensors_that_do_not_track_history(subject, data):
    """No tensor that forward gets requires grad."""
    polynomial = subject.polynomial(data, separate=None)
    body = subject.body(polynomial)
    seen = []

    def forward(*args):
        given = args if polynomial.separate else args[1:]
        seen.extend(given[i].requires_grad for i in polynomial.tensors)
        return body.forward(*args)

    subject.run(polynomial, cls=subject.define(body, forward=forward))
    expected = [False] * len(polynomial.tensors)
    subject.assert_equal("requires_grad of the tensors that forward gets", got=seen, expected=expected)


@keeps("FN-19")
def test_instantiating_a_class_is_deprecated(subject, data):
    """Each instantiation gives a DeprecationWarning with the class's name, and an instance."""
    name = subject.draw(data, ("Custom", "Scale2", "_Private"), "name of the class")
    times = subject.draw(data, st.integers(1, 3), "instances made")
    args = subject.draw(data, st.lists(OBJECTS, max_size=2), "arguments")
    cls = subject.define(name=name, forward=lambda ctx, x: x * 2)
    made = [
        subject.assert_warns(DeprecationWarning, lambda: cls(*args), "making an instance", naming=[name])
        for _ in range(times)
    ]
    subject.assert_equal("types of the instances", got=[type(instance) for instance in made], expected=[cls] * times)


@keeps("FN-20")
def test_instances_cannot_be_called(subject, data):
    """Calling an instance raises RuntimeError and names static methods or apply."""
    args = [_leaf(subject), *subject.draw(data, st.lists(OBJECTS, max_size=2), "arguments after a tensor")]
    separate = subject.draw(data, st.booleans(), "setup_context")
    cls = subject.define(forward=lambda x, *others: x * 2, separate=separate)
    subject.assert_same("output of apply", got=cls.apply(*args), expected=2 * X)
    instance = cls()
    what = "calling an instance"
    subject.assert_raises(RuntimeError, lambda: instance(*args), what, naming=[("static", "apply", "instance")])


@keeps("FN-21")
def test_methods_must_be_static(subject, data):
    """A forward or backward without @staticmethod raises."""
    names = st.lists(st.sampled_from(("forward", "backward")), min_size=1, unique=True)
    undecorated = subject.draw(data, names, "methods without @staticmethod")
    separate = subject.draw(data, st.booleans(), "setup_context")

    def gradient(undecorated):
        right = vars(subject.define(forward=lambda x: x * 2, backward=lambda ctx, g: g * 5, separate=separate))
        methods = {name: method for name, method in right.items() if isinstance(method, staticmethod)}
        changed = {name: methods[name].__func__ for name in undecorated}
        cls = type(torch.autograd.Function)("Custom", (torch.autograd.Function,), {**methods, **changed})
        x = _leaf(subject)
        return torch.autograd.grad(cls.apply(x), x, subject.tensor(G))[0]

    subject.assert_same("gradient by static methods", got=gradient(()), expected=5 * G)
    what = "what a class with a method that is not static gives"
    kinds = (TypeError, RuntimeError, ValueError)
    subject.assert_raises(kinds, lambda: gradient(undecorated), what, naming=[("static", "staticmethod")])


@keeps("FN-25")
def test_a_graph_made_in_forward_is_discarded(subject, data):
    """A graph that forward records under enable_grad does not affect the gradient."""
    fresh = subject.draw(data, st.booleans(), "forward starts from a new leaf")
    weights = subject.draw(data, st.lists(WEIGHTS, min_size=1, max_size=3), "weights of the outputs")

    def forward(x):
        with torch.enable_grad():
            start = x.detach().requires_grad_() if fresh else x
            return tuple(start * start * weight for weight in weights)

    methods = {"forward": forward, "backward": lambda ctx, *cotangents: sum(cotangents) * 7}
    x = _leaf(subject)
    outputs = subject.custom(**methods, separate=subject.draw(data, st.booleans(), "setup_context"))(x)
    subject.assert_all_same("outputs", got=outputs, expected=[weight * X * X for weight in weights])
    (got,) = torch.autograd.grad(outputs, x, [subject.tensor(G)] * len(weights))
    subject.assert_same("gradient", got=got, expected=len(weights) * 7 * G)


@keeps("FN-25", variant="unrecorded")
def test_an_unrecorded_call_is_detached_from_a_graph_made_in_forward(subject, data):
    """The output of an unrecorded call has no grad_fn, although forward recorded operations."""
    kind = subject.draw(data, ("no_grad", "inference_mode", "fixed"), "why the call is not recorded")
    weight = subject.draw(data, WEIGHTS, "weight")

    def forward(x):
        with torch.enable_grad():
            return x.detach().requires_grad_() * weight if kind == "fixed" else x * weight

    separate = subject.draw(data, st.booleans(), "setup_context")
    x = subject.tensor(X) if kind == "fixed" else _leaf(subject)
    modes = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "fixed": torch.enable_grad}
    with modes[kind]():
        y = subject.custom(forward=forward, backward=lambda ctx, g: g * 7, separate=separate)(x)
    subject.assert_same("output", got=y, expected=weight * X)
    subject.assert_equal("requires_grad and grad_fn", got=(y.requires_grad, y.grad_fn), expected=(False, None))


@keeps("FN-27")
def test_a_node_is_named_for_its_class(subject, data):
    """The type of the node is named after the last subclass."""
    names = st.sampled_from(("Custom", "Scale2", "_Private", "lower", "ScaleBackward"))
    ancestry = subject.draw(data, st.lists(names, min_size=1, max_size=3), "names of the class and its subclasses")
    cls = subject.define(name=ancestry[0], forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g)
    for name in ancestry[1:]:
        cls = subject.define(cls, name=name, backward=lambda ctx, g: g * 3)
    node = cls.apply(_leaf(subject)).grad_fn
    subject.assert_equal("type of the node", got=type(node).__name__, expected=f"{ancestry[-1]}Backward")


@keeps("FN-29", variant="mode")
def test_exceptions_leave_grad_mode_as_it_was(subject, data):
    """After an exception in any method, grad mode is what it was before the call."""
    where = subject.draw(data, ("forward", "setup_context", "backward"), "method that raises")
    graph = subject.draw(data, st.booleans(), "create_graph")
    mode = subject.draw(data, st.booleans(), "grad mode")

    def raises(*args):
        raise Oops

    methods = {"forward": lambda x: x * 2, "setup_context": lambda *args: None, "backward": lambda ctx, g: g * 2}
    working, failing = subject.define(**methods), subject.define(**{**methods, where: raises})
    x = _leaf(subject)
    y = (failing if where == "backward" else working).apply(x).sum()

    def action():
        failing.apply(x)
        return torch.autograd.grad(y, x, create_graph=graph)

    with torch.set_grad_enabled(mode):
        subject.assert_raises(Oops, action, "what reaches the caller")
        after = torch.is_grad_enabled()
    subject.assert_equal("grad mode after the exception", got=after, expected=mode)


@keeps("FN-31")
def test_forward_may_take_the_numpy_array_of_an_input(subject, data):
    """numpy() of a tracked tensor works in forward and raises outside it."""
    weight = subject.draw(data, WEIGHTS, "weight")
    dtype = subject.draw(data, ("float64", "float32", "float16"), "dtype")
    leaf = subject.draw(data, st.booleans(), "x is a leaf")
    apply = subject.custom(
        forward=lambda x: torch.from_numpy(x.cpu().numpy() * weight).to(x.device),
        backward=lambda ctx, g: g * weight,
        separate=subject.draw(data, st.booleans(), "setup_context"),
    )
    x = subject.tensor(X, dtype).requires_grad_()
    x = x if leaf else x * 1
    y = subject.assert_accepted(lambda: apply(x), "numpy() of a tracked tensor in forward")
    subject.assert_same("output", got=y, expected=weight * X)
    (got,) = torch.autograd.grad(y, x, subject.tensor(G, dtype))
    subject.assert_same("gradient", got=got, expected=weight * G)
    what = "numpy() of a tracked tensor outside a Function"
    subject.assert_raises((RuntimeError, TypeError), lambda: x.cpu().numpy(), what, naming=[("grad", "requires_grad")])


@keeps("FN-16", variant="as_is")
def test_an_argument_returned_as_it_is_needs_a_backward(subject, data):
    """A Function that returns its argument is recorded as any other: without a backward of its own, a pass raises."""
    separate = subject.draw(data, st.booleans(), "setup_context")
    more = subject.draw(data, st.lists(OBJECTS, max_size=2), "arguments after a tensor")
    transformed = subject.draw(data, (False, separate), "gradient by func.grad")
    factor = subject.draw(data, (None, 3.0, -1.0), "factor of backward, None without a backward")
    rule = (lambda ctx, g: (factor * g, *(None for _ in more))) if factor else None
    apply = subject.custom(forward=lambda x, *_: x, backward=rule, separate=separate)
    x = _leaf(subject)
    y = apply(x, *more)
    subject.assert_same("output", got=y, expected=X)
    what = "whether the output is the argument itself"
    subject.assert_equal(what, got=y is x, expected=False)
    if transformed:
        gradient = lambda: torch.func.grad(lambda x: apply(x, *more).sum())(x.detach())  # noqa: E731
    else:
        gradient = lambda: torch.autograd.grad(y, x, torch.ones_like(y))[0]  # noqa: E731
    if factor is None:
        subject.assert_raises(NotImplementedError, gradient, "a pass that reaches it", naming=["backward", "vjp"])
    else:
        subject.assert_same("gradient", got=gradient(), expected=np.full(X.shape, factor))


@keeps("SETUP-08")
def test_keyword_only_parameters(subject, data):
    """apply takes keyword-only parameters or their defaults, and the gradient is right."""

    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    shifted = subject.custom(
        forward=lambda x, scale=1, *, first=3, second=5: x * scale + first + 10 * second,
        setup_context=setup_context,
        backward=lambda ctx, g: (g * ctx.scale, None),
    )
    numbers = st.integers(-3, 3)
    positional = subject.draw(data, st.lists(numbers, max_size=1), "scale")
    optional = st.fixed_dictionaries({}, optional={"first": numbers, "second": numbers})
    named = subject.draw(data, optional, "keyword arguments")
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    y = subject.assert_accepted(lambda: shifted(x, *positional, **named), "apply with keyword-only parameters")
    scale, first, second = *(positional or [1]), named.get("first", 3), named.get("second", 5)
    subject.assert_same("output", got=y, expected=subject.tensor([1.0, -2.0]) * scale + first + 10 * second)
    gradient = torch.autograd.grad(y.sum(), x)[0]
    subject.assert_same("gradient", got=gradient, expected=torch.full_like(x, scale))
