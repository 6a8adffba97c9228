"""Control flow, nesting, and the boxes that stand for values while they are traced."""

import autograd
import numpy as np
from autograd import builtins, extend, tracer
from autograd import numpy as anp
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.hips._primitives import HipsCase, with_vjps

VALUES = st.integers(-3, 3).map(float)


def _affine(weight, offset):
    """weight * x + offset as a primitive."""
    return with_vjps(lambda x: weight * x + offset, lambda ans, x: lambda g: weight * g)


@keeps("HIPS-FLOW-01")
def test_control_flow(subject, data):
    """A loop or a recursion with conditions on values has the derivative of the branches taken."""
    x = subject.draw(data, VALUES, "x")
    style = subject.draw(data, ("loop", "recursion"), "style")
    weights = st.sampled_from((-2.0, -1.0, 1.0, 2.0))
    steps = subject.draw(data, st.lists(st.tuples(weights, weights), max_size=5), "weights if positive, else")
    taken = [[_affine(w, 1.0) for w in pair] for pair in steps]

    def stepped(y, pair):
        return pair[0](y) if y > 0 else pair[1](y)

    def looped(y):
        for pair in taken:
            y = stepped(y, pair)
        return y

    def recursive(y, n=0):
        return y if n == len(taken) else recursive(stepped(y, taken[n]), n + 1)

    value, expected = x, 1.0
    for positive, other in steps:
        weight = positive if value > 0 else other
        value, expected = weight * value + 1.0, expected * weight
    f = {"loop": looped, "recursion": recursive}[style]
    got = autograd.value_and_grad(lambda x: 1.0 * f(x))(x)
    subject.assert_all_same("value and gradient", got=got, expected=[np.asarray(value), np.asarray(expected)])


@keeps("HIPS-FLOW-02")
def test_nested_derivatives_are_distinguished(subject, data):
    """A derivative inside a differentiated function treats the outer variables as constants, at any depth."""
    x, y, a = subject.draw(data, st.tuples(VALUES, VALUES, VALUES), "x, y, weight")
    depth = subject.draw(data, st.integers(1, 3), "derivatives within")
    f = extend.primitive(lambda x, y: a * x * y)
    extend.defvjp(f, lambda ans, x, y: lambda g: f(g, y), lambda ans, x, y: lambda g: f(x, g))

    def outer(x, level=depth):
        # Each level adds the derivative with respect to y, which is a * x.
        inner = autograd.grad(lambda y: f(x, y) + (outer(y, level - 1) if level > 1 else 0.0 * y))
        return x * inner(y)

    def expected(x, level=depth):
        """The value of outer and its derivative: h(x) = x (a x + h'(y))."""
        below = expected(y, level - 1)[1] if level > 1 else 0.0
        return x * (a * x + below), 2 * a * x + below

    got = autograd.value_and_grad(outer)(x)
    subject.assert_all_same("value and gradient", got=got, expected=[np.asarray(e) for e in expected(x)])


@keeps("HIPS-BOX-01")
def test_isinstance_of_what_is_traced(subject, data):
    """autograd.builtins.isinstance gives for a box what isinstance gives for its value."""
    examples = {"array": np.ones(2), "number": 1.0, "list": [1.0], "tuple": (1.0,), "dict": {"k": 1.0}}
    kinds = {"array": np.ndarray, "number": float, "list": list, "tuple": tuple, "dict": dict}
    name, asked = (subject.draw(data, examples, label) for label in ("value", "asked for"))
    depth = subject.draw(data, st.integers(1, 3), "nested derivatives")
    found = []

    def nested(level, x):
        if level == 0:
            found.append(builtins.isinstance(x, kinds[asked]))
            return x
        return autograd.make_vjp(lambda y: nested(level - 1, y))(x)[1]

    nested(depth, examples[name])
    expected = isinstance(examples[name], kinds[asked])
    subject.assert_equal("isinstance of a traced value", got=found, expected=[expected])


