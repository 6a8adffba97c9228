"""Custom Functions under torch.compile and under tracers."""

from contextlib import suppress
from functools import partial

import numpy as np
import torch
from hypothesis import strategies as st
from torch.fx.experimental import proxy_tensor

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.strategies.generated_functions import polynomials
from autograd_conformance.suites.dialects.torch._compiled import (
    BACKENDS,
    assert_right_or_refused,
    fresh,
    skip_without_inductor,
)
from autograd_conformance.suites.dialects.torch._leaves import new_leaves, right_gradients, starts_of

# The gradients of these Functions are too large by this factor: so a result shows whether backward was used.
FACTOR = 4

SMALL = {"max_arguments": 3, "max_outputs": 2, "separate": None, "shapes": ((), (3,), (2, 3), (0,))}


def _scaled(subject, polynomial, *, rule="backward", **members):
    """The generated Function with gradients FACTOR times too large, from a method that is named ``rule``."""
    body = vars(subject.body(polynomial))
    right, entry = body["backward"].__func__, {k: body[k].__func__ for k in ("forward", "setup_context") if k in body}

    def backward(ctx, *cotangents):
        return tuple(g if g is None else FACTOR * g for g in right(ctx, *cotangents))

    return subject.define(name="Scaled", **entry, **{rule: backward}, **members)


def _counting(backend, ran):
    """The backend; it notes each run of a graph."""
    compiler = torch._dynamo.lookup_backend(backend)

    def compiled(graph, inputs):
        run = compiler(graph, inputs)

        def noting(*args):
            ran.append(graph)
            return run(*args)

        return noting

    return compiled


def _gradients(subject, polynomial, outputs, leaves, **options):
    """The gradients of the leaves that require them."""
    starts, given = starts_of(subject, polynomial, outputs)
    return torch.autograd.grad(starts, [x for x in leaves if x.requires_grad], given, **options)


def _assert_right(subject, polynomial, leaves, outputs):
    flags, expected = [y.requires_grad for y in outputs], [kind == "float" for kind in polynomial.outputs]
    subject.assert_equal("requires_grad of the outputs of compiled code", got=flags, expected=expected)
    subject.assert_all_same("outputs of compiled code", got=outputs, expected=polynomial.forward())
    got = _gradients(subject, polynomial, outputs, leaves)
    expected = [np.asarray(FACTOR * g) for g in right_gradients(polynomial)]
    subject.assert_all_same("gradients of compiled code", got=got, expected=expected)


def _assert_one_graph(subject, call, leaves, backend, check):
    ran = []
    with fresh():
        f = torch.compile(call, backend=_counting(backend, ran), fullgraph=True)
        check(subject.assert_accepted(lambda: f(*leaves), "tracing a Function into one graph"))
    subject.assert_equal("number of graphs that ran", got=len(ran), expected=1)


@keeps("COMPILE-01", slow=True, examples=0.4)
def test_a_function_is_traced_into_one_graph(subject, data):
    """A Function is traced into one graph, with symbolic sizes too, and keeps its own backward."""
    polynomial = subject.polynomial(data, outputs=("float",), **SMALL)
    backend = subject.draw(data, BACKENDS, "backend")
    dynamic = subject.draw(data, (False, True), "whether sizes are symbols")
    call, leaves = subject.call_of(polynomial, _scaled(subject, polynomial)), new_leaves(subject, polynomial)
    for x in leaves if dynamic and polynomial.shape else ():
        torch._dynamo.maybe_mark_dynamic(x, 0)
    _assert_one_graph(subject, call, leaves, backend, partial(_assert_right, subject, polynomial, leaves))


@keeps("COMPILE-01", variant="inductor", slow=True, examples=0.08)
def test_the_default_backend_uses_the_own_backward(subject, data):
    """With inductor, outputs and gradients are those of the Function's own methods."""
    skip_without_inductor(subject.device)
    polynomial = subject.polynomial(data, outputs=("float",), **SMALL)
    call, leaves = subject.call_of(polynomial, _scaled(subject, polynomial)), new_leaves(subject, polynomial)
    with fresh():
        f = torch.compile(call, fullgraph=True)
        outputs = subject.assert_accepted(lambda: f(*leaves), "tracing a Function into one graph")
        _assert_right(subject, polynomial, leaves, outputs)


