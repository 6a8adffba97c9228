"""What transforms of torch.func take and refuse: argnums, has_aux, structures, chunks; linearize and functionalize."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._jvp_functions import drawn_tangents, expected_tangents
from autograd_conformance.suites.dialects.torch._func_transforms import (
    assert_jacobians,
    drawn_function,
    expected_floats,
    float_function,
    float_primals,
    positions_of,
    some_positions,
    transformable,
    weighted_loss,
    weights_of,
)

# Few elements, because Jacobians have all pairs of them.
SMALL = ((2,), (), (3,), (2, 2))
# Kinds of arguments, so that often several are differentiated.
KINDS = ("tracked", "tracked", "tracked", "integers", "number")
OUTPUTS = ("float", "float", "marked")


def _argnums(subject, data, polynomial, least=0):
    """Draw arguments to differentiate, and how they are given: a number or a tuple, some counted from the end."""
    wanted = subject.draw(data, some_positions(polynomial), "arguments to differentiate")
    behind = subject.draw(data, st.sets(st.sampled_from(wanted), min_size=least), "those counted from the end")
    one = subject.draw(data, (len(wanted) == 1, False), "argnums is one number where that is possible")
    given = tuple(i - len(positions_of(polynomial)) if i in behind else i for i in wanted)
    return wanted, given[0] if one and len(wanted) == 1 else given


GRADIENTS = {
    "grad": lambda f, argnums, aux, xs: torch.func.grad(f, argnums, has_aux=aux)(*xs),
    "grad_and_value": lambda f, argnums, aux, xs: torch.func.grad_and_value(f, argnums, has_aux=aux)(*xs),
}


@keeps("FUNC-16")
def test_gradients_come_in_the_structure_of_argnums_with_what_else_there_is(subject, data):
    """grad and grad_and_value give a tuple for a tuple of argnums, the value, and what has_aux adds."""
    polynomial = drawn_function(subject, data, arguments=KINDS)
    wanted, argnums = _argnums(subject, data, polynomial)
    name = subject.draw(data, GRADIENTS, "transform")
    aux = subject.draw(data, (False, True), "has_aux")
    cls, cotangents = transformable(subject, polynomial), polynomial.cotangents()
    loss, f = weighted_loss(subject, polynomial, cls, cotangents), float_function(subject, polynomial, cls)
    both = lambda *xs: (loss(*xs), {"outputs": f(*xs), "more": [xs[0] * 2]})  # noqa: E731
    got = GRADIENTS[name](both if aux else loss, argnums, aux, float_primals(subject, polynomial))
    gradients, rest = (got, None) if name == "grad" and not aux else got
    subject.assert_equal("type of the gradients", got=type(gradients) is tuple, expected=type(argnums) is tuple)
    found = polynomial.vjp(cotangents)
    expected = [_or_zeros(found, polynomial, polynomial.floating[i], cotangents) for i in wanted]
    got = gradients if type(argnums) is tuple else (gradients,)
    subject.assert_all_same("gradients", got=got, expected=expected)
    outputs = expected_floats(polynomial)
    value = np.asarray(sum(np.sum(y * g) for y, g in zip(outputs, _given(cotangents), strict=True)))
    if name == "grad_and_value":
        value_got, rest = rest if aux else (rest, None)
        _assert_close(subject, polynomial, value_got, value)
    if aux:
        _assert_auxiliary(subject, polynomial, rest)


def _assert_auxiliary(subject, polynomial, got):
    more = np.asarray(2 * polynomial.values[polynomial.floating[0]])
    subject.assert_all_same("auxiliary outputs", got=got["outputs"], expected=expected_floats(polynomial))
    subject.assert_all_same("auxiliary tensors in a list", got=got["more"], expected=[more])
    tracked = [y.requires_grad for y in (*got["outputs"], *got["more"])]
    subject.assert_equal("requires_grad of auxiliary tensors", got=tracked, expected=[False] * len(tracked))


def _given(cotangents):
    return [g for g in cotangents if g is not None]


def _or_zeros(found, polynomial, position, cotangents):
    return np.zeros(polynomial.shape) if found[position] is None else found[position]


def _assert_close(subject, polynomial, got, value):
    """A sum of many terms is exact in single precision only."""
    if polynomial.dtype in ("float64", "float32"):
        subject.assert_same("value", got=got, expected=value)


JACOBIANS = {
    "jacrev": lambda f, argnums, options: torch.func.jacrev(f, argnums, **options),
    "jacfwd": lambda f, argnums, options: torch.func.jacfwd(f, argnums, **options),
}


@keeps("FUNC-17")
def test_jacobians_come_in_chunks_and_with_what_else_there_is(subject, data):
    """jacrev with any chunk_size and jacfwd give the right Jacobians, and what has_aux adds."""
    polynomial = drawn_function(subject, data, arguments=KINDS, outputs=OUTPUTS, shapes=SMALL, max_arguments=3)
    name = subject.draw(data, ("jacrev", "jacfwd", "jacrev"), "transform")
    wanted, argnums = _argnums(subject, data, polynomial)
    # See FUNC-16/forward.
    argnums = argnums if name == "jacrev" else wanted if type(argnums) is tuple else wanted[0]
    aux = subject.draw(data, (False, True), "has_aux")
    count = int(np.prod(polynomial.shape)) * len(polynomial.float_outputs)
    chunk = subject.draw(data, (2, 1, 3, None, count + 1), "chunk_size of jacrev")
    f = float_function(subject, polynomial, transformable(subject, polynomial))
    both = lambda *xs: (f(*xs), {"outputs": f(*xs), "more": [xs[0] * 2]})  # noqa: E731
    options = {"has_aux": aux, **({"chunk_size": chunk} if name == "jacrev" else {})}
    got = JACOBIANS[name](both if aux else f, argnums, options)(*float_primals(subject, polynomial))
    got, rest = got if aux else (got, None)
    rows = got if type(argnums) is tuple else [(row,) for row in got]
    assert_jacobians(subject, polynomial, wanted, rows)
    if aux:
        _assert_auxiliary(subject, polynomial, rest)


@keeps("FUNC-16", variant="forward")
def test_arguments_count_from_the_end_in_forward_mode(subject, data):
    """jacfwd takes argnums that count from the end as jacrev does."""
    polynomial = drawn_function(subject, data, arguments=KINDS, outputs=OUTPUTS, shapes=SMALL, max_arguments=3)
    wanted, argnums = _argnums(subject, data, polynomial, least=1)
    f = float_function(subject, polynomial, transformable(subject, polynomial))
    got = torch.func.jacfwd(f, argnums)(*float_primals(subject, polynomial))
    rows = got if type(argnums) is tuple else [(row,) for row in got]
    assert_jacobians(subject, polynomial, wanted, rows)


@keeps("FUNC-17", variant="unbatched")
def test_jacobians_row_by_row_take_a_backward_that_cannot_be_batched(subject, data):
    """With chunk_size=1 backward may use NumPy and .item(), and has no batch dimension to know of."""
    way = subject.draw(data, ("numpy", "item"), "what backward uses")
    values = subject.draw(data, st.lists(st.sampled_from((1.0, -2.0, 3.0)), min_size=1, max_size=3), "x")
    chunk = subject.draw(data, (1, 2, None), "chunk_size")

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if way == "numpy":
            slope = 2 * x.detach().cpu().numpy() * g.detach().cpu().numpy()
            return torch.from_numpy(slope).to(g.device)
        return 2 * x * g if g.sum().item() else 0 * g

    setup = lambda ctx, inputs, output: ctx.save_for_backward(*inputs)  # noqa: E731
    apply = subject.custom(forward=lambda x: x * x, setup_context=setup, backward=backward)
    run = lambda: torch.func.jacrev(apply, chunk_size=chunk)(subject.tensor(values))  # noqa: E731
    if chunk == 1:
        got = subject.assert_accepted(run, f"jacrev with chunk_size=1 of a backward with {way}")
        subject.assert_same("Jacobian", got=got, expected=np.diag(2 * np.array(values)))
    else:
        subject.assert_raises(RuntimeError, run, f"jacrev with chunk_size={chunk} of a backward with {way}")


# What transforms refuse: how they are called with a Function and a vector, and what the message names.
REFUSED = {
    "grad of a vector": (lambda f, x: torch.func.grad(f)(x), ["scalar"]),
    "grad of two outputs": (lambda f, x: torch.func.grad(lambda x: (f(x).sum(), f(x).sum()))(x), [("Tensor", "tuple")]),
    "grad of a number": (lambda f, x: torch.func.grad(lambda x: 2.0)(x), ["Tensor"]),
    "grad_and_value of a vector": (lambda f, x: torch.func.grad_and_value(f)(x), ["scalar"]),
    "has_aux without a tuple": (lambda f, x: torch.func.grad(lambda x: f(x).sum(), has_aux=True)(x), ["aux"]),
    "has_aux of vjp without a tuple": (lambda f, x: torch.func.vjp(f, x, has_aux=True), ["aux"]),
    "has_aux of three": (
        lambda f, x: torch.func.grad(lambda x: (f(x).sum(), 1, 2), has_aux=True)(x),
        ["aux"],
    ),
    "argnums too large": (lambda f, x: torch.func.grad(lambda x: f(x).sum(), 1)(x), [1]),
    "argnums too small": (lambda f, x: torch.func.jacrev(f, -2)(x), [-2]),
    "an argument twice": (lambda f, x: torch.func.jacfwd(f, (0, 0))(x), ["unique"]),
    "no argnums": (lambda f, x: torch.func.jacrev(f, ())(x), [("empty", "non-empty")]),
    "a text as argnums": (lambda f, x: torch.func.grad(lambda x: f(x).sum(), "0")(x), ["argnums"]),
    "a number that is differentiated": (
        lambda f, x: torch.func.grad(lambda x, n: f(x).sum() * n, 1)(x, 2),
        ["Tensor"],
    ),
    "tangents of another size": (lambda f, x: torch.func.jvp(f, (x,), (x[:1],)), [("shape", "size")]),
    "a tangent too many": (lambda f, x: torch.func.jvp(f, (x,), (x, x)), [("primals", "structure")]),
    "tangents of another structure": (lambda f, x: torch.func.jvp(f, (x,), ({"x": x},)), [("primals", "structure")]),
    "a list of primals": (lambda f, x: torch.func.jvp(f, [x], [x]), ["tuple"]),
    "cotangents of another structure": (
        lambda f, x: torch.func.vjp(lambda x: {"y": f(x)}, x)[1]({"z": x}),
        [("structure", "pytree")],
    ),
    "a cotangent too many": (lambda f, x: torch.func.vjp(f, x)[1]((x, x)), [("structure", "pytree")]),
    "outputs of vjp that are no tensors": (lambda f, x: torch.func.vjp(lambda x: (f(x), 2), x), ["tensors"]),
    "an output of vjp that is not floating": (lambda f, x: torch.func.vjp(lambda x: (f(x), x.int()), x), ["dtype"]),
    "no outputs of vjp": (lambda f, x: torch.func.vjp(lambda x: (), x), ["output"]),
    "outputs of jvp that are no tensors": (lambda f, x: torch.func.jvp(lambda x: (f(x), 2), (x,), (x,)), ["tensors"]),
    "outputs of jacfwd that are no tensors": (lambda f, x: torch.func.jacfwd(lambda x: (f(x), 2))(x), ["Tensors"]),
    "chunk size 0": (lambda f, x: torch.func.jacrev(f, chunk_size=0)(x), ["chunk_size"]),
    "another text for functionalize": (lambda f, x: torch.func.functionalize(f, remove="views")(x), ["views"]),
    "tangents of linearize of another shape": (lambda f, x: torch.func.linearize(f, x)[1](x[:1]), ["shape"]),
    "tangents of linearize of another dtype": (lambda f, x: torch.func.linearize(f, x)[1](x.int()), ["dtype"]),
    "another number of tangents of linearize": (lambda f, x: torch.func.linearize(f, x)[1](x, x), ["tangents"]),
}


@keeps("FUNC-18", examples=1.5)
def test_transforms_refuse_what_does_not_fit(subject, data):
    """A transform raises, and says why, for outputs, arguments, tangents and cotangents that do not fit."""
    refused = subject.draw(data, REFUSED, "what is refused")
    call, naming = REFUSED[refused]
    apply, x = _squared(subject), subject.tensor([1.0, 2.0])
    kinds = (RuntimeError, ValueError, AssertionError, TypeError)
    subject.assert_raises(kinds, lambda: call(apply, x), refused, naming=naming)
    got = torch.func.grad(lambda x: apply(x).sum())(x)
    subject.assert_same("gradient after it", got=got, expected=np.array([2.0, 4.0]))


def _squared(subject):
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    return subject.custom(
        forward=lambda x: x * x,
        setup_context=setup_context,
        backward=lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
        jvp=lambda ctx, t: 2 * ctx.saved_tensors[0] * t,
        generate_vmap_rule=True,
    )


STRUCTURES = {
    "dict": lambda ys: {str(o): y for o, y in enumerate(ys)},
    "tuple": tuple,
    "list": list,
    "nested": lambda ys: (ys[0], {"more": [*ys[1:]]}),
}


@keeps("FUNC-19")
def test_vjp_keeps_the_structure_of_outputs(subject, data):
    """vjp gives outputs, and takes cotangents, in the structure that the function returned."""
    polynomial, structure, times, f, calls = _structured(subject, data)
    outputs, pull = torch.func.vjp(f, *float_primals(subject, polynomial))
    _assert_structured(subject, polynomial, "outputs", outputs, structure, expected_floats(polynomial))
    cotangents = polynomial.cotangents()
    found = polynomial.vjp(cotangents)
    for factor in range(1, times + 1):
        given = [factor * g for g in weights_of(subject, polynomial, cotangents)]
        expected = [np.asarray(factor * _or_zeros(found, polynomial, i, cotangents)) for i in polynomial.floating]
        subject.assert_all_same("gradients", got=pull(structure(given)), expected=expected)
    subject.assert_equal("calls of the function", got=len(calls), expected=1)


@keeps("FUNC-19", variant="linearize", examples=0.4)
def test_linearize_keeps_the_structure_of_outputs(subject, data):
    """linearize gives outputs and tangents in the structure that the function returned, and calls it twice."""
    polynomial, structure, times, f, calls = _structured(subject, data)
    tangents = drawn_tangents(subject, data, polynomial, len(polynomial.floating))
    outputs, push = torch.func.linearize(f, *float_primals(subject, polynomial))
    _assert_structured(subject, polynomial, "outputs", outputs, structure, expected_floats(polynomial))
    for factor in range(1, times + 1):
        given = [factor * subject.tensor(tangents[i], polynomial.dtype) for i in polynomial.floating]
        right = expected_tangents(polynomial, tangents, factor)
        expected = [right[o] for o in polynomial.float_outputs]
        _assert_structured(subject, polynomial, "tangents", push(*given), structure, expected)
    subject.assert_equal("calls of the function", got=len(calls), expected=2)


def _structured(subject, data):
    """Draw a Function and a structure: with the function that returns its outputs in it, and the calls of that."""
    polynomial, calls = drawn_function(subject, data), []
    structure = STRUCTURES[subject.draw(data, STRUCTURES, "structure of the outputs")]
    times = subject.draw(data, (2, 1), "calls of what the transform gives")
    f = float_function(subject, polynomial, transformable(subject, polynomial))
    return polynomial, structure, times, lambda *xs: (calls.append(1), structure(f(*xs)))[1], calls


def _assert_structured(subject, polynomial, what, got, structure, expected):
    subject.assert_equal(f"type of the {what}", got=type(got), expected=type(structure(expected)))
    subject.assert_all_same(what, got=torch.utils._pytree.tree_leaves(got), expected=expected)


class _Seen(TorchDispatchMode):
    """Operations that run: their names, and whether each changes what it gets or gives a view of it."""

    def __init__(self):
        super().__init__()
        self.changing, self.views = set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        schema = func._schema
        if schema.is_mutable:
            self.changing.add(schema.name.removeprefix("aten::"))
        elif any(a.alias_info is not None for a in schema.arguments):
            self.views.add(schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


# Changes of an intermediate t, with the function's input x: in torch, and in NumPy. The last is the change of x itself.
STEPS = {
    "mul_": (lambda t, x: t.mul_(2), lambda t, x: np.multiply(t, 2, out=t)),
    "add_": (lambda t, x: t.add_(x), lambda t, x: np.add(t, x, out=t)),
    "of a row": (lambda t, x: t[0].mul_(3), lambda t, x: np.multiply(t[0], 3, out=t[0])),
    "of the transpose": (lambda t, x: t.t().add_(x), lambda t, x: np.add(t.T, x, out=t.T)),
    "of a view": (lambda t, x: t.view(-1)[1:].mul_(2), lambda t, x: t.reshape(-1)[1:].__imul__(2)),
    "out": (lambda t, x: torch.mul(t, 2, out=t), lambda t, x: np.multiply(t, 2, out=t)),
    "index": (
        lambda t, x: t.__setitem__((slice(None), 0), x[:, 1]),
        lambda t, x: t.__setitem__((slice(None), 0), x[:, 1]),
    ),
    "of the input": (lambda t, x: x.mul_(2), lambda t, x: np.multiply(x, 2, out=x)),
}


@keeps("FUNC-20")
def test_functionalize_keeps_results_and_changes_of_inputs(subject, data):
    """Results and inputs are as without, no operation but the last copy changes anything, and views go if asked."""
    steps = subject.draw(data, st.lists(st.sampled_from(tuple(STEPS)), min_size=1, max_size=4), "changes")
    remove = subject.draw(data, ("mutations", "mutations_and_views"), "remove")
    named = subject.draw(data, (False, True), "the input is a keyword argument")
    x = np.array([[1.0, -2.0], [3.0, 1.0]])

    def f(x, start=lambda x: x * 3, column=0):
        t = start(x)
        [STEPS[step][column](t, x) for step in steps]
        return {"t": t, "first": t[0]}

    given = subject.tensor(x)
    function = torch.func.functionalize(lambda x: f(x), remove=remove)
    with _Seen() as seen:
        got = function(x=given) if named else function(given)
    expected = f(x, lambda x: x * 3.0, 1)
    subject.assert_all_same("results", got=[got["t"], got["first"]], expected=[expected["t"], expected["first"]])
    subject.assert_same("input after it", got=given, expected=x)
    copied = {"copy_"} if "of the input" in steps else set()
    subject.assert_equal("operations that change something", got=sorted(seen.changing), expected=sorted(copied))
    if remove == "mutations_and_views":
        subject.assert_equal("operations that give views", got=sorted(seen.views - {"detach"}), expected=[])


# Those of a gradient; the second ones change a view.
PLAIN = ("mul_", "add_")
VIEWED = ("of a row", "of the transpose", "of a view", "index")


@keeps("FUNC-20", variant="grad")
def test_functionalize_of_a_gradient(subject, data):
    """functionalize(grad(f)) of a function with changes in place gives the gradient."""
    remove = subject.draw(data, ("mutations", "mutations_and_views"), "remove")
    _check_gradient(subject, data, remove, (*PLAIN, *VIEWED) if remove == "mutations" else PLAIN)


@keeps("FUNC-20", variant="views")
def test_functionalize_of_a_gradient_without_views(subject, data):
    """functionalize(grad(f), remove="mutations_and_views") of a function that changes views gives the gradient."""
    _check_gradient(subject, data, "mutations_and_views", VIEWED)


def _check_gradient(subject, data, remove, names):
    steps = subject.draw(data, st.lists(st.sampled_from(names), min_size=1, max_size=4), "changes")
    x, weights = np.array([[1.0, -2.0], [3.0, 1.0]]), np.array([[1.0, 2.0], [-1.0, 3.0]])

    def f(x, column=0):
        t = x * 3.0
        [STEPS[step][column](t, x) for step in steps]
        return t

    g = subject.tensor(weights)
    got = torch.func.functionalize(torch.func.grad(lambda x: torch.sum(f(x) * g)), remove=remove)(subject.tensor(x))
    # The function is linear.
    units = [unit.reshape(2, 2) for unit in np.eye(4)]
    expected = np.array([np.sum(f(unit, 1) * weights) for unit in units]).reshape(2, 2)
    subject.assert_same("gradient", got=got, expected=expected)


WITHIN = {
    "alone": lambda f: f,
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](x)[0],
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
    "vmap": torch.func.vmap,
}


@keeps("FUNC-21")
def test_functionalize_of_a_function_raises(subject, data):
    """functionalize of a Function, around or within another transform of it, raises, and leaves nothing behind."""
    name = subject.draw(data, WITHIN, "transform")
    outside = subject.draw(data, (False, True), "functionalize within the transform")
    remove = subject.draw(data, ("mutations", "mutations_and_views"), "remove")
    apply, x = _squared(subject), subject.tensor([1.0, 2.0])
    functionalize = lambda f: torch.func.functionalize(f, remove=remove)  # noqa: E731
    f = WITHIN[name](functionalize(apply)) if outside else functionalize(WITHIN[name](apply))
    what = "functionalize of a custom Function"
    subject.assert_raises(RuntimeError, lambda: f(x), what, naming=["Functionalize", "custom_function_call"])
    subject.assert_same("output without functionalize", got=apply(x), expected=np.array([1.0, 4.0]))


TRANSFORMS = {
    **{name: transform for name, transform in WITHIN.items() if name != "alone"},
    "jacrev": lambda f: lambda x: torch.func.jacrev(lambda x: f(x).sum())(x),
    "jacfwd": lambda f: lambda x: torch.func.jacfwd(lambda x: f(x).sum())(x),
    "functionalize": torch.func.functionalize,
}


def _by_grad(f, x):
    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]


def _by_backward(f, x):
    leaf = x.detach().requires_grad_()
    f(leaf).sum().backward(create_graph=True)
    return leaf.grad


@keeps("FUNC-22")
def test_autograd_within_transforms_is_right_or_raises(subject, data):
    """A transform of a function that calls autograd.grad or backward gives the second derivative or raises."""
    name = subject.draw(data, TRANSFORMS, "transform")
    by = subject.draw(data, (_by_grad, _by_backward), "what the function calls")
    values = subject.draw(data, ([1.0, 2.0], [-1.0, 3.0], [2.0, 2.0, -1.0]), "x")
    apply, x = _squared(subject), subject.tensor(values)
    try:
        got = TRANSFORMS[name](lambda x: by(apply, x))(x)
    except RuntimeError as raised:
        what = "what the error is about"
        words = ("grad", "custom_function_call")
        subject.assert_that(any(word in str(raised) for word in words), what, got=str(raised), expected=words)
    else:
        # The second derivative is 2; vjp and jvp are taken at x itself, and vmap gives the first.
        scale = np.array(values) if name in ("vjp", "jvp", "vmap") else 1
        subject.assert_same("result", got=got, expected=2 * scale * np.ones(len(values)))
    subject.assert_same("output after it", got=apply(x), expected=np.array(values) ** 2)
