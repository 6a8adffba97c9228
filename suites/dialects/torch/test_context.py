"""Every attribute of ctx: what it holds in forward, in backward and on grad_fn, and which can be assigned."""

import operator

import numpy as np
import torch
from hypothesis import strategies as st

from autograd_conformance.harness.testing.marks import keeps
from autograd_conformance.suites.contract._ctx_observers import THREE, doubled, nothing, observing_ctx, three_tensors
from autograd_conformance.suites.contract._derivatives import arguments
from autograd_conformance.suites.dialects.torch._leaves import starts_of
from autograd_conformance.suites.dialects.torch._nodes import metadata_of, node_of

READ_ONLY = ("metadata", "next_functions", "requires_grad", "saved_tensors", "saved_variables")
# The attributes that hold the arguments of the marking methods until forward is over.
PENDING = {
    "to_save": "save_for_backward",
    "saved_for_forward": "save_for_forward",
    "dirty_tensors": "mark_dirty",
    "non_differentiable": "mark_non_differentiable",
}
REPLACEABLE = (*PENDING, *PENDING.values(), "needs_input_grad", "name", "register_hook", "register_prehook")
GONE = ("_do_backward", "_do_forward", "previous_functions", "retain_variables", "shared_pairs")
VALUES = (None, True, 5, "text", (), {})
NOT_BOOLS = (None, 0, 1, 0.5, "text", (), np.True_)

# When a test looks at ctx: while it is set up, and as grad_fn before, in and after a pass that frees the graph.
ENTRIES = ("forward", "setup_context")
MOMENTS = (*ENTRIES, "grad_fn", "backward", "freed")


def _backpropagate(run):
    """One backward pass that frees the graph."""
    torch.autograd.backward(*starts_of(run.subject, run.polynomial, run.outputs))


def _at(subject, data, moment, look, **restrictions):
    """Run a drawn Function and its backward, and call ``look(ctx)`` at this moment; returns the run."""
    separate = moment == "setup_context" if moment in ENTRIES else None
    polynomial = subject.polynomial(data, separate=separate, **restrictions)
    looks = {name: look if name == moment else nothing for name in MOMENTS}
    enter = looks["setup_context" if polynomial.separate else "forward"]
    run = subject.run(polynomial, cls=observing_ctx(subject, polynomial, lambda ctx, *_: enter(ctx), looks["backward"]))
    node = node_of(run)
    looks["grad_fn"](node)
    _backpropagate(run)
    looks["freed"](node)
    return run


@keeps("CTX-03", variant="freed")
def test_attributes_survive_a_pass_that_frees_the_graph(subject, data):
    """grad_fn still has the attributes of forward and backward after a pass that freed the graph."""
    polynomial = subject.polynomial(data, separate=None)
    values = subject.draw(data, st.lists(st.sampled_from(VALUES), min_size=2, max_size=2), "stored: forward, backward")
    cls = observing_ctx(
        subject,
        polynomial,
        lambda ctx, *_: setattr(ctx, "early", values[0]),
        lambda ctx: setattr(ctx, "late", values[1]),
    )
    run = subject.run(polynomial, cls=cls)
    _backpropagate(run)
    node = node_of(run)
    subject.assert_equal("attributes of grad_fn after backward", got=[node.early, node.late], expected=values)


@keeps("CTX-05")
def test_what_describes_the_graph_is_read_only(subject, data):
    """The attributes that describe the graph can be neither assigned nor deleted, at any moment."""
    name = subject.draw(data, READ_ONLY, "attribute")
    value = subject.draw(data, VALUES, "value")
    moment = subject.draw(data, MOMENTS, "moment")

    def look(ctx):
        subject.assert_raises(AttributeError, lambda: setattr(ctx, name, value), "an assignment", naming=[name])
        subject.assert_raises(AttributeError, lambda: delattr(ctx, name), "a deletion", naming=[name])

    _at(subject, data, moment, look)


@keeps("CTX-05", variant="materialize_grads")
def test_materialize_grads_takes_a_bool_and_cannot_be_read(subject, data):
    """materialize_grads takes bools only and cannot be read, at any moment."""
    moment = subject.draw(data, MOMENTS, "moment")
    value = subject.draw(data, NOT_BOOLS, "value")
    flag = subject.draw(data, st.booleans(), "then set to")

    def assign(ctx, new):
        ctx.materialize_grads = new

    def look(ctx):
        subject.assert_raises(TypeError, lambda: assign(ctx, value), "an assignment of a non-bool", naming=["bool"])
        subject.assert_accepted(lambda: assign(ctx, flag), "an assignment of a bool")
        naming = ["materialize_grads"]
        subject.assert_raises(AttributeError, lambda: ctx.materialize_grads, "reading materialize_grads", naming=naming)

    _at(subject, data, moment, look)


