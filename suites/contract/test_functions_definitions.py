"""How a Function is defined: methods that are missing, doubled, inherited, replaced, nested or that raise."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from itertools import accumulate
from operator import mul
from weakref import WeakSet

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

WEIGHTS = st.integers(-3, 3)
X = np.array([1.0, 2.0])
G = np.array([3.0, -1.0])

# The exceptions that may refuse a class.
REFUSALS = (RuntimeError, TypeError, ValueError)


class Refused(Exception):
    """An exception with a keyword argument."""

    def __init__(self, reason, *, code=1):
        super().__init__(reason, code)


class Token:
    """Lives as long as the call that it belongs to."""


def _pulled(subject, cls):
    """The gradient for the one argument X of a Function, given G."""
    _, pullback = subject.implementation.vjp(subject.implementation.function(cls), [subject.tensor(X)])
    return pullback([subject.tensor(G)])[0]


def _on_a_small_stack(action):
    """The result of the action in a thread whose small stack a recursion along the chains would overflow."""
    before = threading.stack_size(2**18)
    with ThreadPoolExecutor(1) as pool:
        try:
            pending = pool.submit(action)
        finally:
            threading.stack_size(before)
        return pending.result()


def _scaling(weight):
    return lambda ctx, g: g * weight


@keeps("FN-15")
def test_a_class_without_forward_cannot_be_applied(subject, data):
    """Applying a class without forward raises NotImplementedError, whatever else the class defines."""
    methods = {"backward": _scaling(2), "setup_context": lambda ctx, inputs, output: None}
    names = subject.draw(data, st.sets(st.sampled_from(sorted(methods))).map(sorted), "methods of the class")
    args = [subject.tensor(X), *subject.draw(data, st.lists(WEIGHTS, max_size=3), "arguments after a tensor")]
    given = {name: methods[name] for name in names}
    complete = subject.custom(**given, forward=lambda *_: subject.tensor(G))
    subject.assert_same("output of a class with forward", got=complete(*args), expected=G)
    apply = subject.custom(**given)
    what = "applying a class without forward"
    subject.assert_raises(NotImplementedError, lambda: apply(*args), what, naming=["forward"])


@keeps("FN-16")
def test_a_missing_backward_is_missed_when_it_is_reached(subject, data):
    """A class without backward can be applied; only a pass that reaches its node raises NotImplementedError."""
    weight = subject.draw(data, WEIGHTS, "weight")
    further = subject.draw(data, st.lists(WEIGHTS, max_size=3), "factors of operations after the call")
    apply = subject.custom(forward=lambda x: x * weight, separate=subject.draw(data, st.booleans(), "setup_context"))

    def f(x):
        return reduce(mul, further, apply(x)), x * 3

    called = subject.assert_accepted(lambda: subject.implementation.vjp(f, [subject.tensor(X)]), "applying the class")
    outputs, pullback = called
    subject.assert_all_same("outputs", got=outputs, expected=(reduce(mul, further, weight * X), 3 * X))
    g = subject.tensor(G)
    (got,) = subject.assert_accepted(lambda: pullback([None, g]), "a backward pass that does not reach the node")
    subject.assert_same("gradient of a pass that does not reach the node", got=got, expected=3 * G)
    what = "a backward pass that reaches the node"
    subject.assert_raises(NotImplementedError, lambda: pullback([g, None]), what, naming=["backward", "vjp"])


@keeps("FN-17")
def test_vjp_in_place_of_backward(subject, data):
    """A class with vjp instead of backward, its own or inherited, has the gradients that vjp returns."""
    weights = subject.draw(data, st.lists(WEIGHTS, min_size=1, max_size=4), "gradients of the arguments")
    inherited = subject.draw(data, st.booleans(), "the class inherits its methods")
    rule = {"forward": lambda ctx, *xs: xs[0] * 1, "vjp": lambda ctx, g: tuple(g * weight for weight in weights)}
    cls = subject.define(**rule)
    apply = subject.implementation.function(subject.define(cls) if inherited else cls)
    _, pullback = subject.implementation.vjp(apply, subject.tensors([X] * len(weights)))
    got = pullback([subject.tensor(G)])
    subject.assert_all_same("gradients", got=got, expected=[weight * G for weight in weights])


@keeps("FN-18")
def test_backward_and_vjp_exclude_each_other(subject, data):
    """A class that defines both backward and vjp raises when it is differentiated, also if one is inherited."""
    weights = subject.draw(data, st.tuples(WEIGHTS, WEIGHTS), "what the gradient is multiplied with by each")
    names = subject.draw(data, st.permutations(["backward", "vjp"]), "order of definition")
    split = subject.draw(data, st.booleans(), "the second one is defined in a subclass")
    one, other = ({name: _scaling(weight)} for name, weight in zip(names, weights, strict=True))
    forward = {"forward": lambda ctx, x: x * 2}
    cls = subject.define(**forward, **one)

    def differentiated():
        return _pulled(subject, subject.define(cls, **other) if split else subject.define(**forward, **one, **other))

    got = subject.assert_accepted(lambda: _pulled(subject, cls), "a class with one of the two")
    subject.assert_same("gradient by one of the two", got=got, expected=weights[0] * G)
    what = "what differentiating a class with both gives"
    subject.assert_raises(REFUSALS, differentiated, what, naming=["backward", "vjp"])


@keeps("FN-26", variant="forward")
def test_a_function_applied_in_forward_is_not_recorded(subject, data):
    """A Function applied in another's forward has no grad_fn there, and its backward never runs."""
    separate = subject.draw(
        data, st.tuples(st.booleans(), st.booleans()), "setup_context of the inner and the outer one"
    )
    weight = subject.draw(data, WEIGHTS, "weight of the outer backward")
    called, flags = [], []

    inner = subject.custom(forward=lambda x: x * 2, backward=lambda ctx, g: called.append(g), separate=separate[0])

    def forward(x):
        y = inner(x)
        flags.append((subject.implementation.requires_grad(y), subject.implementation.node(y)))
        return y * 1

    outer = subject.custom(forward=forward, backward=_scaling(weight), separate=separate[1])
    _, pullback = subject.implementation.vjp(outer, [subject.tensor(X)])
    (got,) = pullback([subject.tensor(G)])
    subject.assert_equal("requires_grad and grad_fn inside forward", got=flags, expected=[(False, None)])
    subject.assert_equal("calls of the inner backward", got=called, expected=[])
    subject.assert_same("gradient", got=got, expected=weight * G)


