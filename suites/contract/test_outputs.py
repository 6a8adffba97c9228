"""Outputs: whether they require grad, and what backward gets for those that are not used."""

import operator
from itertools import accumulate

import numpy as np
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.reference.definitions import FLOATING
from autograd_conformance.suites.contract._constant_outputs import Constants, Output, output_lists, uses
from autograd_conformance.suites.contract._ctx_observers import THREE, doubled, nothing, three_tensors
from autograd_conformance.suites.contract._grad_and_backward import drawn_way, gradients_of

FULL = ((), (1,), (3,), (2, 3), (3, 1, 2))


def _floating(subject):
    return [dtype for dtype in subject.implementation.dtypes if dtype in FLOATING]


def _integers(subject):
    return [dtype for dtype in subject.implementation.dtypes if dtype not in FLOATING]


def _graph_facts(subject, outputs):
    """For each output, whether it requires grad and whether it has a node."""
    implementation = subject.implementation
    return [(implementation.requires_grad(y), implementation.node(y) is not None) for y in outputs]


def _assert_recorded(subject, constants):
    """Differentiable outputs require grad and have a node; the others have neither."""
    outputs, _ = constants.call()
    expected = [(output.differentiable,) * 2 for output in constants.given]
    got = _graph_facts(subject, outputs)
    subject.assert_equal("requires_grad, and having a grad_fn, of each output", got=got, expected=expected)


