"""The operators that differentiate a function, on functions that use primitives."""

import autograd
import numpy as np
from autograd import numpy as anp
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.dialects.hips._primitives import HipsCase, noted, with_vjps

LENGTHS = st.integers(1, 4)
INTEGERS = (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0)
# Arguments of a function: arrays of drawn shapes and dtypes in nested containers.
ARRAYS = st.tuples(st.sampled_from(((), (2,), (1, 3))), st.sampled_from(("float64", "float32", "complex128")))
NESTED = st.recursive(
    ARRAYS.map(lambda drawn: ("array", *drawn)),
    lambda entries: st.tuples(st.sampled_from(("tuple", "list", "dict")), st.lists(entries, min_size=1, max_size=3)),
    max_leaves=5,
)


def _built(tree, leaf):
    """A container of what ``leaf`` makes of each array's shape and dtype."""
    kind, *rest = tree
    if kind == "array":
        return leaf(*rest)
    entries = [_built(entry, leaf) for entry in rest[0]]
    return {"tuple": tuple, "list": list, "dict": lambda es: {f"k{n}": e for n, e in enumerate(es)}}[kind](entries)


def _leaves(value, tree):
    """The arrays within a container, in order."""
    kind, *rest = tree
    if kind == "array":
        return [value]
    keys = [f"k{n}" for n in range(len(rest[0]))] if kind == "dict" else range(len(rest[0]))
    return [leaf for key, entry in zip(keys, rest[0], strict=True) for leaf in _leaves(value[key], entry)]


