"""What goes into a Function and what comes out of it: arguments, outputs, and which calls are recorded."""

from collections import namedtuple
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps

WEIGHTS = st.integers(-3, 3)
X = np.array([1.0, 2.0])
G = np.array([3.0, -1.0])

# Non-tensors.
OBJECTS = (
    st.integers(-9, 9)
    | st.sampled_from((None, True, 0.5, 1j, "text", b"bytes", ..., NotImplemented, int, len, range(3)))
    | st.lists(st.integers(0, 9), max_size=3)
    | st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=2)
    | st.sets(st.integers(0, 9), max_size=2)
    | st.tuples(st.integers(0, 9), st.none())
)

# How a tensor can be packed into an argument, and how it is taken out again.
CONTAINERS = {
    "list": (lambda x: [x], lambda c: c[0]),
    "tuple": (lambda x: (1, x), lambda c: c[1]),
    "dict": (lambda x: {"x": x}, lambda c: c["x"]),
    "nested": (lambda x: [{"x": (x, None)}], lambda c: c[0]["x"][0]),
}


def _noting(subject, polynomial, note):
    """The polynomial's Function, whose forward calls ``note(arguments)``."""
    body = subject.body(polynomial)

    def forward(*args):
        note(args if polynomial.separate else args[1:])
        return body.forward(*args)

    return subject.define(body, forward=forward)


def _called(subject, apply, tracked=True):
    """The very object that apply returns for one tensor."""
    results = []
    subject.implementation.vjp(lambda x: results.append(apply(x)), [subject.tensor(X)], track=[tracked])
    return results[0]


def _seen(subject, apply, look, tracked):
    """``look(result)`` for the very object that apply returns for one tensor, and the outputs of the call."""
    seen = []

    def f(x):
        result = apply(x)
        seen.append(look(result))
        return result

    outputs, _ = subject.implementation.vjp(f, [subject.tensor(X)], track=[tracked])
    return seen[0], outputs


def _assert_very(subject, what, *, got, expected):
    """These are the same objects, not only equal ones."""
    same = len(got) == len(expected) and all(a is b for a, b in zip(got, expected, strict=True))
    subject.assert_that(same, what, got=got, expected=f"the very objects {expected}")


@keeps("FN-01")
def test_apply_gives_forwards_result_and_records_it(subject, data):
    """apply returns forward's values and dtypes, and every differentiable output has a grad_fn."""
    polynomial = subject.polynomial(data, separate=None)
    run = subject.run(polynomial)
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())
    floats = [run.outputs[o] for o in polynomial.float_outputs]
    kept = [subject.implementation.describe(y).dtype for y in floats]
    subject.assert_equal("dtypes of the outputs", got=kept, expected=[polynomial.dtype] * len(floats))
    recorded = [subject.implementation.node(y) is not None for y in floats]
    subject.assert_equal("whether each output has a grad_fn", got=recorded, expected=[True] * len(floats))


@keeps("FN-02")
def test_all_outputs_of_a_call_have_one_node(subject, data):
    """The outputs of one call share a grad_fn; those of a second call have another one."""
    polynomial = subject.polynomial(data, separate=None, max_outputs=6)
    run, another = subject.run(polynomial), subject.run(polynomial)
    floats = polynomial.float_outputs
    nodes = {id(subject.implementation.node(run.outputs[i])) for i in floats}
    subject.assert_equal("number of grad_fns of the outputs of one call", got=len(nodes), expected=1)
    theirs = {id(subject.implementation.node(another.outputs[i])) for i in floats}
    subject.assert_equal("number of grad_fns of the outputs of two calls", got=len(nodes | theirs), expected=2)


@keeps("FN-03")
def test_every_tensor_argument_is_differentiated(subject, data):
    """Every tracked tensor gets its gradient, also among dozens of arguments."""
    drawn = subject.polynomial(data, separate=None)
    copies = subject.draw(data, (1, 2, 15), "times that the arguments are repeated")
    polynomial = replace(drawn, arguments=drawn.arguments * copies)
    cotangents = polynomial.cotangents()
    got = subject.run(polynomial).gradients(cotangents)
    subject.assert_all_same("gradients", got=got, expected=polynomial.vjp(cotangents))