@keeps("COMPILE-19", slow=True, examples=0.08)
def test_inductor_reads_tensors_that_are_negated_lazily(subject, data):
    """With inductor, outputs and gradients are right where an argument, or a cotangent, is negated lazily."""
    skip_without_inductor(subject.device)
    weight = subject.draw(data, (2, -3), "weight")
    negated = subject.draw(data, ("argument", "cotangent"), "negated lazily")
    numbers = st.lists(st.sampled_from((1.0, -2.0)), min_size=2, max_size=2)
    values, cotangent = subject.draw(data, numbers, "x"), subject.draw(data, numbers, "cotangent")
    scaled = subject.define(forward=lambda ctx, x: weight * x, backward=lambda ctx, g: FACTOR * weight * g)

    def made(what, numbers):
        """A tensor of these numbers; one that is negated lazily has memory of the opposite ones."""
        return torch._neg_view(subject.tensor(np.negative(numbers))) if what == negated else subject.tensor(numbers)

    x = made("argument", values).requires_grad_()
    with fresh():
        y = torch.compile(lambda x: scaled.apply(x), fullgraph=True)(x)
        (got,) = torch.autograd.grad(y, x, made("cotangent", cotangent))
    subject.assert_same("output of compiled code", got=y, expected=weight * np.array(values))
    subject.assert_same("gradient of compiled code", got=got, expected=FACTOR * weight * np.array(cotangent))


@keeps("COMPILE-21", slow=True, examples=0.04)
def test_a_budget_for_what_is_saved_covers_all_operations(subject, data):
    """With a budget around all operations gradients are right; around a part of them, or uncompiled, it is refused."""
    budget = subject.draw(data, (0.0, 0.5, 1.0), "budget")
    x = subject.tensor([1.0, -2.0]).requires_grad_()
    square = subject.define(
        forward=lambda ctx, x: (ctx.save_for_backward(x), x * x)[1],
        backward=lambda ctx, g: FACTOR * 2 * ctx.saved_tensors[0] * g,
    )

    def call(x):
        with torch.autograd.graph.region_activation_memory_budget(budget):
            return square.apply(x).square()

    def gradient(function):
        y = torch.compile(function, backend="aot_eager_decomp_partition")(x)
        return torch.autograd.grad(y, x, torch.ones_like(y))[0]

    with fresh():
        subject.assert_same("gradient of compiled code", got=gradient(call), expected=FACTOR * 4 * x**3)
        partly = lambda: gradient(lambda x: call(x * 3))  # noqa: E731
        subject.assert_raises(RuntimeError, partly, "a budget for a part of the operations", naming=["cover"])
    subject.assert_raises(RuntimeError, lambda: call(x), "a budget where nothing is compiled", naming=["compile"])


@keeps("COMPILE-01", variant="parent", slow=True, examples=0.2)
def test_a_backward_that_calls_its_parents_is_traced(subject, data):
    """A backward that calls its parent's backward is traced into one graph."""
    polynomial = subject.polynomial(data, outputs=("float",), **SMALL)
    backend = subject.draw(data, BACKENDS, "backend")
    parent = subject.body(polynomial)

    def backward(ctx, *cotangents):
        return tuple(g if g is None else FACTOR * g for g in parent.backward(ctx, *cotangents))

    scaled = subject.define(parent, backward=backward)
    call, leaves = subject.call_of(polynomial, scaled), new_leaves(subject, polynomial)
    check = partial(_assert_right, subject, polynomial, leaves)
    _assert_one_graph(subject, call, leaves, backend, check)


@keeps("COMPILE-02", slow=True, examples=0.4)
def test_methods_of_ctx_are_traced(subject, data):
    """Attributes, saved tensors and marked outputs are traced into one graph with right results."""
    restrictions = {**SMALL, "max_outputs": 3, "materialize": None, "outputs": ("float", "marked", "integers")}
    polynomial = subject.polynomial(data, **restrictions)
    backend = subject.draw(data, BACKENDS, "backend")
    call, leaves = subject.call_of(polynomial, _scaled(subject, polynomial)), new_leaves(subject, polynomial)
    _assert_one_graph(subject, call, leaves, backend, partial(_assert_right, subject, polynomial, leaves))