@keeps("HIPS-BOX-02")
def test_boxes_within_containers(subject, data):
    """Boxes inside autograd's list, tuple or dict reach a primitive and are differentiated."""
    case, kind = HipsCase(subject, data), subject.draw(data, ("list", "tuple", "dict"), "container")
    factor = subject.draw(data, (2.0, -1.0), "factor by which the rule is wrong")
    keys = [f"k{n}" for n in case.every] if kind == "dict" else list(case.every)

    def packed(make, xs):
        return make(zip(keys, xs, strict=True)) if kind == "dict" else make(xs)

    def rule(ans, xs):
        python = {"list": list, "tuple": tuple, "dict": dict}[kind]
        return lambda g: packed(python, [factor * (case.slope(i, xs[k]) * g) for i, k in enumerate(keys)])

    f = with_vjps(lambda xs: case.function(*(xs[key] for key in keys)), rule)
    case.assert_gradients(case.pulled(lambda *xs: f(packed(getattr(builtins, kind), xs))), factor=factor)


@keeps("HIPS-BOX-02", variant="plain")
def test_the_provided_containers_are_like_those_of_python(subject, data):
    """autograd's containers are made from the same arguments as Python's and compare equal to them."""
    name = subject.draw(data, ("list", "tuple"), "container")
    entries = subject.draw(data, st.lists(st.integers(0, 9), max_size=4), "entries")
    mine, theirs = getattr(builtins, name), {"list": list, "tuple": tuple}[name]
    subject.assert_equal("container", got=mine(iter(entries)), expected=theirs(iter(entries)))
    subject.assert_equal("isinstance", got=isinstance(theirs(entries), mine), expected=True)
    pairs = dict(zip("abcd", entries, strict=False))
    subject.assert_equal("dict", got=builtins.dict(pairs, e=1), expected=dict(pairs, e=1))


@keeps("HIPS-BOX-02", variant="empty")
def test_the_provided_containers_may_be_empty(subject, data):
    """list() and tuple() of autograd.builtins work without arguments."""
    name = subject.draw(data, ("list", "tuple"), "container")
    got = subject.assert_accepted(getattr(builtins, name), "list() or tuple() of autograd.builtins")
    subject.assert_equal("container", got=len(got), expected=0)


@keeps("HIPS-BOX-03")
def test_assignments_are_refused(subject, data):
    """Assigning to an element of a box raises TypeError; reading an element is differentiated."""
    shape = subject.draw(data, ((1,), (3,), (2, 2)), "shape")
    index = subject.draw(data, (0, -1, slice(None), ...), "index")
    x = subject.tensor(np.ones(shape))
    f = _affine(2.0, 0.0)

    def assigning(x):
        y = f(x)
        y[index] = 3.0
        return y

    subject.assert_raises(TypeError, lambda: autograd.make_vjp(assigning)(x), "an assignment", naming=["assignment"])
    got = autograd.make_vjp(lambda x: f(x)[index])(x)[0](np.ones(shape)[index])
    expected = np.zeros(shape)
    expected[index] = 2.0
    subject.assert_same("gradient through indexing", got=got, expected=expected)


@keeps("HIPS-BOX-04")
def test_changes_in_place_are_seen_in_the_pass_back(subject, data):
    """The backward pass uses the new values of a constant array that was changed after forward."""
    values = subject.draw(data, st.lists(VALUES, min_size=1, max_size=3), "fixed array")
    later = subject.draw(data, VALUES, "value that it is filled with afterwards")
    fixed, x = subject.tensor(values), subject.tensor(np.ones(len(values)))
    builtin = subject.draw(data, (False, True), "by an operation of autograd.numpy")
    product = with_vjps(lambda a, b: a * b, lambda ans, a, b: lambda g: g * b, None)
    f = anp.multiply if builtin else product
    back, value = autograd.make_vjp(lambda x: f(x, fixed))(x)
    subject.assert_same("value", got=value, expected=np.asarray(values))
    fixed[:] = later
    subject.assert_same("gradient", got=back(np.ones(len(values))), expected=np.full(len(values), later))