@keeps("FN-03", variant="objects")
def test_arguments_of_any_type_reach_forward(subject, data):
    """Objects of any type before and after a tensor reach forward as the very same objects."""
    before, after = (subject.draw(data, st.lists(OBJECTS, max_size=4), f"{w} the tensor") for w in ("before", "after"))
    seen = []

    def forward(*args):
        seen.append([*args[: len(before)], *args[len(before) + 1 :]])
        return args[len(before)] * 2

    def backward(ctx, g):
        return (*(None for _ in before), 2 * g, *(None for _ in after))

    separate = subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=forward, backward=backward, separate=separate)
    _, pullback = subject.implementation.vjp(lambda x: apply(*before, x, *after), [subject.tensor(X)])
    (got,) = pullback([subject.tensor(G)])
    # Some implementations run forward again for a pullback.
    expected = [*before, *after] * max(1, len(seen))
    _assert_very(
        subject, "other arguments that reach forward", got=[x for args in seen for x in args], expected=expected
    )
    subject.assert_same("gradient of the tensor among them", got=got, expected=2 * G)


@keeps("FN-04")
def test_tensors_in_containers_are_not_tracked(subject, data):
    """A tensor in a list, tuple or dict gets no gradient and does not make the output require grad."""
    pack, take = CONTAINERS[subject.draw(data, sorted(CONTAINERS), "container of x")]
    weight = subject.draw(data, WEIGHTS, "weight")
    alongside = subject.draw(data, st.booleans(), "y, passed next to the container, requires grad")
    apply = subject.custom(
        forward=lambda container, y: take(container) * weight + y * 2,
        backward=lambda ctx, g: (None, g * 2),
        separate=subject.draw(data, st.booleans(), "setup_context"),
    )
    primals = subject.tensors([X, G])
    outputs, pullback = subject.implementation.vjp(lambda x, y: apply(pack(x), y), primals, track=[True, alongside])
    tracked = subject.implementation.requires_grad(outputs[0])
    subject.assert_equal("requires_grad of the output", got=tracked, expected=alongside)
    expected = (None, 2 * G if alongside else None)
    subject.assert_all_same("gradients of x and y", got=pullback([subject.tensor(G)]), expected=expected)


@keeps("FN-06")
def test_forward_records_nothing(subject, data):
    """Results of operations inside forward do not require grad."""
    polynomial = subject.polynomial(data, separate=None)
    seen = []

    def note(args):
        results = [args[i] * 2 + args[i] for i in polynomial.floating]
        seen.extend(subject.implementation.requires_grad(result) for result in results)

    subject.run(polynomial, cls=_noting(subject, polynomial, note))
    expected = [False] * len(polynomial.floating)
    subject.assert_equal("requires_grad of results inside forward, by tensor argument", got=seen, expected=expected)


@keeps("FN-07")
def test_a_tensor_stays_a_tensor(subject, data):
    """If forward returns one tensor, so does apply."""
    weight = subject.draw(data, WEIGHTS, "weight")
    apply = subject.custom(forward=lambda x: x * weight, separate=subject.draw(data, st.booleans(), "setup_context"))
    tracked = subject.draw(data, st.booleans(), "x requires grad")
    tensor, outputs = _seen(subject, apply, subject.implementation.is_tensor, tracked)
    subject.assert_equal("whether apply gives a tensor", got=tensor, expected=True)
    subject.assert_all_same("what apply gives", got=outputs, expected=[weight * X])


@keeps("FN-07", variant="tuples", needs="tuples")
def test_a_tuple_stays_a_tuple(subject, data):
    """If forward returns a tuple, apply returns a tuple of the same length, also of none or one."""
    weights = subject.draw(data, st.lists(WEIGHTS, max_size=4), "weights of the outputs")
    separate = subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=lambda x: tuple(x * weight for weight in weights), separate=separate)
    kind, outputs = _seen(subject, apply, type, subject.draw(data, st.booleans(), "x requires grad"))
    subject.assert_equal("type of what apply gives", got=kind, expected=tuple)
    subject.assert_all_same("outputs", got=outputs, expected=[weight * X for weight in weights])