@keeps("FN-26")
def test_a_function_applied_in_backward_is_recorded_with_the_graph(subject, data):
    """A Function applied in a backward is recorded if that backward builds a graph, and only then."""
    first, second = subject.draw(data, st.tuples(WEIGHTS, WEIGHTS), "weights of the inner forward and backward")
    graph = subject.draw(data, st.booleans(), "backward builds a graph")
    separate = subject.draw(data, st.booleans(), "setup_context of the inner one")
    flags = []
    inner = subject.custom(forward=lambda x: x * first, backward=_scaling(second), separate=separate)

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    def backward(ctx, g):
        y = inner(ctx.saved_tensors[0])
        flags.append(subject.implementation.requires_grad(y))
        return g * y

    outer = subject.custom(forward=forward, backward=backward)

    def gradient(x):
        return subject.implementation.vjp(outer, [x])[1]([subject.tensor(G)], differentiable=graph)

    (got,), pullback = subject.implementation.vjp(gradient, [subject.tensor(X)])
    subject.assert_same("gradient", got=got, expected=first * X * G)
    subject.assert_equal("requires_grad of the inner call's result in backward", got=flags, expected=[graph])
    expected = second * G * G if graph else None
    subject.assert_same("second derivative", got=pullback([subject.tensor(G)])[0], expected=expected)


@keeps("FN-27", variant="override")
def test_a_subclass_is_differentiated_by_its_own_backward(subject, data):
    """Each class of a chain of subclasses uses the nearest backward that it defines or inherits."""
    first = subject.draw(data, WEIGHTS, "what the first class multiplies the gradient with")
    overrides = subject.draw(data, st.lists(st.none() | WEIGHTS, max_size=3), "what each subclass of the last does")
    base = subject.define(forward=lambda ctx, x: x * 2, backward=_scaling(first))
    rules = [None if weight is None else _scaling(weight) for weight in overrides]
    classes = [*accumulate(rules, lambda cls, rule: subject.define(cls, backward=rule), initial=base)]
    weights = [*accumulate(overrides, lambda old, new: old if new is None else new, initial=first)]
    got = [_pulled(subject, cls) for cls in classes]
    subject.assert_all_same("gradients, by class", got=got, expected=[weight * G for weight in weights])


@keeps("FN-28")
def test_backward_is_looked_up_when_it_runs(subject, data):
    """A backward that is replaced after the call is the one that runs."""
    weights = subject.draw(data, st.lists(WEIGHTS, min_size=1, max_size=4), "what the replacements multiply with")
    separate = subject.draw(data, st.booleans(), "separate")
    cls = subject.define(forward=lambda x: x * 2, backward=_scaling(5), separate=separate)
    _, pullback = subject.implementation.vjp(subject.implementation.function(cls), [subject.tensor(X)])

    def pulled_by(rule):
        cls.backward = staticmethod(rule)
        return pullback([subject.tensor(G)])[0]

    got = [pulled_by(_scaling(weight)) for weight in weights]
    subject.assert_all_same("gradients, by replacement", got=got, expected=[weight * G for weight in weights])


@keeps("FN-29")
def test_exceptions_keep_their_type(subject, data):
    """An exception raised in a method reaches the caller with its type and arguments."""
    where = subject.draw(data, ("forward", "setup_context", "backward"), "method that raises")
    kind = subject.draw(data, (Refused, KeyError, ZeroDivisionError, StopIteration, NotImplementedError), "exception")

    def raises(*args):
        raise kind("a reason")

    methods = {"forward": lambda x: x * 2, "setup_context": lambda *args: None, "backward": _scaling(2), where: raises}
    raised = subject.assert_raises(kind, lambda: _pulled(subject, subject.define(**methods)), "what the caller gets")
    got = (type(raised), raised.args)
    subject.assert_equal("type and arguments of the exception", got=got, expected=(kind, kind("a reason").args))


@keeps("FN-30", examples=0.12)
def test_long_chains_are_differentiated_and_freed(subject, data):
    """A chain of more than 10 000 calls is differentiated on a small stack, and freed with its graph."""
    length = subject.draw(data, st.integers(10_001, 15_000), "calls in a chain")
    living = WeakSet()

    def forward(ctx, x):
        ctx.token = Token()
        living.add(ctx.token)
        return -x

    apply = subject.custom(forward=forward, backward=lambda ctx, g: -g)

    def differentiated():
        chain = partial(reduce, lambda y, _: apply(y), range(length))
        _, pullback = subject.implementation.vjp(chain, [subject.tensor(X)])
        return len(living), pullback([subject.tensor(G)])[0]

    held, got = subject.assert_accepted(lambda: _on_a_small_stack(differentiated), "a backward pass through the chain")
    subject.assert_same("gradient", got=got, expected=(-1) ** length * G)
    gc.collect()
    what = "number of calls alive before and after the graph is dropped"
    subject.assert_equal(what, got=(held, len(living)), expected=(length, 0))