@keeps("CTX-05", variant="replaced")
def test_other_attributes_can_be_replaced(subject, data):
    """Every other attribute of ctx can be assigned and gives back what was assigned."""
    name = subject.draw(data, REPLACEABLE, "attribute")
    value = subject.draw(data, VALUES, "value")
    moment = subject.draw(data, MOMENTS, "moment")
    read = []

    def look(ctx):
        before = getattr(ctx, name)
        subject.assert_accepted(lambda: setattr(ctx, name, value), "an assignment")
        read.append(getattr(ctx, name))
        setattr(ctx, name, before)

    _at(subject, data, moment, look)
    subject.assert_that(read[0] is value, f"ctx.{name} after an assignment", got=read[0], expected=value)


@keeps("CTX-05", variant="apply")
def test_backward_cannot_do_without_apply(subject, data):
    """A backward pass raises TypeError once ctx.apply is replaced."""
    value = subject.draw(data, VALUES, "value")
    moment = subject.draw(data, (*ENTRIES, "grad_fn"), "moment")
    what = "a backward pass once ctx.apply is replaced"

    def run():
        return _at(subject, data, moment, lambda ctx: setattr(ctx, "apply", value))

    subject.assert_raises(TypeError, run, what, naming=["callable"])


HISTORIES = {
    "leaf": lambda x: x.requires_grad_(),
    "result": lambda x: x.requires_grad_() * 1,
    "second output": lambda x: torch.stack((x, x)).requires_grad_().unbind()[1],
}


def _edge(x):
    edge = torch.autograd.graph.get_gradient_edge(x) if x.requires_grad else None
    return (edge.node, edge.output_nr) if edge else (None, 0)


@keeps("CTX-05", variant="held")
def test_what_describes_the_graph_stays(subject, data):
    """Flags, edges and metadata are the same from forward until after the pass; metadata keeps its entries."""
    polynomial = subject.polynomial(data, separate=None)
    history = subject.draw(data, HISTORIES, "history of the tracked arguments")
    tensors = [
        HISTORIES[history](x) if tracked else x
        for x, tracked in zip(subject.primals(polynomial), polynomial.track, strict=True)
    ]
    ends = tuple(_edge(x) for x in tensors)
    seen = []

    def look(ctx, *_):
        seen.append((ctx.needs_input_grad, ctx.next_functions, ctx.requires_grad, metadata_of(ctx)))
        (ctx.metadata() if callable(ctx.metadata) else ctx.metadata)["looks"] = len(seen)

    outputs = observing_ctx(subject, polynomial, look, look).apply(*arguments(polynomial, tensors))
    y, g = next((y, g) for y, g in zip(outputs, polynomial.cotangents(), strict=True) if g is not None)
    look(y.grad_fn)
    y.backward(subject.tensor(g, polynomial.dtype))
    look(y.grad_fn)
    needs, edges, flags, notes = zip(*seen, strict=True)
    when = "in forward, on grad_fn, in backward and after it"
    subject.assert_equal(f"needs_input_grad {when}", got=needs, expected=(polynomial.needs,) * 4)
    subject.assert_equal(f"next_functions {when}", got=edges, expected=(ends,) * 4)
    subject.assert_equal(f"requires_grad {when}", got=flags, expected=(True,) * 4)
    subject.assert_equal(f"metadata {when}", got=notes, expected=({}, {"looks": 1}, {"looks": 2}, {"looks": 3}))


@keeps("CTX-05", variant="hooks")
def test_hooks_can_be_registered_from_forward_on(subject, data):
    """Hooks registered on ctx or grad_fn run, unless their handle was removed."""
    moment = subject.draw(data, (*ENTRIES, "grad_fn"), "moment")
    method = subject.draw(data, ("register_hook", "register_prehook"), "method")
    removed = subject.draw(data, st.booleans(), "handle removed")
    fired = []

    def look(ctx):
        handle = getattr(ctx, method)(lambda *_: fired.append(method))
        if removed:
            handle.remove()

    _at(subject, data, moment, look)
    subject.assert_equal("hooks that ran", got=fired, expected=[] if removed else [method])


