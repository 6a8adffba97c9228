"""The engine: what a backward pass runs, in what state, and how gradients are summed, returned and accumulated."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.harness.testing.observe import observed
from autograd_conformance.strategies.generated_functions import flags
from autograd_conformance.suites.contract._grad_and_backward import (
    BACKWARD,
    GRAD,
    argument_gradients,
    drawn_create_graph,
    drawn_way,
    gradients_of,
    with_changed_gradients,
    with_rule,
)
from autograd_conformance.suites.contract._graphs import DTYPE, drawn_graph, outputs_of, sum_of_gradients


def _pass(subject, way, graph, cotangents, **options):
    """The gradients of a graph's leaves, and what ran."""
    f, logs = outputs_of(subject, graph)
    leaves, given = subject.tensors(graph.values, DTYPE), subject.tensors(cotangents, DTYPE)
    return gradients_of(subject, way, f, leaves, given, **options), logs[-1]


SHAPES = ((), (1,), (3,), (1, 1), (2, 3), (3, 2), (1, 3))


def _misshapen(subject, polynomial, position, shape):
    cotangents = polynomial.cotangents()
    wrong = (*cotangents[:position], np.ones(shape), *cotangents[position + 1 :])
    return lambda way: argument_gradients(subject, way, polynomial, wrong)


@keeps("ENG-02")
def test_a_cotangent_of_another_shape_raises(subject, data):
    """A cotangent whose shape is not its output's raises, at any position; one of the right shape is accepted."""
    polynomial = subject.polynomial(data, separate=None, outputs=("float",), shapes=((), (1,), (3,), (2, 3)))
    position = subject.draw(data, range(len(polynomial.outputs)), "position of the output")
    shape = subject.draw(data, [s for s in SHAPES if s != polynomial.shape], "shape of its cotangent")
    way, cotangents = drawn_way(subject, data), polynomial.cotangents()
    wrong = _misshapen(subject, polynomial, position, shape)
    what = f"a cotangent of shape {shape} for an output of shape {polynomial.shape}"
    subject.assert_raises(subject.implementation.refusals, lambda: wrong(way), what)
    right = argument_gradients(subject, way, polynomial, cotangents)
    subject.assert_all_same("gradients for the right shapes", got=right, expected=polynomial.vjp(cotangents))


@keeps("ENG-02", variant="message")
def test_the_message_names_the_shapes_of_the_first_output(subject, data):
    """The error for a wrong shape names position 0, the cotangent's shape and the output's shape."""
    polynomial = subject.polynomial(data, outputs=("float",), shapes=((3,), (2, 3)))
    shape = subject.draw(data, [s for s in SHAPES if s != polynomial.shape], "shape of the first cotangent")
    _assert_message(subject, data, polynomial, 0, shape)


@keeps("ENG-02", variant="later-message")
def test_the_message_names_the_shapes_of_a_later_output(subject, data):
    """The error for a wrong shape at a later output names that output's position and both shapes."""
    polynomial = subject.polynomial(data, outputs=("float",), max_outputs=3, shapes=((3,), (2, 3)))
    assume(len(polynomial.outputs) > 1)
    position = subject.draw(data, range(1, len(polynomial.outputs)), "position of the output")
    shape = subject.draw(data, [s for s in SHAPES if s != polynomial.shape], "shape of its cotangent")
    _assert_message(subject, data, polynomial, position, shape)


def _assert_message(subject, data, polynomial, position, shape):
    """The error for this wrong shape names the position and both shapes."""
    way = drawn_way(subject, data)
    wrong = _misshapen(subject, polynomial, position, shape)
    what, facts = "a cotangent of another shape than its output", [position, *shape, *polynomial.shape]
    subject.assert_raises(subject.implementation.refusals, lambda: wrong(way), what, naming=facts)


@keeps("ENG-02", variant="cast")
def test_backward_sees_cotangents_in_the_dtype_of_its_outputs(subject, data):
    """backward gets real cotangents of any dtype in the dtype of its outputs."""
    implementation = subject.implementation
    polynomial = subject.polynomial(data, separate=None, outputs=("float",))
    real = [d for d in implementation.dtypes if not d.startswith("complex")]
    count = len(polynomial.outputs)
    dtypes = subject.draw(data, st.lists(st.sampled_from(real), min_size=count, max_size=count), "cotangents' dtypes")
    values = np.asarray(np.resize([1, 0, 1], polynomial.shape))
    given = [implementation.array(values, dtype, subject.device) for dtype in dtypes]
    body = polynomial.body(implementation.xp, implementation.ag)
    watched, seen = observed(body, implementation.ag.Function, needs=False)
    f, way = subject.call_of(polynomial, watched), drawn_way(subject, data)
    got = gradients_of(subject, way, f, subject.primals(polynomial), given, polynomial.track)
    found_dtypes = [implementation.describe(g).dtype for g in seen.cotangents]
    subject.assert_equal(
        "dtypes of the gradients that backward gets", got=found_dtypes, expected=[polynomial.dtype] * count
    )
    expected = [g for g, i in zip(polynomial.vjp([values * 1.0] * count), polynomial.needs, strict=True) if i]
    subject.assert_all_same("gradients", got=[g for g in got if g is not None], expected=expected)