class _Length:
    """A number with a unit, which autograd does not know."""

    def __init__(self, metres):
        self.metres = metres


class _LengthBox(extend.Box):
    __slots__ = []


class _LengthSpace(extend.VSpace):
    def __init__(self, value):
        self.size = 1

    def zeros(self):
        return _Length(0.0)

    def _add(self, x, y):
        return _Length(x.metres + y.metres)

    def _mut_add(self, x, y):
        return self._add(x, y)


_LengthBox.register(_Length)
_LengthSpace.register(_Length)


@keeps("HIPS-BOX-06")
def test_classes_of_ones_own(subject, data):
    """A class with a registered Box and VSpace works as input and output of primitives, also if unused."""
    metres = subject.draw(data, VALUES, "length")
    factors = subject.draw(data, st.lists(VALUES, min_size=1, max_size=4), "factors of the lengths that are summed")
    of_scaled = lambda ans, length, factor: lambda g: _Length(g.metres * factor)  # noqa: E731
    scaled = with_vjps(lambda length, factor: _Length(length.metres * factor), of_scaled, None)
    measured = with_vjps(lambda length: length.metres, lambda ans, length: lambda g: _Length(g))

    def total(length):
        return sum(measured(scaled(length, factor)) for factor in factors)

    back, value = autograd.make_vjp(total)(_Length(metres))
    got = back(2.0)
    subject.assert_equal("value", got=float(value), expected=metres * sum(factors))
    subject.assert_equal("type of the gradient", got=type(got).__name__, expected="_Length")
    subject.assert_equal("gradient", got=got.metres, expected=2.0 * sum(factors))
    back, _ = autograd.make_vjp(lambda length: 3.0)(_Length(metres))
    subject.assert_equal("gradient of a constant", got=back(1.0).metres, expected=0.0)


class _CallNode(tracer.Node):
    """A tracer's node, which keeps what it was created with."""

    __slots__ = ["call"]

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        self.call = (value, fun, args, kwargs, tuple(parent_argnums), tuple(parents))

    def initialize_root(self):
        self.call = None


@keeps("HIPS-BOX-07")
def test_tracers_of_ones_own(subject, data):
    """A custom tracer node gets the value, primitive, arguments, keywords, positions and parents of a call."""
    case = HipsCase(subject, data, "arguments that are traced", arguments=("tracked", "number"))
    traced, xs, f = sorted(case.argnums), case.xs, case.with_rules()
    root = _CallNode.new_root()
    given = dict.fromkeys(traced)

    def call(start):
        given.update({i: first(start, i) for i in traced})
        return f(*(given.get(i, x) for i, x in enumerate(xs)), key=3)

    first = extend.primitive(lambda start, i: xs[i])
    value, node = tracer.trace(root, call, 1.0)
    got_value, fun, args, named, positions, parents = node.call
    subject.assert_same("value", got=value, expected=case.value)
    subject.assert_same("value that the tracer gets", got=got_value, expected=case.value)
    subject.assert_equal("whether it gets the primitive", got=fun is f, expected=True)
    subject.assert_equal("keyword arguments", got=named, expected={"key": 3})
    subject.assert_equal("positions that are traced", got=positions, expected=tuple(traced))
    arrays = [case.polynomial.values[i] for i in case.every]
    subject.assert_all_same("arguments", got=[args[i] for i in case.every], expected=arrays)
    nodes = [given[i]._node is parent for i, parent in zip(traced, parents, strict=True)]
    subject.assert_equal("whether these positions come from these nodes", got=nodes, expected=[True] * len(traced))
    subject.assert_equal("primitive that the first node gets", got=parents[0].call[1] is first, expected=True)