@keeps("OUT-01", needs="tuples")
def test_every_floating_output_requires_grad(subject, data):
    """Every floating-point output requires grad and has a grad_fn, although backward ignores it."""
    outputs = subject.draw(data, output_lists(_floating(subject)), "outputs")
    _assert_recorded(subject, Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style")))


@keeps("OUT-02", needs="tuples")
def test_no_integer_output_requires_grad(subject, data):
    """Integer and bool outputs do not require grad; a floating-point one next to them does."""
    outputs = subject.draw(data, output_lists([*_integers(subject), subject.usual]), "outputs")
    _assert_recorded(subject, Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style")))


@keeps("OUT-03", needs="tuples")
def test_a_tensor_returned_twice_is_one_output(subject, data):
    """A tensor at several positions is one object; its summed cotangent arrives at the last of them."""
    pattern = subject.draw(data, st.lists(st.integers(0, 1), min_size=2, max_size=4), "which tensor is returned where")
    given = []

    def forward(x):
        fresh = (x * 1, x * 2)
        return tuple(fresh[which] for which in pattern)

    def backward(_, *cotangents):
        given.extend(cotangents)
        return sum(g * (which + 1) for which, g in zip(pattern, cotangents, strict=True))

    f = subject.custom(forward=forward, backward=backward, separate=subject.draw(data, st.booleans(), "separate style"))
    outputs, pullback = subject.implementation.vjp(f, subject.tensors([np.ones(2)]))
    cotangents = [np.full(2, 2.0**i) for i in range(len(pattern))]
    found = pullback(subject.tensors(cotangents))
    whole = {w: sum(g for v, g in zip(pattern, cotangents, strict=True) if v == w) for w in pattern}
    last = [which not in pattern[i + 1 :] for i, which in enumerate(pattern)]
    expected = [whole[which] if late else np.zeros(2) for which, late in zip(pattern, last, strict=True)]
    same = [[a == b for b in pattern] for a in pattern]
    subject.assert_equal(
        "which outputs are the same object", got=[[y is z for z in outputs] for y in outputs], expected=same
    )
    subject.assert_all_same("cotangents in backward", got=given, expected=expected)
    gradient = sum(g * (which + 1) for which, g in whole.items())
    subject.assert_all_same("gradient", got=found, expected=[gradient])


@keeps("OUT-04")
def test_an_output_can_be_changed_in_place(subject, data):
    """An output that is changed in place after the call stays the same object and has the right gradients."""
    polynomial = subject.polynomial(data, arguments=("tracked", "fixed"), outputs=("float",), separate=None)
    count = len(polynomial.outputs)
    factors = subject.draw(data, st.lists(st.sampled_from((1, -1, 2, 3)), min_size=count, max_size=count), "factors")
    apply = subject.implementation.function(subject.body(polynomial))
    ys = []

    def f(*tensors):
        ys[:] = apply(*tensors)
        return tuple(operator.imul(y, factor) for y, factor in zip(ys, factors, strict=True))

    outputs, pullback = subject.implementation.vjp(f, subject.primals(polynomial), track=polynomial.track)
    cotangents = polynomial.cotangents()
    gradients = pullback(subject.tensors(cotangents, polynomial.dtype))
    subject.assert_that(all(map(operator.is_, outputs, ys)), "result of the in-place change", got=outputs, expected=ys)
    values = [np.asarray(y * factor) for y, factor in zip(polynomial.forward(), factors, strict=True)]
    subject.assert_all_same("changed outputs", got=ys, expected=values)
    scaled = [g * factor for g, factor in zip(cotangents, factors, strict=True)]
    subject.assert_all_same("gradients", got=gradients, expected=polynomial.vjp(scaled))


@keeps("ND-01")
def test_a_marked_output_is_out_of_the_graph_alone(subject, data):
    """Only the marked outputs have no grad_fn and do not require grad."""
    outputs = subject.draw(data, output_lists(subject.implementation.dtypes, marked=True), "outputs")
    _assert_recorded(subject, Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style")))


def _constants(subject, data, outputs, configure=nothing):
    """A Function with these outputs, some of them used in a drawn way to differentiate, and the cotangents of these."""
    used = subject.draw(data, uses(outputs), "outputs used")
    constants = Constants(subject, outputs, configure, subject.draw(data, st.booleans(), "separate style"))
    return constants, constants.pull(used, drawn_way(subject, data))


@keeps("ND-02")
def test_a_marked_output_gives_zeros(subject, data):
    """backward gets zeros of the right shape and dtype for marked floating-point outputs."""
    outputs = subject.draw(data, output_lists(_floating(subject), marked=True), "outputs")
    constants, ones = _constants(subject, data, outputs)
    constants.assert_given(constants.materialized(ones))


@keeps("ND-02", variant="integers")
def test_a_marked_output_of_integers_gives_zeros(subject, data):
    """backward gets zeros of the right shape and dtype for marked outputs of any dtype, integers too."""
    outputs = subject.draw(data, output_lists(subject.implementation.dtypes, marked=True, integers=True), "outputs")
    constants, ones = _constants(subject, data, outputs)
    constants.assert_given(constants.materialized(ones))


@keeps("ND-03")
def test_a_marked_output_gives_none_without_materialization(subject, data):
    """With set_materialize_grads(False) backward gets None for marked outputs."""
    outputs = subject.draw(data, output_lists(subject.implementation.dtypes, marked=True), "outputs")
    constants, ones = _constants(subject, data, outputs, lambda ctx: ctx.set_materialize_grads(False))
    constants.assert_given(ones)


# Non-tensors, made from an output.
NO_TENSORS = {
    "None": lambda _: None,
    "number": lambda _: 5,
    "text": lambda _: "text",
    "list": lambda y: [y],
    "tuple": lambda y: (y,),
}


@keeps("ND-04")
def test_only_a_tensor_can_be_marked(subject, data):
    """mark_non_differentiable raises for non-tensors, at any position."""
    kind = subject.draw(data, NO_TENSORS, "marked")
    before, after = subject.draw(data, st.tuples(*[st.integers(0, 1)] * 2), "tensors marked before and after it")
    separate = subject.draw(data, st.booleans(), "separate style")

    def call(wrong):
        def mark(ctx, _, outputs):
            ctx.mark_non_differentiable(*outputs[:before], *wrong(outputs[1]), *outputs[3 - after :])

        f = three_tensors(subject, doubled, mark, separate=separate)
        return subject.implementation.vjp(f, subject.tensors(THREE))[0]

    naming = ["mark_non_differentiable"]
    what = "a call that marks a non-tensor"
    subject.assert_raises((RuntimeError, TypeError), lambda: call(lambda y: [NO_TENSORS[kind](y)]), what, naming=naming)
    subject.assert_accepted(lambda: call(lambda y: [y]), "a call that marks tensors")


@keeps("ND-04", variant="unreturned", needs="requires_grad")
def test_marking_what_is_not_returned_has_no_effect(subject, data):
    """Marking inputs or other tensors that are not returned changes no output, input or gradient."""
    kinds = subject.draw(data, st.lists(st.sampled_from(("input", "intermediate", "other")), min_size=1), "marked")
    separate = subject.draw(data, st.booleans(), "separate style")
    tensors, inputs = subject.tensors(THREE), []
    others = {"intermediate": tensors[0] * 5, "other": tensors[1]}

    def mark(ctx, given, _):
        ctx.mark_non_differentiable(*(others.get(kind, given[i]) for i, kind in enumerate(kinds[:3])))

    apply = three_tensors(subject, doubled, mark, separate=separate)

    def f(*leaves):
        inputs.extend(leaves)
        return apply(*leaves)

    outputs, pullback = subject.implementation.vjp(f, tensors)
    recorded = [(True, True)] * 3
    what = "requires_grad, and having a grad_fn, of each output"
    subject.assert_equal(what, got=_graph_facts(subject, outputs), expected=recorded)
    flags = [subject.implementation.requires_grad(x) for x in inputs]
    subject.assert_equal("requires_grad of the inputs", got=flags, expected=[True] * 3)
    subject.assert_all_same("gradients", got=pullback(tensors), expected=list(THREE * 2))


@keeps("ND-05")
def test_nothing_requires_grad_if_all_outputs_are_marked(subject, data):
    """If all outputs are marked, none of them requires grad or has a grad_fn."""
    dtypes = subject.implementation.dtypes
    outputs = [o._replace(marked=True) for o in subject.draw(data, output_lists(dtypes), "outputs, all marked")]
    _assert_recorded(subject, Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style")))


@keeps("ND-06")
def test_a_returned_input_that_is_marked_comes_back_detached(subject, data):
    """A marked input that is returned comes back as a detached alias; the input still requires grad."""
    marked = subject.draw(data, st.sets(st.integers(0, 2), min_size=1), "inputs returned and marked")
    made = subject.draw(data, st.sets(st.integers(0, 2)), "inputs that are results")
    separate = subject.draw(data, st.booleans(), "separate style")
    implementation, inputs = subject.implementation, []

    def outputs(tensors):
        return tuple(x if i in marked else x * 2 for i, x in enumerate(tensors))

    apply = three_tensors(
        subject,
        outputs,
        lambda ctx, _, ys: ctx.mark_non_differentiable(*(ys[i] for i in marked)),
        separate=separate,
    )

    def f(*tensors):
        inputs[:] = [x * 1 if i in made else x for i, x in enumerate(tensors)]
        return apply(*inputs)

    found, _ = implementation.vjp(f, subject.tensors(THREE))
    expected = [(i not in marked,) * 2 for i in range(3)]
    what = "requires_grad, and having a grad_fn, of each output"
    subject.assert_equal(what, got=_graph_facts(subject, found), expected=expected)
    flags = [implementation.requires_grad(x) for x in inputs]
    subject.assert_equal("requires_grad of the inputs", got=flags, expected=[True] * 3)
    got = [(y is x, implementation.shares_memory(y, x)) for y, x in zip(found, inputs, strict=True)]
    expected = [(False, i in marked) for i in range(3)]
    subject.assert_equal("whether each output is the input, and shares its memory", got=got, expected=expected)


@keeps("MAT-01", needs="tuples")
def test_an_unused_output_gives_zeros(subject, data):
    """backward gets zeros of the right shape and dtype for outputs that are not used."""
    outputs = subject.draw(data, output_lists(_floating(subject)), "outputs")
    constants, ones = _constants(subject, data, outputs)
    constants.assert_given(constants.materialized(ones))


@keeps("MAT-01", variant="again", needs="tuples")
def test_an_unused_output_gives_zeros_in_every_pass(subject, data):
    """In each of several passes, backward gets zeros for the outputs that this pass does not use."""
    outputs = subject.draw(data, output_lists(_floating(subject)), "outputs")
    passes = subject.draw(data, st.lists(uses(outputs), min_size=2, max_size=3), "outputs used in each pass")
    constants = Constants(subject, outputs, separate=subject.draw(data, st.booleans(), "separate style"))
    _, pullback = constants.call()
    given = [constants.ones(used) for used in passes]
    for ones in given:
        pullback(ones)
    got = [g for cotangents in constants.cotangents for g in cotangents]
    expected = [g for ones in given for g in constants.materialized(ones)]
    subject.assert_all_same("cotangents in backward, by pass and output", got=got, expected=expected)


@keeps("MAT-01", variant="dense", needs="tuples views")
def test_the_zeros_are_dense(subject, data):
    """The zeros for an unused output are dense: no stride is 0 and there are no gaps."""
    outputs = subject.draw(data, output_lists(_floating(subject), transposed=True, shapes=FULL), "outputs")
    constants, ones = _constants(subject, data, outputs)
    unused = [i for i, g in enumerate(ones) if g is None]
    strides = [subject.implementation.strides(constants.cotangents[0][i]) for i in unused]
    for steps, output in zip(strides, (outputs[i] for i in unused), strict=True):
        found = sorted((step, n) for step, n in zip(steps, output.shape, strict=True) if n > 1)
        dense = list(accumulate((n for _, n in found), operator.mul, initial=1))[:-1]
        what = f"strides of the zeros for an unused output {output}, without sizes of one, the smallest first"
        subject.assert_equal(what, got=[step for step, _ in found], expected=dense)


@keeps("MAT-02")
def test_what_was_set_last_says_whether_an_unused_output_gives_none(subject, data):
    """Of several calls of set_materialize_grads, the last decides between zeros and None."""
    outputs = subject.draw(data, output_lists(_floating(subject)), "outputs")
    flags = subject.draw(data, st.lists(st.booleans(), min_size=1, max_size=3), "calls of set_materialize_grads")

    def configure(ctx):
        for flag in flags:
            ctx.set_materialize_grads(flag)

    constants, ones = _constants(subject, data, outputs, configure)
    constants.assert_given(constants.materialized(ones) if flags[-1] else ones)


@keeps("MAT-03")
def test_only_a_bool_says_whether_to_materialize(subject, data):
    """set_materialize_grads raises TypeError for anything but a bool."""
    value = subject.draw(data, (None, 0, 1, 0.5, "text", (), np.True_), "value")
    flag = subject.draw(data, st.booleans(), "then given")

    def configure(ctx):
        naming = ["set_materialize_grads", "bool"]
        what = "set_materialize_grads of no bool"
        subject.assert_raises(TypeError, lambda: ctx.set_materialize_grads(value), what, naming=naming)
        subject.assert_accepted(lambda: ctx.set_materialize_grads(flag), "set_materialize_grads of a bool")

    Constants(
        subject, [Output(subject.usual, (2,))], configure, subject.draw(data, st.booleans(), "separate style")
    ).call()


@keeps("MAT-04")
def test_a_node_that_only_none_reaches_runs(subject, data):
    """A node runs although the next backward returned only None; it gets zeros or None as set."""
    outputs = subject.draw(data, output_lists(_floating(subject)), "outputs")
    materialize = subject.draw(data, st.booleans(), "set_materialize_grads")
    separate = subject.draw(data, st.booleans(), "separate style")
    inner = Constants(subject, outputs, lambda ctx: ctx.set_materialize_grads(materialize), separate)
    nones = (None,) * len(outputs)
    outer = subject.custom(forward=lambda ctx, *_: subject.tensor(1.0), backward=lambda *_: nones)
    way, x = drawn_way(subject, data), subject.tensors([np.ones(2)])
    found = gradients_of(subject, way, lambda x: outer(*inner.apply(x)), x, subject.tensors([1.0]))
    inner.assert_given(inner.materialized(nones) if materialize else nones)
    subject.assert_all_same("gradient", got=found, expected=[np.ones(2)])