def _assert_dirty_right(subject, data, backend, inside):
    """A Function that changes its argument: the caller's tensor, or one made ``inside`` the compiled code.

    The argument may have been used before; afterwards it, or the result, is used on, and the other one discarded.
    """
    weight, shift = subject.draw(data, st.tuples(st.sampled_from((-2, 3)), st.sampled_from((-1, 2))), "weights")
    numbers = np.asarray(subject.draw(data, st.lists(st.integers(-9, 9), min_size=1, max_size=4), "values"), float)
    used = subject.draw(data, ("argument", "result"), "used after the call")
    before = subject.draw(data, (0, 5), "factor of a use before the call")

    def forward(ctx, x, y):
        x.mul_(weight).add_(y)
        ctx.mark_dirty(x)
        return x, y * shift

    def backward(ctx, g, h):
        return FACTOR * weight * g, g + FACTOR * shift * h

    dirty = subject.define(forward=forward, backward=backward)
    leaves = [subject.tensor(numbers).requires_grad_(), subject.tensor(numbers + 1).requires_grad_()]
    primals = [x.clone() for x in leaves]

    def call(x, y):
        argument = x.clone() if inside else x
        earlier = argument * before
        result, other = dirty.apply(argument, y)
        return (argument if used == "argument" else result), other + earlier

    changed = weight * numbers + numbers + 1

    def check(outputs):
        expected = [changed, (numbers + 1) * shift + before * numbers]
        subject.assert_all_same("outputs of compiled code", got=outputs, expected=expected)
        subject.assert_same("first argument after the call", got=primals[0], expected=numbers if inside else changed)
        g, h = numbers + 9, numbers - 2
        got = torch.autograd.grad(outputs, leaves, subject.tensors([g, h]))
        expected = [FACTOR * weight * g + before * h, g + FACTOR * shift * h]
        subject.assert_all_same("gradients of compiled code", got=got, expected=expected)

    _assert_one_graph(subject, call, primals, backend, check)


@keeps("COMPILE-02", variant="dirty", slow=True, examples=0.3)
def test_mark_dirty_is_traced(subject, data):
    """A Function that changes its argument in place is traced into one graph with right results."""
    places = (("eager", False), ("eager", True), ("aot_eager", True))
    backend, inside = subject.draw(data, places, "backend, and whether the changed tensor is made in compiled code")
    _assert_dirty_right(subject, data, backend, inside)


@keeps("COMPILE-02", variant="argument", slow=True, examples=0.08)
def test_mark_dirty_of_an_argument_is_traced_ahead_of_time(subject, data):
    """aot_eager traces a Function that changes the caller's own tensor."""
    _assert_dirty_right(subject, data, "aot_eager", inside=False)


@keeps("COMPILE-03", slow=True, examples=0.2)
def test_a_tensor_may_be_passed_twice(subject, data):
    """A tensor passed for two arguments gets both gradients; a full graph may be refused instead."""
    drawn = polynomials(arguments=("tracked", "fixed"), outputs=("float",), powers=(1,), dtypes=subject.dtypes, **SMALL)
    polynomial = subject.draw(data, drawn.filter(lambda p: sum(p.needs) > 1), "function")
    backend = subject.draw(data, BACKENDS, "backend")
    tracked = polynomial.tracked
    first, second = subject.draw(data, st.permutations(tracked).map(lambda p: p[:2]), "arguments that are one tensor")
    call, leaves = subject.call_of(polynomial, _scaled(subject, polynomial)), new_leaves(subject, polynomial)
    inputs = [leaves[first] if i == second else x for i, x in enumerate(leaves)]
    change = polynomial.values[first] - polynomial.values[second]
    outputs = [
        np.asarray(y + w * change) for y, w in zip(polynomial.forward(), polynomial.weights[:, second], strict=True)
    ]
    found = polynomial.vjp(polynomial.cotangents())

    def check(got):
        subject.assert_all_same("outputs of compiled code", got=got, expected=outputs)
        (gradient,) = _gradients(subject, polynomial, got, [leaves[first]])
        expected = np.asarray(FACTOR * (found[first] + found[second]))
        subject.assert_same("gradient of the tensor that was passed twice", got=gradient, expected=expected)

    assert_right_or_refused(backend, lambda *tensors: call(*tensors), inputs, check)


def _assert_same_as_uncompiled(subject, data, outputs=("float",), **members):
    polynomial = subject.polynomial(data, **{**SMALL, "outputs": outputs})
    backend = subject.draw(data, BACKENDS, "backend")
    call, leaves = (
        subject.call_of(polynomial, _scaled(subject, polynomial, **members)),
        new_leaves(subject, polynomial),
    )
    assert_right_or_refused(backend, call, leaves, partial(_assert_right, subject, polynomial, leaves))


@keeps("COMPILE-04", slow=True, examples=0.2)
def test_a_function_with_jvp_runs(subject, data):
    """Outputs and gradients of a Function with jvp are right; a full graph may be refused instead."""
    _assert_same_as_uncompiled(subject, data, jvp=lambda ctx, *tangents: tangents)