@keeps("FN-08", needs="objects")
def test_lists_and_dicts_are_opaque_outputs(subject, data):
    """apply returns the very list or dict that forward made, and the tensor in it does not require grad."""
    kind = subject.draw(data, ("list", "dict", "nested"), "what forward returns")
    alongside = subject.draw(data, st.booleans(), "in a tuple, after a tensor")
    pack, take = CONTAINERS[kind]
    made = []

    def forward(x):
        made.extend((x * 2, pack(x * 3)))
        return tuple(made) if alongside else made[1]

    apply = subject.custom(forward=forward, separate=subject.draw(data, st.booleans(), "setup_context"))
    result = _called(subject, apply)
    got = result[1] if alongside else result
    subject.assert_that(got is made[1], "what apply gives", got=got, expected=f"the very {kind} that forward returned")
    tracked = subject.implementation.requires_grad(take(got))
    subject.assert_equal("requires_grad of the tensor in it", got=tracked, expected=False)
    subject.assert_same("the tensor in it", got=take(got), expected=3 * X)


@keeps("FN-09", needs="tuples")
def test_a_named_tuple_becomes_a_tuple(subject, data):
    """A named tuple comes back as a plain tuple whose tensors require grad if the input does."""
    weights = subject.draw(data, st.lists(WEIGHTS, min_size=1, max_size=4), "weights of the fields")
    record = namedtuple("Record", [f"field_{i}" for i, _ in enumerate(weights)])
    tracked = subject.draw(data, st.booleans(), "x requires grad")
    separate = subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=lambda x: record(*(x * w for w in weights)), separate=separate)
    got = _called(subject, apply, tracked)
    subject.assert_equal("type of what apply gives", got=type(got), expected=tuple)
    subject.assert_all_same("outputs", got=got, expected=[weight * X for weight in weights])
    flags = [subject.implementation.requires_grad(y) for y in got]
    subject.assert_equal("requires_grad of the outputs", got=flags, expected=[tracked] * len(weights))


@keeps("FN-10")
def test_outputs_that_are_no_tensors_are_handed_on(subject, data):
    """Non-tensor outputs come back as the same objects, and backward gets None for each of them."""
    before, after = (subject.draw(data, st.lists(OBJECTS, max_size=3), f"{w} the tensor") for w in ("before", "after"))
    position, seen = len(before), []

    def backward(ctx, *cotangents):
        seen.extend(cotangents)
        return cotangents[position] * 2

    separate = subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=lambda x: (*before, x * 2, *after), backward=backward, separate=separate)
    outputs, pullback = subject.implementation.vjp(apply, [subject.tensor(X)])
    cotangents = [*(None for _ in before), G, *(None for _ in after)]
    pullback(subject.tensors(cotangents))
    others = [*outputs[:position], *outputs[position + 1 :]]
    _assert_very(subject, "outputs that are not tensors", got=others, expected=[*before, *after])
    subject.assert_same("the tensor among the outputs", got=outputs[position], expected=2 * X)
    subject.assert_all_same("cotangents that backward gets", got=seen, expected=cotangents)


@keeps("FN-24")
def test_a_call_without_tracked_tensors_is_not_recorded(subject, data):
    """If no tensor requires grad, forward runs and the outputs have no grad_fn."""
    drawn = subject.polynomial(data, separate=None)
    polynomial = replace(drawn, arguments=tuple("fixed" if a == "tracked" else a for a in drawn.arguments))
    run = subject.run(polynomial)
    subject.assert_all_same("outputs", got=run.outputs, expected=polynomial.forward())
    tensors = [y for y in run.outputs if subject.implementation.is_tensor(y)]
    got = [(subject.implementation.requires_grad(y), subject.implementation.node(y)) for y in tensors]
    subject.assert_equal("requires_grad and grad_fn of the outputs", got=got, expected=[(False, None)] * len(tensors))


@keeps("FN-24", variant="no-tensors")
def test_a_call_without_tensors_runs_forward(subject, data):
    """A call without any tensor argument runs forward, and its output has no grad_fn."""
    objects = subject.draw(data, st.lists(OBJECTS, max_size=3), "arguments")
    values = subject.draw(data, st.lists(WEIGHTS, max_size=3), "values that forward makes a tensor of")
    array, separate = np.asarray(values, np.float64), subject.draw(data, st.booleans(), "setup_context")
    apply = subject.custom(forward=lambda *args: subject.tensor(array), separate=separate)
    (y,), _ = subject.implementation.vjp(lambda: apply(*objects), [])
    subject.assert_same("output", got=y, expected=array)
    got = (subject.implementation.requires_grad(y), subject.implementation.node(y))
    subject.assert_equal("requires_grad and grad_fn of the output", got=got, expected=(False, None))