@keeps("ENG-02", variant="complex")
def test_cotangents_are_complex_where_outputs_are(subject, data):
    """A complex cotangent of a real output raises, and so does a real one of a complex output."""
    array = subject.implementation.array
    shape = subject.draw(data, ((), (3,), (2, 1)), "shape")
    dtypes = [d for d in subject.implementation.dtypes if d.startswith(("float", "complex"))]
    dtype = subject.draw(data, dtypes, "dtype of the output")
    others = [d for d in dtypes if d.startswith("complex") != dtype.startswith("complex")]
    assume(others)
    other = subject.draw(data, others, "dtype of the cotangent")
    way = drawn_way(subject, data)
    double = subject.custom(forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g * 2)
    ones = np.ones(shape)

    def gradient(cotangent):
        x = array(ones, dtype, subject.device)
        return gradients_of(subject, way, double, [x], [array(ones, cotangent, subject.device)])

    what = f"a {other} cotangent of a {dtype} output"
    subject.assert_raises(subject.implementation.refusals, lambda: gradient(other), what, naming=[other, dtype])
    got = subject.assert_accepted(lambda: gradient(dtype), f"a {dtype} cotangent of it")
    subject.assert_same("gradient", got=got[0], expected=np.asarray(2 * ones))


@keeps("ENG-03")
def test_backward_adds_to_what_grad_holds(subject, data):
    """backward() adds to a .grad that holds something and sets one that is None."""
    graph = drawn_graph(subject, data)
    before = subject.draw(data, flags(graph.leaves), "holds something")
    held = [np.full(graph.shape, 3.0) if h else None for h in before]
    cotangents = graph.cotangents()
    f, _ = outputs_of(subject, graph)
    leaves, given = subject.tensors(graph.values, DTYPE), subject.tensors(cotangents, DTYPE)
    initial = subject.tensors(held, DTYPE)
    options = {"initial": initial, "differentiable": drawn_create_graph(subject, data)}
    got = subject.implementation.backward(f, leaves, given, track=[True] * graph.leaves, **options)
    expected = [sum_of_gradients(h, g) for h, g in zip(held, graph.leaf_gradients(cotangents), strict=True)]
    subject.assert_all_same(".grad of the leaves", got=got, expected=expected)


@keeps("ENG-03", variant="ways")
def test_what_grad_returns_is_what_backward_accumulates(subject, data):
    """grad returns the same gradients that backward() puts into .grad, for any choice of tracked leaves."""
    graph = drawn_graph(subject, data)
    track = subject.draw(data, flags(graph.leaves), "tracked leaves")
    cotangents = graph.cotangents()
    returned, _ = _pass(subject, GRAD, graph, cotangents, track=track)
    accumulated, _ = _pass(subject, BACKWARD, graph, cotangents, track=track)
    subject.assert_all_same(".grad after backward, against what grad returns", got=accumulated, expected=returned)


@keeps("ENG-04")
def test_a_node_runs_once_with_the_sum(subject, data):
    """In a random graph every node runs once, with the sum of all gradients that reach it."""
    _assert_runs_once(subject, data, drawn_graph(subject, data, repeated=False))


@keeps("ENG-04", variant="repeated")
def test_the_sum_counts_an_output_as_often_as_it_is_given(subject, data):
    """An output that is given twice contributes both its cotangents, and its node still runs once."""
    _assert_runs_once(subject, data, drawn_graph(subject, data, repeated=True))


def _assert_runs_once(subject, data, graph):
    cotangents, way = graph.cotangents(), drawn_way(subject, data)
    got, ran = _pass(subject, way, graph, cotangents)
    expected = graph.pass_over(cotangents)
    subject.assert_equal("steps that ran, sorted", got=sorted(ran.order), expected=sorted(expected.cotangents))
    seen = [g for given in ran.cotangents for g in given]
    wanted = [g for k in ran.order for g in expected.cotangents[k]]
    subject.assert_all_same(f"cotangents of steps {ran.order}", got=seen, expected=wanted)
    expected_gradients = subject.returned(expected.gradients[: graph.leaves], graph.shape)
    subject.assert_all_same("gradients", got=got, expected=expected_gradients)