def _same_objects(got, expected):
    return len(got) == len(expected) and all(map(operator.is_, got, expected))


@keeps("CTX-06", variant="later")
def test_saved_tensors_is_there_once_forward_is_over(subject, data):
    """grad_fn and backward have the saved tensors; once the graph is freed, reading them raises."""
    polynomial = subject.polynomial(data, separate=None)
    given, seen = [], []

    def enter(ctx, inputs, _):
        given.extend(inputs[i] for i in polynomial.floating)
        ctx.save_for_forward(given[0])
        seen.append(("in forward, after save_for_forward", ctx.saved_tensors, given[:1]))

    def leave(ctx):
        seen.append(("in backward", ctx.saved_tensors, given))

    run = subject.run(polynomial, cls=observing_ctx(subject, polynomial, enter, leave))
    node = node_of(run)
    seen.append(("of grad_fn", node.saved_tensors, given))
    _backpropagate(run)
    for when, got, expected in seen:
        subject.assert_that(_same_objects(got, expected), f"saved_tensors {when}", got=got, expected=tuple(expected))
    naming = ["saved tensors", "retain_graph"]
    subject.assert_raises(RuntimeError, lambda: node.saved_tensors, "saved_tensors of a freed node", naming=naming)


def _some(inputs, outputs):
    """The arguments for each marking method, by the attribute that holds them; the first input is returned."""
    saved = (inputs[1], None, outputs[1])
    return {
        "to_save": saved,
        "saved_for_forward": saved,
        "dirty_tensors": (inputs[0],),
        "non_differentiable": (outputs[2],),
    }


def _first_returned(tensors):
    return tensors[0], tensors[1] * 2, tensors[2] * 3


@keeps("CTX-07")
def test_what_is_marked_waits_on_ctx_until_forward_is_over(subject, data):
    """The pending attributes hold what the marking methods got, and are None before and afterwards."""
    marked = subject.draw(data, st.lists(st.sampled_from(tuple(PENDING)), unique=True), "filled by their methods")
    separate = subject.draw(data, st.booleans(), "separate style")
    given, before, after, later = {}, {}, {}, []

    def waiting(ctx):
        return {name: getattr(ctx, name) for name in PENDING}

    def mark(ctx, inputs, outputs):
        before.update(waiting(ctx))
        given.update(_some(inputs, outputs))
        for name in marked:
            getattr(ctx, PENDING[name])(*given[name])
        after.update(waiting(ctx))

    f = three_tensors(subject, _first_returned, mark, lambda ctx: later.append(waiting(ctx)), separate)
    a, b, c = subject.tensors(THREE)
    _, y, _ = f(a, b.requires_grad_(), c)
    later.append(waiting(y.grad_fn))
    y.sum().backward()
    later.append(waiting(y.grad_fn))
    nothing_waits = dict.fromkeys(PENDING)
    subject.assert_equal("what waits on ctx before", got=before, expected=nothing_waits)
    for name, got in after.items():
        expected = given[name] if name in marked else None
        same = got is expected is None or (isinstance(got, tuple) and _same_objects(got, expected or ()))
        subject.assert_that(same, f"ctx.{name} in forward", got=got, expected=expected)
    subject.assert_equal("what waits on grad_fn, in backward and after it", got=later, expected=[nothing_waits] * 3)


def _effects(subject, name, separate, mark):
    """The effect of ``mark(ctx, given)``: requires_grad and version of each output, and the saved tensors."""
    saved = []
    f = three_tensors(
        subject,
        _first_returned if name == "dirty_tensors" else doubled,
        lambda ctx, inputs, outputs: mark(ctx, _some(inputs, outputs)[name]),
        lambda ctx: saved.extend(None if x is None else x.tolist() for x in ctx.saved_tensors),
        separate,
    )
    tensors = a, b, c = subject.tensors(THREE)
    if name == "saved_for_forward":
        subject.implementation.jvp(f, tensors, tensors)
        return saved
    outputs = f(a, b.requires_grad_(), c)
    outputs[1].sum().backward()
    return [y.requires_grad for y in outputs], [y._version for y in outputs], saved