def _described(value):
    """The types of containers, and shapes and dtypes of arrays."""
    if isinstance(value, dict):
        return "dict", {key: _described(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return type(value).__name__, [_described(entry) for entry in value]
    return np.shape(value), np.asarray(value).dtype.name


def _integers(data_seed, shape):
    return np.random.default_rng(data_seed).choice(INTEGERS, size=shape)


def _matrix(subject, data, rows, columns):
    """A linear map of small integers as a primitive, and its matrix."""
    matrix = _integers(subject.draw(data, st.integers(0, 99), "seed"), (rows, columns))
    return with_vjps(lambda x: matrix @ x, lambda ans, x: lambda g: anp.dot(matrix.T, g)), matrix


@keeps("HIPS-OP-01")
def test_a_gradient_is_like_its_argument(subject, data):
    """The gradient for nested containers has their structure, shapes, dtypes and right values."""
    tree = subject.draw(data, NESTED, "argument")
    double = with_vjps(lambda x: 2 * x, lambda ans, x: lambda g: 2 * g)
    value = _built(tree, lambda shape, dtype: np.ones(shape, dtype))
    loss = lambda given: sum(anp.sum(anp.real(double(x))) for x in _leaves(given, tree))  # noqa: E731
    got = autograd.grad(loss)(value)
    subject.assert_equal(
        "containers, shapes and dtypes of the gradient", got=_described(got), expected=_described(value)
    )
    expected = _leaves(_built(tree, lambda shape, dtype: np.full(shape, 2.0)), tree)
    subject.assert_all_same("gradients", got=[np.real(g) for g in _leaves(got, tree)], expected=expected)


@keeps("HIPS-OP-02")
def test_grad_is_for_one_real_number(subject, data):
    """grad and value_and_grad raise TypeError for two numbers, no number or a complex one."""
    case = HipsCase(subject, data, "", max_arguments=1)
    operator = subject.draw(data, ("grad", "value_and_grad"), "operator")
    changes = {"two numbers": lambda y: anp.stack([y, y]), "none": lambda y: y[:0], "complex": lambda y: 1j * y}
    change, f = changes[subject.draw(data, changes, "output")], case.with_rules()
    flat = lambda x: anp.reshape(anp.sum(f(x)), (1,))  # noqa: E731
    refused = getattr(autograd, operator)(lambda x: change(flat(x)))
    what = f"{operator} of a function with another output than one real number"
    naming = ["scalar", ("jacobian", "elementwise_grad")]
    subject.assert_raises(TypeError, lambda: refused(*case.xs), what, naming=naming)
    subject.assert_accepted(lambda: autograd.grad(flat)(*case.xs), "grad of a function with one number")


@keeps("HIPS-OP-03")
def test_arguments_are_those_of_the_function(subject, data):
    """argnum picks one argument (bare) or several (tuple), and keywords reach the function."""
    case, one = HipsCase(subject, data), subject.draw(data, (False, True), "argnum is a number")
    operators = ("grad", "value_and_grad", "elementwise_grad", "jacobian")[: 4 if one else 2]
    operator = subject.draw(data, operators, "operator")
    scale, f = subject.draw(data, (1.0, -2.0, 3.0), "keyword argument"), case.with_rules()
    loss = lambda *xs, scale=1.0: anp.sum(scale * f(*xs))  # noqa: E731
    got = getattr(autograd, operator)(loss, case.argnums[0] if one else case.argnums)(*case.xs, scale=scale)
    got = got[1] if operator == "value_and_grad" else got
    found = case.polynomial.vjp([np.ones(case.shape)])
    expected = [np.asarray(scale * found[i]) for i in case.argnums]
    subject.assert_equal("type of the gradients", got=type(got) is tuple, expected=not one)
    subject.assert_all_same("gradients", got=[got] if one else got, expected=expected[:1] if one else expected)


@keeps("HIPS-OP-04")
def test_sums_of_columns(subject, data):
    """elementwise_grad of a linear map gives the column sums of its matrix."""
    rows, columns = subject.draw(data, st.tuples(LENGTHS, LENGTHS), "shape of the Jacobian")
    f, matrix = _matrix(subject, data, rows, columns)
    got = autograd.elementwise_grad(lambda x: f(x))(np.ones(columns))
    subject.assert_same("gradient", got=got, expected=matrix.sum(axis=0))


@keeps("HIPS-OP-05")
def test_the_shape_of_a_jacobian(subject, data):
    """The Jacobian has the output's dimensions first and then the input's, with the right entries."""
    case = HipsCase(subject, data, "", shapes=((), (1,), (3,), (2, 3), (3, 1, 2)), max_arguments=2)
    position = subject.draw(data, case.every, "argnum")
    lead = tuple(subject.draw(data, st.lists(st.integers(1, 3), max_size=2), "sizes that the output has in front"))
    f = case.with_rules()
    outer = with_vjps(
        lambda y: np.ones(lead).reshape(lead + (1,) * y.ndim).astype(y.dtype) * y,
        lambda ans, y: lambda g: anp.sum(g, axis=tuple(range(len(lead)))),
    )
    got = autograd.jacobian(lambda *xs: outer(anp.array(f(*xs))), position)(*case.xs)
    diagonal = case.polynomial.vjp([np.ones(case.shape)])[position]
    square = np.broadcast_to(np.diag(diagonal.ravel()), (int(np.prod(lead)), diagonal.size, diagonal.size))
    subject.assert_same("Jacobian", got=got, expected=square.reshape(lead + case.shape + case.shape))


@keeps("HIPS-OP-05", variant="empty")
def test_the_shape_of_an_empty_jacobian(subject, data):
    """The Jacobian of an empty output is empty and has the right shape."""
    count = subject.draw(data, LENGTHS, "length of the input")
    f = with_vjps(lambda x: x[:0], lambda ans, x: lambda g: np.zeros(count))
    got = subject.assert_accepted(lambda: autograd.jacobian(lambda x: f(x))(np.ones(count)), "an empty Jacobian")
    subject.assert_equal("shape of the Jacobian", got=np.shape(got), expected=(0, count))


@keeps("HIPS-OP-06")
def test_hessians(subject, data):
    """The Hessian and its products of a quadratic form are exact."""
    count = subject.draw(data, LENGTHS, "length of the argument")
    f, matrix = _matrix(subject, data, count, count)
    quadratic = lambda x: anp.dot(x, f(x))  # noqa: E731
    x, v = (_integers(seed, count) for seed in (1, 2))
    expected = matrix + matrix.T
    subject.assert_same("Hessian", got=autograd.hessian(quadratic)(x), expected=expected)
    product, _ = autograd.make_hvp(quadratic)(x)
    subject.assert_same("product by make_hvp", got=product(v), expected=expected @ v)
    got = autograd.hessian_tensor_product(quadratic)(x, v)
    subject.assert_same("product by hessian_tensor_product", got=got, expected=expected @ v)


@keeps("HIPS-OP-07")
def test_values_and_gradients(subject, data):
    """value_and_grad and grad_and_aux give right values, gradients and further outputs."""
    case = HipsCase(subject, data, "")
    position, f = subject.draw(data, case.every, "argnum"), case.with_rules()
    expected = case.polynomial.vjp([np.ones(case.shape)])[position]
    value, got = autograd.value_and_grad(lambda *xs: anp.sum(f(*xs)), position)(*case.xs)
    subject.assert_same("value", got=value, expected=np.asarray(case.value.sum()))
    subject.assert_same("gradient", got=got, expected=expected)
    got, aux = autograd.grad_and_aux(lambda *xs: (anp.sum(f(*xs)), 2 * f(*xs)), position)(*case.xs)
    subject.assert_same("gradient next to another output", got=got, expected=expected)
    subject.assert_same("the other output", got=aux, expected=2 * case.value)


@keeps("HIPS-OP-08")
def test_an_output_that_does_not_depend_on_the_argument(subject, data):
    """A constant output gives a warning and a gradient of zeros."""
    case, what = (
        HipsCase(subject, data, "", max_arguments=2),
        subject.draw(data, ("number", "other argument"), "output"),
    )
    x, f = subject.tensor(np.ones((2,)), case.polynomial.dtype), case.with_rules()
    constant = lambda x, *xs: 3.0 if what == "number" else anp.sum(f(*xs))  # noqa: E731
    action = lambda: autograd.grad(constant)(x, *case.xs)  # noqa: E731
    got = subject.assert_warns(UserWarning, action, "a constant", naming=["independent", "input"])
    subject.assert_same("gradient", got=got, expected=np.zeros((2,)))


@keeps("HIPS-OP-09")
def test_gradients_by_name(subject, data):
    """multigrad_dict has a gradient for every parameter, including those with defaults that were not passed."""
    given = subject.draw(data, st.lists(st.sampled_from(INTEGERS), max_size=2), "arguments given")
    f = with_vjps(lambda a, b: 2 * a + 3 * b, lambda ans, a, b: lambda g: 2 * g, lambda ans, a, b: lambda g: 3 * g)

    def loss(a=1.0, b=1.0):
        return f(a, b)

    got = subject.assert_accepted(lambda: autograd.multigrad_dict(loss)(*given), "multigrad_dict")
    found = {name: float(gradient) for name, gradient in got.items()}
    subject.assert_equal("gradients by name", got=found, expected={"a": 2.0, "b": 3.0})


@keeps("HIPS-CKPT-01")
def test_checkpointed_functions_have_the_same_derivatives(subject, data):
    """Value, gradients and Hessian of a checkpointed function are those of the function."""
    case = HipsCase(subject, data, max_arguments=3)
    back, value = autograd.make_vjp(autograd.checkpoint(case.with_rules()), case.argnums)(*case.xs)
    subject.assert_same("value", got=value, expected=case.value)
    case.assert_gradients(back(case.cotangent()))
    count = subject.draw(data, LENGTHS, "length of the argument")
    linear, matrix = _matrix(subject, data, count, count)
    got = autograd.hessian(autograd.checkpoint(lambda x: anp.dot(x, linear(x))))(np.ones(count))
    subject.assert_same("Hessian", got=got, expected=matrix + matrix.T)


@keeps("HIPS-CKPT-01", variant="containers")
def test_checkpointed_functions_may_return_containers(subject, data):
    """A checkpointed function that returns a tuple or list has right gradients."""
    case = HipsCase(subject, data, max_arguments=3)
    packed, f = {"tuple": tuple, "list": list}[subject.draw(data, ("tuple", "list"), "container")], case.with_rules()
    checkpointed = autograd.checkpoint(lambda *xs: packed([f(*xs), f(*xs)]))
    got = case.pulled(lambda *xs: checkpointed(*xs)[0])
    what = "gradients of a checkpointed function that returns a container"
    subject.assert_all_same(what, got=got, expected=case.expected())


@keeps("HIPS-CKPT-01", variant="closures")
def test_checkpointed_functions_may_be_closures(subject, data):
    """A checkpointed closure has gradients for the variables that it captures too."""
    case = HipsCase(subject, data, max_arguments=3)
    f, captured = case.with_rules(), case.argnums[0]
    got = case.pulled(lambda *xs: autograd.checkpoint(lambda *ys: f(*ys) + 2 * xs[captured])(*xs))
    first, *others = case.expected()
    expected = [first + 2 * case.polynomial.cotangents()[0], *others]
    subject.assert_all_same("gradients of a checkpointed closure", got=got, expected=expected)


@keeps("HIPS-CKPT-02")
def test_checkpointed_functions_run_again(subject, data):
    """A checkpointed function runs once forward, and again for each argument that is differentiated."""
    case, events = HipsCase(subject, data, max_arguments=3), []

    def watched(*xs):
        events.append("function")
        return case.function(*xs)

    def watching(i):
        return noted(case.vjp(i), lambda *_: events.append("maker"))

    case.pulled(autograd.checkpoint(case.primitive(vjp=watching, function=watched)))
    expected = ["function"] + ["function", "maker"] * len(case.argnums)
    subject.assert_equal("what happens", got=events, expected=expected)