@keeps("COMPILE-04", variant="forward", slow=True, examples=0.08)
def test_compiled_code_uses_the_own_jvp(subject, data):
    """The tangents of compiled code come from the Function's jvp; a full graph may be refused instead."""
    polynomial = subject.polynomial(data, **{**SMALL, "max_outputs": 1, "powers": (1,)})
    backend = subject.draw(data, BACKENDS, "backend")
    weights, floating = polynomial.weights[0].tolist(), polynomial.floating

    def jvp(ctx, *tangents):
        return (FACTOR * sum(w * tangents[i] for w, i in zip(weights, floating, strict=True)),)

    call = subject.call_of(polynomial, _scaled(subject, polynomial, jvp=jvp))
    primals = [x.detach() for x in new_leaves(subject, polynomial)]

    def check(outputs):
        got = [torch.autograd.forward_ad.unpack_dual(y).tangent for y in outputs]
        expected = [np.asarray(FACTOR * y) for y in polynomial.forward()]
        subject.assert_all_same("tangents of compiled code", got=got, expected=expected)

    with torch.autograd.forward_ad.dual_level():
        make_dual = torch.autograd.forward_ad.make_dual
        duals = [make_dual(x, x.clone()) if x.is_floating_point() else x for x in primals]
        assert_right_or_refused(backend, call, duals, check)


@keeps("COMPILE-05", slow=True, examples=0.2)
def test_a_function_with_vjp_for_backward_runs(subject, data):
    """Outputs and gradients of a Function with vjp are right; a full graph may be refused instead."""
    _assert_same_as_uncompiled(subject, data, rule="vjp")