@keeps("CTX-07", variant="assigned")
def test_an_assignment_does_what_the_method_does(subject, data):
    """Assigning to a pending attribute has the effect of calling its method."""
    name = subject.draw(data, tuple(PENDING), "attribute")
    separate = subject.draw(data, st.booleans(), "separate style")
    got = _effects(subject, name, separate, lambda ctx, given: setattr(ctx, name, given))
    expected = _effects(subject, name, separate, lambda ctx, given: getattr(ctx, PENDING[name])(*given))
    what = "effects of the assignment (requires_grad and versions of outputs, saved tensors)"
    subject.assert_equal(what, got=got, expected=expected)


@keeps("CTX-07", variant="tuple")
def test_only_a_tuple_can_be_assigned(subject, data):
    """A non-tuple in a pending attribute makes the call raise an error that names it."""
    name = subject.draw(data, ("to_save", "dirty_tensors", "non_differentiable"), "attribute")
    value = subject.draw(data, ([], 5, "text", {}), "value")
    moment = subject.draw(data, ENTRIES, "moment")

    def run():
        _at(subject, data, moment, lambda ctx: setattr(ctx, name, value))

    subject.assert_raises(RuntimeError, run, "a call after such an assignment", naming=[name, "tuple"])


@keeps("CTX-08")
def test_saved_variables_is_saved_tensors_with_a_warning(subject, data):
    """saved_variables has the tensors of saved_tensors and a DeprecationWarning; once freed, it raises."""
    moment = subject.draw(data, ("grad_fn", "backward"), "moment")
    positions = subject.draw(data, st.lists(st.integers(0, 6), max_size=4), "saved: inputs, outputs, None")
    separate = subject.draw(data, st.booleans(), "separate style")

    def mark(ctx, inputs, outputs):
        ctx.save_for_backward(*((*inputs, *outputs, None)[i] for i in positions))

    def facts(tensors):
        return tuple(None if x is None else (x.tolist(), x.data_ptr(), x.grad_fn) for x in tensors)

    def look(ctx):
        what = "reading ctx.saved_variables"
        got = subject.assert_warns(DeprecationWarning, lambda: ctx.saved_variables, what, naming=["saved_tensors"])
        what = "values, addresses and grad_fn of ctx.saved_variables"
        subject.assert_equal(what, got=facts(got), expected=facts(ctx.saved_tensors))

    f = three_tensors(subject, doubled, mark, look if moment == "backward" else nothing, separate)
    y, *_ = f(*(x.requires_grad_() for x in subject.tensors(THREE)))
    (look if moment == "grad_fn" else nothing)(y.grad_fn)
    y.sum().backward()
    naming = ["saved tensors", "retain_graph"]
    subject.assert_raises(RuntimeError, lambda: y.grad_fn.saved_variables, "saved_variables once freed", naming=naming)


@keeps("CTX-09")
def test_mark_shared_storage_warns_and_does_nothing_else(subject, data):
    """mark_shared_storage warns; outputs, gradients and attributes are as without it."""
    polynomial = subject.polynomial(data, separate=None)
    pairs = subject.draw(data, st.lists(st.sampled_from(VALUES), max_size=3), "arguments next to (input, output)")
    found = []

    def enter(ctx, inputs, outputs):
        def action():
            return ctx.mark_shared_storage((inputs[0], outputs[0]), *pairs)

        what = "a call of ctx.mark_shared_storage"
        before = dict(vars(ctx))
        found.append(subject.assert_warns(FutureWarning, action, what, naming=["mark_shared_storage", "deprecated"]))
        subject.assert_equal("attributes of ctx after it", got=dict(vars(ctx)), expected=before)

    run = subject.run(polynomial, cls=observing_ctx(subject, polynomial, enter))
    cotangents = polynomial.cotangents()
    subject.assert_equal("what mark_shared_storage returned", got=found, expected=[None])
    tensors = [y for y in run.outputs if isinstance(y, torch.Tensor)]
    expected = [y for y in polynomial.forward() if isinstance(y, np.ndarray)]
    subject.assert_all_same("outputs", got=tensors, expected=expected)
    subject.assert_all_same("gradients", got=run.gradients(cotangents), expected=polynomial.vjp(cotangents))


@keeps("CTX-10")
def test_the_old_interface_is_gone(subject, data):
    """ctx has none of the attributes of the old interface, at any moment."""
    moment = subject.draw(data, MOMENTS, "moment")
    found = []
    _at(subject, data, moment, lambda ctx: found.extend(name for name in GONE if hasattr(ctx, name)))
    subject.assert_equal("attributes of the old interface that ctx has", got=found, expected=[])