@keeps("ENG-05")
def test_several_outputs_give_the_sum_of_their_gradients(subject, data):
    """The gradients of several calls with several outputs are the sum over all outputs."""
    polynomial = subject.polynomial(data, arguments=("tracked",), outputs=("float",), max_outputs=4)
    repeats = subject.draw(data, st.integers(1, 3), "calls on the same inputs")
    way = drawn_way(subject, data)
    each = [polynomial.cotangents(salt=10 * n) for n in range(repeats)]
    f = subject.call_of(polynomial)
    got = gradients_of(
        subject,
        way,
        lambda *xs: tuple(y for _ in range(repeats) for y in f(*xs)),
        subject.primals(polynomial),
        subject.tensors([g for cotangents in each for g in cotangents], polynomial.dtype),
    )
    parts = zip(*map(polynomial.vjp, each), strict=True)
    expected = [np.asarray(np.sum(part, axis=0)) for part in parts]
    subject.assert_all_same("gradients of all outputs", got=got, expected=expected)


@keeps("ENG-10", examples=4)
def test_nodes_that_no_wanted_leaf_needs_do_not_run(subject, data):
    """A pass for some of the leaves runs only the nodes that lead to them."""
    graph = drawn_graph(subject, data, min_leaves=2)
    some = flags(graph.leaves).filter(lambda w: any(w) and not all(w))
    wanted = subject.draw(data, some, "wanted leaves")
    f, logs = outputs_of(subject, graph)
    cotangents = graph.cotangents()
    _, pullback = subject.implementation.vjp(f, subject.tensors(graph.values, DTYPE))
    got = pullback(subject.tensors(cotangents, DTYPE), wrt=wanted, differentiable=drawn_create_graph(subject, data))
    expected = graph.pass_over(cotangents)
    needed = graph.leading_to([leaf for leaf, want in enumerate(wanted) if want]) & set(expected.cotangents)
    subject.assert_equal("steps that ran, sorted", got=sorted(logs[0].order), expected=sorted(needed))
    kept = [g if want else None for g, want in zip(expected.gradients, wanted, strict=False)]
    subject.assert_all_same("gradients of the leaves", got=got, expected=kept)


@keeps("ENG-16")
def test_zeros_run_backward(subject, data):
    """Cotangents of zeros run the same nodes as any others."""
    graph = drawn_graph(subject, data)
    zeros = [np.zeros(graph.shape)] * len(graph.outputs)
    got, ran = _pass(subject, drawn_way(subject, data), graph, zeros)
    expected = graph.pass_over(zeros)
    subject.assert_equal("steps that ran, sorted", got=sorted(ran.order), expected=sorted(expected.cotangents))
    expected_gradients = subject.returned(expected.gradients[: graph.leaves], graph.shape)
    subject.assert_all_same("gradients", got=got, expected=expected_gradients)


@keeps("LAYOUT-02")
def test_cotangents_are_like_their_outputs_whatever_comes_after(subject, data):
    """The cotangent has its output's shape, dtype and device even if the consumer returned another one."""
    implementation = subject.implementation
    first = subject.polynomial(data, "function", separate=None, arguments=("tracked",), outputs=("float",))
    last = subject.polynomial(data, "consumer", arguments=("tracked",), max_arguments=1, outputs=("float",))
    real = [d for d in implementation.dtypes if not d.startswith("complex")]
    dtype = subject.draw(data, real, "dtype of the consumer's gradient")
    lead = tuple(subject.draw(data, st.lists(st.integers(1, 3), max_size=2), "leading sizes of it"))
    value = implementation.array(np.ones((*lead, *first.shape)), dtype, subject.device)
    consume = implementation.function(with_rule(subject, last, lambda _: (value,)))
    seen = []
    cls = with_changed_gradients(subject, first, lambda found: found)
    inner = cls.backward
    cls.backward = staticmethod(lambda ctx, *given: (seen.extend(given), inner(ctx, *given))[1])
    f = subject.call_of(first, cls)
    starts = subject.tensors([np.ones(first.shape)] * len(first.outputs), first.dtype)
    gradients_of(
        subject,
        drawn_way(subject, data),
        lambda *xs: tuple(consume(y)[0] for y in f(*xs)),
        subject.primals(first),
        starts,
    )
    expected = implementation.describe(subject.tensor(np.ones(first.shape), first.dtype))
    got = [implementation.describe(g) for g in seen]
    subject.assert_equal("shape, dtype and device of the cotangents", got=got, expected=[expected] * len(first.outputs))
    sums = [np.full(first.shape, np.prod(lead, dtype=int) * 1.0)] * len(first.outputs)
    subject.assert_all_same("cotangents", got=seen, expected=sums)