def _boxed(subject, weight, count):
    """A Function with ``count`` equal outputs whose backward gets a list."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        outputs = tuple(weight * x * x for _ in range(count))
        return outputs if count > 1 else outputs[0]

    def backward(ctx, cotangents):
        (x,) = ctx.saved_tensors
        return FACTOR * weight * x * cotangents[count - 1]

    return subject.define(forward=forward, backward=backward, boxed_grads_call=True)


def _assert_boxed_right(subject, data, count):
    weight = subject.draw(data, (-1, 1, 2), "weight")
    shape = subject.draw(data, ((2,), (3,), (2, 3)), "shape")
    backend = subject.draw(data, BACKENDS, "backend")
    values = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    x, boxed = subject.tensor(values).requires_grad_(), _boxed(subject, weight, count)

    def check(outputs):
        last = outputs[-1] if count > 1 else outputs
        subject.assert_equal("requires_grad of the last output of compiled code", got=last.requires_grad, expected=True)
        subject.assert_same("last output of compiled code", got=last, expected=weight * values**2)
        (got,) = torch.autograd.grad(last, x, subject.tensor(values + 1))
        subject.assert_same("gradient of compiled code", got=got, expected=FACTOR * weight * values * (values + 1))

    assert_right_or_refused(backend, lambda x: boxed.apply(x), [x], check)


@keeps("COMPILE-06", variant="one", slow=True, examples=0.08)
def test_boxed_calls_with_one_output_run(subject, data):
    """A boxed Function with one output has right results; a full graph may be refused instead."""
    _assert_boxed_right(subject, data, 1)


@keeps("COMPILE-06", variant="several", slow=True, examples=0.2)
def test_boxed_calls_with_several_outputs_run(subject, data):
    """A boxed Function with several outputs has right results; a full graph may be refused instead."""
    _assert_boxed_right(subject, data, subject.draw(data, (2, 3), "outputs"))


def _assert_second_derivative_right_or_refused(subject, data, backends):
    """A second derivative, together with that of a term outside the compiled code, is right or raises."""
    drawn = polynomials(arguments=("tracked", "fixed"), powers=(2,), dtypes=subject.dtypes, max_outputs=1,
                        max_arguments=2, separate=None, shapes=((), (3,), (2, 3)))  # fmt: skip
    polynomial = subject.draw(data, drawn, "function")
    backend = subject.draw(data, backends, "backend")
    call, leaves = subject.call_of(polynomial), new_leaves(subject, polynomial)
    tracked = [x for x in leaves if x.requires_grad]
    (cotangent,) = polynomial.cotangents()
    with fresh():
        outputs = torch.compile(call, backend=backend)(*leaves)
        first = _gradients(subject, polynomial, outputs, leaves, create_graph=True)
        expected = right_gradients(polynomial, [cotangent])
        subject.assert_all_same("gradients of compiled code", got=first, expected=expected)
        with suppress(RuntimeError):
            second = torch.autograd.grad(
                sum(g.sum() + (x * x).sum() for g, x in zip(first, tracked, strict=True)), tracked
            )
            weights = [
                w for w, i in zip(polynomial.weights[0], polynomial.floating, strict=True) if polynomial.needs[i]
            ]
            values = [v for v, need in zip(polynomial.values, polynomial.needs, strict=True) if need]
            expected = [np.asarray(2 * w * cotangent + 2 * v) for w, v in zip(weights, values, strict=True)]
            subject.assert_all_same("second derivatives through compiled code", got=second, expected=expected)


@keeps("COMPILE-07", slow=True, examples=0.2)
def test_second_derivatives_ahead_of_time_are_right_or_refused(subject, data):
    """With aot_eager a second derivative is right, or it raises RuntimeError."""
    _assert_second_derivative_right_or_refused(subject, data, ("aot_eager",))


@keeps("COMPILE-08", slow=True, examples=0.2)
def test_second_derivatives_of_the_traced_graph_are_right_or_refused(subject, data):
    """With the eager backend a second derivative is right, or it raises RuntimeError."""
    _assert_second_derivative_right_or_refused(subject, data, ("eager",))


class _Called(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *tensors):
        return self.f(*tensors)


# Functions of one to three tensors, since tracers look at signatures.
SIGNATURES = {1: lambda f: lambda a: f(a), 2: lambda f: lambda a, b: f(a, b), 3: lambda f: lambda a, b, c: f(a, b, c)}
TRACERS = {
    "make_fx": lambda f, xs: proxy_tensor.make_fx(f)(*xs),
    "make_fx of symbolic shapes": lambda f, xs: proxy_tensor.make_fx(f, tracing_mode="symbolic")(*xs),
    "symbolic_trace": lambda f, xs: torch.fx.symbolic_trace(f),
    "torch.export": lambda f, xs: torch.export.export(_Called(f), tuple(xs), strict=False).module(),
    "torch.export, strict": lambda f, xs: torch.export.export(_Called(f), tuple(xs), strict=True).module(),
    "torch.jit.trace": lambda f, xs: torch.jit.trace(f, tuple(xs)),
}


def _assert_traced(subject, data, tracers, factor):
    """A traced Function is right for inputs that are twice as large; returns the tracer's result."""
    restrictions = {**SMALL, "shapes": ((), (3,), (2, 3))}
    polynomial = subject.polynomial(data, outputs=("float",), **restrictions)
    tracer = subject.draw(data, tracers, "tracer")
    call, leaves = subject.call_of(polynomial, _scaled(subject, polynomial)), new_leaves(subject, polynomial)
    with fresh():
        traced = TRACERS[tracer](SIGNATURES[len(leaves)](call), leaves)
        twice = [(2 * x).detach().requires_grad_(x.requires_grad) for x in leaves]
        outputs = traced(*twice)
    expected = [np.asarray(2**polynomial.power * y) for y in polynomial.forward()]
    subject.assert_all_same("outputs of the traced function", got=outputs, expected=expected)
    subject.assert_equal(
        "requires_grad of the outputs of the traced function",
        got=[y.requires_grad for y in outputs],
        expected=[True] * len(outputs),
    )
    got = _gradients(subject, polynomial, outputs, twice)
    scale = factor * 2 ** (polynomial.power - 1)
    expected = [np.asarray(scale * g) for g in right_gradients(polynomial)]
    subject.assert_all_same("gradients of the traced function", got=got, expected=expected)
    return traced


@keeps("COMPILE-09", slow=True, examples=0.4)
def test_tracers_see_the_operations_of_forward(subject, data):
    """The traced graph has the derivative of forward's operations and no node of the Function."""
    tracers = ("make_fx", "make_fx of symbolic shapes", "symbolic_trace", "torch.export")
    traced = _assert_traced(subject, data, tracers, factor=1)
    targets = [str(node.target) for node in traced.graph.nodes]
    subject.assert_equal("traces of the Function in the graph", got=[t for t in targets if "Scaled" in t], expected=[])


@keeps("COMPILE-09", variant="strict", slow=True, examples=0.08)
def test_strict_export_sees_the_operations_of_forward(subject, data):
    """A strict export has the derivative of forward's operations."""
    _assert_traced(subject, data, ("torch.export, strict",), factor=1)


@keeps("COMPILE-10", slow=True, examples=0.4)
def test_a_traced_script_keeps_the_own_backward(subject, data):
    """A torch.jit.trace of a Function uses the Function's own backward."""
    _assert_traced(subject, data, ("torch.jit.trace",), factor=FACTOR)
